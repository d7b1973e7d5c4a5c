"""`hetnn replay`: compiles and runs a part that bisect wrote, beside what is expected of it."""

from __future__ import annotations

import argparse

from hetnn.cli.answer import CHECK_FAILED, DONE, Answer
from hetnn.cli.compare import as_document
from hetnn.inside.replay import replay


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file."""
    parser.add_argument("part", metavar="FILE", help="of hetnn bisect or exe.bisect")


def run(args: argparse.Namespace) -> Answer:
    """`first` and `rows` as of compare; exit code 1 while a value is beyond its bound."""
    found = replay(args.part)
    return Answer(as_document(found), str(found), DONE if found.first is None else CHECK_FAILED)
