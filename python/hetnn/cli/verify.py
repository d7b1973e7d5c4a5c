"""`hetnn verify`: what is wrong with a .hetnn file, without running it."""

from __future__ import annotations

import argparse

from hetnn import _core, executable
from hetnn.cli.answer import Answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The .hetnn file."""
    parser.add_argument("file", metavar="FILE.hetnn")


def run(args: argparse.Namespace) -> Answer:
    """Reads every byte and proves every size that is known: `file`, `sound`. InvalidModel says what is wrong."""
    executable.verify(args.file)
    _core.kept_graph_of_file(args.file)
    return Answer({"file": args.file, "sound": True}, f"{args.file} is sound")
