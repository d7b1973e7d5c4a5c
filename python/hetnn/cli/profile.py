"""`hetnn profile`: what each kernel and layer takes, on its device's own time."""

from __future__ import annotations

import argparse

from hetnn.cli.answer import Answer, BadUse
from hetnn.cli.inputs import add_input_arguments, inputs_of
from hetnn.cli.model import add_compile_arguments, load_or_compile
from hetnn.cli.progress import Progress
from hetnn.progress import counted, part
from hetnn.report.rows import Rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, its inputs, how many rows, the file to write, and the options of compiling."""
    parser.add_argument("model", help=".hetnn, .pt2, .onnx, .tflite or IR text")
    add_input_arguments(parser)
    parser.add_argument("--top", type=int, default=0, metavar="N", help="only the N dearest (default: all, in order)")
    parser.add_argument("-o", "--output", metavar="FILE.csv", help="write the rows as text with commas, too")
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """Runs once to warm up and once more: `rows`, a row a kernel of the CPU (measured) or layer of an NPU (by its
    clock), as of Executable.profile, and by device `us_on`, their sums.
    """
    if args.top < 0:
        raise BadUse(f"--top takes a number of at least 0; got {args.top}")
    with Progress("profile", args.quiet) as progress:
        executable = load_or_compile(args, progress)
        inputs = inputs_of(executable, args, "profile")
        with counted(progress, "run"):
            with part(0, 2):
                executable.run(inputs)
            with part(1, 2):
                rows = executable.profile(*inputs)
    us_on: dict[str, float] = {}
    for row in rows:
        us_on[row["device"]] = us_on.get(row["device"], 0.0) + row["us"]
    simulated = {row["device"] for row in rows if row["simulated"]}
    if args.top:
        rows = Rows(sorted(rows, key=lambda row: -row["us"])[: args.top], rows.columns, rows.nothing)
    if args.output is not None:
        rows.to_csv(args.output)
    sums = [
        f"{device}: {us:,.1f} us {'by its clock' if device in simulated else 'measured'}"
        for device, us in us_on.items()
    ]
    return Answer({"rows": list(rows), "us_on": us_on}, "\n".join([str(rows), *sums]))
