"""LiteRT's arithmetic on integers as nodes on i64, where no typed operator has it (fixed_point has it for arrays)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.element_types import numpy_type
from hetnn.importers.tflite.integers import plain_type, quant_only
from hetnn.importers.tflite.rules.call import Call


def on(call: Call, op: str, a: Any, b: Any) -> Any:
    """An operator on a value and a value or number of its type."""
    return call.create(op, [a, call.constant(b, a.dtype) if isinstance(b, (int, float)) else b])


def high_product(call: Call, a: Any, b: Any) -> Any:
    """The high half of the doubled product of two numbers of 32 bits, to nearest."""
    return on(call, "shift_right", on(call, "add", on(call, "mul", a, b), 1 << 30), 31)


def shifted_right(call: Call, value: Any, bits: int) -> Any:
    """Divided by a power of two, to nearest, halves away from zero."""
    if not bits:
        return value
    sign = on(call, "shift_right", value, 63)
    return on(call, "shift_right", call.create("add", [on(call, "add", value, 1 << (bits - 1)), sign]), bits)


def scaled(call: Call, value: Any, multiplier: int, shift: int) -> Any:
    """Times a multiplier of 31 bits and a power of two, rounded twice."""
    value = on(call, "mul", value, 1 << shift) if shift > 0 else value
    return shifted_right(call, high_product(call, value, multiplier), max(-shift, 0))


_QUARTERS = 15  # by which 32 bits are brought to 29


def quarters(call: Call, value: Any, axis: int) -> Any:
    """How many of 2, 8, 32 and so on are not above a value of 31 bits, whose size along an axis is 1."""
    shape = [_QUARTERS if k == axis else 1 for k in range(len(value.shape))]
    bounds = call.constant(np.array([2 << 2 * k for k in range(_QUARTERS)]).reshape(shape), value.dtype)
    reached = call.create("ge", [value, bounds])
    return call.create("sum", [call.cast(reached, value.dtype)], axes=[axis], keepdim=True)


def listed(call: Call, numbers: list[int], places: Any) -> Any:
    """The number that stands at each place."""
    return call.create("gather", [call.constant(np.array(numbers), "i64"), places], axis=0, from_end=False)


def inverse_root(call: Call, value: Any, count: Any) -> Any:
    """1 / sqrt(value) as a multiplier with 31 bits behind the point, and `max(count - 3, 0)` more: `quarters`'s count.

    Five of Newton's steps from 1 on, of a number in [1/4, 1), each with 3 bits before the point; times sqrt(1/2).
    """
    fours = [1 << 2 * (_QUARTERS - k) for k in range(_QUARTERS + 1)]
    whole = on(call, "shift_right", on(call, "mul", value, listed(call, fours, count)), 3)
    half, x = shifted_right(call, whole, 1), call.constant(1 << 28, "i64")
    for _ in range(5):
        cube = on(call, "mul", high_product(call, high_product(call, x, x), x), 1 << 6)
        less = high_product(call, half, cube)
        x = on(call, "mul", on(call, "sub", high_product(call, x, call.constant(3 << 27, "i64")), less), 1 << 3)
    root = high_product(call, x, call.constant(1518500250, "i64"))
    root = on(call, "mul", root, listed(call, [1 << max(3 - k, 0) for k in range(_QUARTERS + 1)], count))
    none = call.create("eq", [count, call.constant(0, "i64")])
    return call.create("where", [none, call.constant((1 << 31) - 1, "i64"), root])


def inverse(call: Call, part: Any) -> Any:
    """1 / (1 + a) of fractions of 31 bits: three of Newton's steps, as base/integer_rows has it."""
    half = on(call, "shift_right", on(call, "add", part, 1 << 31), 1)
    x = on(call, "add", high_product(call, half, -1010580540), 1515870810)
    for _ in range(3):
        error = on(call, "add", call.create("neg", [high_product(call, half, x)]), 1 << 29)
        x = call.create("add", [x, on(call, "mul", high_product(call, x, error), 4)])
    return on(call, "minimum", on(call, "mul", x, 2), (1 << 31) - 1)


def shifted_by(call: Call, value: Any, bits: list[int], places: Any) -> Any:
    """As `shifted_right`, by the number of bits that stands at each place."""
    sign = on(call, "shift_right", value, 63)
    moved = on(call, "add", on(call, "mul", value, 2), listed(call, [1 << k for k in bits], places))
    return on(call, "shift_right", on(call, "add", moved, sign), listed(call, [k + 1 for k in bits], places))


def scaled_once(call: Call, value: Any, multiplier: int, shift: int) -> Any:
    """Times a multiplier, of which 15 bits count, and a power of two, halves upwards, of which 32 bits are kept."""
    short, bits = min((multiplier + (1 << 15)) >> 16, 0x7FFF), 15 - shift
    whole = on(call, "shift_right", on(call, "add", on(call, "mul", value, short), 1 << (bits - 1)), bits)
    return wrapped(call, whole)


def wrapped(call: Call, value: Any) -> Any:
    """The lowest 32 bits."""
    return call.cast(call.cast(value, "i32"), "i64")


def steps(call: Call, x: Any, index: int, dtype: str = "i64") -> Any:
    """The integers of an input as they are held, without their zero point."""
    return call.cast(call.create("bitcast", [x], to=plain_type(call.tensor(index))), dtype)


def centred(call: Call, x: Any, index: int) -> Any:
    """The integers of an input less their zero point."""
    return on(call, "sub", steps(call, x, index), int(call.held_quant(index)["q_zero"]))


def result_of(call: Call, value: Any, wraps: bool = False) -> Any:
    """Whole numbers as the integers of the result: its zero point is added, in 32 bits where it `wraps`, and they are
    saturated.
    """
    q, dtype = call.q(), plain_type(call.outputs[0])
    limits = np.iinfo(numpy_type(dtype))
    moved = on(call, "add", value, int(q["q_zero"]))
    moved = wrapped(call, moved) if wraps else moved
    kept = on(call, "minimum", on(call, "maximum", moved, int(limits.min)), int(limits.max))
    return call.create("bitcast", [call.cast(kept, dtype)], to=dtype, **quant_only(q))
