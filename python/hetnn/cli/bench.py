"""`hetnn bench`: how long a model takes, and what memory."""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Mapping
from statistics import median
from typing import Any

from hetnn.cli.answer import Answer, BadUse
from hetnn.cli.inputs import add_input_arguments, inputs_of
from hetnn.cli.model import add_compile_arguments, load_or_compile
from hetnn.cli.progress import Progress
from hetnn.inside.timeline import Figures, last_figures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, its inputs, the seconds to measure, and the options of compiling."""
    parser.add_argument("model", help=".hetnn, .pt2, .onnx, .tflite or IR text")
    add_input_arguments(parser)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long to measure (default: 2)")
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """Times runs after one to warm up, five at least.

    Medians of what one run takes, by name: `cpu_us` on the CPU, measured; `npu_us` on accelerators, by their clocks
    (simulated); `simulating_us`, what simulating them took here. Of whole runs as they went by here, simulating
    included: `median_us`, `min_us`, `p90_us`. `runs`, `compile_s`, `peak_bytes` of the process, `arena_bytes`.
    """
    if not args.seconds >= 0:
        raise BadUse(f"--seconds takes a number of at least 0; got {args.seconds}")
    with Progress("bench", args.quiet) as progress:
        began = time.perf_counter()
        executable = load_or_compile(args, progress)
        compile_s = time.perf_counter() - began
        inputs = inputs_of(executable, args, "bench")
        progress("warm up")
        executable.run(inputs)
        progress("measure")
        spent_us: list[float] = []
        figures: list[Figures] = []
        end = time.perf_counter() + args.seconds
        while len(spent_us) < 5 or time.perf_counter() < end:
            start = time.perf_counter()
            executable.run(inputs)
            spent_us.append((time.perf_counter() - start) * 1e6)
            figures.append(last_figures(executable))
    spent_us.sort()
    document = {
        "cpu_us": median(one.measured_us for one in figures),
        "npu_us": median(one.simulated_us for one in figures),
        "simulating_us": median(one.simulating_us for one in figures),
        "median_us": spent_us[len(spent_us) // 2],
        "min_us": spent_us[0],
        "p90_us": spent_us[len(spent_us) * 9 // 10],
        "runs": len(spent_us),
        "compile_s": compile_s,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "arena_bytes": executable.arena_bytes,
    }
    return Answer(document, _text(document))


def _text(found: Mapping[str, Any]) -> str:
    lines = [f"CPU, measured: {found['cpu_us']:,.0f} us a run"]
    whole = "whole run"
    if found["simulating_us"]:
        lines.append(f"NPU, simulated, by its clock: {found['npu_us']:,.0f} us a run")
        lines.append(f"simulating the NPU took: {found['simulating_us']:,.0f} us a run, which no device would")
        whole = "whole run here, simulating included"
    lines += [
        f"{whole}: median {found['median_us']:,.0f} us, least {found['min_us']:,.0f} us, "
        f"90 % under {found['p90_us']:,.0f} us, {found['runs']} runs",
        f"compiled in {found['compile_s']:.2f} s, arena {found['arena_bytes']:,} bytes, "
        f"process {found['peak_bytes']:,} bytes",
    ]
    return "\n".join(lines)
