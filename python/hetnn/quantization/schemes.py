"""The schemes: what becomes of values and of weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetnn.errors import InvalidModel


@dataclass(frozen=True)
class Scheme:
    """One of `SCHEMES`. Where `values` is None, values stay f32; where `narrow` is one, everything is that float."""

    name: str
    values: str | None = None  # the type of their integers
    low: int = 0
    high: int = 0
    symmetric: bool = False
    headroom: float = 1.0  # by how much ranges go beyond what was seen, where there are integers enough
    weight_bits: int = 8
    block: int | None = None  # weights that share a scale; None: those of a filter
    narrow: str | None = None

    @property
    def steps(self) -> int:
        """Between the least and the greatest integer of a value."""
        return self.high - self.low

    @property
    def most_weight(self) -> int:
        """The greatest integer of a weight; the least is its negative."""
        return int(2 ** (self.weight_bits - 1) - 1)


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("int8", "i8", -128, 127),
        Scheme("int16x8", "i16", -32767, 32767, symmetric=True, headroom=2.0),
        Scheme("int4-weights", weight_bits=4, block=32),
        Scheme("f16", narrow="f16"),
        Scheme("bf16", narrow="bf16"),
    )
}
_SHORT = {"int4": "int4-weights"}


def scheme_of(name: str) -> Scheme:
    """By its name, or a short one. InvalidModel for another."""
    found = SCHEMES.get(_SHORT.get(name, name))
    if found is None:
        raise InvalidModel(f"there is no scheme '{name}'; there are {', '.join(SCHEMES)}.")
    return found


@dataclass(frozen=True)
class Scale:
    """Of one value or several: real = scale * (integer - zero_point), over [low, high]."""

    scale: float
    zero_point: int
    low: float
    high: float


def scale_over(low: float, high: float, scheme: Scheme) -> Scale:
    """Of a scheme's integers over a range, which gets to hold 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    if scheme.symmetric:
        high = max(-low, high)
        low = -high
    scale = (high - low) / scheme.steps
    if not scale > 0:
        return Scale(1.0, 0, low, high)
    zero_point = 0 if scheme.symmetric else int(np.clip(np.rint(scheme.low - low / scale), scheme.low, scheme.high))
    return Scale(scale, zero_point, (scheme.low - zero_point) * scale, (scheme.high - zero_point) * scale)
