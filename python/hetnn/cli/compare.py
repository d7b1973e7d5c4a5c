"""`hetnn compare`: a model as it is compiled beside a reference, value by value."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import hetnn
from hetnn.cli.answer import CHECK_FAILED, DONE, Answer
from hetnn.cli.inputs import add_input_arguments, inputs_of
from hetnn.cli.model import add_compile_arguments, load_or_compile
from hetnn.cli.progress import Progress
from hetnn.importers.model_file import kind_of

if TYPE_CHECKING:
    from hetnn.inside.compare import Comparison


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, what it is compared with, its inputs, the bound, and the options of compiling."""
    parser.add_argument("model", help=".hetnn, .pt2, .onnx, .tflite or IR text")
    add_compare_arguments(parser)
    parser.add_argument("-o", "--output", metavar="FILE.csv", help="write the rows as text with commas, too")
    add_compile_arguments(parser)


def add_compare_arguments(parser: argparse.ArgumentParser) -> None:
    """What is compared with, on what, and how far it may be."""
    parser.add_argument(
        "--reference",
        metavar="FILE",
        help="another model or .hetnn: .pt2 by eager torch, .onnx by ONNX Runtime where it is installed, others by "
        "meaning (default: the model itself, likewise)",
    )
    parser.add_argument("--bound", type=float, help="greatest difference over the greatest magnitude of a value")
    add_input_arguments(parser)


def reference_of(args: argparse.Namespace) -> Any:
    """What the arguments name: an executable, an exported program, or a path."""
    path = args.reference or args.model
    kind = kind_of(path)
    if kind == "hetnn":
        return None if args.reference is None else hetnn.load(path)
    if kind == "pt2":
        import torch

        return torch.export.load(path)
    return path


def as_document(found: Comparison) -> dict[str, Any]:
    """What programs get of a comparison."""
    first = None if found.first is None else {key: found.first.row[key] for key in ("node", "difference", "bound")}
    return {"first": _finite(first), "rows": [_finite(row) for row in found.rows], "reference": found.reference}


def _finite(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """JSON has no infinity."""
    if row is None:
        return None
    return {key: None if isinstance(one, float) and abs(one) == float("inf") else one for key, one in row.items()}


def run(args: argparse.Namespace) -> Answer:
    """`first` (node, difference, bound; None: all is within its bound) and `rows`, as of Executable.compare.

    Exit code 1 where a value is beyond. A difference of None is an infinite one, of a NaN, an infinity or a shape.
    """
    with Progress("compare", args.quiet) as progress:
        executable = load_or_compile(args, progress)
        inputs = inputs_of(executable, args, "compare")
        found = executable.compare(reference_of(args), tuple(inputs), bound=args.bound, progress=progress)
    if args.output is not None:
        found.to_csv(args.output)
    return Answer(as_document(found), str(found), DONE if found.first is None else CHECK_FAILED)
