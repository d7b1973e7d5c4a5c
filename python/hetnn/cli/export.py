"""`hetnn export`: a model, or what a device is given of it, as a file that other tools read."""

from __future__ import annotations

import argparse
import os
from typing import Any

import hetnn
from hetnn.cli.answer import Answer
from hetnn.cli.model import add_compile_arguments, compile_options
from hetnn.cli.progress import Progress
from hetnn.errors import InvalidModel
from hetnn.importers.model_file import kind_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, the file to write, which part, and the options of planning."""
    parser.add_argument("model", help=".pt2, .onnx, .tflite or IR text")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.onnx|OUT.tosa", help="the file to write")
    parser.add_argument(
        "--subgraph", metavar="NAME", help="with --target: what one device is given alone, by its name in the plan"
    )
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """Writes the file: `output`, and its `bytes`. InvalidModel for a .hetnn file, which holds no graph."""
    if os.path.exists(args.model) and kind_of(args.model) == "hetnn":
        raise InvalidModel(
            f"'{args.model}' is compiled already and holds no graph. Export the model that it was compiled from."
        )
    options: dict[str, Any] = compile_options(args)
    with Progress("export", args.quiet) as progress:
        hetnn.export(args.model, args.output, target=args.target, subgraph=args.subgraph, progress=progress, **options)
    size_bytes = os.path.getsize(args.output)
    return Answer({"output": args.output, "bytes": size_bytes}, f"{args.output}: {size_bytes:,} bytes")
