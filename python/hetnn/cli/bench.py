"""`hetnn bench`: how long a model takes, how many runs a second there are, and what memory."""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Mapping
from statistics import mean, median
from typing import Any

from hetnn.cli.answer import Answer, BadUse
from hetnn.cli.inputs import add_input_arguments, several_inputs
from hetnn.cli.model import add_compile_arguments, load_or_compile
from hetnn.cli.progress import Progress
from hetnn.inside.bench import measure
from hetnn.progress import Step, Telling, counted
from hetnn.report.text import count

_PERCENTILES = (50, 90, 95, 99)
_MOST_STREAMS = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, its inputs, how long, how often and how many at once to run, and the options of compiling."""
    parser.add_argument("model", help=".hetnn, .pt2, .onnx, .tflite or IR text")
    add_input_arguments(parser)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long to measure (default: 2)")
    parser.add_argument("--runs", type=int, metavar="N", help="this many runs, however long they take")
    parser.add_argument(
        "--streams", type=int, default=1, metavar="N", help="runs at a time (default: 1); --threads is of each"
    )
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """Times runs after one to warm up, five at least, on the inputs in turns (`--inputs FOLDER`: one a file).

    Medians of what one run takes, by name: `cpu_us` on the CPU, measured; `npu_us` on accelerators, by their clocks
    (simulated); `simulating_us`, what simulating them took here. Of whole runs as they went by here, simulating
    included: `first_us`, that to warm up; `median_us`, `mean_us`, `min_us`, `max_us`, `p90_us`, `p95_us`, `p99_us`; and
    `runs_per_s` of all `streams`. `runs`, `inputs`, `compile_s`, `peak_bytes` of the process, `arena_bytes`.
    """
    _check(args)
    with Progress("bench", args.quiet) as progress:
        began = time.perf_counter()
        executable = load_or_compile(args, progress)
        compile_s = time.perf_counter() - began
        inputs = several_inputs(executable, args, "bench")
        began = time.perf_counter()
        with counted(progress, "warm up"):
            executable.run(inputs[0])
        first_us = (time.perf_counter() - began) * 1e6
        telling = Telling(progress)
        progress(Step("measure"))
        measured = measure(
            executable, inputs, args.seconds, args.runs, args.streams, lambda done: telling("measure", done)
        )
    document = {
        "cpu_us": median(one.measured_us for one in measured.figures),
        "npu_us": median(one.simulated_us for one in measured.figures),
        "simulating_us": median(one.simulating_us for one in measured.figures),
        "first_us": first_us,
        "mean_us": mean(measured.spent_us),
        "min_us": min(measured.spent_us),
        "max_us": max(measured.spent_us),
        **{"median_us" if p == 50 else f"p{p}_us": measured.percentile(p) for p in _PERCENTILES},
        "runs_per_s": len(measured.spent_us) / measured.wall_s,
        "runs": len(measured.spent_us),
        "streams": args.streams,
        "threads": executable.threads,
        "inputs": len(inputs),
        "compile_s": compile_s,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "arena_bytes": executable.arena_bytes,
    }
    return Answer(document, _text(document))


def _check(args: argparse.Namespace) -> None:
    if not args.seconds >= 0:
        raise BadUse(f"--seconds takes a number of at least 0; got {args.seconds}")
    if args.runs is not None and args.runs < 1:
        raise BadUse(f"--runs takes a number of at least 1; got {args.runs}")
    if not 1 <= args.streams <= _MOST_STREAMS:
        raise BadUse(f"--streams takes a number from 1 to {_MOST_STREAMS}; got {args.streams}")


def _text(found: Mapping[str, Any]) -> str:
    lines = [f"CPU, measured: {found['cpu_us']:,.0f} us a run"]
    whole = "whole run"
    if found["simulating_us"]:
        lines.append(f"NPU, simulated, by its clock: {found['npu_us']:,.0f} us a run")
        lines.append(f"simulating the NPU took: {found['simulating_us']:,.0f} us a run, which no device would")
        whole = "whole run here, simulating included"
    streams = "one at a time" if found["streams"] == 1 else f"{found['streams']} at a time"
    lines += [
        f"{whole}: median {found['median_us']:,.0f} us, mean {found['mean_us']:,.0f}, least {found['min_us']:,.0f}, "
        f"90 % under {found['p90_us']:,.0f}, 95 % {found['p95_us']:,.0f}, 99 % {found['p99_us']:,.0f}, "
        f"most {found['max_us']:,.0f}; the first {found['first_us']:,.0f}",
        f"{found['runs_per_s']:,.1f} runs a second, {streams}: {count(found['runs'], 'run')}",
        f"compiled in {found['compile_s']:.2f} s, arena {found['arena_bytes']:,} bytes, "
        f"process {found['peak_bytes']:,} bytes",
    ]
    return "\n".join(lines)
