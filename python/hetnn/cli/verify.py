"""`hetnn verify`: what is wrong with a .hetnn file, without running it."""

from __future__ import annotations

import argparse

from hetnn import _runtime
from hetnn.cli.answer import Answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.hetnn")


def run(args: argparse.Namespace) -> Answer:
    _runtime.verify(args.file)
    return Answer({"file": args.file, "sound": True}, f"{args.file} is sound")
