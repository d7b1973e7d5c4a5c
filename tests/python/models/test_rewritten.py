"""Whole networks whose activations an NPU lacks stay on it in one piece."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import hetnn
from hetnn.targets import load_spec
from models import nets, rewritten

CASES: dict[str, tuple[Callable[[], nets.Case], str]] = {
    "leaky detector": (lambda: rewritten.detector(64, 8), "cpu+relu-only"),
    "prelu face net": (lambda: rewritten.face_net(48, 16), "cpu+relu-only"),
    "mobilenet_v3": (lambda: nets.vision("mobilenet_v3_small", 64), "cpu+relu-mul"),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_one_subgraph_and_nothing_crosses(name: str) -> None:
    make, target = CASES[name]
    module, inputs = make()
    program = torch.export.export(module, inputs, strict=False)
    exe = hetnn.compile(program, target)
    report = exe.report(format="dict")
    assert report["nodes_on"]["cpu"] == 0
    assert len(report["subgraphs"]) == 1
    assert report["crossing_bytes"] == 0
    plain = hetnn.plan(program, target, rewrite="off", strategy="take-all").report(format="dict")
    assert len(plain["subgraphs"]) > 1
    assert report["predicted_us"] < plain["predicted_us"]
    with torch.no_grad():
        want = module(*inputs)
    pairs = zip(*(value if isinstance(value, tuple) else (value,) for value in (exe(*inputs), want)), strict=True)
    for got, other in pairs:
        assert float((got - other).abs().max()) <= 1e-5 * float(other.abs().max())


def test_a_rewrite_that_does_not_pay_is_not_taken() -> None:
    """With a fourteenth of the memory speed, a PReLU on a large input is done by the CPU before anything crosses.

    On a small one it is done by the NPU.
    """
    slow = load_spec("relu-only")
    slow["dram"]["bytes_per_cycle"] /= 14
    for side, taken in ((4, True), (64, False)):
        module = torch.nn.Sequential(torch.nn.PReLU(32), torch.nn.Conv2d(32, 8, 1)).eval()
        torch.nn.init.constant_(module[0].weight, 1.25)
        program = torch.export.export(module, (torch.randn(1, 32, side, side),), strict=False)
        report = hetnn.plan(program, slow).report(format="dict")
        assert bool(report["rewrites"]) == taken, side
