"""Graphs that PT2E quantized: steps between reals and integers as arithmetic, rounded where eager torch rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.errors import Unsupported
from hetnn.importers.lowering.blocks import dequantized
from hetnn.importers.lowering.quantization import demand_sound, typed_reals
from hetnn.importers.lowering.random_numbers import on
from hetnn.importers.torch.rules.call import TORCH, Call

_NAMES = "quantized_decomposed."


def _meeting(call: Call, value: Any, x: Any) -> Any:
    """A scale or zero point of one number, or one for each index of the axis."""
    if not hasattr(value, "dtype") or "axis" not in call.args:
        return call.reshape(value, []) if hasattr(value, "dtype") else value
    axis = call["axis"] % len(x.shape)
    return call.reshape(value, [n if k == axis else 1 for k, n in enumerate(x.shape)])


def _number(call: Call, value: Any) -> Any:
    """A scale or zero point as an array where it is known, else None."""
    return value.constant if hasattr(value, "dtype") else value


def _given(call: Call, name: str) -> Any:
    """The argument, in the plural where there is one for each channel."""
    return call.args.get(name, call.args.get(f"{name}s"))


def _demand_sound(call: Call, dtype: str) -> None:
    """InvalidModel where the scale and the zero point, as far as they are known, make no reals of integers."""
    scale, zero = (_number(call, _given(call, name)) for name in ("scale", "zero_point"))
    called = getattr(call["input"], "name", "")
    if scale is not None:
        shape, axis = call["input"].shape, call.args.get("axis")
        demand_sound(called, scale, zero, dtype, None if axis is None else shape[axis % len(shape)])


@TORCH.rule(
    *(f"{_NAMES}quantize_per_tensor.{kind}" for kind in ("default", "tensor", "tensor2")),
    f"{_NAMES}quantize_per_channel.default",
)
def _quantize(call: Call) -> Any:
    """clamp(round(x (1 / scale)) + zero point): a number's reciprocal is in double, that of a channel in its type."""
    _demand_sound(call, call.dtype())
    x = call.cast(call["input"], "f32")
    scale, zero = (_meeting(call, _given(call, name), x) for name in ("scale", "zero_point"))
    if hasattr(scale, "dtype"):
        scale = scale if "axis" in call.args else call.cast(scale, "f64")
        inverse = call.cast(on(call, "div", call.constant(1.0, scale.dtype), scale), "f32")
    else:
        inverse = float(1.0 / scale)
    y = call.create("round", [on(call, "mul", x, inverse)])
    y = on(call, "add", y, call.cast(zero, "f32") if hasattr(zero, "dtype") else float(zero))
    bounds = {"min": float(call["quant_min"]), "max": float(call["quant_max"])}
    return call.cast(call.create("clamp", [y], **bounds), call.dtype())


@TORCH.rule(
    *(f"{_NAMES}dequantize_per_tensor.{kind}" for kind in ("default", "tensor", "tensor2")),
    f"{_NAMES}dequantize_per_channel.default",
)
def _dequantize(call: Call) -> Any:
    """(q - zero point) scale: of integers whose scale is known, what their quantized type stands for."""
    q = call["input"]
    _demand_sound(call, q.dtype)
    given = [_number(call, _given(call, name)) for name in ("scale", "zero_point")]
    axis = call["axis"] % len(q.shape) if "axis" in call.args else None
    if given[0] is not None and (given[1] is not None or _given(call, "zero_point") is None) and call.dtype() == "f32":
        stood = typed_reals(call, q, given[0], given[1], axis, getattr(q, "constant", None))
        if stood is not None:
            return stood
    scale, zero = (_meeting(call, _given(call, name), q) for name in ("scale", "zero_point"))
    y = call.cast(q, "f32" if call.dtype() != "f64" else "f64")
    if zero is not None:
        y = on(call, "sub", y, call.cast(zero, y.dtype) if hasattr(zero, "dtype") else float(zero))
    y = on(call, "mul", y, call.cast(scale, y.dtype) if hasattr(scale, "dtype") else float(scale))
    return call.cast(y, call.dtype())


def _narrowest(call: Call, q: Any) -> Any:
    """Known integers in the smallest type that holds what the call says that they are."""
    bounds = call.args.get("quant_min"), call.args.get("quant_max")
    known = getattr(q, "constant", None)
    if known is None or None in bounds:
        return q
    low, high = (int(bound) for bound in bounds if bound is not None)
    for bits in (2, 4):
        least = -(1 << bits - 1) if low < 0 else 0
        most = least + (1 << bits) - 1
        if least <= low and high <= most and np.all((known >= least) & (known <= most)):
            return call.cast(q, f"{'i' if low < 0 else 'u'}{bits}")
    return q


def _of_blocks(call: Call, sizes: list[int], scale: Any, zero: Any) -> Any:
    """(q - zero point) scale, in blocks of so many elements along each axis."""
    q = call["input"]
    shape, rank = list(q.shape), len(q.shape)
    if len(sizes) != rank:
        raise Unsupported(f"blocks {sizes} of a tensor of rank {rank}")
    counts = [-(-n // size) for n, size in zip(shape, sizes, strict=True)]
    # Along the axis of blocks; other axes have one element a block, or are a block by themselves.
    inside = [k for k in range(rank) if sizes[k] != 1 and counts[k] != 1] or [rank - 1]
    axis = inside[-1]
    if len(inside) > 1 or not rank:
        raise Unsupported(f"blocks {sizes}, which are along more than one axis")
    wanted = [counts[k] if k == axis else n for k, n in enumerate(shape)]
    scale = call.broadcast_to(call.reshape(call.cast(scale, "f32"), counts), wanted)
    codes = _narrowest(call, q)
    if zero is not None:
        zero = call.broadcast_to(call.reshape(call.cast(zero, "f32"), counts), wanted)
    return call.cast(dequantized(call, codes, scale, zero, axis, sizes[axis]), call.dtype())


@TORCH.rule("torchao.dequantize_affine.default")
def _dequantize_affine(call: Call) -> Any:
    """What torchao's tensors of integers in blocks stand for."""
    return _of_blocks(call, [int(size) for size in call["block_size"]], call["scale"], call.args.get("zero_point"))


@TORCH.rule(f"{_NAMES}dequantize_per_channel_group.default")
def _dequantize_groups(call: Call) -> Any:
    sizes = [1] * (len(call["input"].shape) - 1) + [int(call["group_size"])]
    zeros = call.args.get("zero_points")
    if zeros is not None and zeros.dtype not in ("i32", "i64", "f32"):
        raise Unsupported(f"zero points of {zeros.dtype}, with which torch's differences wrap")
    return _of_blocks(call, sizes, call["scales"], zeros)


@TORCH.rule(f"{_NAMES}choose_qparams.tensor")
def _choose(call: Call) -> list[Any]:
    """The scale and zero point with which the integers span the values and 0."""
    x, low, high = call["input"], float(call["quant_min"]), float(call["quant_max"])
    least = on(call, "minimum", call.create("reduce_min", [x], axes=[]), 0.0)
    most = on(call, "maximum", call.create("reduce_max", [x], axes=[]), 0.0)
    scale = on(call, "div", call.create("sub", [most, least]), high - low)
    scale = on(call, "maximum", scale, float(call["eps"]))
    zero = on(call, "add", call.create("neg", [call.create("round", [call.create("div", [least, scale])])]), low)
    zero = call.create("clamp", [zero], min=low, max=high)
    return [call.reshape(call.cast(value, dtype), [1]) for value, dtype in ((scale, "f64"), (zero, "i64"))]
