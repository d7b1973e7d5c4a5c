"""Numbers of 32 bits in TOSA: operators on them, and those that a byte stands for, from tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hetnn.exporters.tosa.writer import Tensor, Writer

_LAST_BITS = tuple(sum(128 << 8 * k for k in range(many - 1)) for many in range(1, 5))  # of all bytes but the first
LEAST = _LAST_BITS[-1] - (1 << 31)  # that tables may hold


class Numbers:
    """Writes operators on them."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def constant(self, value: int, like: Tensor) -> Tensor:
        """A number of as many axes as a tensor has."""
        return self.writer.constant(np.full([1] * len(like.shape), value), "i32")

    def both(self, kind: str, a: Tensor, b: Tensor | int, **attrs: object) -> Tensor:
        """An operator of two, one of which may be a number."""
        other = self.constant(b, a) if isinstance(b, int) else b
        shape = np.broadcast_shapes(a.shape, other.shape)
        return self.writer.add(kind, [a, other], "i32", list(shape), **attrs)

    def product(self, a: Tensor, b: Tensor | int, shift: int) -> Tensor:
        """a b 2^-shift, rounded halves up."""
        other = self.constant(b, a) if isinstance(b, int) else b
        shape = np.broadcast_shapes(a.shape, other.shape)
        return self.writer.add("MUL", [a, other, self.writer.constant([shift], "i8")], "i32", list(shape))

    def reversed_difference(self, a: int, b: Tensor) -> Tensor:
        """a - b."""
        return self.writer.add("SUB", [self.constant(a, b), b], "i32", b.shape)

    def from_tables(self, place: Callable[[], Tensor], values: Any) -> Tensor:
        """One of 256 numbers for each byte, in order from -128; `place` gives the bytes, once for each table.

        A table has a byte of the numbers: the first with its sign, others less 128. What these lack together is added
        in the end.
        """
        w, total = self.writer, None
        many = next(many for many in (1, 2, 3, 4) if (values >> 8 * many - 1 == values >> 63).all())
        for k in range(many - 1, -1, -1):
            first = k == many - 1
            table = w.constant(values >> 8 * k if first else (values >> 8 * k & 255) - 128, "i8")
            at = place()
            part = w.add("CAST", [w.add("TABLE", [at, table], "i8", at.shape)], "i32", at.shape)
            total = part if total is None else self.both("ADD", self.product(total, 256, 0), part)
        assert total is not None
        return self.both("ADD", total, _LAST_BITS[many - 1]) if many > 1 else total
