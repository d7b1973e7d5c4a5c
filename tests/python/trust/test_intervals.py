"""Bounded activations rewritten for an NPU stay in their interval for every finite x and inf, with NaN as torch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn

LARGE = [0.0, 1e-9, 1.0, 5.0, 1e4, 1e8, 1e10, 3e38, -1e-9, -1.0, -1e4, -1e8, -1e10, -3e38, math.inf, -math.inf]


class Limit(nn.Module):
    def __init__(self, low: float | None, high: float | None) -> None:
        super().__init__()
        self.low, self.high = low, high

    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(self.low, self.high)


# The activation, and its interval.
BOUNDED: dict[str, tuple[nn.Module, float, float]] = {
    "relu6": (nn.ReLU6(), 0, 6),
    "clamp": (Limit(-0.3, 0.7), -0.3, 0.7),
    "clamp off zero": (Limit(0.3, 0.7), 0.3, 0.7),
    "clamp from below": (Limit(-0.3, None), -0.3, math.inf),
    "clamp from above": (Limit(None, 0.7), -math.inf, 0.7),
    "hardtanh": (nn.Hardtanh(), -1, 1),
    "hardtanh of thirds": (nn.Hardtanh(-1 / 3, 2 / 3), -1 / 3, 2 / 3),
    "hardsigmoid": (nn.Hardsigmoid(), 0, 1),
}


def between_identities(activation: nn.Module) -> nn.Module:
    """Between convolutions that leave values as they are, so that the NPU takes all of it."""
    first, last = nn.Conv2d(1, 1, 1, bias=False), nn.Conv2d(1, 1, 1, bias=False)
    nn.init.ones_(first.weight)
    nn.init.ones_(last.weight)
    return nn.Sequential(first, activation, last).eval()


def on_npu(net: nn.Module, x: Tensor, **options: Any) -> hetnn.Executable:
    program = torch.export.export(net, (x,), strict=False)
    exe = hetnn.compile(program, "cpu+relu-only", rewrite="always", strategy="take-all", **options)
    assert exe.report("dict")["nodes_on"]["cpu"] == 0
    return exe


@pytest.mark.parametrize("name", BOUNDED)
def test_activations_stay_in_their_interval(name: str) -> None:
    activation, low, high = BOUNDED[name]
    net, x = between_identities(activation), torch.tensor([*LARGE, math.nan]).reshape(1, 1, 1, -1)
    with torch.no_grad():
        want = net(x).flatten()
    got = on_npu(net, x)(x).flatten()
    low32, high32 = torch.tensor(low, dtype=torch.float32), torch.tensor(high, dtype=torch.float32)
    assert bool(((got >= low32) & (got <= high32))[:-1].all()), got
    assert bool(torch.isnan(got[-1]))
    torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6, equal_nan=True)


def test_a_known_range_gives_the_form_that_keeps_every_digit_and_the_report_says_so() -> None:
    """The first relu6 bounds what the second reads."""
    net = nn.Sequential(between_identities(nn.ReLU6()), between_identities(nn.ReLU6())).eval()
    x = torch.tensor([1e8, 5.9999995, 7.0, -1.0]).reshape(1, 1, 1, -1)
    first, second = on_npu(net, x).report("dict")["rewrites"]
    assert second["rule"] == "clamp_from_zero" != first["rule"]
    assert "holds since" not in first["why"]
    assert "holds since no |x| is above 6" in second["why"]


def test_a_caller_may_vouch_for_a_range_and_the_report_says_where_it_counts() -> None:
    net = between_identities(nn.ReLU6())
    x = torch.tensor([8.0, 5.9999995, -8.0, 0.0]).reshape(1, 1, 1, -1)
    (careful,) = on_npu(net, x).report("dict")["rewrites"]
    exe = on_npu(net, x, inputs_within={"input": 8.0})
    (cheap,) = exe.report("dict")["rewrites"]
    assert cheap["rule"] == "clamp_from_zero" != careful["rule"]
    assert "holds since" not in careful["why"]
    assert "holds since no |x| is above 8.0" in cheap["why"]
    torch.testing.assert_close(exe(x), net(x), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("within", "message"),
    [
        ({"x": 1.0}, "inputs_within: the model has no input 'x'; it has input"),
        ({"input": -1.0}, "inputs_within"),
        ({"input": "8"}, "inputs_within"),
        (8.0, "inputs_within"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(within: Any, message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=message):
        on_npu(between_identities(nn.ReLU6()), torch.zeros(1, 1, 1, 4), inputs_within=within)


def test_a_node_that_a_known_range_would_rewrite_says_so() -> None:
    class Larger(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.maximum(x + y, x - y)

    sizes = (torch.randn(1, 2, 3, 3), torch.randn(1, 2, 3, 3))
    plan = hetnn.plan(Larger(), "cpu+relu-only", args=sizes, strategy="take-all", rewrite="always")
    assert plan.why("maximum")["device"] == "cpu"
    (reason,) = [row for row in plan.why("maximum")["reasons"] if row["label"] == "maximum_range"]
    assert reason["wanted"] == "no |x| above 16"
    assert "inputs_within" in reason["text"]
    known = hetnn.plan(
        Larger(), "cpu+relu-only", args=sizes, strategy="take-all", rewrite="always", inputs_within={"x": 4.0, "y": 4.0}
    )
    assert "maximum" in {row["node"] for row in known.report("dict")["rewrites"]}
