"""Convolutions, whose results lie channels last, beside values and constants that lie plain: equal to torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn


class Net(nn.Module):
    """`compute` of the first convolution's result, a value and two constants of its shape, and the module."""

    def __init__(self, compute: Callable[..., Any]) -> None:
        super().__init__()
        self.compute = compute
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.line = nn.Linear(10, 10)
        self.one, self.both = (nn.Parameter(torch.randn(n, 8, 12, 10)) for n in (1, 2))

    def forward(self, x: Tensor, value: Tensor) -> Any:
        return self.compute(self, self.first(x), value)


CASES: dict[str, Callable[[Net, Tensor, Tensor], Any]] = {
    "value, then flat": lambda net, z, v: (z + v).flatten(2),
    "value, then convolution": lambda net, z, v: net.second(z + v),
    "computed value": lambda net, z, v: net.second(net.line(v) + z),
    "value of softmax": lambda net, z, v: net.second(z + net.line(v).softmax(-1)),
    "extreme": lambda net, z, v: net.second(torch.maximum(z, v.cumsum(1))),
    "value twice": lambda net, z, v: (net.second(z + v) + v).flatten(1),
    "constant, then flat": lambda net, z, v: (z + net.one).flatten(2).transpose(1, 2),
    "constant of a batch": lambda net, z, v: net.second(z + net.both),
    "constants": lambda net, z, v: net.second(z * net.one + net.both).flatten(2),
    "constant in two layouts": lambda net, z, v: (net.second(z + net.one), (v + net.one).flatten(2)),
    "constant at the end": lambda net, z, v: net.second(z) + net.both,
    "residual at the end": lambda net, z, v: (net.second(z) + z, z),
}


@pytest.mark.parametrize("name", CASES)
def test_layouts_meet(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Net(CASES[name]).eval()
    inputs = torch.randn(2, 3, 12, 10), torch.randn(2, 8, 12, 10)
    exe = hetnn.compile(torch.export.export(net, inputs, strict=False))
    exe.save(tmp_path / "net.hetnn")
    with torch.no_grad():
        wanted = net(*inputs)
    for found in (exe(*inputs), hetnn.load(tmp_path / "net.hetnn")(*inputs)):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_layouts_meet_in_any_batch() -> None:
    torch.manual_seed(0)
    net = Net(CASES["value, then convolution"]).eval()
    batch = torch.export.Dim("batch")
    inputs = torch.randn(2, 3, 12, 10), torch.randn(2, 8, 12, 10)
    exe = hetnn.compile(torch.export.export(net, inputs, dynamic_shapes=({0: batch}, {0: batch}), strict=False))
    for size in (1, 2, 5):
        inputs = torch.randn(size, 3, 12, 10), torch.randn(size, 8, 12, 10)
        with torch.no_grad():
            torch.testing.assert_close(exe(*inputs), net(*inputs), rtol=1e-4, atol=1e-5)
