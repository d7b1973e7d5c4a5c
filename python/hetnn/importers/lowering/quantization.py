"""Between reals and the integers that stand for them, by way of quantized types where one says exactly that."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.importers.lowering.building import Building

# Integers without a sign are held with one: the same bits, the highest turned.
_SIGNED = {"u8": ("i8", 1 << 7), "u16": ("i16", 1 << 15)}
_RANGES = {"i8": (-(1 << 7), (1 << 7) - 1), "i16": (-(1 << 15), (1 << 15) - 1), "i32": (-(1 << 31), (1 << 31) - 1)}


def parameters(scale: Any, zero: Any, stored: str, axis: int | None) -> dict[str, Any] | None:
    """Attributes of a quantized type for arrays of scales and zero points; None where no such type exists."""
    dtype, turn = _SIGNED.get(stored, (stored, 0))
    if dtype not in _RANGES:
        return None
    scales, zeros = np.ravel(np.asarray(scale, np.float64)), np.ravel(np.asarray(0 if zero is None else zero))
    zeros = zeros.astype(np.int64) - turn
    least, most = _RANGES[dtype]
    sound = np.all(np.isfinite(scales) & (scales > 0)) and np.all((zeros >= least) & (zeros <= most))
    if not sound or len(scales) == 0 or len(zeros) not in (1, len(scales)):
        return None
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


def typed_integers(call: Building, x: Any, scale: Any, zero: Any, dtype: str, axis: int | None) -> Any:
    """clamp(round(x / scale) + zero) of reals in f32, as plain integers of `dtype`; None where no type says that."""
    signed, turn = _SIGNED.get(dtype, (dtype, 0))
    quant = parameters(scale, zero, dtype, axis)
    if signed == "i32" or quant is None or not _fits(x, scale, axis):
        return None
    typed = call.create("quantize", [x], to=signed, **quant)
    plain = call.create("bitcast", [typed], to=dtype)
    return with_sign_turned(call, plain) if turn else plain


def with_sign_turned(call: Building, q: Any) -> Any:
    """Integers with their first bit turned, which makes signed ones unsigned and the other way round."""
    return call.create("bitwise_xor", [q, call.constant(_SIGNED[q.dtype][1], q.dtype)])
