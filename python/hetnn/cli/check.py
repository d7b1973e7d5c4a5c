"""`hetnn check`: every node the target's accelerators do not take as it stands, with all reasons and source lines."""

from __future__ import annotations

import argparse
from collections import Counter

import hetnn
from hetnn.cli.answer import CHECK_FAILED, DONE, Answer
from hetnn.cli.model import add_target_argument, load_model
from hetnn.cli.progress import Progress
from hetnn.report.text import count, place


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
    lines = []
    for row in rows:
        where = f"  {place(row)}".rstrip()
        fallback = f"runs on {row['device']}" if row["device"] else "runs nowhere"
        lines.append(f"{row['op']} '{row['node']}' {fallback}{where}")
        lines += [
            f"  {reason['device']}: {reason['text']} ({reason['label']}: {reason['found']}, wanted {reason['wanted']})"
            for reason in row["reasons"]
        ]
    counts = Counter(row["op"] for row in rows)
    if len(rows) > 1:
        lines.append("by operator: " + ", ".join(f"{op} {times}" for op, times in counts.most_common()))
    summary = f"not for the accelerators of {target}: {count(len(rows), 'node')}" if rows else "every node fits"
    return Answer({"unsupported": rows}, "\n".join([*lines, summary]), CHECK_FAILED if rows else DONE)
