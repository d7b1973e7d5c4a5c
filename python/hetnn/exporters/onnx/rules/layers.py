"""Convolutions, products and attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn.exporters.onnx.rules.call import MOST_ELEMENTS, Array, Call, Value, exports


def window(call: Call, axes: int = 2) -> dict[str, Any]:
    """Strides, padding before every axis and then behind, and dilations."""
    padding = call.fixed(call.attrs["padding"], "padding")
    names = {"stride": "strides", "dilation": "dilations"}
    told: dict[str, Any] = {
        theirs: call.fixed(call.attrs[ours], ours) for ours, theirs in names.items() if ours in call.attrs
    }
    return {"pads": padding * 2 if len(padding) == axes else padding, **told}


@exports("conv2d")
def _conv2d(call: Call) -> Any:
    """`q_divisor` is part of the factor of quantized means, whose weights are 1."""
    y = call.create("Conv", call.inputs, group=int(call.attrs["groups"]), **window(call))
    divisor = int(call.attrs["q_divisor"])
    return y if divisor == 1 else call.create("Div", [y, call.like(divisor, y)])


@exports("scaled_conv2d")
def _scaled_conv2d(call: Call) -> Any:
    scaled, shift = call.create("Mul", [call[0], call[2]]), call.optional(4)
    if shift is not None:
        scaled = call.create("Add", [scaled, shift])
    if call.attrs["relu"]:
        scaled = call.create("Relu", [scaled])
    return call.create("Conv", [scaled, call[1], call.optional(3)])


@exports("pointwise_depthwise_conv2d")
def _pointwise_depthwise_conv2d(call: Call) -> Any:
    between = call.create("Conv", [call[0], call[1], call.optional(3)])
    function = str(call.attrs["function"])
    if function == "clamp":
        between = call.create("Clip", [between, *(call.like(float(bound), between) for bound in call.attrs["values"])])
    elif function == "silu":
        between = call.create("Mul", [between, call.create("Sigmoid", [between])])
    elif function:
        between = call.create({"relu": "Relu", "hardswish": "HardSwish"}[function], [between])
    (channels,) = call.fixed(call.shape[1:2], "channels")
    return call.create("Conv", [between, call[2], call.optional(4)], group=channels, **window(call))


@exports("conv_transpose2d")
def _conv_transpose2d(call: Call) -> Any:
    told: dict[str, Any] = {
        "group": int(call.attrs["groups"]),
        "output_padding": call.fixed(call.attrs["output_padding"], "padding"),
    }
    return call.create("ConvTranspose", call.inputs, **told, **window(call))


@exports("linear")
def _linear(call: Call) -> Any:
    """A Gemm of matrices; of more axes the product with the weight turned. Weights of fewer bits are of the input's."""
    x = call[0]
    weight, bias = call.cast(call[1], x.dtype), call.optional(2)
    bias = None if bias is None else call.cast(bias, x.dtype)
    if x.rank == 2 and call.takes("Gemm", [x, weight, bias]):
        return call.create("Gemm", [x, weight, bias], transB=1)
    y = call.create("MatMul", [x, call.permute(weight, [1, 0])])
    return y if bias is None else call.create("Add", [y, bias])


@exports("matmul")
def _matmul(call: Call) -> Any:
    return call.create("MatMul", call.inputs)


@exports("block_linear")
def _block_linear(call: Call) -> Any:
    """The product with what DequantizeLinear makes of the codes, block by block."""
    x, bits, depth = call[0], int(call.attrs["bits"]), call[0].shape[-1] if call[0].shape else None
    codes, scales, zeros = call[1].array, call[2], call.optional(3)
    if codes is None or not isinstance(depth, int) or (zeros is not None and zeros.array is None):
        call.refuse("of codes that are computed: ONNX has no unpacking of bits")
    rows, _, block_bytes = codes.shape
    block, dtype = block_bytes * 8 // bits, f"u{bits}"
    unpacked = _unpacked(codes, bits).reshape(rows, -1)[:, :depth]
    points = np.full(codes.shape[:2], 1 << (bits - 1)) if zeros is None or zeros.array is None else zeros.array
    given = [call.constant(unpacked, dtype), call.cast(scales, x.dtype), call.constant(points, dtype)]
    weight = call.create("DequantizeLinear", given, dtype=x.dtype, shape=[rows, depth], axis=1, block_size=block)
    y = call.create("MatMul", [x, call.permute(weight, [1, 0])])
    bias = call.optional(4)
    return y if bias is None else call.create("Add", [y, call.cast(bias, y.dtype)])


def _unpacked(codes: Array, bits: int) -> Array:
    """Codes of a byte each, from the lowest bits up."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    unpacked: Array = (codes[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return unpacked


@exports("scaled_dot_product_attention")
def _attention(call: Call) -> Any:
    """As products around a Softmax, which every engine joins; ONNX's Attention leaves open what a row is that may look
    at nothing: here it is 0, or, where `undefined` is kept, NaN."""
    q, k, v, mask = call[0], call[1], call[2], call.optional(3)
    rows, keys, depth = q.shape[2], k.shape[2], q.shape[3]  # type: ignore[index]
    scale = float(call.attrs["scale"])
    if not scale:
        (width,) = call.fixed([depth], "the width of a head, of which the scale is made,")
        scale = 1 / math.sqrt(max(width, 1))
    scores = call.create("MatMul", [call.create("Mul", [q, call.like(scale, q)]), call.permute(k, [0, 1, 3, 2])])
    none = call.like(-math.inf, q)
    if call.attrs["is_causal"]:
        later = call.create("Less", [_count(call, rows, 1), _count(call, keys, 0)])
        scores = call.create("Where", [later, none, scores])
    if mask is not None and mask.dtype == "bool":
        scores = call.create("Where", [mask, scores, none])
    elif mask is not None:
        scores = call.create("Add", [scores, mask])
    weights = call.create("Softmax", [scores], axis=-1)
    if mask is not None and call.attrs["undefined"] == "masked":
        most = call.create("ReduceMax", [scores, call.integers([3])], keepdims=1)
        weights = call.create("Where", [call.create("Equal", [most, none]), call.like(0, q), weights])
    elif call.attrs["undefined"] == "zeros":
        weights = call.create("Where", [call.create("IsNaN", [weights]), call.like(0, q), weights])
    return call.create("MatMul", [weights, v])


def _count(call: Call, size: Any, axis: int) -> Value:
    """0, 1, ... down a column (1) or along a row (0)."""
    if isinstance(size, int) and size <= MOST_ELEMENTS:
        return call.constant(np.arange(size).reshape([-1, 1] if axis else [1, -1]), "i64")
    bounds = [call.reshape(call.writer.size(n), []) for n in (0, size, 1)]
    return call.unsqueeze(call.create("Range", bounds), [axis])
