"""Convolutions whose weights are values: the same kernels, which pack them in every run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn import functional

import hetnn

CASES: dict[str, tuple[Callable[..., torch.Tensor], tuple[int, ...], tuple[int, ...]]] = {
    "direct": (lambda x, w, b: functional.conv2d(x, w, b, padding=1), (2, 9, 8, 7), (20, 9, 3, 3)),
    "few channels": (lambda x, w, b: functional.conv2d(x, w, b, stride=2), (1, 3, 17, 16), (8, 3, 5, 5)),
    "winograd": (lambda x, w, b: functional.conv2d(x, w, b, padding=1), (1, 32, 16, 16), (40, 32, 3, 3)),
    "groups": (lambda x, w, b: functional.conv2d(x, w, b, groups=3, dilation=2), (2, 12, 9, 9), (30, 4, 3, 3)),
    "narrow groups": (lambda x, w, b: functional.conv2d(x, w, b, groups=4, padding=1), (1, 16, 6, 6), (32, 4, 3, 3)),
    "depthwise": (lambda x, w, b: functional.conv2d(x, w, b, groups=20, padding=1), (1, 20, 9, 9), (20, 1, 3, 3)),
    "one axis": (lambda x, w, b: functional.conv1d(x, w, b, padding=2), (2, 6, 30), (11, 6, 5)),
    "transposed": (lambda x, w, b: functional.conv_transpose2d(x, w, b, stride=2), (1, 10, 5, 6), (10, 7, 3, 3)),
    "transposed, stride 1": (
        lambda x, w, b: functional.conv_transpose2d(x, w, b, padding=1, groups=2),
        (2, 10, 5, 6),
        (10, 9, 3, 4),
    ),
}


class Convolution(torch.nn.Module):
    def __init__(self, call: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.call(x, weight, bias))


@pytest.mark.parametrize("name", CASES)
def test_kernels_compute_them(name: str) -> None:
    call, of_x, of_weight = CASES[name]
    torch.manual_seed(0)
    x, weight = torch.randn(of_x), torch.randn(of_weight)
    bias = torch.randn(call(x, weight, None).shape[1])
    exe = hetnn.compile(Convolution(call), args=(x, weight, bias))
    expected = torch.relu(call(x.double(), weight.double(), bias.double())).numpy()
    found = np.asarray(exe(x, weight, bias))
    assert np.abs(found - expected).max() <= 4e-6 * np.abs(expected).max()
    kernels = [row["kernel"] for row in exe.profile(x, weight, bias)]
    assert not any(kernel.startswith("meaning") for kernel in kernels), kernels
    alone = hetnn.compile(Convolution(call), args=(x, weight, bias), threads=1)
    assert np.array_equal(np.asarray(alone(x, weight, bias)), found)
