"""What fusion is worth: networks with elementwise layers in their producers' launches, and with a launch for each.

    python benchmarks/fusion.py [--nets resnet18,...] [--threads 2] [--rounds 9] [--json FILE]

One row a network: kernels that run, MB that they read and write by the report's table (`fusions`: the groups alone),
and the least time, unfused and fused, measured in turns; the ratio of the times; the differences from torch relative to
the largest value.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "python")]

import torch  # noqa: E402
from timing import least_us  # noqa: E402

import hetnn  # noqa: E402
from models import nets  # noqa: E402

NETS = "resnet18,mobilenet_v3_large,efficientnet_b0,minilm"


def difference(got: Any, want: Any) -> float:
    return float((got - want).abs().max() / want.abs().max())


def measure(name: str, threads: int, rounds: int) -> dict[str, Any]:
    module, inputs = nets.NETS[name]()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = module(*inputs)
        program = torch.export.export(module, inputs, strict=False)
    made = {fusion: hetnn.compile(program, "cpu", threads=threads, fusion=fusion) for fusion in ("off", "on")}
    arrays = [x.numpy() for x in inputs]
    runs = {fusion: partial(executable.run, arrays) for fusion, executable in made.items()}
    least = least_us(runs, rounds, block_s=0.1)
    groups = made["on"].report(format="dict")["fusions"]
    return {
        "net": name,
        "kernels": {fusion: len(executable.profile(*arrays)) for fusion, executable in made.items()},
        "groups": len(groups),
        "group_mb": {when: sum(row[f"bytes_{when}"] for row in groups) / 1e6 for when in ("before", "after")},
        "us": least,
        "ratio": least["off"] / least["on"],
        "error": {fusion: difference(executable(*inputs), want) for fusion, executable in made.items()},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=NETS)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    rows = []
    for name in args.nets.split(","):
        row = measure(name, args.threads, args.rounds)
        rows.append(row)
        print(
            f"{name:20} kernels {row['kernels']['off']:4} -> {row['kernels']['on']:4}   "
            f"{row['groups']:3} groups {row['group_mb']['before']:8.2f} -> {row['group_mb']['after']:8.2f} MB   "
            f"{row['us']['off']:9.0f} -> {row['us']['on']:9.0f} us  x{row['ratio']:.2f}   "
            f"error {row['error']['off']:.1e}, {row['error']['on']:.1e}",
            flush=True,
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
