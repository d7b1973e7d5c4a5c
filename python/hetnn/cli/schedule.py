"""`hetnn schedule`: how the NPU computes the layers of a .hetnn file, as text that `hetnn compile --schedule` takes."""

from __future__ import annotations

import argparse

from hetnn import _core
from hetnn.cli.answer import Answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The .hetnn file."""
    parser.add_argument("model", metavar="MODEL.hetnn")


def run(args: argparse.Namespace) -> Answer:
    """The schedules as one text: `schedule`."""
    text: str = _core.schedules(args.model)
    return Answer({"schedule": text}, text.rstrip("\n") if text else "# no accelerator subgraphs")
