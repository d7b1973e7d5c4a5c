"""Exported programs are read as they are: writes in place, views of what is written, decompositions of single calls."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn
from hetnn.importers.torch import decompositions


class InPlace(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        before = y + 1
        z = y.relu_()
        z.add_(before)
        return y * z, before


class OfAView(nn.Module):
    """A row is written through, and a view that was there before sees it."""

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        rows = y.view(-1)
        y.relu_()
        return rows + y.flatten()


class ThroughAnAlias(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        z = y.sigmoid_().view(-1)
        y.mul_(3)
        return z + 1


class Composite(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("ij,kj->ik", x, x.swapaxes(0, 1).swapaxes(0, 1)) + torch.einsum("ij,kj->ik", x, x)


class WithoutGradients(nn.Module):
    """As rotary embeddings are made: torch exports what stands in `no_grad` as a graph of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, generator=torch.Generator().manual_seed(2)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            y = x * self.weight
            with torch.autocast("cpu", enabled=False):
                angles = torch.cat([y, x], -1).float()
            sin, cos = angles.sin(), angles.cos()
        return sin * x.sum() + cos, self.weight * cos[:, :4]


class GivenWithoutGradients(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            y, z = x + 1, x * 2
        return y, z - y


class BranchWithoutGradients(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            y = torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
        return y * 2


class GroupedQueries(nn.Module):
    """Two heads of keys and values serve four of queries, or one all, or one batch all."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        q, k = x.reshape(2, 3, 2, 1).expand(2, 3, 2, 4).transpose(1, 2), x.reshape(1, 1, 3, 4)
        q = torch.cat([q, q * 0.5], 1)
        pair = torch.cat([k, k.flip(3)], 1).expand(2, 2, 3, 4)
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(q, pair, pair.sin(), enable_gqa=True), attend(q, k.expand(2, 1, 3, 4), k), attend(q, k, k.cos())


class OfTheBatch(nn.Module):
    """As weights are standardised; and the middles of pixels."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        norm = torch.nn.functional.batch_norm
        wide = x.reshape(1, 3, 4)
        middles = torch.arange(0.5, 4) / 4
        return (
            norm(wide, None, None, training=True, momentum=0.0, eps=1e-4),
            norm(x[:, :, None], None, None, x[0], x[1], training=True),
            x * middles,
            torch.arange(1, 2, 0.3, dtype=torch.float16) + x.half(),
        )


class Squares(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.square(), x.int().square(), (x > 0).square()


@pytest.fixture
def decomposed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One entry for every program that torch decomposes as a whole."""
    seen: list[Any] = []
    whole = decompositions._run_decompositions
    monkeypatch.setattr(decompositions, "_run_decompositions", lambda *given: seen.append(given[0]) or whole(*given))
    return seen


@pytest.mark.parametrize(
    ("module", "retraced"),
    [
        *((InPlace, 0), (OfAView, 1), (ThroughAnAlias, 1), (Composite, 0)),
        *((WithoutGradients, 0), (GivenWithoutGradients, 0), (BranchWithoutGradients, 1)),
        *((GroupedQueries, 0), (Squares, 0), (OfTheBatch, 0)),
    ],
)
def test_equals_torch(module: type[nn.Module], retraced: int, decomposed: list[Any]) -> None:
    model, x = module().eval(), torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    exe = hetnn.compile(torch.export.export(model, (x,), strict=False))
    torch.testing.assert_close(exe(x), model(x.clone()))
    assert len(decomposed) == retraced


@pytest.mark.parametrize("layer", [nn.Dropout(0.3), nn.AlphaDropout(0.3)], ids=["dropout", "alpha dropout"])
def test_dropout_in_evaluation_gives_its_very_input(layer: nn.Module) -> None:
    class Written(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = layer

        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            y = x * 2
            z = self.drop(y)
            y[0] += 1
            seen = z.t()
            z.view(-1).add_(5)
            return z, seen, y + z

    model, x = Written().eval(), torch.randn(3, 4)
    exe = hetnn.compile(torch.export.export(model, (x,)), "cpu")
    for got, want in zip(exe(x), model(x), strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0)


class _TwoStates(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("first", torch.zeros(2, 3))
        self.register_buffer("second", torch.ones(2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + self.first - self.second
        self.first.copy_(y)
        self.second.copy_(y)
        return y * 2


def test_one_value_is_written_into_two_states() -> None:
    program = torch.export.export(_TwoStates(), (torch.randn(2, 3),), strict=False)
    eager, executable = program.module(), hetnn.compile(program)
    for step in range(3):
        x = torch.full((2, 3), float(step))
        assert torch.equal(executable(x), eager(x))


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_parameters_in_bfloat16(target: str) -> None:
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(16, 8).bfloat16().eval(), torch.randn(4, 16).bfloat16()
    y = hetnn.compile(torch.export.export(layer, (x,)), target)(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y, layer(x), rtol=2**-7, atol=2**-7)


def test_a_derived_size_keeps_its_least() -> None:
    class Plus(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    half = torch.export.Dim("half", min=2, max=50)
    program = torch.export.export(Plus(), (torch.zeros(8),), dynamic_shapes=({0: 2 * half},))
    executable = hetnn.compile(program)
    assert executable(torch.zeros(4)).shape == (4,)
    with pytest.raises(hetnn.InvalidModel):
        executable(torch.zeros(2))


@pytest.mark.parametrize("name", ["e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu"])
def test_casts_to_float8_are_those_of_torch(name: str) -> None:
    class Rounded(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to(getattr(torch, f"float8_{name}")).float()

    x = torch.tensor([0.1, 0.75, 1.5, 3.3, 6.0, 449.0, 500.0, 1e5, -1e6, torch.inf, torch.nan])
    got = hetnn.compile(torch.export.export(Rounded(), (x,)))(x)
    torch.testing.assert_close(got, Rounded()(x), rtol=0, atol=0, equal_nan=True)


def test_a_state_keeps_its_type_and_may_be_complex() -> None:
    class Kept(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("waves", torch.zeros(3, dtype=torch.complex64))
            self.register_buffer("wide", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.waves.copy_(torch.complex(x, 2 * x) + self.waves)
            self.wide.copy_(x.half())
            return self.waves.imag + self.wide

    x = torch.tensor([1.0, 2.5, 0.3])
    eager, executable = Kept(), hetnn.compile(torch.export.export(Kept(), (x,)))
    for _ in range(3):
        torch.testing.assert_close(executable(x), eager(x), rtol=0, atol=0)


def test_products_of_bytes_are_summed_in_i32() -> None:
    class Product(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch._int_mm(a, b)

    a, b = (torch.arange(-64, 64, dtype=torch.int8).reshape(shape) for shape in ((16, 8), (8, 16)))
    a = a.repeat(2, 1)
    assert torch.equal(hetnn.compile(torch.export.export(Product(), (a, b)))(a, b), Product()(a, b))
