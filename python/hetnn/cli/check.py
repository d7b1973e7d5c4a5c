"""`hetnn check`: every node the target's accelerators do not take as it stands, with all reasons and source lines."""

from __future__ import annotations

import argparse

import hetnn
from hetnn.cli.answer import CHECK_FAILED, DONE, Answer
from hetnn.cli.model import add_target_argument, load_model
from hetnn.cli.progress import Progress
from hetnn.report.text import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model and the target."""
    parser.add_argument("model", help=".pt2, .onnx, .tflite or IR text")
    add_target_argument(parser)


def run(args: argparse.Namespace) -> Answer:
    """Lists the nodes that no accelerator of the target takes: `unsupported`, rows as `hetnn.check` gives them.

    Exit code 1 where there are any.
    """
    target = args.target or "cpu"
    with Progress("check", args.quiet) as progress:
        rows = hetnn.check(load_model(args.model), target, progress=progress)
    summary = f"\nnot for the accelerators of {target}: {count(len(rows), 'node')}" if rows else ""
    return Answer({"unsupported": rows}, f"{rows}{summary}", CHECK_FAILED if rows else DONE)
