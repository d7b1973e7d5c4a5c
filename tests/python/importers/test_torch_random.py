"""Torch's random operators: reproducible, of the right distribution, new numbers at every call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn

# By name: what draws 10,000 numbers, their mean and their standard deviation.
DRAWS: dict[str, tuple[Callable[[Tensor], Tensor], float, float]] = {
    "rand": (lambda x: torch.rand(100, 100), 0.5, 12**-0.5),
    "rand_like": (torch.rand_like, 0.5, 12**-0.5),
    "uniform_": (lambda x: torch.empty(100, 100).uniform_(-1, 3), 1.0, 4 * 12**-0.5),
    "randn": (lambda x: torch.randn(100, 100), 0.0, 1.0),
    "randn_like": (torch.randn_like, 0.0, 1.0),
    "normal": (lambda x: torch.normal(2.0, 3.0, (100, 100)), 2.0, 3.0),
    "normal_of_tensors": (lambda x: torch.normal(x, 2.0), 1.0, 2.0),
    "randint": (lambda x: torch.randint(3, 7, (100, 100)), 4.5, 1.25**0.5),
    "bernoulli": (lambda x: torch.bernoulli(x * 0.25), 0.25, 0.1875**0.5),
    "bernoulli_": (lambda x: torch.empty(100, 100).bernoulli_(0.75), 0.75, 0.1875**0.5),
    "exponential_": (lambda x: torch.empty(100, 100).exponential_(2.0), 0.5, 0.5),
    "geometric_": (lambda x: torch.empty(100, 100).geometric_(0.5), 2.0, 2**0.5),
    "multinomial": (
        lambda x: torch.multinomial(torch.tensor([0.5, 0.0, 0.25, 0.25]), 10000, replacement=True),
        1.25,
        (0.25 * 4 + 0.25 * 9 - 1.25**2) ** 0.5,
    ),
    "dropout": (lambda x: nn.functional.dropout(x, 0.2, training=True), 1.0, 0.5),
    "alpha_dropout": (lambda x: nn.functional.alpha_dropout(torch.randn_like(x), 0.3, training=True), 0.0, 1.0),
    "rrelu": (lambda x: nn.functional.rrelu(-x, 0.1, 0.5, training=True), -0.3, 0.4 * 12**-0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_of_the_right_distribution(name: str) -> None:
    function, mean, deviation = DRAWS[name]
    x = torch.ones(100, 100)
    want, exe = function(x), hetnn.compile(function, args=(x,))
    first, second = exe(x), exe(x)
    assert (first.dtype, first.shape) == (want.dtype, want.shape)
    assert not torch.equal(first, second)
    torch.testing.assert_close(first, hetnn.compile(function, args=(x,))(x), rtol=0, atol=0)
    for drawn in (first.double(), second.double()):  # of 10,000 numbers a mean errs by a hundredth of the deviation
        assert drawn.mean().item() == pytest.approx(mean, abs=0.05 * deviation)
        assert drawn.std().item() == pytest.approx(deviation, rel=0.06)


def test_numbers_stay_below_one_in_every_type() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        y = hetnn.compile(lambda x, d=dtype: torch.rand(200, 200, dtype=d), args=(torch.zeros(1),))(torch.zeros(1))
        assert y.dtype == dtype
        assert 0 <= y.min() < 0.01
        assert 0.98 < y.max() < 1


def test_orders_and_places_are_drawn_without_repetition() -> None:
    def call(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.randperm(50), torch.multinomial(x, 3)

    x = torch.tensor([[1.0, 0.0, 2.0, 3.0]] * 20)
    order, places = hetnn.compile(call, args=(x,))(x)
    assert sorted(order.tolist()) == list(range(50))
    assert order.tolist() != list(range(50))
    assert all(sorted(row) == [0, 2, 3] for row in places.tolist())


def test_a_mask_is_that_of_the_result_and_channels_fall_out_whole() -> None:
    def call(x: Tensor) -> Any:
        y, mask = torch.native_dropout(x, 0.5, True)
        return y, mask, nn.functional.dropout2d(x, 0.5, training=True)

    x = torch.ones(8, 8, 4, 4)
    y, mask, channels = hetnn.compile(call, args=(x,))(x)
    torch.testing.assert_close(y, mask * 2.0)
    sums = channels.sum((2, 3))
    assert set(sums.unique().tolist()) == {0.0, 32.0}


def test_dropout_of_nothing_and_of_everything_needs_no_chance() -> None:
    x = torch.randn(3, 4)
    exe = hetnn.compile(
        lambda y: (nn.functional.dropout(y, 0.0), nn.functional.dropout(y, 1.0, training=True)), args=(x,)
    )
    torch.testing.assert_close(exe(x), (x, torch.zeros(3, 4)))


def test_a_saved_executable_draws_the_same_numbers(tmp_path: Path) -> None:
    x = torch.zeros(5)
    exe = hetnn.compile(lambda x: (torch.rand(5) + x, torch.rand(5) + x), args=(x,))
    exe.save(tmp_path / "random.hetnn")
    first, second = exe(x)
    assert not torch.equal(first, second)  # each call has a generator of its own
    torch.testing.assert_close(hetnn.load(tmp_path / "random.hetnn")(x), (first, second), rtol=0, atol=0)
