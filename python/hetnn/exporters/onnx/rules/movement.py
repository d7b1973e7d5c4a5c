"""Moving elements: shapes, slices, borders, picks by index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.exporters.onnx.rules.call import MOST_ELEMENTS, Call, Size, Value, exports
from hetnn.exporters.onnx.writer import attribute

_BEHIND = (1 << 63) - 1
_BEFORE = -(1 << 63)


@exports("reshape")
def _reshape(call: Call) -> Any:
    return call.reshape(call[0], call.shape)


@exports("permute")
def _permute(call: Call) -> Any:
    return call.permute(call[0], [int(k) % max(call[0].rank, 1) for k in call.attrs["perm"]])


@exports("expand")
def _expand(call: Call) -> Any:
    return call.expand(call[0], call.shape)


@exports("slice")
def _slice(call: Call) -> Any:
    axis = call.axis(call[0])
    bounds = [call.writer.sizes([call.attrs[name]]) for name in ("start", "end")]
    return call.create("Slice", [call[0], *bounds, call.integers([axis]), call.writer.sizes([call.attrs["step"]])])


@exports("flip")
def _flip(call: Call) -> Any:
    axes = [int(axis) % max(call[0].rank, 1) for axis in call.attrs["axes"]]
    return call.create(
        "Slice",
        [
            call[0],
            *(call.integers([n] * len(axes)) for n in (-1, _BEFORE)),
            call.integers(axes),
            call.integers([-1] * len(axes)),
        ],
    )


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@exports("pad")
def _pad(call: Call) -> Any:
    mode = _MODES[call.attrs["mode"]]
    value = call.constant(call.quantized(call.attrs["value"], 0), call[0].dtype) if mode == "constant" else None
    return call.create("Pad", [call[0], call.writer.sizes(call.attrs["padding"]), value], mode=mode)


@exports("cast")
def _cast(call: Call) -> Any:
    if call[0].dtype == call.dtype:
        return call[0]
    attrs: dict[str, Any] = {"saturate": int(call.attrs["saturate"])}
    if call.dtype == "f8e8m0":
        attrs["round_mode"] = call.attrs["round_mode"]
    return call.create("Cast", [call[0]], dtype=call.dtype, to=attribute(call.dtype, "dtype"), **attrs)


@exports("bitcast")
def _bitcast(call: Call) -> Any:
    if call[0].dtype == call.dtype:
        return call[0]
    if call.dtype == "bool":
        if call[0].dtype.startswith(("f", "bf")):
            call.refuse("of reals as bools: ONNX's Cast has -0 false")
        return call.cast(call[0], "bool")
    return call.create("BitCast", [call[0]], dtype=call.dtype, to=attribute(call.dtype, "dtype"))


@exports("gather")
def _gather(call: Call) -> Any:
    """Indices that count from the back are refused here where `from_end` says so; ONNX always takes them."""
    return call.create("Gather", call.inputs, axis=call.axis(call[0]))


@exports("gather_elements")
def _gather_elements(call: Call) -> Any:
    return call.create("GatherElements", call.inputs, axis=call.axis(call[0]))


@exports("arange")
def _arange(call: Call) -> Any:
    start, end, step = (call.attrs[name] for name in ("start", "end", "step"))
    fixed = all(isinstance(size, int) for size in (start, end, step))
    if fixed and abs(end - start) <= abs(step) << 16:
        return call.constant(np.arange(start, end, step), call.dtype)
    bounds = [call.reshape(call.writer.size(size), []) for size in (start, end, step)]
    return call.cast(call.create("Range", bounds), call.dtype)


def places(call: Call, sizes: Sequence[Size], strides: Sequence[Size], offset: Size) -> Value:
    """Indices offset + i strides[0] + j strides[1] + ..., of the shape `sizes`."""
    rank = len(sizes)
    if all(isinstance(n, int) for n in (*sizes, *strides, offset)):
        if math.prod(call.fixed(sizes, "sizes")) > MOST_ELEMENTS:
            call.refuse(f"{math.prod(call.fixed(sizes, 'sizes'))} indices; a constant has {MOST_ELEMENTS}")
        axes: list[Any] = [
            np.arange(n).reshape([-1 if m == k else 1 for m in range(rank)])
            for k, n in enumerate(call.fixed(sizes, "sizes"))
        ]
        flat: Any = sum(
            (axis * stride for axis, stride in zip(axes, strides, strict=True)), np.zeros([1] * rank, np.int64)
        )
        return call.constant(np.broadcast_to(flat + offset, call.fixed(sizes, "sizes")), "i64")
    out = call.writer.size(offset)
    for k, (n, stride) in enumerate(zip(sizes, strides, strict=True)):
        bounds = [call.reshape(call.writer.size(size), []) for size in (0, n, 1)]
        along = call.create("Mul", [call.create("Range", bounds, shape=[n]), call.writer.size(stride)], shape=[n])
        out = call.create("Add", [out, call.reshape(along, [n if m == k else 1 for m in range(rank)])])
    return out


@exports("as_strided")
def _as_strided(call: Call) -> Any:
    flat = call.reshape(call[0], [math.prod(call[0].shape or [1])])
    return call.create("Gather", [flat, places(call, call.shape, call.attrs["strides"], call.attrs["offset"])])


@exports("flat_index")
def _flat_index(call: Call) -> Any:
    out: Value | None = None
    for k, size in enumerate(call.attrs["sizes"]):
        index = call.cast(call[k], "i64")
        whole = call.writer.size(size)
        behind = call.create("Less", [index, call.like(0, index)])
        index = call.create("Where", [behind, call.create("Add", [index, whole]), index])
        out = index if out is None else call.create("Add", [call.create("Mul", [out, whole]), index])
    assert out is not None
    return call.reshape(call.cast(out, call.dtype), call.shape)


@exports("where")
def _where(call: Call) -> Any:
    return call.create("Where", [call.cast(call[0], "bool"), *call.inputs[1:]])


_IDENTITY = {"add": 0, "mul": 1}


@exports("scatter_elements")
def _scatter_elements(call: Call) -> Any:
    """What is not joined itself first becomes the joining's neutral element."""
    x, indices, updates = call[0], call[1], call[2]
    reduce, axis = call.attrs["reduce"], call.axis(call[0])
    if indices.shape != updates.shape:
        indices = call.expand(indices, updates.shape or ())
    if reduce == "mean":
        return _scattered_means(call, x, indices, updates, axis)
    if reduce != "none" and not call.attrs["include_self"]:
        if reduce not in _IDENTITY:  # an element of the updates that lies there is as good
            x = call.create("ScatterElements", [x, indices, updates], axis=axis)
        else:
            neutral = call.filled(_IDENTITY[reduce], x.dtype, updates.shape or ())
            x = call.create("ScatterElements", [x, indices, neutral], axis=axis)
    return call.create("ScatterElements", [x, indices, updates], axis=axis, reduction=reduce)


def _scattered_means(call: Call, x: Value, indices: Value, updates: Value, axis: int) -> Value:
    """Sums through counts, where there is something to count."""
    if not x.dtype.startswith("f"):
        call.refuse(f"means of {x.dtype}, which hetnn cuts and ONNX does not say")
    own = bool(call.attrs["include_self"])
    none, one = call.filled(0, x.dtype, updates.shape or ()), call.filled(1, x.dtype, updates.shape or ())
    counts = call.filled(int(own), x.dtype, x.shape or ())
    counts = call.create("ScatterElements", [counts, indices, one], axis=axis, reduction="add")
    start = x if own else call.create("ScatterElements", [x, indices, none], axis=axis)
    sums = call.create("ScatterElements", [start, indices, updates], axis=axis, reduction="add")
    return call.create("Div", [sums, call.create("Max", [counts, call.like(1, x)])])


@exports("fold")
def _fold(call: Call) -> Any:
    """An image of one axis is one of a single row: engines differ on the other form."""
    image, block = list(call.attrs["image"]), list(call.attrs["block"])
    count = len(image)
    told = {name: call.fixed(call.attrs[name], name) for name in ("stride", "padding", "dilation")}
    stride, dilation = (told[name] * count if len(told[name]) == 1 else told[name] for name in ("stride", "dilation"))
    pads = told["padding"] * (2 * count) if len(told["padding"]) == 1 else told["padding"]
    if count == 1:
        image, block, stride, dilation, pads = (
            [1, *image],
            [1, *block],
            [1, *stride],
            [1, *dilation],
            [0, pads[0], 0, pads[1]],
        )
    sizes = [call.writer.sizes(part) for part in (image, block)]
    y = call.create("Col2Im", [call[0], *sizes], strides=stride, dilations=dilation, pads=pads)
    return y if count > 1 else call.reshape(y, call.shape)
