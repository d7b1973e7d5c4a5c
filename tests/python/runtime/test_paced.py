"""Devices that take by the clock what is predicted for them: schedules come out as the report says."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hetnn
from hetnn.targets import load_spec

DEVICES = ("east", "south", "west")
SHAPE = (1, 8, 12, 12)


def target(devices: tuple[str, ...] = DEVICES) -> dict[str, Any]:
    """So slow a clock that simulating takes a small part of the time that is waited."""
    sheets = [{**load_spec("relu-only"), "name": name, "clock_hz": 2e4, "paced": True} for name in devices]
    listed = [{"name": name, "kind": "npu", "spec": sheet} for name, sheet in zip(devices, sheets, strict=True)]
    links = {"bytes_per_us": 1e6, "latency_us": 0}
    return {"name": "paced", "devices": [{"name": "cpu", "kind": "cpu"}, *listed], "links": links}


def compile_on(module: nn.Module, places: dict[str, str]) -> hetnn.Executable:
    """With every node that is named on its device."""
    exported = torch.export.export(module.eval(), (torch.zeros(SHAPE),))
    return hetnn.compile(exported, target(), pin=places, rewrite="off", fusion=False, threads=1)


def seconds(executable: hetnn.Executable, overlap: bool) -> float:
    """The best of some runs: others may use the machine."""
    best, x = float("inf"), np.zeros(SHAPE, np.float32)
    for _ in range(4):
        begin = time.perf_counter()
        executable.run([x], overlap=overlap)
        best = min(best, time.perf_counter() - begin)
    return best


class Layers(nn.Module):
    """Layer k is a convolution of the sum of earlier values; the outputs are those that no layer reads."""

    def __init__(self, inputs: list[list[int]]) -> None:
        super().__init__()
        self.inputs = inputs
        self.layers = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in inputs)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        values = [x]
        for layer, read in zip(self.layers, self.inputs, strict=True):
            values.append(layer(sum((values[k] for k in read[1:]), values[read[0]])))
        read = {k for reads in self.inputs for k in reads}
        return tuple(value for k, value in enumerate(values) if k not in read)


def placed(layers: Layers, choose: Any) -> hetnn.Executable:
    """Compiled with each convolution, and the sums before it, on the device that `choose` says."""
    places: dict[str, str] = {}
    made: Counter[str] = Counter()
    for read in layers.inputs:
        device = choose()
        for op in ("conv2d", *("add" for _ in read[1:])):
            places[f"{op}_{made[op]}" if made[op] else op] = device
            made[op] += 1
    return compile_on(layers, places)


def same_bits(executable: hetnn.Executable) -> None:
    x = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)
    together, apart = executable.run([x]), executable.run([x], overlap=False)
    for a, b in zip(together, apart, strict=True):
        np.testing.assert_array_equal(a, b)


def test_two_equal_branches_take_the_time_of_one() -> None:
    torch.manual_seed(0)
    executable = placed(Layers([[0], [0]]), iter(DEVICES).__next__)
    assert {row["device"] for row in executable.report("dict")["subgraphs"]} == {"east", "south"}
    same_bits(executable)
    assert seconds(executable, overlap=False) >= 1.8 * seconds(executable, overlap=True)


@pytest.mark.parametrize("seed", range(5))
def test_a_random_graph_takes_the_time_of_its_schedule(seed: int) -> None:
    torch.manual_seed(seed)
    chance = random.Random(seed)
    reads: list[list[int]] = []
    for k in range(9):
        sums = [[a, b] for b in range(k + 1) for a in range(b) if [a, b] not in reads]  # equal ones would be one node
        reads.append(chance.choice(sums) if sums and chance.random() < 0.5 else [chance.randint(0, k)])
    executable = placed(Layers(reads), lambda: chance.choice(DEVICES))
    report = executable.report("dict")
    assert {row["device"] for row in report["subgraphs"]} == set(DEVICES)
    same_bits(executable)
    took_us = seconds(executable, overlap=True) * 1e6
    assert took_us == pytest.approx(report["makespan_us"], rel=0.1)


def test_a_paced_run_ends_at_its_deadline() -> None:
    executable = placed(Layers([[0]] + [[k] for k in range(1, 40)]), lambda: "east")
    begin = time.perf_counter()
    with pytest.raises(hetnn.Unavailable, match="deadline passed"):
        executable.run_async([np.zeros(SHAPE, np.float32)], timeout_s=0.02).result()
    assert time.perf_counter() - begin < executable.report("dict")["makespan_us"] * 1e-6 / 2
