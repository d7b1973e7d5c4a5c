"""How layers are cut into tiles: every layer runs however little scratchpad there is, and transfers hide."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import nn

import hetnn
from hetnn.target import resolve_target
from npu.programs import build, target

LAYERS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "many channels": (nn.Conv2d(700, 24, 3, padding=1), (1, 700, 9, 7)),
    "wide": (nn.Conv2d(3, 8, 5, padding=(2, 30), dilation=(1, 15)), (2, 3, 6, 300)),
    "depthwise": (nn.Conv2d(96, 96, 3, padding=1, groups=96), (2, 96, 11, 13)),
    "grouped": (nn.Conv2d(64, 96, 3, 2, padding=1, groups=4), (1, 64, 15, 15)),
    "padding wider than windows": (nn.Conv2d(32, 40, 3, (3, 1), padding=(5, 9)), (1, 32, 16, 12)),
    "padding around points": (nn.Conv2d(64, 32, 1, padding=(2, 3)), (1, 64, 15, 9)),
    "linear": (nn.Linear(300, 500), (37, 300)),
    "global pool": (nn.AdaptiveAvgPool2d(1), (2, 200, 14, 14)),
    "largest": (nn.MaxPool2d(3, 2, 1), (1, 130, 21, 19)),
    "relu": (nn.ReLU(), (3, 70, 11, 13)),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("kib", [16, 20, 64, 4096])
def test_every_layer_runs_from_little_scratchpad(name: str, kib: int, tmp_path: Path) -> None:
    torch.manual_seed(1)
    layer, shape = LAYERS[name]
    x = torch.randn(shape)
    program = build(torch.export.export(layer.eval(), (x,)), target(sram={"bytes": kib << 10}), tmp_path)
    with torch.no_grad():
        torch.testing.assert_close(program.executable(x), layer(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", LAYERS)
def test_more_scratchpad_is_not_slower(name: str, tmp_path: Path) -> None:
    layer, shape = LAYERS[name]
    exported = torch.export.export(layer.eval(), (torch.randn(shape),))
    cycles = [build(exported, target(sram={"bytes": kib << 10}), tmp_path).cycles for kib in (16, 128, 1024, 8192)]
    assert all(more <= less * 1.05 for less, more in pairwise(cycles)), cycles


def test_transfers_hide_behind_the_engine(tmp_path: Path) -> None:
    """Of a layer that computes as long as it moves, most of the shorter is hidden."""
    layer, x = nn.Conv2d(64, 64, 3, padding=1).eval(), torch.randn(1, 64, 64, 64)
    executable = build(torch.export.export(layer, (x,)), target(), tmp_path)
    macs = 64 * 64 * 9 * 64 * 64
    engine, moved = macs / 1024, executable.dma_bytes / 32
    assert executable.cycles < 1.15 * max(engine, moved) + 0.2 * min(engine, moved)


def test_rows_of_a_linear_layer_fill_the_blocks_of_the_engine(tmp_path: Path) -> None:
    """As many cycles as the same products of a picture."""
    rows, picture = nn.Linear(64, 128).eval(), nn.Conv2d(64, 128, 1).eval()
    both = [
        build(torch.export.export(layer, (x,)), target(), tmp_path).cycles
        for layer, x in ((rows, torch.randn(256, 64)), (picture, torch.randn(1, 64, 16, 16)))
    ]
    assert both[0] <= 1.05 * both[1]


def test_what_fits_no_scratchpad_is_a_reason() -> None:
    cpu, npu = resolve_target("cpu+relu-only")["devices"]
    with_little = {"name": "little", "devices": [cpu, {**npu, "name": "vpu", "spec": target(sram={"bytes": 128})}]}
    report = hetnn.plan(nn.Conv2d(8, 8, 3), with_little, args=(torch.randn(1, 8, 9, 9),)).report(format="dict")
    assert "bytes of scratchpad; vpu has 128" in report["not_on_preferred"][0]["reasons"][0]["text"]
