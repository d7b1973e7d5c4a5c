"""ONNX quantization: steps between reals and integers as arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.blocks import dequantized, of_blocks
from hetnn.importers.lowering.quantization import demand_sound, typed_integers, typed_reals
from hetnn.importers.onnx.rules.call import Call, rule
from hetnn.importers.onnx.rules.conv import convolve_node
from hetnn.importers.onnx.rules.integers import centred, convolution_of, product_of
from hetnn.importers.onnx.rules.product import multiply

# Of integers that f32 rounds to exactly.
_MOST_BITS = 16


def _along(call: Call, value: Any, x: Any) -> Any:
    """A scale or zero point shaped to meet the input: one number, or one for each index of an axis."""
    rank = len(x.shape)
    if len(value.shape) == 0 or list(value.shape) == [1]:
        return call.reshape(value, [])
    axis = call.axis(call.attr("axis", 1), rank)
    if len(value.shape) == 1:
        return call.reshape(value, [value.shape[0] if k == axis else 1 for k in range(rank)])
    return value


def _scales_along(call: Call, scale: Any, x: Any) -> Any:
    """As `_along`, of scales with which f32 computes. InvalidModel for a known one that would count as zero."""
    known = call.known(1)
    if known is not None and scale.dtype == "f32":
        denormal = known[(known != 0) & (np.abs(known) < np.finfo(np.float32).tiny)]
        if denormal.size:
            raise InvalidModel(
                f"the scale {float(denormal[0])!r} of '{call.node.input[0]}' is denormal; it must be finite and "
                "1.18e-38 or more. Quantize the model again."
            )
    return _along(call, scale, x)


def _quantized(call: Call, x: Any, scale: Any, zero: Any, dtype: str) -> Any:
    """clamp(round(x / scale) + zero) in an integer type."""
    y = call.create("div", [call.cast(x, "f32"), call.cast(scale, "f32")])
    if dtype.startswith("f"):
        return call.create("cast", [y], to=dtype, saturate=bool(call.attr("saturate", 1)))
    bits = int(dtype[1:])
    if bits > _MOST_BITS:
        raise Unsupported(f"quantizing to {dtype}")
    y = call.create("round", [y])
    if zero is not None:
        y = call.create("add", [y, call.cast(zero, "f32")])
    least = -(2 ** (bits - 1)) if dtype.startswith("i") else 0
    return call.cast(call.create("clamp", [y], min=float(least), max=float(least + 2**bits - 1)), dtype)


@rule("QuantizeLinear")
def _quantize(call: Call) -> Any:
    x, scale, zero = call[0], call[1], call.optional(2)
    dtype = zero.dtype if zero is not None else call.dtype_attr("output_dtype") if call.attr("output_dtype") else "u8"
    if block := int(call.attr("block_size", 0)):
        of_each = [value for value in (call.cast(scale, "f32"), zero) if value is not None]
        axis = call.axis(call.attr("axis", 1), len(x.shape))
        of_each = [of_blocks(call, value, x, axis, block) for value in of_each]
        attrs = {"axis": axis, "block": block, "to": dtype, "saturate": bool(call.attr("saturate", 1))}
        return call.create("quantize_blocks", [call.cast(x, "f32"), *of_each], **attrs)
    _demand_sound(call, dtype)
    if _is_known(call) and x.dtype == scale.dtype == "f32" and len(scale.shape) <= 1:
        typed = typed_integers(call, x, call.known(1), call.known(2), dtype, _axis_of(call))
        if typed is not None:
            return typed
    return _quantized(call, x, _scales_along(call, scale, x), None if zero is None else _along(call, zero, x), dtype)


@rule("DynamicQuantizeLinear")
def _dynamically(call: Call) -> list[Any]:
    """By the steps that reach from the least number, or 0, to the greatest; where all are 0 by steps of 1, as
    onnxruntime does."""
    x = call[0]
    axes = list(range(len(x.shape)))
    least, most = (call.create(f"reduce_{name}", [x], axes=axes, keepdim=False) for name in ("min", "max"))
    least, most = call.create("minimum", [least, call.like(0, x)]), call.create("maximum", [most, call.like(0, x)])
    scale = call.create("div", [call.create("sub", [most, least]), call.like(255, x)])
    scale = call.create("where", [call.create("eq", [least, most]), call.like(1, x), scale])
    zero = call.create("round", [call.create("neg", [call.create("div", [least, scale])])])
    zero = call.cast(call.create("clamp", [zero], min=0.0, max=255.0), "u8")
    return [call.standard("QuantizeLinear", [x, scale, zero]), scale, zero]


def _demand_sound(call: Call, dtype: str) -> None:
    """InvalidModel where the scale and the zero point, as far as they are known, make no reals of integers."""
    zero = call.optional(2)
    if zero is not None and zero.dtype != dtype:
        raise InvalidModel(
            f"the zero point of '{call.node.input[0]}' is {zero.dtype}; it must be {dtype}, as the integers are"
        )
    scales, shape = call.known(1), call[0].shape
    if scales is not None:
        axis = call.axis(call.attr("axis", 1), len(shape)) if scales.size != 1 and len(shape) else None
        zeros = call.known(2) if call.given(2) else None
        demand_sound(call.node.input[0], scales, zeros, dtype, None if axis is None else shape[axis])


def _dequantized(integers: Any, scale: Any, zero: Any) -> Any:
    """(q - zero) scale, in f32, of one integer."""
    centred = integers.astype(np.int64) - (0 if zero is None else zero.astype(np.int64))
    return (centred.astype(np.float32) * scale.astype(np.float32)).reshape(integers.shape)


def _is_known(call: Call) -> bool:
    """Whether the scale and the zero point, where there is one, are constants."""
    return all(not call.given(k) or call.known(k) is not None for k in (1, 2))


def _axis_of(call: Call) -> int | None:
    """That of several scales, which are known."""
    scales = call.known(1)
    return call.axis(call.attr("axis", 1), len(call[0].shape)) if scales is not None and scales.size > 1 else None


@rule("DequantizeLinear")
def _dequantize(call: Call) -> Any:
    x, scale, zero = call[0], call[1], call.optional(2)
    dtype = call.dtype_attr("output_dtype") if call.attr("output_dtype") else scale.dtype
    if block := int(call.attr("block_size", 0)):
        axis = call.axis(call.attr("axis", 1), len(x.shape))
        scales = scale if scale.dtype in ("f32", "f16", "bf16") else call.cast(scale, "f32")
        return call.cast(dequantized(call, x, scales, zero, axis, block), dtype)
    _demand_sound(call, x.dtype)
    if _is_known(call) and scale.dtype == dtype == "f32" and len(scale.shape) <= 1:
        integers = call.known(0)
        typed = typed_reals(call, x, call.known(1), call.known(2), _axis_of(call), integers)
        # A number may be asked for as such: what is padded with, a bound, an exponent.
        if typed is not None and integers is not None and integers.size == 1:
            return call.know(typed, _dequantized(integers, call.known(1), call.known(2)))
        if typed is not None:
            return typed
    numbers = centred(call, x, None if zero is None else _along(call, zero, x), "f32")
    return call.cast(call.create("mul", [numbers, call.cast(_scales_along(call, scale, x), "f32")]), dtype)


@rule("MatMulInteger")
def _integer_matmul(call: Call) -> Any:
    return product_of(call, call[0], call[1], *(_rows(call, call.optional(2 + k), k) for k in (0, 1)))


def _rows(call: Call, zero: Any, operand: int) -> Any:
    """Zero points of the left operand belong to its rows, those of the right one to its columns."""
    if zero is None or operand == 1 or len(zero.shape) != 1 or zero.shape[0] == 1:
        return zero
    return call.reshape(zero, [zero.shape[0], 1])


def _reals(call: Call, k: int, axis: int | None = None) -> Any:
    """Operand k of a QLinear operator, its scale and zero point behind it, as reals; None where no type says it."""
    scale, zero = call.known(k + 1), call.known(k + 2)
    if scale is None or zero is None:
        return None
    shape = call[k].shape
    demand_sound(call.node.input[k], scale, zero, call[k].dtype, shape[axis] if axis is not None and shape else None)
    return typed_reals(call, call[k], scale, zero, axis, call.known(k))


def _integers(call: Call, y: Any, k: int) -> Any:
    """What an operator of integers computes, as those of the scale and zero point in inputs k and k + 1; None where no
    type says it."""
    scale, zero = call.known(k), call.known(k + 1)
    if scale is None or zero is None:
        return None
    demand_sound(call.node.output[0], scale, zero, call[k + 1].dtype)
    return typed_integers(call, y, scale, zero, call[k + 1].dtype, None, rounding="half_even_fp32")


@rule("QLinearMatMul")
def _quantized_matmul(call: Call) -> Any:
    reals = [_reals(call, 0), _reals(call, 3, len(call[3].shape) - 1)]
    if reals[0] is not None and reals[1] is not None:
        typed = _integers(call, multiply(call, *reals), 6)
        if typed is not None:
            return typed
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = call.values()
    y = call.cast(product_of(call, a, b, _rows(call, a_zero, 0), b_zero), "f32")
    scale = call.create("mul", [call.cast(_rows(call, a_scale, 0), "f32"), call.cast(b_scale, "f32")])
    return _quantized(call, call.create("mul", [y, scale]), y_scale, y_zero, y_zero.dtype)


def _of_filters(call: Call, value: Any, rank: int) -> Any:
    if value is None or not value.shape or value.shape[0] == 1:
        return value
    return call.reshape(value, [value.shape[0], *[1] * (rank - 1)])


@rule("ConvInteger")
def _integer_conv(call: Call) -> Any:
    zero = _of_filters(call, call.optional(3), len(call[1].shape))
    return convolution_of(call, call[0], call[1], call.optional(2), zero)


def _typed_conv(call: Call) -> Any:
    """QLinearConv as a convolution of reals that integers stand for; None where no type says it."""
    x, weight, bias = _reals(call, 0), _reals(call, 3, 0), None
    if x is None or weight is None:
        return None
    if call.given(8):
        of_sums = [np.asarray(call.known(k), np.float64).ravel() for k in (1, 4)]
        scales = of_sums[0] * of_sums[1]
        bias = typed_reals(call, call[8], scales, None, 0, call.known(8))
        if bias is None:
            return None
    return _integers(call, convolve_node(call, x, weight, bias), 6)


@rule("QLinearConv")
def _quantized_conv(call: Call) -> Any:
    typed = _typed_conv(call)
    if typed is not None:
        return typed
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = [call[k] for k in range(8)]
    weight = centred(call, w, _of_filters(call, w_zero, len(w.shape)), "f32")
    bias = None if not call.given(8) else call.cast(call[8], "f32")
    y = convolve_node(call, centred(call, x, x_zero, "f32"), weight, bias)
    by_filter = _of_filters(call, call.cast(w_scale, "f32"), len(w.shape) - 1)
    scale = call.create("mul", [call.cast(x_scale, "f32"), by_filter])
    return _quantized(call, call.create("mul", [y, scale]), y_scale, y_zero, y_zero.dtype)
