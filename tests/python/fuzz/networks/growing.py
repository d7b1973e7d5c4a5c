"""How networks grow: layers drawn from menus, and what they begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from fuzz.networks.program import Draw
from fuzz.networks.rows import line

Layer = Callable[[Draw], Any] | str


def grow(d: Draw, menu: Sequence[tuple[float, Layer | Sequence[Layer]]], least: int, most: int) -> None:
    """Draws that many layers of the menu, each as often as its number says."""
    for _ in range(d.integer(least, most)):
        layer = d.rng.choices([each for _, each in menu], [often for often, _ in menu])[0]
        if isinstance(layer, list):
            layer = d.choice(layer)
        line(d, layer) if isinstance(layer, str) else layer(d)  # type: ignore[operator]


def image(d: Draw, channels: Sequence[int], low: int = 1, high: int = 20) -> Tensor:
    return d.randn(d.choice([1, 1, 2, 3]), d.choice(channels), d.integer(low, high), d.integer(low, high))


SMALL = [0, 1, 1, 2, 3, 4, 5, 7, 8]


def shape(d: Draw, empty: float = 0.05) -> list[int]:
    sizes = SMALL if d.coin(empty) else SMALL[1:]
    return [d.choice(sizes) for _ in range(d.choice([0, 1, 2, 2, 3, 3, 4, 5]))]
