"""torch.cond, map and scan: their bodies become nodes; results are those of eager torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
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


def test_a_loop_without_a_known_end_is_refused() -> None:
    exported = torch.export.export(Endless(), (torch.randn(3), torch.tensor(3)))
    with pytest.raises(hetnn.Unsupported, match="a loop whose number of rounds depends on values"):
        hetnn.compile(exported)
