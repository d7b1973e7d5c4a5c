"""`hetnn export`: a model, or what a device is given of it, as a file that other tools read."""

from __future__ import annotations

import argparse
import os
from typing import Any

import hetnn
from hetnn.cli.answer import Answer
from hetnn.cli.model import add_compile_arguments, compile_options
from hetnn.cli.progress import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model or file, the file to write, which part, and the options of planning."""
    parser.add_argument(
        "model", help=".pt2, .onnx, .tflite or IR text, or a .hetnn file that was compiled with --keep-graph"
    )
    parser.add_argument("-o", "--output", required=True, metavar="OUT.onnx|OUT.tosa", help="the file to write")
    parser.add_argument(
        "--subgraph",
        metavar="NAME",
        help="of a .hetnn file, or with --target: what one device is given alone, by its name in the plan",
    )
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """Writes the file: `output`, and its `bytes`. InvalidModel for a .hetnn file that holds no graph."""
    options: dict[str, Any] = compile_options(args)
    with Progress("export", args.quiet) as progress:
        hetnn.export(args.model, args.output, target=args.target, subgraph=args.subgraph, progress=progress, **options)
    size_bytes = os.path.getsize(args.output)
    return Answer({"output": args.output, "bytes": size_bytes}, f"{args.output}: {size_bytes:,} bytes")
