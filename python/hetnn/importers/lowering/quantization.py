"""The reals that integers stand for, by way of quantized types where one says exactly that."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.importers.lowering.building import Building

# Integers without a sign are held with one: the same bits, the highest turned.
_TURN = 128


def parameters(scale: Any, zero: Any, stored: str, axis: int | None) -> dict[str, Any] | None:
    """Attributes of a quantized type for arrays of scales and zero points; None where no such type exists."""
    scales, zeros = np.ravel(np.asarray(scale, np.float64)), np.ravel(np.asarray(0 if zero is None else zero))
    zeros = zeros.astype(np.int64) - (_TURN if stored == "u8" else 0)
    sound = np.all(np.isfinite(scales) & (scales > 0)) and np.all(zeros == zeros[0])
    if not sound or len(scales) == 0 or (stored == "i32" and zeros[0] != 0):
        return None
    if stored != "i32" and not -128 <= zeros[0] <= 127:
        return None
    if len(scales) > 1 and (axis != 0 or zeros[0] != 0):
        return None
    return {"q_scale": [float(s) for s in scales], "q_zero": int(zeros[0])}


def typed_reals(call: Building, q: Any, scale: Any, zero: Any, axis: int | None, known: Any = None) -> Any:
    """(q - zero) scale in f32; None where no conversion says that. `known`: the integers, of a constant."""
    if q.dtype not in ("i8", "u8", "i32") or (q.dtype == "i32" and known is None):
        return None
    rank = len(q.shape)
    if np.size(scale) > 1 and (axis is None or rank == 0 or q.shape[axis] != np.size(scale)):
        return None
    if known is not None and rank == 2 and axis == 1 and np.size(scale) > 1:  # types have scales along the first axis
        turned = typed_reals(
            call, call.create("permute", [q], perm=[1, 0]), scale, zero, 0, np.ascontiguousarray(known.T)
        )
        return None if turned is None else call.create("permute", [turned], perm=[1, 0])
    quant = parameters(scale, zero, q.dtype, axis)
    if quant is None:
        return None
    if known is not None:
        signed = known if q.dtype != "u8" else (known ^ np.uint8(_TURN)).view(np.int8)
        stood = call.create("constant", [], value=np.ascontiguousarray(signed), **quant)
    else:
        turned = with_sign_turned(call, q) if q.dtype == "u8" else q
        stood = call.create("bitcast", [turned], to="i8", **quant)
    return call.create("dequantize", [stood])


def with_sign_turned(call: Building, q: Any) -> Any:
    return call.create("bitwise_xor", [q, call.constant(_TURN, "u8")])
