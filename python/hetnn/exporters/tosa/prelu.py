"""PReLU of bytes, in the form of fewest visits to memory:

- a table, where all slopes are one;
- the higher of its two lines, or the lower where a slope is above 1, where that is its function for every byte. Each
  line is rounded and saturated by itself, as the meaning's is, so that nothing is left to round when one is taken;
- the sum of what lies to either side of zero, as `prelu_quantized_branches` has it: always.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn.exporters.tosa.call import Call, exports
from hetnn.exporters.tosa.elements import exact_sum
from hetnn.exporters.tosa.pixels import by_channel
from hetnn.exporters.tosa.schema import number
from hetnn.exporters.tosa.writer import FIRST, LAST, ONE, Factor, Tensor, factor_of, refuse, rescaled

_NAN = {"NanMode": number("NanPropagationMode", "PROPAGATE")}
_LOWEST, _HIGHEST = -128, 127


@exports("prelu")
def _prelu(call: Call) -> Tensor:
    if (call[0].dtype, call[1].dtype, call.dtype) != ("i8", "i8", "i8"):
        refuse("of other integers than i8")
    if call[1].array is None:
        refuse("with slopes that are computed")
    return _Prelu(call, call[1].array.reshape(-1)).written()


def _image(shape: list[int]) -> list[int]:
    """[N, C, ...] as an image; a row is one channel."""
    if len(shape) == 4:
        return shape
    n, c, *rest = shape if len(shape) > 1 else (1, 1, *shape)
    return [n, c, math.prod(rest), 1]


class _Prelu:
    """A node, its slopes, and the factors of its two lines to the result's scale."""

    def __init__(self, call: Call, slopes: Any) -> None:
        self.call, self.slopes, self.zero = call, slopes, call.zero(1)
        self.steps = slopes.astype(np.int64) - self.zero
        scale, self.end = call.ends
        self.line = ONE if call.scale() == scale else factor_of(call.scale() / scale)
        self.sloped = factor_of(call.scale() * call.scale(1) / scale)

    def written(self) -> Tensor:
        """In the cheapest form."""
        call, w = self.call, self.call.writer
        if len(set(self.slopes)) == 1:
            return self._table()
        x = w.transpose(w.reshape(call[0], _image(call.shape)), LAST)
        above = self._above()
        signs = len(set(np.sign(self.steps)) - {0})
        by_lines = above is not None and (not self._stays(self.line, self.end)) + 2 * len(set(above)) <= 2 + 2 * signs
        y = self._by_lines(x, above) if by_lines else self._by_sides(x)
        return w.reshape(w.transpose(y, FIRST), call.shape)

    def _of_bytes(self) -> tuple[Any, Any, Any]:
        """Of every byte, for each slope: the plain line, the sloped one and the function, as steps from zero."""
        x = np.arange(_LOWEST, _HIGHEST + 1)[:, None] - self.call.zero()
        lines = (
            rescaled(part, factor, self.call.rounding)
            for part, factor in ((x, self.line), (x * self.steps, self.sloped))
        )
        plain, sloped = lines
        return plain, sloped, np.where(x >= 0, plain, sloped)

    def _table(self) -> Tensor:
        *_, values = self._of_bytes()
        table = self.call.writer.constant(np.clip(values[:, 0] + self.end, _LOWEST, _HIGHEST), "i8")
        return self.call.of_elements(
            lambda x, order: self.call.writer.add("TABLE", [x, table], "i8", x.shape), self.call[0]
        )

    def _above(self) -> Any:
        """The channels of which the higher line is the function, while of others it is the lower; none where one has
        neither, since roundings part lines of slopes near 1 more than once."""
        plain, sloped, wanted = self._of_bytes()
        above, below = ((wanted == highest(plain, sloped)).all(0) for highest in (np.maximum, np.minimum))
        if not (above | below).all() or self._beyond() >= 1 << 30:
            return None
        return np.zeros_like(above) if below.all() else above

    def _beyond(self) -> int:
        """Of sums what is more than all bytes of the result."""
        return math.ceil((_HIGHEST - _LOWEST + 1) / math.ldexp(self.sloped.multiplier, self.sloped.exponent - 31))

    def _by_lines(self, x: Tensor, above: Any) -> Tensor:
        if self.call.writer.chains and above.all():
            ones = np.ones_like(self.slopes)
            return self._taken("MAXIMUM", self._product(x, ones, 0, self.line), self._scaled_by_slopes(x))
        y = self._plain(x, self.end)
        for kind, channels, elsewhere in (("MINIMUM", ~above, 1), ("MAXIMUM", above, -1)):
            if channels.any():
                weights, beyond = np.where(channels, self.slopes, self.zero), np.where(channels, 0, self._beyond())
                zeros = self.call.zero(), self.zero, self.end
                line = by_channel(
                    self.call.writer, x, weights, zeros, self.sloped, self.call.rounding, beyond * elsewhere
                )
                y = self._taken(kind, y, line)
        return y

    def _by_sides(self, x: Tensor) -> Tensor:
        """Bytes saturate at zero: those that are positive count from the lowest, others from the highest."""
        y, negative = self._plain(x, _LOWEST), self._plain(x, _HIGHEST, ONE)
        zeros = [(here, zero) for here, zero in ((self.steps < 0, _LOWEST), (self.steps > 0, _HIGHEST)) if here.any()]
        for k, (here, zero) in enumerate(zeros):
            weights = np.where(here, self.slopes, self.zero)
            ends = _HIGHEST, self.zero, zero
            side = by_channel(self.call.writer, negative, weights, ends, self.sloped, self.call.rounding)
            y = exact_sum(self.call, (y, _LOWEST), (side, zero), self.end if k + 1 == len(zeros) else _LOWEST)
        return y

    def _stays(self, factor: Factor, end: int) -> bool:
        return factor == ONE and self.call.zero() == end

    def _plain(self, x: Tensor, end: int, factor: Factor | None = None) -> Tensor:
        """The operand at the result's scale, or by another factor."""
        by = factor or self.line
        if self._stays(by, end):
            return x
        return by_channel(self.call.writer, x, 1, (self.call.zero(), 0, end), by, self.call.rounding)

    def _scaled_by_slopes(self, x: Tensor) -> Tensor:
        return self._product(x, self.slopes, self.zero, self.sloped)

    def _product(self, x: Tensor, factors: Any, zero: int, factor: Factor) -> Tensor:
        """A line as elements times those of each channel."""
        w = self.call.writer
        by = w.constant(factors.reshape(1, 1, 1, -1), "i8")
        steps = [w.rescale(part, [ONE], (at, 0), "i32", "single") for part, at in ((x, self.call.zero()), (by, zero))]
        y = w.add("MUL", [*steps, w.constant([0], "i8")], "i32", x.shape)
        return w.rescale(y, [factor], (0, self.end), "i8", self.call.rounding)

    def _taken(self, kind: str, *lines: Tensor) -> Tensor:
        """One of two bytes; TOSA compares wider integers."""
        w = self.call.writer
        wide = [w.rescale(line, [ONE], (0, 0), "i32", "single") for line in lines]
        y = w.add(kind, wide, "i32", lines[0].shape, **_NAN)
        return w.rescale(y, [ONE], (0, 0), "i8", "single")
