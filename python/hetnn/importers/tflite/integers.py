"""Integers of a file that stand for reals: typed in the graph where a type says exactly that, else by arithmetic.

u8 is held as i8, 128 lower, and so is its zero point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.element_types import NUMPY, numpy_type
from hetnn.errors import Unsupported
from hetnn.importers.lowering.building import Building
from hetnn.importers.lowering.quantization import demand_sound, parameters, with_sign_turned
from hetnn.importers.tflite.held import Held
from hetnn.importers.tflite.model import Array, Quantization, Tensor

# Whose quantized tensors are typed values.
_TYPED = ("i8", "u8", "i16")
# How layers round, as LiteRT's reference kernels do.
LITERT = {"q_rounding": "double"}
_NAMES = {NUMPY[name]: name for name in (*_TYPED, "i32")}


def typed_attributes(quant: Quantization | None, dtype: str, axes: Sequence[int] | None = None) -> dict[str, Any]:
    """Attributes of the quantized type of integers, whose axes may be put in another order; none where none is so."""
    if quant is None or dtype not in (*_TYPED, "i32"):
        return {}
    axis = None if len(quant.scales) == 1 else quant.axis if axes is None else list(axes).index(quant.axis)
    return parameters(quant.scales, quant.zero_points, dtype, axis) or {}


def constant_attributes(quant: Quantization | None, array: Array, axes: Sequence[int]) -> dict[str, Any]:
    """As `typed_attributes`, for numbers of a constant."""
    return typed_attributes(quant, _NAMES.get(array.dtype, ""), axes)


def is_typed(tensor: Tensor) -> bool:
    """Whether the values of a tensor are held as a quantized type."""
    one = tensor.quant is not None and len(tensor.quant.scales) == 1
    return one and tensor.dtype in _TYPED and bool(typed_attributes(tensor.quant, tensor.dtype))


def quant_only(q: dict[str, Any]) -> dict[str, Any]:
    """What integers stand for, without how they are rounded."""
    return {name: value for name, value in q.items() if name != "q_rounding"}


def signed(array: Array) -> Array:
    """The integers of a constant as they are held."""
    return (array ^ np.uint8(128)).view(np.int8) if array.dtype == np.uint8 else array


def plain_type(tensor: Tensor) -> str:
    """As what the integers of a tensor are held."""
    return "i8" if tensor.dtype == "u8" else tensor.dtype


def graph_form(call: Building, value: Any, tensor: Tensor) -> Any:
    """A value of the file's own element type as it is held."""
    if not is_typed(tensor):
        return value
    plain = with_sign_turned(call, value) if tensor.dtype == "u8" else value
    return call.create("bitcast", [plain], to=plain_type(tensor), **typed_attributes(tensor.quant, tensor.dtype))


def file_form(call: Building, value: Any, tensor: Tensor, plain: bool = False) -> Any:
    """A held value in the file's own element type; `plain`: without what it stands for."""
    if not is_typed(tensor):
        counts = plain and tensor.quant is not None and value.dtype == tensor.dtype == "i32"
        return call.create("bitcast", [value], to="i32") if counts else value
    if tensor.dtype != "u8":
        return call.create("bitcast", [value], to=tensor.dtype) if plain else value
    return with_sign_turned(call, call.create("bitcast", [value], to="u8"))


def reals_of(array: Array, quant: Quantization) -> Array:
    """The f32 that the integers of a constant stand for."""
    shape = [1] * array.ndim
    if len(quant.scales) > 1:
        shape[quant.axis] = len(quant.scales)
    scales = np.asarray(quant.scales, np.float32).reshape(shape if len(quant.scales) > 1 else [])
    zeros = np.asarray(quant.zero_points, np.int64)
    zeros = zeros.reshape(shape) if zeros.size > 1 else zeros[0]
    return np.asarray((array.astype(np.int64) - zeros).astype(np.float32) * scales, np.float32)


def dequantized(call: Building, held: Held) -> Held:
    """The reals that a tensor's integers stand for; what is no quantized tensor as it is."""
    if held.quant is None:
        return held
    if held.array is not None:
        if held.array.dtype.kind not in "iu":
            return held
        return Held(None, reals_of(held.array, held.quant), {}, held.made_first)
    return Held(
        None, None, {first: real(call, value, held.quant) for first, value in held.values.items()}, held.made_first
    )


def demand_reals(tensor: Tensor, quant: Quantization | None) -> None:
    """InvalidModel where a tensor's integers stand for no reals; nothing of what is no quantized tensor."""
    if quant is not None:
        size = tensor.shape[quant.axis] if len(quant.scales) > 1 else None
        demand_sound(tensor.name, quant.scales, quant.zero_points, tensor.dtype, size)


def real(call: Building, value: Any, quant: Quantization) -> Any:
    """The reals that a value stands for, in f32."""
    if value.dtype.startswith("f"):
        return value
    if len(quant.scales) > 1:
        raise Unsupported("values that are no constants with a scale for each channel")
    if value.dtype in _TYPED:
        return call.create("dequantize", [value])
    wide = call.create("sub", [call.cast(value, "f32"), call.constant(quant.zero_points[0], "f32")])
    return call.create("mul", [wide, call.constant(quant.scales[0], "f32")])


def quantized(call: Building, value: Any, tensor: Tensor) -> Any:
    """Reals as the integers of a tensor, as they are held."""
    assert tensor.quant is not None
    demand_reals(tensor, tensor.quant)
    if is_typed(tensor):
        to = plain_type(tensor)
        return call.create("quantize", [value], to=to, **typed_attributes(tensor.quant, tensor.dtype), **LITERT)
    if len(tensor.quant.scales) > 1 or tensor.dtype not in ("i8", "u8", "i16", "i32"):
        raise Unsupported(f"results of {tensor.dtype} with {len(tensor.quant.scales)} scales")
    limits = np.iinfo(numpy_type(tensor.dtype))
    scaled = call.create("div", [value, call.constant(tensor.quant.scales[0], "f32")])
    shifted = call.create("add", [call.create("round", [scaled]), call.constant(tensor.quant.zero_points[0], "f32")])
    clamped = call.create("clamp", [shifted], min=float(limits.min), max=float(limits.max))
    return call.cast(clamped, tensor.dtype)
