"""`hetnn bench`: how long a model takes, and what memory."""

from __future__ import annotations

import argparse
import resource
import time

from hetnn.cli.answer import Answer, BadUse
from hetnn.cli.arrays import match_inputs, random_inputs, read_arrays
from hetnn.cli.model import add_compile_arguments, load_or_compile
from hetnn.cli.progress import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, its inputs, the seconds to measure, and the options of compiling."""
    parser.add_argument("model", help=".hetnn, .pt2, .onnx, .tflite or IR text")
    parser.add_argument("--inputs", metavar="FILE.npz", help="the inputs (default: seeded random)")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long to measure (default: 2)")
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """Times runs after one to warm up, five at least.

    `median_us`, `min_us`, `p90_us`, `runs`, `compile_s`, `peak_bytes` of the process, `arena_bytes`.
    """
    if not args.seconds >= 0:
        raise BadUse(f"--seconds takes a number of at least 0; got {args.seconds}")
    with Progress("bench", args.quiet) as progress:
        began = time.perf_counter()
        executable = load_or_compile(args, progress)
        compile_s = time.perf_counter() - began
        if args.inputs is None:
            inputs = random_inputs(executable)
        else:
            inputs = match_inputs(executable, read_arrays(args.inputs), args.inputs)
        progress("warm up")
        executable.run(inputs)
        progress("measure")
        spent_us: list[float] = []
        end = time.perf_counter() + args.seconds
        while len(spent_us) < 5 or time.perf_counter() < end:
            start = time.perf_counter()
            executable.run(inputs)
            spent_us.append((time.perf_counter() - start) * 1e6)
    spent_us.sort()
    document = {
        "median_us": spent_us[len(spent_us) // 2],
        "min_us": spent_us[0],
        "p90_us": spent_us[len(spent_us) * 9 // 10],
        "runs": len(spent_us),
        "compile_s": compile_s,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "arena_bytes": executable.arena_bytes,
    }
    text = (
        f"median {document['median_us']:.0f} us, least {document['min_us']:.0f} us, "
        f"90 % under {document['p90_us']:.0f} us, {document['runs']} runs\n"
        f"compiled in {compile_s:.2f} s, arena {document['arena_bytes']} bytes, process {document['peak_bytes']} bytes"
    )
    return Answer(document, text)
