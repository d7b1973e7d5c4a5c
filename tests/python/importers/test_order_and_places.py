"""Sorting, selecting and addressing single elements, beside torch, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import hetnn
from functions import Function

SPECIAL = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-30, -1e30]


def same(function: Callable[..., Any], *inputs: torch.Tensor, threads: int = 1) -> None:
    mine = hetnn.compile(Function(function), args=inputs, threads=threads).run([x.numpy() for x in inputs])
    wanted = function(*inputs)
    for a, b in zip(mine, wanted if isinstance(wanted, tuple) else [wanted], strict=True):
        np.testing.assert_array_equal(a, b.numpy())


def lanes(dtype: torch.dtype, rows: int, size: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(size)
    if dtype == torch.bool:
        return torch.rand(rows, size, generator=generator) < 0.5
    if not dtype.is_floating_point:
        least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        x = torch.randint(-100, 100, (rows, size), generator=generator)
        x.view(-1)[:: max(size // 3, 1)] = torch.tensor(most if size % 2 else least)
        return x.to(dtype)
    x = torch.randn(rows, size, generator=generator).to(dtype)
    x.view(-1)[torch.randint(0, rows * size, (len(SPECIAL),), generator=generator)] = torch.tensor(SPECIAL).to(dtype)
    return x


@pytest.mark.parametrize("size", [1, 5, 63, 64, 300, 2000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int8, torch.bool])
def test_sorted_lanes_are_torchs(dtype: torch.dtype, size: int) -> None:
    x = lanes(dtype, 3, size)
    for descending in (False, True):
        same(lambda x, d=descending: torch.sort(x, dim=1, descending=d, stable=True), x)
        same(lambda x, d=descending: torch.sort(x, dim=0, descending=d), x.T.contiguous())


@pytest.mark.parametrize("k", [1, 3, 40])
def test_the_largest_are_torchs(k: int) -> None:
    x = lanes(torch.float32, 4, 3000)
    for largest in (False, True):
        same(lambda x, big=largest: x.topk(k, largest=big).values, x)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_lanes_shared_among_threads_are_torchs(dtype: torch.dtype, axis: int) -> None:
    x = lanes(dtype, 33, 311)
    for descending in (False, True):
        same(lambda x, d=descending: torch.sort(x, dim=axis, descending=d, stable=True), x, threads=2)
        same(lambda x, d=descending: x.topk(7, dim=axis, largest=d).values, x, threads=2)


def test_unique_numbers_are_torchs() -> None:
    same(lambda x: torch.unique(x, return_inverse=True, return_counts=True), torch.randint(-50, 50, (500,)))
    same(lambda x: torch.unique(x, return_inverse=True), lanes(torch.float32, 1, 200)[0].round(decimals=1))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int16])
def test_elements_by_their_places(dtype: torch.dtype, axis: int, threads: int) -> None:
    generator = torch.Generator().manual_seed(axis)
    shape = [20, 30, 40]
    x = torch.randint(-9, 9, shape, generator=generator).to(dtype)
    shape[axis] = 50
    at = torch.randint(0, x.shape[axis], shape, generator=generator)
    put = torch.randint(-9, 9, shape, generator=generator).to(dtype)
    same(lambda x, i: x.gather(axis, i), x, at, threads=threads)
    same(lambda x, i, p: x.scatter_add(axis, i, p), x, at, put, threads=threads)
    for reduce in ("prod", "amax", "amin", "mean"):
        same(lambda x, i, p, r=reduce: x.scatter_reduce(axis, i, p, r), x, at, put, threads=threads)
    shape[axis] = x.shape[axis]
    one = torch.argsort(torch.rand(shape, generator=generator), dim=axis)  # each place once: the order is no matter
    same(lambda x, i, p: x.scatter(axis, i, p), x, one, x.flip(axis).contiguous(), threads=threads)
    # An index for whole rows.
    rows = torch.randint(0, x.shape[axis], (7,), generator=generator)
    values = x.index_select(axis, torch.arange(7)) + 1
    same(lambda x, i, v: x.index_add(axis, i, v), x, rows, values, threads=threads)
    same(lambda x, i: x.index_select(axis, i), x, rows, threads=threads)


def test_nan_wins_where_elements_are_joined() -> None:
    x, at = torch.tensor([1.0, float("nan"), 3.0]), torch.tensor([0, 1, 2, 2])
    put = torch.tensor([float("nan"), 2.0, 5.0, float("nan")])
    for reduce in ("amax", "amin"):
        same(lambda x, i, p, r=reduce: x.scatter_reduce(0, i, p, r), x, at, put)


@pytest.mark.parametrize("name", ["gather", "scatter", "index_select"])
def test_places_outside_are_refused(name: str) -> None:
    x, at = torch.zeros(4, 5), torch.zeros(4, 5, dtype=torch.int64)
    functions: dict[str, Callable[..., Any]] = {
        "gather": lambda x, i: x.gather(1, i),
        "scatter": lambda x, i: x.scatter(1, i, x),
        "index_select": lambda x, i: x.index_select(1, i[0]),
    }
    exe = hetnn.compile(Function(functions[name]), args=(x, at))
    for wrong in (5, -1, 2**62, -(2**63)):
        at[0, 3] = wrong
        with pytest.raises(hetnn.InvalidModel, match="outside an axis of 5"):
            exe(x.numpy(), at.numpy())


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_scans_are_torchs(axis: int) -> None:
    x = torch.randint(-3, 4, (10, 9, 11)).float()
    same(lambda x: x.cumsum(axis), x, threads=2)
    same(lambda x: torch.flip(torch.cumsum(torch.flip(x, [axis]), axis), [axis]), x)
    same(lambda x: x.sign().cumprod(axis), x)


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_one_lane_is_not_joined_by_two_threads(threads: int) -> None:
    generator = torch.Generator().manual_seed(7)
    x = torch.randint(-99, 99, (100_000,), generator=generator)
    places = torch.randint(0, len(x), (60_000,), generator=generator)
    updates = torch.randint(-99, 99, places.shape, generator=generator)
    exe = hetnn.compile(Function(lambda x, i, u: x.scatter_add(0, i, u)), args=(x, places, updates), threads=threads)
    wanted = x.scatter_add(0, places, updates)
    for _ in range(100):
        assert torch.equal(exe(x, places, updates), wanted)
