"""Each rewriting of a report says what it is worth by itself, and the report what all are worth together."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn

TARGET = "cpu+relu-only"


def report_of(module: nn.Module, *inputs: Tensor, **options: Any) -> dict[str, Any]:
    program = torch.export.export(module.eval(), inputs, strict=False)
    report: dict[str, Any] = hetnn.plan(program, TARGET, **options).report(format="dict")
    return report


def chain() -> nn.Module:
    """Three layers of different sizes; nobody on the NPU reads what the last one gives."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.PReLU(8),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU6(),
        nn.Conv2d(16, 4, 1),
        nn.Hardtanh(-0.5, 0.75),
    )


def test_each_row_counts_its_own_inputs_and_outputs() -> None:
    rows = report_of(chain(), torch.randn(1, 3, 32, 32), rewrite="always", strategy="take-all")["rewrites"]
    assert [row["op"] for row in rows] == ["prelu", "clamp", "clamp"]
    first, second, last = 4 * 8 * 32 * 32, 4 * 16 * 16 * 16, 4 * 4 * 16 * 16
    assert [row["bytes_avoided"] for row in rows] == [2 * first, 2 * second, last]
    assert [row["launches_avoided"] for row in rows] == [1, 1, 0]


def test_before_is_the_general_processor_with_the_transfers_and_launches() -> None:
    net, x = chain(), torch.randn(1, 3, 32, 32)
    rows = report_of(net, x, rewrite="always", strategy="take-all")["rewrites"]
    program = torch.export.export(net.eval(), (x,), strict=False)
    plain = hetnn.plan(program, TARGET, rewrite="off", strategy="take-all")
    problem = plain.problem()
    npu = next(device for device in problem["devices"] if device["name"] == "relu-only")
    link = problem["links"] if isinstance(problem["links"], dict) else problem["links"][0]
    nodes = {node["id"]: node for node in problem["nodes"]}
    for row in rows:
        ends = 2 if row["launches_avoided"] else 1
        transfers = ends * link["latency_us"] + row["bytes_avoided"] / link["bytes_per_us"]
        want = nodes[row["node"]]["time_us"]["cpu"] + transfers + row["launches_avoided"] * npu["launch_us"]
        assert row["predicted_us_before"] == pytest.approx(want)
        assert 0 < row["predicted_us_after"] < row["predicted_us_before"]


def test_the_totals_compare_whole_plans() -> None:
    net, x = chain(), torch.randn(1, 3, 32, 32)
    options = {"strategy": "take-all"}
    report = report_of(net, x, rewrite="always", **options)
    plain = report_of(net, x, rewrite="off", **options)
    npu = [sum(part["device"] != "cpu" for part in each["subgraphs"]) for each in (plain, report)]
    assert report["rewriting"] == {
        "bytes_avoided": plain["crossing_bytes"] - report["crossing_bytes"],
        "launches_avoided": npu[0] - npu[1],
        "predicted_us_before": plain["predicted_us"],
        "predicted_us_after": report["predicted_us"],
    }
    assert plain["rewriting"] is None


class Shared(nn.Module):
    """A layer whose input another reader on the general processor needs anyway, so that its crossing is not avoided."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.first(x)
        return self.second(nn.functional.relu6(y)), nn.functional.gelu(y)


def test_what_crosses_anyway_is_not_avoided() -> None:
    (row,) = report_of(Shared(), torch.randn(1, 3, 16, 16), rewrite="always", strategy="take-all")["rewrites"]
    assert row["bytes_avoided"] == 4 * 8 * 16 * 16
    assert row["launches_avoided"] == 1


def test_a_layer_that_goes_into_its_neighbours_counts_as_it_was_written() -> None:
    """Bounds on one side of zero become biases of the convolutions around; no value keeps the layer's name."""
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Hardtanh(0.25, 0.5), nn.Conv2d(8, 4, 1))
    (row,) = report_of(net, torch.randn(1, 3, 18, 18), rewrite="always", strategy="take-all")["rewrites"]
    assert row["rule"] == "clamp_from_relu"
    assert row["bytes_avoided"] == 2 * 4 * 8 * 16 * 16
    assert row["launches_avoided"] == 1


def test_a_layer_pinned_to_the_general_processor_stays_as_written() -> None:
    net, x = chain(), torch.randn(1, 3, 32, 32)
    report = report_of(net, x, rewrite="always", strategy="take-all", pin={"prelu": "cpu"})
    assert [row["op"] for row in report["rewrites"]] == ["clamp", "clamp"]
    assert [row["op"] for row in report["not_on_preferred"]] == ["prelu"]
