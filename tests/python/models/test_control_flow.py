"""torch.cond, while_loop, map and scan: results are those of eager torch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import hetnn


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor, wide: Tensor) -> tuple[Tensor, Tensor]:
        def shrink(x: Tensor) -> tuple[Tensor, Tensor]:
            inner = torch.cond(x.sum() > 0, lambda x: x - 1, lambda x: x + self.layer.bias, (x,))
            return inner, x.argmax(1)

        def grow(x: Tensor) -> tuple[Tensor, Tensor]:
            return self.layer(x).relu(), x.argmin(1)

        return torch.cond(wide, grow, shrink, (x,))


class OpenBranches(nn.Module):
    """Layers are heavy, so that only the branch that is taken runs; the number of rows is open."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 4), nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.left(x).sigmoid(), lambda x: self.right(x).tanh(), (x,)) * 2


class BranchesInALoop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        def body(k: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            y = torch.cond(k % 2 > 0, lambda x: self.left(x).sigmoid(), lambda x: self.right(x).tanh(), (x,))
            return k + 1, y * 2

        return while_loop(lambda k, x: k < 3, body, (torch.zeros((), dtype=torch.int64), x))[1]


class Mapped(nn.Module):
    def forward(self, xs: Tensor, y: Tensor) -> Tensor:
        return torch_map(lambda x, y: x * y + 1, xs, y)


class Scanned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, xs: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        def step(carried: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            new = torch.tanh(self.layer(carried) + x)
            return new, new * 2

        return scan(step, h, xs)


class Endless(nn.Module):
    def forward(self, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        start = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 2), (start, x))


@pytest.mark.parametrize("net", [OpenBranches(), BranchesInALoop()])
def test_the_branch_that_is_taken_may_have_as_many_rows_as_are_given(net: nn.Module) -> None:
    x = torch.linspace(-1, 2, 12).reshape(4, 3)
    exe = hetnn.compile(net, args=(x,), dynamic_shapes=({0: torch.export.Dim("n", min=1, max=9)},))
    with torch.no_grad():
        for given in (x, -x, x[:1], torch.randn(9, 3)):
            torch.testing.assert_close(exe(given), net(given))


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_a_branch_is_chosen_by_a_value(target: str) -> None:
    torch.manual_seed(4)
    model = Branches().eval()
    x = torch.randn(2, 3)
    exe = hetnn.compile(torch.export.export(model, (x, torch.tensor(True))), target)
    for x in (torch.randn(2, 3), torch.ones(2, 3), -torch.ones(2, 3)):
        for wide in (torch.tensor(True), torch.tensor(False)):
            with torch.no_grad():
                want = model(x, wide)
            for a, b in zip(exe(x, wide), want, strict=True):
                torch.testing.assert_close(a, b)


def test_bodies_run_once_for_every_part() -> None:
    torch.manual_seed(5)
    for model, other in ((Mapped().eval(), torch.randn(3)), (Scanned().eval(), torch.randn(3))):
        x = torch.randn(4, 3)
        exe = hetnn.compile(torch.export.export(model, (x, other)))
        with torch.no_grad():
            want = model(x, other)
        got = exe(x, other)
        for a, b in zip(
            got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,), strict=True
        ):
            torch.testing.assert_close(a, b)


class Joined(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = associative_scan(lambda a, b: a * b + b, x, 0, combine_mode="generic")
        return result


class Cut(nn.Module):
    """Branches whose results differ in size."""

    def forward(self, x: Tensor, short: Tensor) -> Tensor:
        return torch.cond(short, lambda x: (x[:2] * 2,), lambda x: (x + 1,), (x,))[0] + 1


class Counting(nn.Module):
    """A plain number is carried."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rounds, y = while_loop(lambda i, x: x.sum() < 100, lambda i, x: (i + 1, x * 2 + i), (0, x))
        return y, torch.arange(3) + rounds


class Inner(nn.Module):
    """A loop in the body of a loop."""

    def forward(self, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        def body(i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            zero = torch.zeros((), dtype=torch.int64)
            _, y = while_loop(lambda j, y: j < i, lambda j, y: (j + 1, y * 0.5 + 1), (zero, x + 0.25))
            return i + 1, y

        return while_loop(lambda i, x: i < n, body, (torch.zeros((), dtype=torch.int64), x))


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
@pytest.mark.parametrize("bounds", [0, 1, 7])
def test_a_loop_runs_as_often_as_values_say(bounds: int, target: str, tmp_path: Path) -> None:
    x = torch.randn(3, generator=torch.Generator().manual_seed(1))
    for model in (Endless(), Inner()):
        exe = hetnn.compile(torch.export.export(model, (x, torch.tensor(3))), target)
        exe.save(tmp_path / "loop.hetnn")
        for run in (exe, hetnn.load(tmp_path / "loop.hetnn")):
            torch.testing.assert_close(run(x, torch.tensor(bounds)), model(x, torch.tensor(bounds)))


def test_a_number_that_a_loop_carries_may_be_a_size() -> None:
    exe = hetnn.compile(torch.export.export(Counting(), (torch.ones(3),), strict=False))
    for first in (0.5, 1.0, 500.0):
        x = torch.full((3,), first)
        torch.testing.assert_close(exe(x), Counting()(x))


def test_bodies_run_for_any_number_of_parts() -> None:
    """More than become nodes, and as many as the input has."""
    torch.manual_seed(5)
    length = torch.export.Dim("length", min=2, max=5000)
    for model in (Mapped().eval(), Scanned().eval()):
        x, other = torch.randn(400, 3), torch.randn(3)
        fixed = hetnn.compile(torch.export.export(model, (x, other), strict=False))
        dims = ({0: length}, None)
        any_size = hetnn.compile(torch.export.export(model, (x, other), dynamic_shapes=dims, strict=False))
        with torch.no_grad():
            torch.testing.assert_close(fixed(x, other), model(x, other))
            for count in (2, 400, 1001):
                x = torch.randn(count, 3)
                torch.testing.assert_close(any_size(x, other), model(x, other))


def test_branches_may_differ_in_size_and_scans_may_join() -> None:
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    exe = hetnn.compile(torch.export.export(Cut(), (x, torch.tensor(True)), strict=False))
    for short in (torch.tensor(True), torch.tensor(False)):
        torch.testing.assert_close(exe(x, short), Cut()(x, short))
    joined = hetnn.compile(torch.export.export(Joined(), (x,), strict=False))
    torch.testing.assert_close(joined(x), Joined()(x))


def test_random_numbers_in_a_loop_are_refused() -> None:
    class Noisy(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            zero = torch.zeros((), dtype=torch.int64)
            return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + torch.rand(3)), (zero, x))

    with pytest.raises(hetnn.Unsupported, match=r"rand.*random numbers in the body of a loop"):
        hetnn.compile(torch.export.export(Noisy(), (torch.zeros(3),), strict=False))
