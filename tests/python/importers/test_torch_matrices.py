"""Torch's reflections, exponentials of matrices and resized bytes: equal to eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn


def equal(function: Callable[..., Any], *inputs: Tensor) -> None:
    exe = hetnn.compile(function, args=inputs)
    torch.testing.assert_close(exe(*inputs), function(*inputs))


def test_products_of_reflections() -> None:
    torch.manual_seed(1)
    factors, tau = torch.geqrf(torch.randn(2, 5, 3))
    equal(torch.linalg.householder_product, factors, tau)
    for left in (True, False):
        for transpose in (True, False):
            other = torch.randn(2, 5, 4) if left else torch.randn(2, 4, 5)
            equal(lambda a, t, c, w=(left, transpose): torch.ormqr(a, t, c, *w), factors, tau, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_reflections_that_make_matrices_triangular(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    for shape in ((2, 5, 3), (3, 5), (1, 1)):
        equal(torch.geqrf, torch.randn(shape, dtype=dtype))
    equal(torch.geqrf, torch.zeros(3, 3, dtype=dtype))


def test_exponentials_of_matrices_small_and_large() -> None:
    torch.manual_seed(1)
    scale = torch.tensor([0.0, 1e-6, 1.0, 5.0, 30.0], dtype=torch.float64)
    equal(torch.linalg.matrix_exp, torch.randn(5, 4, 4, dtype=torch.float64) * scale[:, None, None])


def test_what_torch_leaves_open_is_refused() -> None:
    x = torch.eye(3)
    for function, why in (
        (torch.linalg.matrix_exp, "an exponential of matrices of f32"),
        (torch.linalg.cond, "a condition number of matrices of f32"),
        (lambda x: torch.linalg.cond(x, p=-2), "a condition number of matrices of f32"),
        (lambda x: torch.linalg.pinv(x, hermitian=True), "a pseudoinverse by eigenvalues in f32"),
    ):
        with pytest.raises(hetnn.Unsupported, match=why):
            hetnn.compile(function, args=(x,))


def test_condition_numbers_of_f64() -> None:
    torch.manual_seed(1)
    equal(torch.linalg.cond, torch.randn(2, 5, 5, dtype=torch.float64))


@pytest.mark.parametrize("corners", [True, False])
def test_bytes_are_resized_to_the_last_bit(corners: bool) -> None:
    for channels, shape, size in ((3, (3, 3), (6, 6)), (6, (7, 5), (4, 9)), (2, (5, 6), (5, 1))):
        x = torch.randint(0, 256, (2, channels, *shape), dtype=torch.uint8)
        equal(lambda x, s=size: nn.functional.interpolate(x, s, mode="bilinear", align_corners=corners), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_batch_norm_by_the_batch_itself(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    x, weight, bias = torch.randn(4, 3, 5).to(dtype), torch.randn(3).to(dtype), torch.randn(3).to(dtype)
    norm = torch.ops.aten._native_batch_norm_legit.no_stats
    equal(lambda x, w, b: norm(x, w, b, True, 0.1, 1e-5), x, weight, bias)
