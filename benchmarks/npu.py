"""How near to its bound a network runs on an NPU: cycles, bytes and seconds to compile, a row a network and data sheet.

`plan s` is what rewriting and placing take of the seconds, with every search of a schedule.

    python benchmarks/npu.py [--networks resnet18,mobilenet_v2] [--sheets relu-only,embedded] [--json FILE]

Networks are quantized to int8 here, with random weights. `bound` is the larger of what each engine computes, every
layer at its best tile, and of what the memory hands over: constants, inputs and outputs once.
`embedded` is a machine of 256 multipliers, 384 KiB and 3.75 bytes a cycle, as an Ethos-U65-256 beside a slow memory;
`embedded-1m` has 1 MiB, `embedded-16k` 16 KiB.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "python")]

import hetnn  # noqa: E402
from hetnn import _core  # noqa: E402
from hetnn.targets import load_spec  # noqa: E402
from models import nets  # noqa: E402


def separable(channels: int, filters: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, channels, 3, stride, 1, groups=channels),
        nn.ReLU(),
        nn.Conv2d(channels, filters, 1),
        nn.ReLU(),
    )


def detector() -> nets.Case:
    """A person detector of a quarter of MobileNet's channels, at 96 x 96."""
    sizes = [(8, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2)]
    sizes += [(128, 128, 1)] * 5 + [(128, 256, 2), (256, 256, 1)]
    layers = [nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), *(separable(*each) for each in sizes)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 2)]
    return nn.Sequential(*layers, *head).eval(), (torch.randn(1, 1, 96, 96),)


def super_resolution() -> nets.Case:
    """FSRCNN's layers at 256 x 256, without its last, transposed one."""
    layers: list[nn.Module] = [nn.Conv2d(1, 56, 5, padding=2), nn.ReLU(), nn.Conv2d(56, 12, 1), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Conv2d(12, 12, 3, padding=1), nn.ReLU()]
    layers += [nn.Conv2d(12, 56, 1), nn.ReLU(), nn.Conv2d(56, 4, 3, padding=1)]
    return nn.Sequential(*layers).eval(), (torch.randn(1, 1, 256, 256),)


NETWORKS: dict[str, Callable[[], nets.Case]] = {
    "resnet18": lambda: nets.vision("resnet18"),
    "resnet50": lambda: nets.vision("resnet50"),
    "mobilenet_v2": lambda: nets.vision("mobilenet_v2"),
    "squeezenet": lambda: nets.vision("squeezenet1_1"),
    "detector": detector,
    "super_resolution": super_resolution,
}


def sheet(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = load_spec("relu-only")
    if name != "relu-only":
        kib = {"embedded": 384, "embedded-1m": 1024, "embedded-16k": 16}[name]
        spec["name"] = name
        spec["mac"].update(macs_per_cycle=256, block_height=2, block_width=2, block_channels=8)
        spec["sram"][0]["bytes"] = kib << 10
        spec["dram"].update(bytes_per_cycle=3.75, read_latency_cycles=500, write_latency_cycles=250)
        spec["vector"]["lanes"] = 16
    return spec


def measure(graph: Any, spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    devices = [{"name": "cpu", "kind": "cpu"}, {"name": "npu", "kind": "npu", "spec": spec}]
    began = time.perf_counter()
    executable = hetnn.compile(graph, {"name": spec["name"], "devices": devices}, tune=False)
    seconds = time.perf_counter() - began
    path = str(folder / "model.hetnn")
    executable.save(path)
    timed = _core.simulate_model(path)
    layers = [layer for subgraph in timed["subgraphs"] for layer in subgraph["layers"]]
    return {
        "cycles": timed["total_cycles"],
        "bound": timed["lower_bound_cycles"],
        "ratio": timed["total_cycles"] / max(timed["lower_bound_cycles"], 1),
        "moved": sum(layer["dma_bytes"] for layer in layers),
        "subgraphs": len(timed["subgraphs"]),
        "plan_s": sum(row["ms"] for row in executable.passes if row["name"] in ("choose_rewrites", "place")) / 1e3,
        "compile_s": seconds,
    }


def quantized(case: nets.Case) -> Any:
    module, inputs = case
    samples = [tuple(torch.randn_like(x).numpy() for x in inputs) for _ in range(2)]
    exported = torch.export.export(module.eval(), inputs)
    return hetnn.quantize(exported, samples, "int8", "minmax", adapt_rounding=False, equalize=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--sheets", default="relu-only,embedded,embedded-1m,embedded-16k")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print(f"{'network':18}{'sheet':14}{'cycles':>12}{'bound':>12}{'ratio':>8}", end="")
    print(f"{'MB moved':>10}{'subgraphs':>11}{'plan s':>8}{'s':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for name in args.networks.split(","):
            torch.manual_seed(7)
            graph = quantized(NETWORKS[name]())
            for chosen in args.sheets.split(","):
                row = {"network": name, "sheet": chosen, **measure(graph, sheet(chosen), Path(folder))}
                rows.append(row)
                print(
                    f"{name:18}{chosen:14}{row['cycles']:12,}{row['bound']:12,}{row['ratio']:8.3f}"
                    f"{row['moved'] / 1e6:10.2f}{row['subgraphs']:11}{row['plan_s']:8.3f}{row['compile_s']:7.2f}",
                    flush=True,
                )
    if args.json:
        run_of = {"date": time.strftime("%Y-%m-%d"), "rows": rows}
        Path(args.json).write_text(json.dumps(run_of, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
