"""Between reals and the integers that stand for them, by way of quantized types where one says exactly that."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.building import Building

# Integers without a sign are held with one: the same bits, the highest turned.
_SIGNED = {"u8": ("i8", 1 << 7), "u16": ("i16", 1 << 15)}
_TYPED = ("i8", "i16", "i32")


def _limits(dtype: str) -> tuple[int, int] | None:
    """The least and the greatest integer of a type; None where it is none."""
    if dtype[:1] not in "iu" or not dtype[1:].isdigit():
        return None
    bits, has_sign = int(dtype[1:]), dtype[0] == "i"
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if has_sign else (0, (1 << bits) - 1)


def fault_of(scale: Any, zero: Any, stored: str, size: Any = None) -> str | None:
    """What is wrong with known scales and zero points of integers; None for sound ones.

    `size`: how many indices there are along the axis of several. Denormal scales are sound.
    """
    scales, zeros = np.ravel(np.asarray(scale, np.float64)), np.ravel(np.asarray(0 if zero is None else zero))
    limits = _limits(stored)
    is_one = len(scales) == len(zeros) == 1 and 0 < scales[0] < np.inf
    if is_one and (limits is None or limits[0] <= zeros[0] <= limits[1]):
        return None  # as nearly all are
    wrong = np.flatnonzero(~(np.isfinite(scales) & (scales > 0)))
    at = f" at {wrong[0]}" if len(wrong) and len(scales) > 1 else ""
    if len(wrong):
        return f"a scale must be positive and finite; got {scales[wrong[0]]:g}{at}"
    if len(scales) != 1 and isinstance(size, int) and len(scales) != size:
        return f"there must be one scale, or one for each of the {size} indices of their axis; got {len(scales)}"
    if len(zeros) not in (1, len(scales)):
        return f"there must be as many zero points as scales, {len(scales)}; got {len(zeros)}"
    if limits is None:
        return None
    integers = zeros.astype(np.int64)
    outside = integers[(integers < limits[0]) | (integers > limits[1])]
    if len(outside):
        return f"a zero point of {stored} must lie in [{limits[0]}, {limits[1]}]; got {outside[0]}"
    return None


def demand_sound(called: str, scale: Any, zero: Any, stored: str, size: Any = None) -> None:
    """InvalidModel for scales and zero points with which integers stand for no reals; see `fault_of`."""
    fault = fault_of(scale, zero, stored, size)
    if fault is not None:
        raise InvalidModel(f"the integers of '{called}': {fault}. Quantize the model again")


def parameters(scale: Any, zero: Any, stored: str, axis: int | None) -> dict[str, Any] | None:
    """Attributes of a quantized type for arrays of scales and zero points; None where no such type exists."""
    dtype, turn = _SIGNED.get(stored, (stored, 0))
    if dtype not in _TYPED:
        return None
    if np.size(scale) == 0 or fault_of(scale, zero, stored) is not None:
        return None
    scales, zeros = np.ravel(np.asarray(scale, np.float64)), np.ravel(np.asarray(0 if zero is None else zero))
    zeros = zeros.astype(np.int64) - turn
    if len(scales) == 1:
        return {"q_scale": [float(scales[0])], "q_zero": int(zeros[0])}
    if axis is None:
        return None
    listed = (zeros[:1] if np.all(zeros == zeros[0]) else zeros).tolist()
    return {"q_scale": scales.tolist(), "q_zero": listed, "q_axis": axis}


def _fits(x: Any, scale: Any, axis: int | None) -> bool:
    """Whether there is one scale, or one for each index of the axis."""
    return np.size(scale) == 1 or (axis is not None and axis < len(x.shape) and x.shape[axis] == np.size(scale))


def typed_reals(call: Building, q: Any, scale: Any, zero: Any, axis: int | None, known: Any = None) -> Any:
    """(q - zero) scale in f32; None where no conversion says that. `known`: the integers, of a constant."""
    if (q.dtype == "i32" and known is None) or not _fits(q, scale, axis):
        return None
    quant = parameters(scale, zero, q.dtype, axis)
    if quant is None:
        return None
    dtype, turn = _SIGNED.get(q.dtype, (q.dtype, 0))
    if known is not None:
        signed = (known ^ known.dtype.type(turn)).view(f"int{dtype[1:]}") if turn else known
        stood = call.create("constant", [], value=np.ascontiguousarray(signed), **quant)
    else:
        stood = call.create("bitcast", [with_sign_turned(call, q) if turn else q], to=dtype, **quant)
    return call.create("dequantize", [stood])


def typed_integers(
    call: Building, x: Any, scale: Any, zero: Any, dtype: str, axis: int | None, rounding: str | None = None
) -> Any:
    """clamp(round(x / scale) + zero) of reals in f32, as plain integers of `dtype`; None where no type says that.

    `rounding`: how the model says that a layer's integers become those, which then are no roundings of f32.
    """
    signed, turn = _SIGNED.get(dtype, (dtype, 0))
    quant = parameters(scale, zero, dtype, axis)
    if signed == "i32" or quant is None or not _fits(x, scale, axis):
        return None
    if rounding is not None:
        quant["q_rounding"] = rounding
    typed = call.create("quantize", [x], to=signed, **quant)
    plain = call.create("bitcast", [typed], to=dtype)
    return with_sign_turned(call, plain) if turn else plain


def with_sign_turned(call: Building, q: Any) -> Any:
    """Integers with their first bit turned, which makes signed ones unsigned and the other way round."""
    return call.create("bitwise_xor", [q, call.constant(_SIGNED[q.dtype][1], q.dtype)])
