"""What OpenVINO computes otherwise and does not tell stays on other devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import hetnn
from functions import Function

I32, U8 = torch.int32, torch.uint8
TIES = torch.tensor([3, 1, 1, 2, 3, 1, 0, 0])
CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "equal integers": (lambda x: torch.sort(x, stable=True), (TIES,)),
    "equal reals": (lambda x: torch.sort(x, stable=True, descending=True), (TIES.float(),)),
    "64 bits": (lambda x: (x * 3, x > 7, x.amax(0), x.argmax(0), x.flip(0)), (torch.tensor([1 << 40, -5]),)),
    "chosen of 64 bits": (lambda x: torch.where(x > 0, x, 1 << 40), (torch.tensor([1 << 33, -5]),)),
    "doubles": (lambda x: (x.exp(), x + 1 / 3, x @ x), (torch.arange(9, dtype=torch.float64).reshape(3, 3) / 7,)),
    "bytes that wrap": (lambda x: (x + 250, x * 3), (torch.arange(0, 250, 31, dtype=U8),)),
    "integers beyond 24 bits": (
        lambda x, y: (x > y, x == y, x // 3, x % 3, x.amax()),
        (torch.tensor([16777217, 3, -5], dtype=I32), torch.tensor([16777216, 3, -5], dtype=I32)),
    ),
    "indices": (lambda x, at: (x[at], torch.nn.functional.one_hot(at, 5)), (torch.randn(4, 3), torch.tensor([1, 3]))),
    "no elements": (lambda x: torch.diagonal(x, -1, -2, -1), (torch.randn(2, 1, 16),)),
    "a size of its own": (
        lambda x: torch.nn.functional.max_pool2d(x, 2, 3, ceil_mode=True),
        (torch.randn(1, 2, 7, 9),),
    ),
    "numbers": (lambda x: (torch.cumsum(x, 0), *torch.sort(x, stable=True)), (torch.tensor(3),)),
}


@pytest.mark.parametrize("device", ["openvino-cpu", "onnxruntime-cpu"])
@pytest.mark.parametrize("case", CASES)
def test_results_are_torchs(case: str, device: str) -> None:
    pytest.importorskip(device.removesuffix("-cpu"))
    function, inputs = CASES[case]
    wanted = function(*inputs)
    exported = torch.export.export(Function(function), inputs)
    got = hetnn.compile(exported, f"cpu+{device}", strategy="take-all")(*inputs)
    for found, right in zip(*((x if isinstance(x, tuple | list) else [x]) for x in (got, wanted)), strict=True):
        np.testing.assert_allclose(np.asarray(found), right.numpy(), rtol=1e-12, atol=0)
        assert np.asarray(found).dtype == right.numpy().dtype


def test_the_report_says_why() -> None:
    pytest.importorskip("openvino")
    x = torch.tensor([1 << 40, -5])
    exported = torch.export.export(Function(lambda x: x * 3), (x,))
    executable = hetnn.compile(exported, "cpu+openvino-cpu", strategy="take-all")
    assert "OpenVINO holds i64 as i32" in str(executable.report("dict"))
