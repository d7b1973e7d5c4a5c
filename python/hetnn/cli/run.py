"""`hetnn run`: a model or a .hetnn file on arrays, an image or a sound."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import hetnn
from hetnn.cli.answer import CHECK_FAILED, DONE, Answer
from hetnn.cli.arrays import Array, largest_difference, read_arrays
from hetnn.cli.inputs import add_input_arguments, inputs_of
from hetnn.cli.model import add_compile_arguments, load_or_compile
from hetnn.cli.progress import Progress
from hetnn.progress import counted
from hetnn.report.text import table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, the files of inputs, outputs and expected outputs, and the options of compiling."""
    parser.add_argument("model", help=".hetnn, .pt2, .onnx, .tflite or IR text")
    add_input_arguments(parser)
    parser.add_argument("--outputs", metavar="FILE.npz", help="where to write the outputs, by name")
    parser.add_argument("--expect", metavar="FILE.npz", help="outputs to compare with; exit code 1 when they differ")
    parser.add_argument("--rtol", type=float, default=1e-4, help="tolerance of --expect, relative to the largest value")
    parser.add_argument(
        "--device",
        action="append",
        metavar="NAME=HOST:PORT",
        help="a device that stands behind a device server, repeatable; or a target file that says where devices stand",
    )
    parser.add_argument("--token-file", metavar="F", help="the token of --device's servers")
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """Runs once: `outputs`, of each `name`, `shape`, `dtype` and its extremes, and `run_us`.

    With `--expect` also `difference`, relative to the largest value, and exit code 1 where it is above `--rtol`.
    """
    with Progress("run", args.quiet) as progress:
        executable = load_or_compile(args, progress)
        inputs = inputs_of(executable, args, "run")
        began = time.perf_counter()
        with counted(progress, "run"):
            outputs = [np.asarray(output) for output in executable.run(inputs)]
        run_us = (time.perf_counter() - began) * 1e6
    named = dict(zip([value.name for value in executable.outputs], outputs, strict=True))
    if args.outputs is not None:
        _write_arrays(args.outputs, named)

    rows = [_describe(name, array) for name, array in named.items()]
    document: dict[str, Any] = {"outputs": rows, "run_us": run_us}
    text = table(["output", "shape", "dtype", "min", "max"], [[str(cell) for cell in row.values()] for row in rows])
    status = DONE
    if args.expect is not None:
        document["difference"] = difference = _compare(named, args.expect)
        held = difference <= args.rtol
        status = DONE if held else CHECK_FAILED
        text += f"\ndifference {difference:.3g}, {'within' if held else 'above'} {args.rtol:g}"
    return Answer(document, text, status)


def _describe(name: str, array: Array) -> dict[str, Any]:
    finite = array.dtype.kind in "fiub" and array.size > 0 and bool(np.isfinite(array).all())
    least, greatest = (float(array.min()), float(array.max())) if finite else (None, None)
    return {"name": name, "shape": list(array.shape), "dtype": str(array.dtype), "min": least, "max": greatest}


def _write_arrays(path: str, arrays: dict[str, Array]) -> None:
    with open(path, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _compare(outputs: dict[str, Array], path: str) -> float:
    expected = read_arrays(path)
    if set(expected) == set(outputs):
        return largest_difference(list(outputs.values()), [expected[name] for name in outputs])
    if len(expected) == len(outputs) and not set(expected) & set(outputs):
        return largest_difference(list(outputs.values()), list(expected.values()))
    raise hetnn.InvalidModel(f"'{path}' holds {', '.join(expected)}; the model's outputs are {', '.join(outputs)}.")
