"""Subgraphs of different devices at once: the same bits, in less time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hetnn


class Branches(nn.Module):
    """Two convolutions of one input, each long enough to find the other running on a busy machine."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Conv2d(8, 8, 3, padding=1)
        self.right = nn.Conv2d(8, 64, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.left(x), self.right(x)


SHAPE = (1, 8, 384, 384)


@pytest.fixture(scope="module")
def branches() -> hetnn.Executable:
    torch.manual_seed(0)
    exported = torch.export.export(Branches().eval(), (torch.zeros(SHAPE),))
    return hetnn.compile(
        exported, "cpu+relu-only", strategy="take-all", rewrite="off", pin={"conv2d_1": "cpu"}, threads=1
    )


def meets(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return bool(a["start_us"] < b["finish_us"] and b["start_us"] < a["finish_us"])


def met(times: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(a["device"], b["device"]) for k, a in enumerate(times) for b in times[:k] if meets(a, b)]


def test_branches_run_at_once_with_the_same_bits(branches: hetnn.Executable) -> None:
    x = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)
    apart = branches.run([x], overlap=False)
    assert met(branches.last_times) == []
    together = branches.run([x])
    assert [set(pair) for pair in met(branches.last_times)] == [{"cpu", "relu-only"}]
    for a, b in zip(together, apart, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_chain_runs_in_turn() -> None:
    chain = torch.export.export(nn.Sequential(nn.Conv2d(8, 8, 3), nn.Sigmoid()).eval(), (torch.zeros(1, 8, 16, 16),))
    exe = hetnn.compile(chain, "cpu+relu-only", strategy="take-all", rewrite="off")
    exe(torch.zeros(1, 8, 16, 16))
    assert [row["device"] for row in exe.last_times] == ["relu-only", "cpu"]
    assert met(exe.last_times) == []
