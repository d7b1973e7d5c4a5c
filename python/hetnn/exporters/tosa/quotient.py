"""Quotients of bytes as products: each divisor has a number by which every operand gives the integer of the meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn import _core
from hetnn.exporters.tosa.call import UNSTATED, Call, exports
from hetnn.exporters.tosa.elements import alike
from hetnn.exporters.tosa.numbers import LEAST, Numbers
from hetnn.exporters.tosa.writer import ONE, Tensor, refuse

# Behind the point of these numbers, of which few take fewer tables.
_PLACES = (7, 15, 23)
_LOW, _HIGH = -128, 127
_BYTES = np.arange(_LOW, _HIGH + 1)
_FAR = 1 << 40


@exports("div")
def _quotient(call: Call) -> Tensor:
    if (call[0].dtype, call[1].dtype, call.dtype) != ("i8", "i8", "i8"):
        refuse("of other integers than i8")
    _, zero = call.ends
    wanted = _every_quotient(call)
    found = ((places, _factors(wanted, call.zero(), zero, places)) for places in _PLACES)
    places, factors = next(((places, each) for places, each in found if each is not None), (0, None))
    if factors is None:
        refuse("of scales at which no number for each divisor gives every quotient")
    w, numbers = call.writer, Numbers(call.writer)

    def write(*operands: Tensor, order: Sequence[int]) -> Tensor:
        x, y = operands
        steps = w.rescale(x, [ONE], (call.zero(), 0), "i32", "single")
        product = numbers.product(steps, numbers.from_tables(lambda: y, factors), places)
        return w.rescale(product, [ONE], (0, zero), "i8", "single")

    return call.of_elements(write, *alike(call))


def _every_quotient(call: Call) -> Any:
    """Of the 256 operands, in rows, by the 256 divisors: what the node means."""
    builder = _core.GraphBuilder("quotients")
    operands = []
    for k, shape in enumerate(([256, 1], [1, 256])):
        x = builder.add_input(f"x{k}", "i8", shape)
        operands += builder.create("bitcast", [x], {"to": "i8", "q_scale": [call.scale(k)], "q_zero": call.zero(k)})
    scale, zero = call.ends
    told = {"q_scale": [scale], "q_zero": zero, "q_rounding": call.attrs.get("q_rounding", UNSTATED)}
    (quotients,) = builder.create("div", operands, told)
    builder.output(quotients)
    steps = _BYTES.astype(np.int8)
    (found,) = _core.interpret(builder.finish(), [steps[:, None], steps[None, :]])
    return found.astype(np.int64)


def _factors(wanted: Any, zero: int, end: int, places: int) -> Any:
    """A number for each divisor with which x m, rounded once to 2^-places halves up, is each of its quotients; or None.

    What saturates may lie beyond, which leaves m between bounds that every operand sets.
    """
    x, p = (_BYTES - zero)[:, None], wanted - end
    half = 1 << (places - 1)
    low = np.where(wanted == _LOW, -_FAR, (p << places) - half)
    high = np.where(wanted == _HIGH, _FAR, (p << places) + half - 1)
    if (p[x[:, 0] == 0] != 0).any():
        return None
    by = np.where(x == 0, 1, x)
    below, above = np.where(x > 0, low, high), np.where(x > 0, high, low)
    least = np.where(x == 0, -_FAR, -(-below // by)).max(0, initial=LEAST)
    most = np.where(x == 0, _FAR, above // by).min(0, initial=(1 << 31) - 1)
    return None if (least > most).any() else np.clip(0, least, most)
