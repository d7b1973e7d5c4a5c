"""Torch's reflections, exponentials of matrices and resized bytes: equal to eager."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn


def equal(function: Callable[..., Any], *inputs: Tensor) -> None:
    exe = hetnn.compile(function, args=inputs)
    torch.testing.assert_close(exe(*inputs), function(*inputs))


@pytest.mark.parametrize(("value", "beta"), [(math.nan, 0), (math.inf, 0), (2.0, 1), (2.0, 0.5)])
def test_an_addend_that_counts_nothing_is_not_read(value: float, beta: float) -> None:
    x, y = torch.randn(3, 3), torch.full((3, 3), value)
    equal(lambda x, y: torch.addmm(y, x, x, beta=beta, alpha=2), x, y)
    equal(lambda x, y: torch.addbmm(y, x[None], x[None], beta=beta), x, y)
    equal(lambda x, y: torch.baddbmm(y[None], x[None], x[None], beta=beta), x, y)
    equal(lambda x, y: torch.addmv(y[0], x, x[0], beta=beta), x, y)
    equal(lambda x, y: torch.addr(y, x[0], x[1], beta=beta), x, y)


@pytest.mark.parametrize("ends", [[2, 5, 5, 9], [0, 0, 9, 9], [9, 9, 9, 9], [1, 2, 3, 4]])
@pytest.mark.parametrize("width", [8, 48])
def test_groups_of_rows_by_their_own_matrices(ends: list[int], width: int) -> None:
    torch.manual_seed(1)
    weights, offsets = torch.randn(4, width, 40), torch.tensor(ends, dtype=torch.int32)

    def grouped(x: Tensor, offsets: Tensor) -> Tensor:
        return torch._grouped_mm(x.bfloat16(), weights.bfloat16(), offsets)

    x = torch.randn(9, width)
    exe = hetnn.compile(grouped, args=(x, offsets))
    wanted, begin = torch.zeros(9, 40), 0
    for weight, end in zip(weights.bfloat16().float(), ends, strict=True):
        wanted[begin:end] = x[begin:end].bfloat16().float() @ weight
        begin = end
    torch.testing.assert_close(exe(x, offsets).float(), wanted, rtol=1e-2, atol=1e-2)
    for wrong in ([2, 1, 5, 9], [2, 5, 9, 10]):
        with pytest.raises(hetnn.InvalidModel, match="groups must end one behind the other"):
            exe(x, torch.tensor(wrong, dtype=torch.int32))


def test_products_of_reflections() -> None:
    torch.manual_seed(1)
    factors, tau = torch.geqrf(torch.randn(2, 5, 3))
    equal(torch.linalg.householder_product, factors, tau)
    for left in (True, False):
        for transpose in (True, False):
            other = torch.randn(2, 5, 4) if left else torch.randn(2, 4, 5)
            equal(lambda a, t, c, w=(left, transpose): torch.ormqr(a, t, c, *w), factors, tau, other)
    many, scales = torch.geqrf(torch.randn(90, 70, dtype=torch.float64))
    equal(torch.linalg.householder_product, many, scales[:60])


def test_more_reflections_than_columns_are_refused() -> None:
    exe = hetnn.compile("""graph @g {stage = imported} (%a: f32[2,2], %t: f32[3], %c: f32[2,1]) -> (%y) {
      %y = apply_reflections(%a, %t, %c) : f32[2,1]
    }""")
    with pytest.raises(hetnn.InvalidModel, match="3 reflections in a matrix of 2 rows and 2 columns"):
        exe(torch.eye(2), torch.ones(3), torch.ones(2, 1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_reflections_that_make_matrices_triangular(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    for shape in ((2, 5, 3), (3, 5), (1, 1)):
        equal(torch.geqrf, torch.randn(shape, dtype=dtype))
    equal(torch.geqrf, torch.zeros(3, 3, dtype=dtype))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 17])
def test_symmetric_factors_and_their_systems(size: int) -> None:
    """Zeros among the elements call for pivots of two rows."""
    torch.manual_seed(size)
    for kept in (1.0, 0.5):
        x = torch.randn(2, size, size) * (torch.rand(2, size, size) <= kept)
        x = x + x.mT + torch.diag_embed(torch.full((2, size), 0.01))
        factors, pivots, broken = torch.linalg.ldl_factor_ex(x)
        exe = hetnn.compile(torch.linalg.ldl_factor_ex, args=(x,))
        mine = exe(x)
        torch.testing.assert_close(mine[1], pivots)
        torch.testing.assert_close(mine[2], broken)
        torch.testing.assert_close(mine[0], factors, rtol=1e-4, atol=1e-4)
        # Whatever the factors, of matrices that are no worse than these.
        b = torch.randn(2, size, 3, dtype=torch.float64)
        equal(torch.linalg.ldl_solve, factors.double(), pivots, b)


def test_pivots_that_no_factors_have_are_refused() -> None:
    factors, b = torch.eye(3), torch.ones(3, 1)
    exe = hetnn.compile(torch.linalg.ldl_solve, args=(factors, torch.tensor([1, 2, 3], dtype=torch.int32), b))
    for pivots in ([0, 2, 3], [1, 2, 4], [1, 2, -3], [-2, -2, -3], [1, -2, -3]):
        with pytest.raises(hetnn.InvalidModel, match="a pivot must be in"):
            exe(factors, torch.tensor(pivots, dtype=torch.int32), b)


def test_a_matrix_without_factors_is_refused() -> None:
    with pytest.raises(hetnn.InvalidModel, match="a block of 0"):
        hetnn.compile(torch.linalg.ldl_factor, args=(torch.eye(2),))(torch.zeros(2, 2))


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


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_symmetric_factors_of_what_is_no_number(size: int) -> None:
    """A pivot that is NaN is exchanged with none: the row behind the last one was read."""
    for row in range(size):
        for column in range(row + 1):
            x = torch.eye(size) * 3 + 1
            x[row, column] = x[column, row] = math.nan
            factors, pivots, broken = hetnn.compile(lambda x: tuple(torch.linalg.ldl_factor_ex(x)), args=(x,))(x)
            assert torch.isnan(torch.tril(factors)).any()
            assert ((pivots.abs() >= 1) & (pivots.abs() <= size)).all()
            if (row, column) == (0, 0):
                assert broken == 1
            with pytest.raises(hetnn.InvalidModel, match="no number") if broken > 0 else contextlib.nullcontext():
                hetnn.compile(lambda x: tuple(torch.linalg.ldl_factor(x)), args=(x,))(x)


def close(function: Callable[..., Any], *inputs: Tensor) -> None:
    """Of both types as many digits as factors of random matrices have."""
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if inputs[0].dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-9}
    exe = hetnn.compile(function, args=inputs)
    torch.testing.assert_close(exe(*inputs), function(*inputs), **tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (5, 3), (3, 5), (70, 30), (30, 70), (2, 0, 3), (3, 0)])
def test_matrices_of_every_shape(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Tall and wide ones are turned, filled up and cut for their factors."""
    torch.manual_seed(1)
    close(
        lambda x: (
            torch.linalg.svdvals(x),
            *torch.linalg.qr(x),
            *torch.linalg.qr(x, mode="complete"),
            torch.linalg.qr(x, mode="r")[1],
            *torch.linalg.lu_factor_ex(x),
            *torch.geqrf(x),
        ),
        torch.randn(shape, dtype=dtype),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1, 2, 17, 64])
def test_values_and_factors_of_square_matrices(size: int, dtype: torch.dtype) -> None:
    torch.manual_seed(size)
    x = torch.randn(2, size, size, dtype=dtype)
    close(
        lambda x, positive, lower: (
            torch.linalg.eigvalsh(x),
            torch.linalg.eigvalsh(x, UPLO="U"),
            torch.linalg.svdvals(x),
            torch.linalg.cholesky(positive),
            torch.linalg.solve_triangular(positive, x, upper=True),
            torch.linalg.solve_triangular(lower, x, upper=False, unitriangular=True),
        ),
        x,
        x @ x.mT + torch.eye(size, dtype=dtype),
        torch.tril(x) / size,
    )


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_matrices_whose_squares_are_no_numbers(scale: float) -> None:
    torch.manual_seed(1)
    x = torch.randn(5, 5)

    def parts(x: Tensor) -> tuple[Tensor, ...]:
        """What grows with the matrix, then what does not."""
        (q, r), (factors, tau) = torch.linalg.qr(x), torch.geqrf(x)
        values = torch.linalg.eigvalsh(x), torch.linalg.svdvals(x)
        return *values, r, torch.triu(factors), q, torch.tril(factors, -1), tau

    found = hetnn.compile(parts, args=(x,))(x * scale)
    for k, (mine, wanted) in enumerate(zip(found, parts(x), strict=True)):
        torch.testing.assert_close(mine / scale if k < 4 else mine, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf])
@pytest.mark.parametrize("size", [1, 5, 60])
def test_no_values_of_what_is_no_number(size: int, value: float) -> None:
    x = torch.full((size, size), value)

    def parts(x: Tensor) -> tuple[Tensor, ...]:
        factors, broken = torch.linalg.cholesky_ex(x)
        return (
            torch.linalg.eigvalsh(x),
            torch.linalg.svdvals(x),
            torch.linalg.lu_factor_ex(x)[0],
            torch.geqrf(x)[0],
            torch.linalg.qr(x)[1],
            factors / (broken == 0),
        )

    *found, factors = hetnn.compile(parts, args=(x,))(x)
    assert not factors.isfinite().all()
    for each in found:
        assert (each == 0).all() if value == 0 else not each.isfinite().all()
    if value != 0:
        assert found[0].isnan().all()
        assert found[1].isnan().all()


def test_a_factor_is_found_as_far_as_minors_are_positive() -> None:
    torch.manual_seed(1)
    x = torch.randn(40, 40, dtype=torch.float64)
    exe = hetnn.compile(lambda x: tuple(torch.linalg.cholesky_ex(x)), args=(x,))
    for order in (1, 2, 20, 40):
        broken = x @ x.T + torch.eye(40)
        broken[order - 1, order - 1] = -1
        factor, found = exe(broken)
        assert found == order
        first = broken[: order - 1, : order - 1]
        torch.testing.assert_close(factor[: order - 1, : order - 1], torch.linalg.cholesky(first))
