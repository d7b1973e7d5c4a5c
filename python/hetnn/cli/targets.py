"""`hetnn targets`: the known targets, or the data sheet of one."""

from __future__ import annotations

import argparse
import json

from hetnn.cli.answer import Answer
from hetnn.target import resolve_target
from hetnn.targets import plain_kinds, preset_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The target to describe, if any."""
    parser.add_argument("name", nargs="?", help="a target to describe")


def run(args: argparse.Namespace) -> Answer:
    """`targets`, the names there are; or the target of a name, as `--target` takes it from a file."""
    if args.name is not None:
        target = resolve_target(args.name)
        return Answer(target, json.dumps(target, indent=1))
    names = [*plain_kinds(), *preset_names(), "systolic-<rows>x<cols>"]
    return Answer({"targets": names}, "\n".join(names))
