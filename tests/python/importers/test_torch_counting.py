"""Counting, masks as indices, and parts between places that values give: small programs, equal to eager torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn
from functions import Function


def masked(x: Tensor, mask: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A mask of rows with as many new rows; of elements with one number; beside another index."""
    a = x.index_put((mask,), rows)
    b = x.index_put((x > 0,), torch.tensor(7.0), accumulate=True)
    c = x.index_put((mask, torch.tensor([1])), torch.tensor(3.0))
    return a, b, c


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "bincount": (lambda x: torch.bincount(x, minlength=3), (torch.tensor([0, 5, 5, 1]),)),
    "bincount of nothing": (lambda x: torch.bincount(x, minlength=3), (torch.zeros(0, dtype=torch.int64),)),
    "weighted": (lambda x, w: torch.bincount(x, w), (torch.tensor([0, 5, 5, 1]), torch.tensor([1.0, 2.0, 0.5, 3.0]))),
    "histogram": (lambda x: torch.histogram(x, 4, density=True), (torch.tensor([0.0, 0.1, 0.5, 0.9, 1.0]),)),
    "segments": (
        lambda x, n: torch.segment_reduce(x, "mean", lengths=n, unsafe=True),
        (torch.arange(10.0).reshape(5, 2), torch.tensor([2, 0, 3])),
    ),
    "nonzero_static": (
        lambda x: torch.nonzero_static(x, size=4, fill_value=-7),
        (torch.tensor([[0, 3, 0], [5, 0, 6]]),),
    ),
    "hash": (torch.hash_tensor, (torch.randn(3, 5),)),
    "frexp": (torch.frexp, (torch.tensor([0.0, 1.0, -3.5, 1e-37, float("inf")]),)),
    "tensor_split": (lambda x, at: torch.tensor_split(x, at), (torch.randn(7, 3), torch.tensor([2, 5]))),
    "masked": (masked, (torch.randn(4, 3), torch.tensor([True, False, False, True]), torch.randn(2, 3))),
    "strided": (lambda x, y: x.as_strided_scatter(y, (2, 2), (3, 2), 1), (torch.randn(3, 4), torch.randn(2, 2))),
    "strided in memory's order": (
        lambda x, y: (
            (x + 0).permute(2, 0, 1).as_strided((2, 3, 2), (5, 2, 1), 3),
            (x + 0).mT.as_strided_scatter(y, (2, 2), (3, 2), 1),
        ),
        (torch.randn(2, 3, 4), torch.randn(2, 2)),
    ),
    "gcd": (
        lambda a, b: (torch.gcd(a, b), torch.lcm(a, b)),
        (torch.tensor([12, -18, 0, 7]), torch.tensor([8, 27, 5, 0])),
    ),
    "smaller": (
        lambda x: nn.functional.interpolate(x, size=(5, 7), mode="bicubic", antialias=True),
        (torch.randn(1, 2, 11, 13),),
    ),
    "equal elements": (torch.sort, (torch.arange(100) % 3,)),
    "eigenvalues": (torch.linalg.eigvalsh, (torch.randn(2, 4, 4),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_equals_eager(name: str) -> None:
    function, given = PROGRAMS[name]
    module = Function(function)
    got = hetnn.compile(torch.export.export(module, given, strict=False))(*given)
    torch.testing.assert_close(_plain(got), _plain(module(*given)), equal_nan=True)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else value


def test_each_run_finds_its_own_sizes() -> None:
    module = Function(lambda x, at: (torch.bincount(x, minlength=2), torch.tensor_split(x, at)[1]))
    given = (torch.tensor([3, 0, 1, 1]), torch.tensor([1, 3]))
    run = hetnn.compile(torch.export.export(module, given, strict=False))
    for other in (given, (torch.tensor([0, 0, 0, 9]), torch.tensor([-3, 9]))):
        counts, part = run(*other)
        assert torch.equal(counts, torch.bincount(other[0], minlength=2))
        assert torch.equal(part, torch.tensor_split(other[0], other[1])[1])


def test_eigenvectors_are_refused_because_their_signs_are_open() -> None:
    with pytest.raises(hetnn.Unsupported, match="eigenvectors are read, whose signs are not fixed"):
        hetnn.compile(torch.export.export(Function(torch.linalg.eigh), (torch.eye(3),), strict=False))


def test_sizes_that_are_a_multiple_of_a_symbol() -> None:
    """A size that no value of the symbol gives is refused."""

    class Halves(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.reshape(-1, 4).sum(1)

    shapes = ({0: 4 * torch.export.Dim("n", min=1, max=8)},)
    run = hetnn.compile(torch.export.export(Halves(), (torch.ones(12),), dynamic_shapes=shapes, strict=False))
    assert run(torch.ones(20)).tolist() == [4.0] * 5
    with pytest.raises(hetnn.InvalidModel, match=r"dimension 0 must be 4\*"):
        run(torch.ones(10))


def test_a_number_that_is_read_from_a_real_is_no_size() -> None:
    module = Function(lambda x, y: (x * y.item(), y.item()))
    scaled, number = hetnn.compile(torch.export.export(module, (torch.ones(2), torch.tensor(0.5)), strict=False))(
        torch.ones(2), torch.tensor(0.75)
    )
    assert scaled.tolist() == [0.75, 0.75]
    assert number == 0.75


def test_windows_and_diagonals_of_any_size() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.unfold(1, 3, 2), x.unfold(0, 2, 1), torch.diagonal(x, 1), torch.diagonal(x, -1)

    batch = torch.export.Dim("batch", min=3)
    x = torch.randn(5, 8)
    exe = hetnn.compile(Function(function), args=(x,), dynamic_shapes=(({0: batch},),))
    for rows in (3, 5, 8):
        given = torch.randn(rows, 8)
        for mine, wanted in zip(exe.run([given.numpy()]), function(given), strict=True):
            torch.testing.assert_close(torch.from_numpy(mine), wanted, rtol=0, atol=0)
