"""`hetnn bisect`: the smallest part of a model that is wrong by itself, as a file."""

from __future__ import annotations

import argparse

from hetnn.cli.answer import CHECK_FAILED, Answer
from hetnn.cli.compare import add_compare_arguments, as_document, reference_of
from hetnn.cli.inputs import inputs_of
from hetnn.cli.model import add_compile_arguments, compile_model
from hetnn.cli.progress import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, what it is compared with, the file to write, and the options of compiling."""
    parser.add_argument("model", help=".pt2, .onnx, .tflite or IR text")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the file that hetnn replay takes")
    add_compare_arguments(parser)
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """`nodes` of the smallest part that is beyond its bound by itself, `output`, the file of it, `first` and `rows`,
    and exit code 1; where nothing is beyond, `nodes` is empty and nothing written.
    """
    with Progress("bisect", args.quiet) as progress:
        executable = compile_model(args, progress)
        inputs = inputs_of(executable, args, "bisect")
        found = executable.bisect(reference_of(args), tuple(inputs), args.output, bound=args.bound, progress=progress)
    if found is None:
        return Answer({"nodes": [], "output": None, "first": None, "rows": []}, "nothing is beyond its bound")
    document = {"nodes": found.nodes, "output": found.path, **as_document(found.comparison)}
    return Answer(document, str(found), CHECK_FAILED)
