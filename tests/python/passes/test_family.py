"""Activations that torch has no module for, as people write them, run wholly on an NPU that lacks them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import hetnn

CHANNELS = 6


def one_a_channel(low: float, high: float) -> nn.Parameter:
    return nn.Parameter(torch.linspace(low, high, CHANNELS).reshape(CHANNELS, 1, 1))


class Pieces(nn.Module):
    """S-shaped: the slopes `left` and `right` beyond two bounds, 1 between them, one of each a channel."""

    def __init__(self) -> None:
        super().__init__()
        self.low, self.high = one_a_channel(-0.6, -0.1), one_a_channel(0.7, 0.2)
        self.left, self.right = one_a_channel(-0.5, 1.5), one_a_channel(0.0, 2.0)


class SRelu(Pieces):
    def forward(self, x: Tensor) -> Tensor:
        between = torch.minimum(torch.maximum(x, self.low), self.high)
        return between + self.right * (x - self.high).relu() - self.left * (self.low - x).relu()


class SReluOfHinges(Pieces):
    def forward(self, x: Tensor) -> Tensor:
        above = (x - self.low).relu() + (self.right - 1) * (x - self.high).relu()
        return self.low + self.left * torch.minimum(x - self.low, torch.zeros_like(x)) + above


class SReluByChoice(Pieces):
    def forward(self, x: Tensor) -> Tensor:
        below = torch.where(x <= self.low, self.low + self.left * (x - self.low), x)
        return torch.where(x >= self.high, self.high + self.right * (x - self.high), below)


class SReluByMasks(Pieces):
    def forward(self, x: Tensor) -> Tensor:
        between = (x > self.low) & (x < self.high)
        beyond = torch.where(x > 0, (x - self.high) * self.right + self.high, (x - self.low) * self.left + self.low)
        return torch.where(between, x, beyond)


class SquaredRelu(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.relu() ** 2


class SquaredReluAsProduct(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.relu() * x.relu()


class Maxout(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(1, (3, 2)).amax(2)


class MaxoutWithIndices(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        values, _ = x.unflatten(1, (2, 3)).max(1)
        return values


class MaxoutOfHalves(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.maximum(x[:, :3], x[:, 3:])


class ConcatenatedRelu(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x.relu(), (-x).relu()], 1)


class WhereSlope(nn.Module):
    """A PReLU by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = one_a_channel(-0.5, 1.5)

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(x < 0, self.slope * x, x)


RELU, PRODUCT = "cpu+relu-only", "cpu+relu-mul"
CASES: dict[str, tuple[Callable[[], nn.Module], int, str]] = {
    "srelu": (SRelu, CHANNELS, RELU),
    "srelu of hinges": (SReluOfHinges, CHANNELS, RELU),
    "srelu by choice": (SReluByChoice, CHANNELS, RELU),
    "srelu by masks": (SReluByMasks, CHANNELS, RELU),
    "softshrink": (lambda: nn.Softshrink(0.2), CHANNELS, RELU),
    "threshold at 0": (lambda: nn.Threshold(0.0, 0.0), CHANNELS, RELU),
    "threshold at its value": (lambda: nn.Threshold(0.3, 0.3), CHANNELS, RELU),
    "squared relu": (SquaredRelu, CHANNELS, PRODUCT),
    "squared relu as a product": (SquaredReluAsProduct, CHANNELS, PRODUCT),
    "maxout": (Maxout, 3, RELU),
    "maxout with indices": (MaxoutWithIndices, 3, RELU),
    "maxout of halves": (MaxoutOfHalves, 3, RELU),
    "concatenated relu": (ConcatenatedRelu, 2 * CHANNELS, RELU),
    "where": (WhereSlope, CHANNELS, RELU),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_one_subgraph_of_the_npu(name: str) -> None:
    make, channels, target = CASES[name]
    torch.manual_seed(4)
    net = nn.Sequential(nn.Conv2d(3, CHANNELS, 3), make(), nn.Conv2d(channels, 4, 1)).eval()
    x = torch.randn(2, 3, 16, 14).clamp(-2, 2)
    known = (
        {"input": 2.0} if name.startswith("maxout") else {}
    )  # a + relu(b - a) loses what is small beside what is large
    program = torch.export.export(net, (x,), strict=False)
    exe = hetnn.compile(program, target, rewrite="always", strategy="take-all", inputs_within=known)
    report = exe.report(format="dict")
    assert report["nodes_on"]["cpu"] == 0
    assert len(report["subgraphs"]) == 1
    with torch.no_grad():
        want = net(x)
    assert float((exe(x) - want).abs().max()) <= 1e-6 * float(want.abs().max())


def test_a_threshold_with_a_step_stays_on_the_cpu() -> None:
    """No sum of rectifiers jumps."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Threshold(0.3, -1.0)).eval()
    program = torch.export.export(net, (torch.randn(1, 3, 8, 8),), strict=False)
    report = hetnn.plan(program, RELU, rewrite="always", strategy="take-all").report(format="dict")
    assert [row["op"] for row in report["not_on_preferred"]] == ["le", "where"]


class Indices(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.max(1)[1]


def test_the_indices_of_a_maximum_are_those_of_torch() -> None:
    x = torch.tensor([[1.0, 3.0, 3.0], [float("nan"), 2.0, 9.0]])
    assert torch.equal(hetnn.compile(torch.export.export(Indices(), (x,), strict=False))(x), Indices()(x))
