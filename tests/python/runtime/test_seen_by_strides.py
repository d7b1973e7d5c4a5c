"""Heads of attention are read and written where they lie: what only moves them moves nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import hetnn

HEADS, DEPTH = 4, 8
WIDTH = HEADS * DEPTH


class Attending(nn.Module):
    """One product for queries, keys and values, then what `operands` makes of it and what `after` makes of the rows."""

    def __init__(self, operands: Callable[[Tensor], list[Tensor]], after: Callable[[Tensor], Tensor | tuple]) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.operands, self.after = operands, after

    def forward(self, x: Tensor) -> Tensor | tuple:
        return self.after(nn.functional.scaled_dot_product_attention(*self.operands(self.qkv(x))))


def side_by_side(qkv: Tensor) -> list[Tensor]:
    batch, length, _ = qkv.shape
    return [part.view(batch, length, HEADS, DEPTH).transpose(1, 2) for part in qkv.split(WIDTH, dim=2)]


def stacked(qkv: Tensor) -> list[Tensor]:
    batch, length, _ = qkv.shape
    return list(qkv.view(batch, length, 3, HEADS, DEPTH).permute(2, 0, 3, 1, 4).unbind(0))


def joined(y: Tensor) -> Tensor:
    return y.transpose(1, 2).reshape(y.shape[0], y.shape[2], WIDTH)


def moves(exe: hetnn.Executable, *inputs: Tensor) -> set[str]:
    return {row["kernel"] for row in exe.profile(*inputs)} & {"transpose", "slice", "reshape", "copy"}


@pytest.mark.parametrize("operands", [side_by_side, stacked])
@pytest.mark.parametrize("length", [0, 1, 5, 40])
def test_nothing_is_moved(operands: Callable[[Tensor], list[Tensor]], length: int, tmp_path: Path) -> None:
    module = Attending(operands, lambda y: torch.relu(joined(y))).eval()
    x = torch.randn(3, length, WIDTH)
    exe = hetnn.compile(torch.export.export(module, (x,)))
    torch.testing.assert_close(exe(x), module(x), rtol=1e-5, atol=1e-5)
    if length > 1:
        assert moves(exe, x) == set()
    exe.save(tmp_path / "a.hetnn")
    assert torch.equal(hetnn.load(tmp_path / "a.hetnn")(x), exe(x))


@pytest.mark.parametrize("operands", [side_by_side, stacked])
def test_of_open_lengths(operands: Callable[[Tensor], list[Tensor]]) -> None:
    module = Attending(operands, joined).eval()
    sizes = {0: torch.export.Dim("batch", max=9), 1: torch.export.Dim("length", max=90)}
    exe = hetnn.compile(torch.export.export(module, (torch.randn(2, 7, WIDTH),), dynamic_shapes=(sizes,)))
    for batch, length in [(1, 2), (2, 7), (9, 33), (3, 90), (1, 1), (2, 0), (0, 4)]:
        x = torch.randn(batch, length, WIDTH)
        torch.testing.assert_close(exe(x), module(x), rtol=1e-5, atol=1e-5)


def test_what_others_read_is_moved_for_them() -> None:
    """Keys that leave the model, depths apart, and rows in another order than heads had."""

    class Others(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
            keys = x.view(2, 6, HEADS, DEPTH).transpose(1, 2)
            apart = y.view(2, HEADS, DEPTH, 6).transpose(2, 3)
            rows = nn.functional.scaled_dot_product_attention(apart, keys, keys.flip(2))
            return keys, rows.permute(2, 0, 1, 3), rows * 2, rows.permute(0, 3, 1, 2).reshape(2, DEPTH, HEADS * 6)

    given = torch.randn(2, 6, WIDTH), torch.randn(2, HEADS, DEPTH * 6)
    exe = hetnn.compile(torch.export.export(Others(), given))
    for got, want in zip(exe(*given), Others()(*given), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "after",
    [
        lambda y: y[:, 1:3],
        lambda y: y[:, :, -2:],
        lambda y: y[:, :, ::2],
        lambda y: y[1:, :, :, 2:],
        lambda y: y[:, :, -1].transpose(0, 1),
        lambda y: y.flip(2),
        lambda y: y.reshape(y.shape[0], HEADS * y.shape[2], DEPTH),
    ],
)
def test_a_part_of_the_result_leaves_the_rest_in_its_place(after: Callable[[Tensor], Tensor]) -> None:
    module = Attending(stacked, after).eval()
    x = torch.randn(2, 6, WIDTH)
    exe = hetnn.compile(torch.export.export(module, (x,)))
    torch.testing.assert_close(exe(x), module(x), rtol=1e-5, atol=1e-5)


def test_a_value_inside_is_given_as_it_stands_in_the_model() -> None:
    module = Attending(stacked, joined).eval()
    x = torch.randn(2, 5, WIDTH)
    exe = hetnn.compile(torch.export.export(module, (x,)))
    node = next(row["node"] for row in exe.report("dict")["graph"] if row["op"] == "scaled_dot_product_attention")
    _, inside = exe.run([x], also=[node])
    want = nn.functional.scaled_dot_product_attention(*stacked(module.qkv(x)))
    torch.testing.assert_close(torch.as_tensor(inside[node]), want, rtol=1e-5, atol=1e-5)
