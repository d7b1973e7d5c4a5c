"""Sizes that a torch program runs, whatever it was exported with."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn

Dim = torch.export.Dim


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.line = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.convolution(x).relu().mean((2, 3))
        return self.line(y).softmax(-1), x.flatten(1) + x.shape[0]


@pytest.mark.parametrize("dim", [Dim.AUTO, Dim.DYNAMIC, Dim("batch"), Dim("batch", min=1)], ids=str)
@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_a_batch_of_one_and_of_none(dim: Any, target: str) -> None:
    """For an axis that varies torch notes [2, inf) and runs any."""
    torch.manual_seed(0)
    program = torch.export.export(Rows().eval(), (torch.randn(4, 3, 6, 6),), dynamic_shapes=({0: dim},), strict=False)
    exe = hetnn.compile(program, target)
    for batch in (1, 2, 7) if "min=1" in str(dim) or getattr(dim, "min", 0) == 1 else (0, 1, 2, 7):
        x = torch.randn(batch, 3, 6, 6)
        torch.testing.assert_close(exe(x), program.module()(x), rtol=1e-4, atol=1e-5)


class Written(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        part = x[:, : x.shape[1] // 2]
        inside = torch.arange(9).clamp(1, x.shape[1] - 2), x.clamp(max=x.shape[1] // 8), x.clamp(x.shape[1] - 3, None)
        first = torch.slice_scatter(x, part * 2, 1, 0, x.shape[1] // 2)
        last = torch.slice_scatter(x, part * 3, 1, -(x.shape[1] // 2))
        every = torch.slice_scatter(x, x[:, ::2] * 4, 1, 0, None, 2)
        return *inside, first, last, every, torch.ops.prims.cat([x, x], 1)


def test_parts_of_an_axis_of_any_size_are_written() -> None:
    shapes = ({1: 2 * Dim("half", min=1, max=64)},)
    program = torch.export.export(Written(), (torch.randn(3, 8),), dynamic_shapes=shapes, strict=False)
    exe = hetnn.compile(program)
    for length in (2, 8, 14):
        x = torch.randn(3, length)
        torch.testing.assert_close(exe(x), Written()(x))


class Moved(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, nn.functional.pad(x[:, 1:], (0, 0, 0, 1)), nn.functional.pad(x[:, :-1], (0, 0, 1, 0))], 2)


def test_what_is_cut_off_an_axis_of_any_size_is_there() -> None:
    varying = ({0: Dim.AUTO, 1: Dim.AUTO},)
    program = torch.export.export(Moved(), (torch.randn(2, 5, 3),), dynamic_shapes=varying, strict=False)
    exe = hetnn.compile(program)
    for batch, length in ((2, 5), (1, 1), (3, 9)):
        x = torch.randn(batch, length, 3)
        torch.testing.assert_close(exe(x), Moved()(x))
    with pytest.raises(hetnn.InvalidModel, match="the shape"):
        exe(torch.randn(2, 0, 3))


def test_limits_that_torch_keeps_are_kept() -> None:
    dim = Dim("batch", min=3, max=9)
    program = torch.export.export(Rows().eval(), (torch.randn(4, 3, 6, 6),), dynamic_shapes=({0: dim},), strict=False)
    exe = hetnn.compile(program)
    for batch in (2, 10):
        with pytest.raises(hetnn.InvalidModel, match=r"must be in \[3, 9\]"):
            exe(torch.randn(batch, 3, 6, 6))
