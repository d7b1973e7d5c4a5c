"""`hetnn targets`: the known targets, the data sheet of one, or the schema of all."""

from __future__ import annotations

import argparse
import json

from hetnn.backends.registry import backend_kinds
from hetnn.cli.answer import Answer
from hetnn.target import resolve_target
from hetnn.targets import plain_kinds, preset_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The target to describe, if any, or what a data sheet may say."""
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("name", nargs="?", help="a target to describe")
    asked.add_argument("--schema", action="store_true", help="the JSON schema of an NPU's data sheet")


def run(args: argparse.Namespace) -> Answer:
    """`targets`, the names there are; the target of a name, as `--target` takes it from a file; or the schema."""
    if args.schema:
        from hetnn import _core

        schema = json.loads(_core.json_schema("NPU data sheet"))
        return Answer(schema, json.dumps(schema, indent=1))
    if args.name is not None:
        target = resolve_target(args.name)
        return Answer(target, json.dumps(target, indent=1))
    names = [*plain_kinds(), *preset_names(), "systolic-<rows>x<cols>", *backend_kinds()]
    return Answer({"targets": names}, "\n".join(names))
