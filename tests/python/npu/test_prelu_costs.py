"""What PReLU with a slope a channel costs on an NPU that has only ReLU: six convolutions, beside the same with ReLU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hetnn
from hetnn import _core
from npu.integers import attrs, quant, text_of
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


def of_floats(name: str | None) -> Any:
    layers: list[nn.Module] = []
    channels = 3
    for filters, stride in zip(FILTERS, STRIDES, strict=True):
        layers += [nn.Conv2d(channels, filters, 3, stride, 1), nn.ReLU() if name is None else nn.PReLU(filters)]
        if name is not None:
            layers[-1].weight.data = slopes(name, filters)
        channels = filters
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]
    return export(nn.Sequential(*layers), torch.randn(1, 3, SIDE, SIDE))


def of_integers(name: str | None) -> str:
    """The same in i8, as text."""
    rng = np.random.default_rng(1)
    lines, channels, side = [], 3, SIDE
    scale = 0.02
    before = quant(scale, 0)

    def weights(called: str, shape: tuple[int, ...]) -> str:
        values = rng.integers(-90, 91, shape).astype(np.int8)
        return (
            f"%{called} = constant() {{value = {text_of(shape, values)}, {attrs(0.004, 0)}}} "
            f": {quant(0.004, 0)}[{','.join(map(str, shape))}]"
        )

    for k, (filters, stride) in enumerate(zip(FILTERS, STRIDES, strict=True)):
        side //= stride
        # Sums of so many products fill most of the range.
        scale *= 0.004 * 52 * (9 * channels) ** 0.5 * 0.8
        shape, wide, after = f"[1,{filters},{side},{side}]", quant(scale, 3), quant(scale, -20)
        lines.append(weights(f"w{k}", (filters, channels, 3, 3)))
        how = f"stride = [{stride},{stride}], padding = [1,1]"
        lines.append(f"%c{k} = conv2d(%y{k}, %w{k}) {{{how}, {attrs(scale, 3)}}} : {wide}{shape}")
        if name is None:
            after = wide
            lines.append(f"%y{k + 1} = relu(%c{k}) {{{attrs(scale, 3)}}} : {wide}{shape}")
        else:
            values = np.rint(slopes(name, filters).numpy() * 64).astype(np.int8)
            lines.append(
                f"%a{k} = constant() {{value = {text_of((filters,), values)}, {attrs(1 / 64, 0)}}} "
                f": {quant(1 / 64, 0)}[{filters}]"
            )
            lines.append(f"%y{k + 1} = prelu(%c{k}, %a{k}) {{{attrs(scale, -20)}}} : {after}{shape}")
        channels, before = filters, after
    zero = 3 if name is None else -20
    lines.append(f"%p = adaptive_avg_pool2d(%y6) {{output_size = [1,1], {attrs(scale, zero)}}} : {before}[1,128,1,1]")
    lines.append(f"%f = reshape(%p) {{shape = [1,128], {attrs(scale, zero)}}} : {before}[1,128]")
    lines.append(weights("w6", (10, 128)))
    lines.append(f"%y = linear(%f, %w6) {{{attrs(scale, 0)}}} : {quant(scale, 0)}[1,10]")
    body = "\n  ".join(lines)
    return f"graph @six {{stage = imported}} (%y0: {quant(0.02, 0)}[1,3,{SIDE},{SIDE}]) -> (%y) {{\n  {body}\n}}\n"


def cycles(model: Any, kib: int, folder: Path) -> int:
    torch.manual_seed(1)
    executable = hetnn.compile(
        model, target((), sram={"bytes": kib << 10}, **EMBEDDED), strategy="take-all", rewrite="always", tune=False
    )
    report = executable.report(format="dict")
    assert report["nodes_on"]["cpu"] == 0, report["not_on_preferred"]
    executable.save(folder / "model.hetnn")
    out: int = _core.simulate_model(str(folder / "model.hetnn"))["total_cycles"]
    return out


@pytest.mark.parametrize("kib", [96, 384])
@pytest.mark.parametrize("make", [of_integers, of_floats])
@pytest.mark.parametrize("name", BARS)
def test_prelu_costs_little_more_than_relu(name: str, make: Any, kib: int, tmp_path: Path) -> None:
    torch.manual_seed(1)
    plain, sloped = cycles(make(None), kib, tmp_path), cycles(make(name), kib, tmp_path)
    assert sloped <= BARS[name][1] * plain
