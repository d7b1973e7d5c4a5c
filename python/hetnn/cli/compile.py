"""`hetnn compile`: a model into one .hetnn file."""

from __future__ import annotations

import argparse
import os
import time

from hetnn.cli.answer import Answer
from hetnn.cli.model import add_compile_arguments, compile_model
from hetnn.cli.progress import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, the file to write, and the options of compiling."""
    parser.add_argument("model", help=".pt2, .onnx, .tflite or IR text")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.hetnn", help="the file to write")
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """Compiles and saves: `output`, `bytes` of the file, `compile_s`, and the `report`."""
    began = time.perf_counter()
    with Progress("compile", args.quiet) as progress:
        executable = compile_model(args, progress)
        progress("write")
        executable.save(args.output)
    report = executable.report(format="dict")
    size_bytes = os.path.getsize(args.output)
    compile_s = time.perf_counter() - began
    document = {"output": args.output, "bytes": size_bytes, "compile_s": compile_s, "report": report}
    placed = ", ".join(f"{n} nodes on {device}" for device, n in report["nodes_on"].items())
    text = f"{args.output}: {size_bytes} bytes; {placed}; {len(report['subgraphs'])} subgraphs"
    return Answer(document, text)
