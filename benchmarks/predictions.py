"""How well plans predict the CPU: predicted against measured times of whole networks.

    python benchmarks/predictions.py [--nets resnet18,...] [--rounds 9] [--json FILE]

One row a network on `cpu`: the least measured time of a run, and over it what plans predict: with the built-in speeds
of a processor, with this machine's figures (`hetnn calibrate`, done first), and with this model's own
nodes measured (`hetnn plan --calibrate`). 1 is right, above 1 too much.
"""

from __future__ import annotations

import argparse
import json
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=NETS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    speeds = measure_speeds()
    rows = []
    for name in args.nets.split(","):
        row = measure(name, speeds, args.rounds)
        ratios = "  ".join(f"{kind} x{ratio:.2f}" for kind, ratio in row["predicted_over_measured"].items())
        print(f"{name:20} {row['measured_us']:9.0f} us  predicted over measured: {ratios}", flush=True)
        rows.append(row)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
