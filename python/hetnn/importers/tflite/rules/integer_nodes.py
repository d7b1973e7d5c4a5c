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
