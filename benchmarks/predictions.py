"""How well plans predict the CPU: predicted against measured times of whole networks.

    python benchmarks/predictions.py [--nets resnet18,...] [--rounds 9] [--json FILE]

One row a network on `cpu`: the least measured time of a run, and over it what plans predict: with the built-in speeds
of a processor, with this machine's figures (`hetnn calibrate`, done first), and with this model's own
nodes measured (`hetnn plan --calibrate`). 1 is right, above 1 too much.

    taskset -c 1 python benchmarks/predictions.py --kernels [--nets ...] [--least_us 20] [--rounds 9] [--json FILE]

A row a kernel of the CPU bench's networks on one thread: how many take at least so long in a run, the middle of
predicted over measured (by this machine's figures), how many of them lie within a half and twice, and the worst.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "benchmarks" / "cpu")]

import networks  # noqa: E402
import torch  # noqa: E402
from timing import least_us  # noqa: E402

import hetnn  # noqa: E402
from hetnn import _core  # noqa: E402
from hetnn.calibration import measure_speeds  # noqa: E402
from models import nets  # noqa: E402

NETS = "resnet18,mobilenet_v2,mobilenet_v3_large,efficientnet_b0,minilm"


def measure(name: str, speeds: dict[str, Any], rounds: int) -> dict[str, Any]:
    module, inputs = nets.NETS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(module, inputs, strict=False)
    executable = hetnn.compile(program, "cpu")
    arrays = [x.numpy() for x in inputs]
    measured_us = least_us({"run": partial(executable.run, arrays)}, rounds, block_s=0.1)["run"]
    plans = {
        "built-in": {"calibration": "off"},
        "calibrated": {"calibration": speeds},
        "nodes": {"calibration": speeds, "calibrate": True},
    }
    ratios = {}
    for kind, options in plans.items():
        plan = hetnn.plan(program, "cpu", **options)
        ratios[kind] = plan.report(format="dict")["predicted_us"] / measured_us
    return {"net": name, "measured_us": measured_us, "predicted_over_measured": ratios}


def measure_kernels(name: str, speeds: dict[str, Any], rounds: int) -> list[dict[str, Any]]:
    """Every kernel of a network on one thread: its least time over the runs, and what is predicted."""
    module, inputs = networks.build(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(module, inputs, strict=False)
    executable = hetnn.compile(program, "cpu", threads=1)
    machine = _core.machine_of(json.dumps(speeds))
    arrays = [x.numpy() for x in inputs]
    runs = [executable.profile(*arrays) for _ in range(rounds + 2)][2:]
    told = executable._engine.described(executable._engine.hints, machine)
    rows = []
    for k, row in enumerate(told):
        us = min(run[k]["wall_us"] for run in runs)
        if runs[0][k]["kernel"] != "view":
            rows.append({"net": name, "node": row["node"], "kernel": row["kernel"], "us": us})
            rows[-1] |= {"predicted_us": row["predicted_us"], "rivals": row["rivals"][:1]}
    return rows


def _within(ratios: list[float]) -> int:
    return sum(0.5 <= ratio <= 2 for ratio in ratios)


def print_kernels(rows: list[dict[str, Any]], least_us: float) -> None:
    """By kernel, then all of them."""
    by_kernel: dict[str, list[float]] = {}
    for row in rows:
        if row["us"] >= least_us:
            by_kernel.setdefault(row["kernel"], []).append(row["predicted_us"] / row["us"])
    print(f"{'kernel':24} {'count':>5} {'middle':>7} {'within':>7} {'least':>7} {'most':>7}")
    for kernel, ratios in sorted(by_kernel.items()):
        figures = f"{statistics.median(ratios):7.2f} {_within(ratios):7} {min(ratios):7.2f} {max(ratios):7.2f}"
        print(f"{kernel:24} {len(ratios):5} {figures}")
    ratios = [ratio for of_kernel in by_kernel.values() for ratio in of_kernel]
    share = _within(ratios) / max(1, len(ratios))
    print(f"{len(ratios)} kernels of {least_us:g} us or more: {100 * share:.1f} % within 0.5 to 2")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets")
    parser.add_argument("--kernels", action="store_true", help="kernels of the CPU bench's networks on one thread")
    parser.add_argument("--least_us", type=float, default=20, help="of kernels that count")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    if args.kernels:
        speeds = measure_speeds(1)
        names = (args.nets or ",".join(networks.MAIN)).split(",")
        kernels = [row for name in names for row in measure_kernels(name, speeds, args.rounds)]
        print_kernels(kernels, args.least_us)
        if args.json:
            args.json.write_text(json.dumps({"speeds": speeds, "kernels": kernels}, indent=1) + "\n")
        return 0
    speeds = measure_speeds()
    rows = []
    for name in (args.nets or NETS).split(","):
        row = measure(name, speeds, args.rounds)
        ratios = "  ".join(f"{kind} x{ratio:.2f}" for kind, ratio in row["predicted_over_measured"].items())
        print(f"{name:20} {row['measured_us']:9.0f} us  predicted over measured: {ratios}", flush=True)
        rows.append(row)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
