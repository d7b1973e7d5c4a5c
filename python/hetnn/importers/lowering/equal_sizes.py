"""Symbolic sizes that must be equal, or 1, for a node to mean anything: taken as one, which each run checks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from typing import Any, Protocol

from hetnn.importers.lowering.sizes import Size, equal, maximum, minimum


class Maker(Protocol):
    """What makes nodes."""

    def create(self, op: str, inputs: Sequence[Any], **attrs: Any) -> Any:
        """The first output of a node."""


class SizeMaker(Maker, Protocol):
    """What is needed of the call in which sizes meet."""

    @property
    def broadcast_sizes(self) -> dict[Size, set[Size]]:
        """Of sizes that others broadcast to those others."""

    def is_named(self, symbol: str) -> bool:
        """Whether a symbol is one that the model speaks of."""


def unified(
    call: SizeMaker, values: Sequence[Any], *, broadcast: bool = False, apart: Collection[int] = ()
) -> list[Any]:
    """The values, sizes that meet in an axis made the same, in all axes but those `apart`.

    Axes are counted from the back, from -1, where values broadcast, and ones meet nothing; else from the front. A
    known size goes before a symbol, and a symbol of the model before one that a node gives its value. Sizes that
    cannot be equal stay as they are, for the operator to refuse. Where values broadcast, a run may show a one in the
    place of either.
    """
    shapes = [list(value.shape) for value in values]
    if all(shape == shapes[0] for shape in shapes[1:]):
        return list(values)
    rank = max(map(len, shapes), default=0)
    for axis in range(-rank, 0) if broadcast else range(rank):
        if axis in apart:
            continue
        here = [k for k, shape in enumerate(shapes) if -len(shape) <= axis < len(shape)]
        sizes = {shapes[k][axis] for k in here if not broadcast or shapes[k][axis] != 1}
        one = _broadcast(call, sizes) if broadcast else _one_of(call, sizes)
        for k in here:
            if one is not None and shapes[k][axis] in sizes:
                shapes[k][axis] = one
    return [_as(call, value, shape, repeats=broadcast) for value, shape in zip(values, shapes, strict=True)]


def unified_inside(call: SizeMaker, a: Any, b: Any, *, turned: bool = False) -> tuple[Any, Any]:
    """Two stacks of matrices, the sizes that their product sums over made the same; `turned`: the second's last."""
    shape, summed = list(b.shape), -1 if turned else -2
    one = _one_of(call, {a.shape[-1], shape[summed]})
    if one is None:
        return a, b
    shape[summed] = one
    return _as(call, a, [*a.shape[:-1], one]), _as(call, b, shape)


def with_sizes(call: Maker, value: Any, shape: Sequence[Size | None]) -> Any:
    """The value with these sizes where its own are symbols; None: as it is. Each run checks them."""
    own = list(value.shape)
    if len(own) != len(shape):
        return value
    for axis, size in enumerate(shape):
        if size is not None and not isinstance(own[axis], int):
            own[axis] = size
    return _as(call, value, own)


def unified_with_shape(call: SizeMaker, value: Any, shape: Sequence[Size]) -> tuple[Any, list[Size]]:
    """A value and a shape that broadcast with each other, sizes that meet made the same. Each run checks both."""
    own, wanted = list(value.shape), list(shape)
    asked: dict[str, Size] = {}
    for axis in range(-min(len(own), len(wanted)), 0):
        if 1 not in (own[axis], wanted[axis]):
            one = _stretched(call, own[axis], wanted[axis])
            if one is not None:
                if one == own[axis] != wanted[axis]:
                    holds = maximum(equal(wanted[axis], one), equal(wanted[axis], 1))
                    asked[f"{wanted[axis]} = {one}"] = holds
                own[axis] = wanted[axis] = one
    if asked:
        call.create("require_sizes", [], holds=list(asked.values()), demand="; ".join(asked))
    return _as(call, value, own, repeats=True), wanted


def _as(call: Maker, value: Any, shape: list[Size], repeats: bool = False) -> Any:
    if list(value.shape) == shape:
        return value
    return call.create("match_shape", [value], shape=shape, repeats=repeats)


def _one_of(call: SizeMaker, sizes: set[Size]) -> Size | None:
    """As what different sizes are taken; None where they are one, or cannot be equal."""
    if len(sizes) < 2 or sum(isinstance(size, int) for size in sizes) > 1:
        return None
    return min(sizes, key=lambda size: _rank(call, size))


def _broadcast(call: SizeMaker, sizes: set[Size]) -> Size | None:
    """As _one_of, where any of the sizes may be 1: the others' then, of independent symbols the greatest or nothing.

    Sizes that are computed from the same symbols are meant to be equal; no known size is 1.
    """
    if len(sizes) < 2 or any(isinstance(size, int) for size in sizes):
        return _one_of(call, sizes)
    alike: dict[frozenset[str], set[Size]] = {}
    for size in {part for whole in sizes for part in call.broadcast_sizes.get(whole, {whole})}:
        alike.setdefault(_symbols(size), set()).add(size)
    parts = sorted((min(each, key=lambda size: _rank(call, size)) for each in alike.values()), key=str)
    if len(parts) == 1:
        return parts[0]
    found = reduce(maximum, parts) * minimum(1, reduce(minimum, parts))
    call.broadcast_sizes[found] = set(parts)
    return found


def _stretched(call: SizeMaker, own: Size, wanted: Size) -> Size | None:
    """The size that is wanted, or where a run wants 1 the own one."""
    one = _one_of(call, {own, wanted})
    if one is None or isinstance(own, int) or isinstance(wanted, int) or _symbols(own) == _symbols(wanted):
        return one
    if own in call.broadcast_sizes.get(wanted, ()):
        return wanted
    away = maximum(wanted - 1, 1 - wanted)  # from 1
    factor = maximum(minimum(1, away), own * maximum(0, 1 - away))  # own where wanted is 1, else 1
    return wanted * factor


def _symbols(size: Size) -> frozenset[str]:
    return frozenset() if isinstance(size, int) else frozenset(size.symbols)


def _rank(call: SizeMaker, size: Size) -> tuple[bool, int, int, str]:
    """Smaller is what others are taken as."""
    if isinstance(size, int):
        return False, 0, 0, ""
    text = str(size)
    return True, len([s for s in size.symbols if not call.is_named(s)]), len(text), text
