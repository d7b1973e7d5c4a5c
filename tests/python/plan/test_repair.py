"""What a backend cannot compile is split or moved, and the plan says so; what comes out equals the CPU's result."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn
from hetnn.targets import load_spec

WIDE = 2000


class Ladder(nn.Module):
    """Three convolutions over an image of any width; the middle one needs by far the largest tile."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.middle = nn.Conv2d(4, 8, (1, 64), padding=(0, 504), dilation=(1, 16))
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(self.middle(torch.relu(self.first(x)))))


def small_npu(scratchpad_bytes: int | None = None, memory_bytes: int | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(json.dumps(load_spec("relu-only")))
    spec["name"] = "small"
    if scratchpad_bytes is not None:
        spec["sram"][0]["bytes"] = scratchpad_bytes
    if memory_bytes is not None:
        spec["dram"]["bytes"] = memory_bytes
    return spec


@pytest.fixture(scope="module")
def ladder() -> tuple[nn.Module, torch.export.ExportedProgram]:
    torch.manual_seed(2)
    module = Ladder().eval()
    width = torch.export.Dim("w", min=8, max=4096)
    return module, torch.export.export(module, (torch.randn(1, 3, 6, 40),), dynamic_shapes=({3: width},), strict=False)


Case = tuple[nn.Module, torch.export.ExportedProgram]
# One result of the middle layer reads as far as 1009 columns, 4 kB of one channel; at width 40 no more than there are.
SCRATCHPAD_BYTES = 2048


def assert_equals_torch(executable: hetnn.Executable, module: nn.Module, width: int) -> None:
    x = torch.randn(1, 3, 6, width)
    with torch.no_grad():
        torch.testing.assert_close(executable(x), module(x), rtol=1e-4, atol=1e-5)


def test_a_layer_that_does_not_fit_leaves_the_device(ladder: Case) -> None:
    module, exported = ladder
    target = small_npu(SCRATCHPAD_BYTES)
    symbol = hetnn.compile(exported, target).inputs[0].shape[3]
    settings: dict[str, Any] = {"strategy": "take-all", "shapes": [{symbol: 40}, {symbol: WIDE}]}
    free = hetnn.plan(exported, target, strategy="take-all").report(format="dict")
    assert free["nodes_on"] == {"cpu": 0, "small": 5}
    plan = hetnn.plan(exported, target, **settings)
    report = plan.report(format="dict")
    assert [row["node"] for row in report["not_on_preferred"] if row["op"] == "conv2d"] == ["conv2d_1"]
    why = plan.why("conv2d_1")
    (reason,) = [reason for reason in why["reasons"] if reason["label"] == "conv2d_refused"]
    assert f"bytes of scratchpad; small has {SCRATCHPAD_BYTES}" in reason["text"]
    assert "test_repair.py:" in why["loc"]
    (note,) = [note for note in report["notes"] if note["node"] == "conv2d_1"]
    assert note["text"].startswith("moved off 'small': its backend refused it: conv2d 'middle': its smallest tile")
    executable = hetnn.compile(exported, target, **settings)
    compiled = executable.report(format="dict")
    assert compiled["subgraphs"] == report["subgraphs"]
    assert compiled["notes"] == report["notes"]
    assert "moved off 'small'" in executable.report()
    for width in (40, WIDE):
        assert_equals_torch(executable, module, width)


def test_without_that_size_the_layer_stays_and_the_cpu_computes_the_size_when_met(ladder: Case) -> None:
    module, exported = ladder
    executable = hetnn.compile(exported, small_npu(SCRATCHPAD_BYTES), strategy="take-all")
    assert_equals_torch(executable, module, 50)
    with pytest.warns(RuntimeWarning, match=r"(?s)cannot run \{.*'middle': its smallest tile takes \d+ bytes"):
        assert_equals_torch(executable, module, WIDE)


class Chain(nn.Module):
    """Six layers whose constants, 37 kB each, are far larger than what passes between them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Conv2d(32, 32, 3, padding=1) for _ in range(6)))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def test_a_subgraph_above_the_memory_is_cut() -> None:
    torch.manual_seed(4)
    module, x = Chain().eval(), torch.randn(1, 32, 4, 4)
    exported = torch.export.export(module, (x,), strict=False)
    executable = hetnn.compile(exported, small_npu(memory_bytes=130_000), strategy="take-all")
    report = executable.report(format="dict")
    # Three layers fit 130 kB, six do not: the first cut is enough.
    assert [(part["device"], len(part["nodes"])) for part in report["subgraphs"]] == [("small", 3), ("small", 3)]
    (note,) = report["notes"]
    assert note["text"].startswith("a subgraph of 'small' was cut before it: the backend refused the whole: ")
    assert "of instructions); the memory of small has 130000" in note["text"]
    assert report["lower_bound_subgraphs"]["small"] == 1
    with torch.no_grad():
        torch.testing.assert_close(executable(x), module(x), rtol=1e-4, atol=1e-5)


def test_memory_for_no_layer_leaves_everything_on_the_cpu(ladder: Case) -> None:
    module, exported = ladder
    executable = hetnn.compile(exported, small_npu(memory_bytes=64), strategy="take-all")
    report = executable.report(format="dict")
    assert report["nodes_on"] == {"cpu": 5, "small": 0}
    reasons = [reason["label"] for row in report["not_on_preferred"] for reason in row["reasons"]]
    assert sorted(set(reasons)) == ["conv2d_refused", "relu_refused"]
    assert_equals_torch(executable, module, 40)


@pytest.mark.parametrize("strategy", ["cost", "topological", "depth", "merge", "take-all"])
def test_every_strategy_is_repaired(ladder: Case, strategy: str) -> None:
    module, exported = ladder
    executable = hetnn.compile(exported, small_npu(memory_bytes=20_000), strategy=strategy)
    assert executable.report(format="dict")["nodes_on"]["small"] > 0 or strategy == "cost"
    assert_equals_torch(executable, module, 40)


def test_a_refused_pin_is_an_error(ladder: Case) -> None:
    _, exported = ladder
    with pytest.raises(hetnn.Unsupported, match="node 'conv2d_1': pinned to 'small', which does not support it"):
        hetnn.compile(exported, small_npu(memory_bytes=64), pin={"conv2d_1": "small"}, strategy="cpu-only")


def test_a_static_layer_that_does_not_fit_is_no_repair(ladder: Case) -> None:
    module, _ = ladder
    exported = torch.export.export(module, (torch.randn(1, 3, 6, WIDE),), strict=False)
    report = hetnn.plan(exported, small_npu(SCRATCHPAD_BYTES), strategy="take-all").report(format="dict")
    rows = {row["node"]: row for row in report["not_on_preferred"]}
    assert "bytes of scratchpad" in rows["conv2d_1"]["reasons"][0]["text"]
    assert report["notes"] == []
