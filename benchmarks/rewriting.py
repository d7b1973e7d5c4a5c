"""What rewriting activations is worth: networks on an NPU without PReLU, LeakyReLU and the like, with and without.

    python benchmarks/rewriting.py [--small] [--json FILE]

One row a network: nodes on the CPU, subgraphs, bytes that cross and predicted time, without and with the rewrite; the
bytes that cross inside the network with it (its inputs and outputs left out); the difference from torch relative to
the largest value. Then the break-even: a PReLU on the model's input, which the CPU could do before anything crosses, on
ever smaller images, on relu-only and on the same NPU with half its memory speed. All but the difference are
predictions, so they are the same on every machine.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "examples")]

import torch  # noqa: E402
from torch import nn  # noqa: E402

import hetnn  # noqa: E402
from hetnn.targets import load_spec  # noqa: E402
from models import nets, rewritten  # noqa: E402


def mtcnn(index: int, side: int) -> nets.Case:
    from mtcnn import networks

    torch.manual_seed(7)
    return networks.load_networks()[index].eval(), (torch.randn(1, 3, side, side),)


def cases(small: bool) -> dict[str, tuple[Callable[[], nets.Case], str]]:
    pick = (lambda large, little: little) if small else (lambda large, little: large)
    return {
        "P-Net": (lambda: mtcnn(0, pick(308, 64)), "cpu+relu-only"),
        "R-Net": (lambda: mtcnn(1, 24), "cpu+relu-only"),
        "O-Net": (lambda: mtcnn(2, 48), "cpu+relu-only"),
        "LeakyReLU detector": (lambda: rewritten.detector(pick(320, 64), pick(16, 8)), "cpu+relu-only"),
        "IR-18": (lambda: rewritten.face_net(pick(112, 32), pick(64, 16)), "cpu+relu-only"),
        "MobileNetV2": (lambda: nets.vision("mobilenet_v2", pick(224, 64)), "cpu+relu-only"),
        "MobileNetV3-L": (lambda: nets.vision("mobilenet_v3_large", pick(224, 64)), "cpu+relu-mul"),
    }


def inner_crossings(report: dict[str, Any], executable: hetnn.Executable) -> int:
    ends = {port.name for port in (*executable.inputs, *executable.outputs)}
    return int(sum(row["bytes"] for row in report["crossings"] if row["value"] not in ends))


def difference(got: Any, want: Any) -> float:
    pairs = zip(*(value if isinstance(value, tuple) else (value,) for value in (got, want)), strict=True)
    return max(float((one - other).abs().max() / other.abs().max()) for one, other in pairs)


def measure(name: str, make: Callable[[], nets.Case], target: str) -> dict[str, Any]:
    module, inputs = make()
    program = torch.export.export(module, inputs, strict=False)
    plain = hetnn.plan(program, target, rewrite="off").report(format="dict")
    executable = hetnn.compile(program, target)
    report = executable.report(format="dict")
    with torch.no_grad():
        want = module(*inputs)
    fallbacks = sorted({row["op"] for row in report["not_on_preferred"]})
    return {
        "network": name,
        "target": target,
        "nodes_without": plain["nodes_on"],
        "nodes_with": report["nodes_on"],
        "subgraphs": [len(plain["subgraphs"]), len(report["subgraphs"])],
        "crossing_bytes": [plain["crossing_bytes"], report["crossing_bytes"]],
        "inner_crossing_bytes": inner_crossings(report, executable),
        "predicted_us": [plain["predicted_us"], report["predicted_us"]],
        "rewrites": len(report["rewrites"]),
        "left_on_cpu": fallbacks,
        "difference": difference(executable(*inputs), want),
    }


def break_even(target: Any) -> list[dict[str, Any]]:
    rows = []
    for side in (128, 64, 32, 24, 16, 8, 4, 1):
        torch.manual_seed(1)
        module = nn.Sequential(nn.PReLU(32), nn.Conv2d(32, 8, 1)).eval()
        nn.init.uniform_(module[0].weight, -1.28, 1.3)
        program = torch.export.export(module, (torch.randn(1, 32, side, side),), strict=False)
        plain, always, chosen = (
            hetnn.plan(program, target, rewrite=mode).report(format="dict") for mode in ("off", "always", "auto")
        )
        rows.append(
            {
                "side": side,
                "off_us": plain["predicted_us"],
                "always_us": always["predicted_us"],
                "auto_us": chosen["predicted_us"],
                "taken": bool(chosen["rewrites"]),
            }
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="small images and widths, for a quick look")
    parser.add_argument("--json", metavar="FILE", help="write the rows as JSON, too")
    args = parser.parse_args()
    rows = []
    print(
        f"{'network':20} {'nodes on cpu':>14} {'subgraphs':>10} {'crossing KiB':>18} {'inside':>8} "
        f"{'predicted us':>20} {'ratio':>6} {'difference':>11}  left on the cpu"
    )
    for name, (make, target) in cases(args.small).items():
        row = measure(name, make, target)
        rows.append(row)
        bytes_off, bytes_on = row["crossing_bytes"]
        us_off, us_on = row["predicted_us"]
        print(
            f"{name:20} {row['nodes_without']['cpu']:>6} -> {row['nodes_with']['cpu']:<4} "
            f"{row['subgraphs'][0]:>4} -> {row['subgraphs'][1]:<3} {bytes_off / 1024:>8.0f} -> {bytes_on / 1024:<6.0f} "
            f"{row['inner_crossing_bytes']:>8} {us_off:>8.0f} -> {us_on:<8.0f} {us_on / us_off:>6.2f} "
            f"{row['difference']:>11.1e}  {', '.join(row['left_on_cpu'])}",
            flush=True,
        )
    half = load_spec("relu-only")
    half["dram"]["bytes_per_cycle"] /= 2
    even = {}
    for npu, target in {"relu-only": "cpu+relu-only", "relu-only, half the memory speed": half}.items():
        print(f"\nPReLU of 32 channels on {npu}\n{'':20} {'off us':>9} {'always us':>10} {'auto us':>9}  rewrite taken")
        even[npu] = break_even(target)
        for row in even[npu]:
            print(
                f"{row['side']:>9} x {row['side']:<8} {row['off_us']:>9.2f} {row['always_us']:>10.2f} "
                f"{row['auto_us']:>9.2f}  {'yes' if row['taken'] else 'no'}"
            )
    if args.json:
        Path(args.json).write_text(
            json.dumps({"networks": rows, "break_even": even}, indent=1) + "\n", encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
