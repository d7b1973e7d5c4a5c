"""What PReLU with a slope a channel costs on an NPU that has only ReLU: six convolutions, beside the same with ReLU."""

from __future__ import annotations

import tempfile
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hetnn
from hetnn import _core
from npu.programs import export, target

FILTERS, STRIDES, SIDE = (16, 32, 32, 64, 64, 128), (2, 1, 2, 1, 2, 1), 96
# Slopes, and the most times the cycles of the network with ReLU.
BARS = {"below 1": ((0.05, 0.6), 1.6), "above 1": ((0.3, 1.7), 2.0)}
EMBEDDED: dict[str, Any] = {
    "mac": {"macs_per_cycle": 256, "block_height": 2, "block_width": 2, "block_channels": 8},
    "dram": {"bytes_per_cycle": 3.75, "read_latency_cycles": 500, "write_latency_cycles": 250},
    "vector": {"lanes": 16},
}


def slopes(name: str, filters: int) -> Tensor:
    low, high = BARS[name][0]
    return torch.rand(filters) * (high - low) + low


def network(name: str | None) -> nn.Module:
    torch.manual_seed(1)
    layers: list[nn.Module] = []
    channels = 3
    for filters, stride in zip(FILTERS, STRIDES, strict=True):
        layers += [nn.Conv2d(channels, filters, 3, stride, 1), nn.ReLU() if name is None else nn.PReLU(filters)]
        if name is not None:
            layers[-1].weight.data = slopes(name, filters)
        channels = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)).eval()


@cache
def cycles(name: str | None, dtype: str, kib: int) -> int:
    """Of the network as one subgraph; an executable of it is within the noise of its type."""
    module, x = network(name), torch.randn(2, 3, SIDE, SIDE)
    spec, how = target((), sram={"bytes": kib << 10}, **EMBEDDED), {"strategy": "take-all", "rewrite": "always"}
    exported = export(module, x[:1])
    if dtype == "f32":
        executable = hetnn.compile(exported, spec, tune=False, **how)
    else:
        samples = [(each[None].numpy(),) for each in x]
        executable = hetnn.quantize(
            exported, samples, target=spec, adapt_rounding=False, equalize=False, tune=False, **how
        )
    report = executable.report(format="dict")
    assert {row["op"] for row in report["not_on_preferred"]} <= {"quantize", "dequantize"}
    with torch.no_grad():
        want = module(x[:1]).numpy()
    noise = np.asarray(executable(x[:1].numpy())) - want
    assert np.abs(noise).max() <= (1e-4 if dtype == "f32" else 0.1) * np.abs(want).max()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.hetnn"
        executable.save(path)
        (subgraph,) = _core.simulate_model(path)["subgraphs"]
    return int(subgraph["total_cycles"])


@pytest.mark.parametrize("kib", [96, 384])
@pytest.mark.parametrize("dtype", ["i8", "f32"])
@pytest.mark.parametrize("name", BARS)
def test_prelu_costs_little_more_than_relu(name: str, dtype: str, kib: int) -> None:
    assert cycles(name, dtype, kib) <= BARS[name][1] * cycles(None, dtype, kib)
