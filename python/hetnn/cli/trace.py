"""`hetnn trace`: one run as a timeline for Perfetto or chrome://tracing."""

from __future__ import annotations

import argparse

from hetnn.cli.answer import Answer
from hetnn.cli.inputs import add_input_arguments, inputs_of
from hetnn.cli.model import add_compile_arguments, load_or_compile
from hetnn.cli.progress import Progress
from hetnn.progress import counted, part


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, its inputs, the file to write, and the options of compiling."""
    parser.add_argument("model", help=".hetnn, .pt2, .onnx, .tflite or IR text")
    parser.add_argument("-o", "--output", metavar="FILE.json", required=True, help="the file to write")
    add_input_arguments(parser)
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """Runs once to warm up and once more, which is written: `output` names the file."""
    with Progress("trace", args.quiet) as progress:
        executable = load_or_compile(args, progress)
        inputs = inputs_of(executable, args, "trace")
        with counted(progress, "run"):
            with part(0, 2):
                executable.run(inputs)
            with part(1, 2):
                executable.trace(args.output, *inputs)
    return Answer({"output": args.output}, f"wrote {args.output}: open it in https://ui.perfetto.dev")
