"""What a MODEL argument may name: a .pt2 of torch.export, an .onnx, a .tflite, a .hetnn, or a text of the IR."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hetnn
from hetnn.cli.answer import BadUse
from hetnn.cli.progress import Progress
from hetnn.importers.model_file import EXPECTED, kind_of
from hetnn.options import add_option_arguments, given_options
from hetnn.remote.places import places_of

if TYPE_CHECKING:
    from hetnn import Executable


def load_model(path: str) -> Path:
    """What `hetnn.compile` takes, from a file. BadUse for one that is compiled already."""
    if kind_of(path) == "hetnn":
        raise BadUse(f"'{path}' is compiled already; this needs a model ({EXPECTED.replace(' a .hetnn', '')})")
    return Path(path)


def add_target_argument(parser: argparse.ArgumentParser) -> None:
    """The flag for what to compile for."""
    parser.add_argument("--target", help="cpu, an NPU preset, a JSON path, or cpu+NAME (default: cpu)")


def add_compile_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of every command that may plan or compile. Defaults are those of the Python functions."""
    add_target_argument(parser)
    parser.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a number for a size that an ONNX or TFLite model leaves open, or the value of an ONNX input; repeatable",
    )
    add_option_arguments(parser)


def parse_pairs(option: str, pairs: list[str]) -> dict[str, Any]:
    """`["threshold=2", "order=min"]` → `{"threshold": 2, "order": "min"}`."""
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise BadUse(f"{option} takes KEY=VALUE; got '{pair}'")
        try:
            values[key] = json.loads(value)
        except ValueError:
            values[key] = value
    return values


def compile_options(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `hetnn.compile` that were given."""
    options = given_options(args, parse_pairs)
    return {**options, "fix": parse_pairs("--fix", args.fix)} if args.fix else options


def compile_model(args: argparse.Namespace, progress: Progress) -> Executable:
    """Compiles `args.model` as the arguments say."""
    options = compile_options(args)
    progress("read the model")
    model = load_model(args.model)
    return hetnn.compile(model, args.target or "cpu", progress=progress, **options)


def load_or_compile(args: argparse.Namespace, progress: Progress) -> Executable:
    """The executable in a .hetnn file, or the model compiled now."""
    devices = _devices(args)
    if kind_of(args.model) != "hetnn":
        executable = compile_model(args, progress)
        if devices:
            executable._move(places_of(devices))
        return executable
    options = compile_options(args)
    threads = options.pop("threads", None)
    if options or args.target is not None:
        raise BadUse(f"'{args.model}' is compiled already; only --threads can still be given")
    progress("load")
    return hetnn.load(args.model, threads=threads, devices=devices)


def _devices(args: argparse.Namespace) -> dict[str, dict[str, Any]] | str | None:
    given = getattr(args, "device", None) or []
    if len(given) == 1 and "=" not in given[0]:
        return str(given[0])
    places = parse_pairs("--device", given)
    if places and args.token_file is None:
        raise BadUse("--device needs --token-file, the file of the device server's token")
    return {name: {"at": str(at), "token_file": args.token_file} for name, at in places.items()} or None
