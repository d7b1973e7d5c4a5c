"""Sizes that come out of values while a model runs: compiled, saved, run without the compiler, equal to eager torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import hetnn

TARGETS = ["cpu", "reference", "cpu+relu-only"]


def same(got: object, want: object) -> None:
    ours = got if isinstance(got, (tuple, list)) else [got]
    theirs = want if isinstance(want, (tuple, list)) else [want]
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        expected = b if isinstance(b, Tensor) else torch.tensor(b)
        assert a.shape == expected.shape
        assert a.dtype == expected.dtype
        torch.testing.assert_close(a, expected, rtol=1e-5, atol=1e-6, equal_nan=True)


class Picked(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return torch.nonzero(x > 0), x[x > 0], torch.masked_select(x, x[0] > 0.5), x[x[:, 0] > 0] * 2


class Rows(nn.Module):
    """A layer on as many rows as are picked, and a result whose size is fixed again."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 8)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        rows = torch.relu(self.layer(x[mask]))
        return rows, rows.sum(0) + self.layer(x).mean(0)


class Chain(nn.Module):
    """Each size comes out of values whose own size came out of values."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        positive = x[x > 0]
        values, inverse, counts = torch.unique(torch.floor(positive), return_inverse=True, return_counts=True)
        return torch.repeat_interleave(values, counts, dim=0), values[counts > 1], inverse


class Item(nn.Module):
    def forward(self, x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
        k = n.item()
        torch._check(k >= 1)
        torch._check(k <= x.shape[0])
        return x[:k] * k, torch.arange(k), x.new_zeros(k, 3), x[k - 1]


class Met(nn.Module):
    """Each selection has a size of its own, which meets that of another, or is known though it is found."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        mask, first = x > 0, torch.cat([y[y > 0], y[y <= 0]])
        torch._check(first.shape[0] == 12)
        return (
            x[mask] + y[mask] * 2,
            x.masked_scatter(mask, y[mask]),
            torch.zeros(12).index_add(0, torch.arange(12), first),
        )


class Sizes(nn.Module):
    def forward(self, n: Tensor, x: Tensor) -> Tensor:
        rows, columns = n.tolist()
        torch._check(rows >= 0)
        torch._check(columns >= 0)
        return torch.ones(rows, columns) * x


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_picked_depends_on_values(target: str) -> None:
    torch.manual_seed(1)
    model = Picked().eval()
    exe = hetnn.compile(torch.export.export(model, (torch.randn(4, 5),)), target)
    for x in (torch.randn(4, 5), -torch.ones(4, 5), torch.ones(4, 5)):
        same(exe(x), model(x))
    assert exe.outputs[0].shape == ("u0", 2)


@pytest.mark.parametrize("target", TARGETS)
def test_layers_run_on_as_many_rows_as_are_picked(target: str, tmp_path: Path) -> None:
    torch.manual_seed(2)
    model = Rows().eval()
    sizes = {0: Dim("rows", min=1, max=100)}
    example = (torch.randn(6, 4), torch.tensor([1, 0, 1, 1, 0, 1]).bool())
    exe = hetnn.compile(torch.export.export(model, example, dynamic_shapes=(sizes, sizes)), target)
    exe.save(tmp_path / "rows.hetnn")
    loaded = hetnn.load(tmp_path / "rows.hetnn")
    for rows in (6, 1, 40):
        x = torch.randn(rows, 4)
        for mask in (torch.rand(rows) > 0.5, torch.zeros(rows).bool(), torch.ones(rows).bool()):
            with torch.no_grad():
                want = model(x, mask)
            if target != "cpu+relu-only" or rows == 6:
                same(loaded(x, mask), want)
            same(exe(x, mask), want)


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_meet_that_come_from_values(target: str) -> None:
    model = Met().eval()
    exe = hetnn.compile(torch.export.export(model, (torch.randn(3, 4), torch.randn(3, 4))), target)
    for x in (torch.randn(3, 4), -torch.ones(3, 4), torch.ones(3, 4)):
        y = torch.randn(3, 4)
        same(exe(x, y), model(x, y))


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_sizes_follow_one_from_another(target: str) -> None:
    torch.manual_seed(3)
    model = Chain().eval()
    exe = hetnn.compile(torch.export.export(model, (torch.randn(30) * 3,)), target)
    for _ in range(5):
        x = torch.randn(30) * 3
        same(exe(x), model(x))


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_an_item_is_a_size(target: str) -> None:
    model = Item().eval()
    exe = hetnn.compile(torch.export.export(model, (torch.randn(10, 3), torch.tensor(4))), target)
    x = torch.randn(10, 3)
    for k in (4, 1, 10):
        same(exe(x, torch.tensor(k)), model(x, torch.tensor(k)))
    for k in (0, 11, -3):
        with pytest.raises(hetnn.InvalidModel, match=rf"the size 'u0' must be in \[1, 10\]; .* give {k}\."):
            exe(x, torch.tensor(k))
    same(exe(x, torch.tensor(2)), model(x, torch.tensor(2)))  # a run that failed leaves nothing behind


def test_several_items_are_sizes() -> None:
    model = Sizes().eval()
    exe = hetnn.compile(torch.export.export(model, (torch.tensor([2, 3]), torch.tensor(2.0))))
    for n in ((2, 3), (0, 5), (1, 1), (300, 7)):
        same(exe(torch.tensor(n), torch.tensor(0.5)), model(torch.tensor(n), torch.tensor(0.5)))


TEXT = """graph @g {{stage = imported, symbols = [u: {low}..{high} = 4]}} (%x: i64[9]) -> (%y, %total) {{
  %i = nonzero(%x) {{count = u}} : i64[u,1]
  %r = arange() {{end = u}} : i64[u]
  %j = reshape(%i) {{shape = [u]}} : i64[u]
  %y = add(%j, %r) : i64[u]
  %total = sum(%y) : i64[]
}}
"""


def run(text: str) -> Callable[[list[int]], list[np.ndarray]]:
    exe = hetnn.compile(text)
    return lambda values: exe.run([np.array(values, np.int64)])


def test_text_says_which_node_gives_a_symbol_its_value() -> None:
    model = run(TEXT.format(low=0, high=9))
    for _ in range(2):
        y, total = model([0, 1, 0, 0, 5, 6, 0, 0, 0])
        assert y.tolist() == [1, 5, 7]
        assert total == 13
        y, total = model([0] * 9)
        assert y.shape == (0,)
        assert total == 0


def test_a_size_out_of_its_range_is_told() -> None:
    model = run(TEXT.format(low=1, high=2))
    with pytest.raises(hetnn.InvalidModel, match=r"nonzero 'i': the size 'u' must be in \[1, 2\]; .* give 3"):
        model([1, 1, 1, 0, 0, 0, 0, 0, 0])
    with pytest.raises(hetnn.InvalidModel, match=r"must be in \[1, 2\]; .* give 0"):
        model([0] * 9)
    assert model([0, 2, 0, 0, 0, 0, 0, 0, 0])[0].tolist() == [1]


def test_outputs_of_the_caller_must_have_the_size_that_comes_out() -> None:
    exe = hetnn.compile(TEXT.format(low=0, high=9))
    x = np.array([0, 1, 0, 0, 5, 6, 0, 0, 0], np.int64)
    out = [np.zeros(3, np.int64), np.zeros((), np.int64)]
    exe.run([x], out)
    assert out[0].tolist() == [1, 5, 7]
    assert out[1] == 13
    with pytest.raises(hetnn.InvalidModel, match=r"out\[0\] must be a writeable, contiguous array of i64\[2\]"):
        exe.run([np.array([1, 1, 0, 0, 0, 0, 0, 0, 0], np.int64)], out)


def test_text_that_misplaces_a_definition_is_refused() -> None:
    lines = TEXT.format(low=0, high=9).splitlines()
    lines[1], lines[2] = lines[2], lines[1]
    with pytest.raises(hetnn.InvalidModel, match="arange 'r' needs the symbol 'u' before nonzero 'i' defines it"):
        hetnn.compile("\n".join(lines))


def test_memory_that_runs_keep_is_bounded() -> None:
    exe = hetnn.compile(torch.export.export(Chain(), (torch.randn(4000) * 3,)))
    kept = []
    for k in range(40):
        exe(torch.randn(4000, generator=torch.Generator().manual_seed(k)) * (k % 4))
        kept.append(exe.kept_bytes)
    assert max(kept[20:]) <= max(kept[:20]) <= 2_000_000
