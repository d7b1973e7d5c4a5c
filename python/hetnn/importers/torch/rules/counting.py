"""Torch overloads that count elements, or join those of a bin or segment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn.errors import Unsupported
from hetnn.importers.lowering import sizes
from hetnn.importers.torch.rules.call import Call, rule
from hetnn.importers.torch.rules.indexing import fixed


def _zeros(call: Call, dtype: str, shape: list[Any]) -> Any:
    return call.create("expand", [call.constant(0, dtype)], shape=shape)


@rule("bincount.default")
def _bincount(call: Call) -> Any:
    """As many bins as the largest number asks for, and `minlength` at least."""
    count = sizes.product(call["self"].shape)
    x = call.reshape(call.cast(call["self"], "i64"), [count])
    least = call.constant([call["minlength"] - 1], "i64")
    top = call.create("reduce_max", [call.create("concat", [x, least], axis=0)], axes=[])
    bins = call.found_size()
    call.create("read_size", [call.create("add", [top, call.constant(1, "i64")])], sizes=[bins])
    start = _zeros(call, call.dtype(), [bins])
    weights = call["weights"]
    if weights is None:
        weights = call.create("expand", [call.constant(1, call.dtype())], shape=[count])
    out = call.create(
        "scatter_elements",
        [start, x, call.cast(weights, call.dtype())],
        axis=0,
        reduce="add",
        from_end=False,
    )
    return call.reshape(out, call.shape())


@rule("histogram.bin_ct", "histogram.bins_tensor")
def _histogram(call: Call) -> list[Any]:
    """Elements between neighbouring edges; the last bin has its right edge, too."""
    x = call["self"]
    count = sizes.product(x.shape)
    flat = call.reshape(x, [count])
    edges = _edges(call, flat) if isinstance(call["bins"], int) else call["bins"]
    (number,) = fixed([edges.shape[0] - 1], "bins")
    first, last = (call.create("slice", [edges], axis=0, start=at, end=at + 1) for at in (0, number))
    place = call.create("searchsorted", [edges, flat], right=True)
    place = call.create("minimum", [place, call.constant(number, "i64")])
    place = call.create("sub", [place, call.constant(1, "i64")])
    inside = call.create("logical_and", [call.create("ge", [flat, first]), call.create("le", [flat, last])])
    place = call.create("where", [inside, place, call.constant(number, "i64")])
    weight = call["weight"]
    one = call.constant(1, x.dtype)
    weight = call.create("expand", [one], shape=[count]) if weight is None else call.reshape(weight, [count])
    bins = call.create("scatter_elements", [_zeros(call, x.dtype, [number + 1]), place, weight], axis=0, reduce="add")
    bins = call.create("slice", [bins], axis=0, start=0, end=number)
    if call["density"]:
        left = call.create("slice", [edges], axis=0, start=0, end=number)
        right = call.create("slice", [edges], axis=0, start=1, end=number + 1)
        total = call.create("sum", [bins], axes=[0])
        bins = call.create("div", [call.create("div", [bins, total]), call.create("sub", [right, left])])
    return [bins, edges]


def _edges(call: Call, x: Any) -> Any:
    """Of equal bins between two numbers, or between the smallest and largest element."""
    number, dtype = call["bins"], x.dtype
    if call["range"] is not None:
        low, high = (call.constant(value, dtype) for value in call["range"])
    elif x.shape == [0]:
        low = high = call.constant(0, dtype)
    else:
        low, high = (call.create(op, [x], axes=[]) for op in ("reduce_min", "reduce_max"))
    half, one = call.constant(0.5, dtype), call.create("eq", [low, high])
    low = call.create("where", [one, call.create("sub", [low, half]), low])
    high = call.create("where", [one, call.create("add", [high, half]), high])
    step = call.create("div", [call.create("sub", [high, low]), call.constant(number, dtype)])
    places = np.arange(number + 1)
    from_low = call.create("add", [low, call.create("mul", [step, call.constant(places, dtype)])])
    from_high = call.create("sub", [high, call.create("mul", [step, call.constant(number - places, dtype)])])
    return call.create("where", [call.constant(places < (number + 1) // 2, "bool"), from_low, from_high])


@rule("segment_reduce.default")
def _segment_reduce(call: Call) -> Any:
    """Rows of neighbouring segments along an axis joined, each row by the segment in which it lies."""
    x, kind, axis = call["data"], call["reduce"], call["axis"] % len(call["data"].shape)
    if call["indices"] is not None:
        raise Unsupported("segments by the index of each row")
    if call["lengths"] is not None:
        ends = call.create("cumsum", [call.cast(call["lengths"], "i64")], axis=-1)
    else:
        given = call.cast(call["offsets"], "i64")
        ends = call.create("slice", [given], axis=axis, start=1, end=given.shape[axis])
    lead, rows, inner = list(x.shape[:axis]), x.shape[axis], list(x.shape[axis + 1 :])
    number = ends.shape[axis]
    places = call.create("expand", [call.create("arange", [], start=0, end=rows)], shape=[*lead, rows])
    segment = call.create("searchsorted", [ends, places], right=True)
    segment = call.create("expand", [call.reshape(segment, [*lead, rows, *[1] * len(inner)])], shape=list(x.shape))
    neutral = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}[kind]
    initial = call["initial"]
    start = call.constant(neutral if initial is None else initial, x.dtype)
    out = call.create(
        "scatter_elements",
        # Rows behind the last segment fall into one more.
        [call.create("expand", [start], shape=[*lead, number + 1, *inner]), segment, x],
        axis=axis,
        reduce={"sum": "add", "mean": "add", "prod": "mul"}.get(kind, kind),
    )
    out = call.create("slice", [out], axis=axis, start=0, end=number)
    if kind != "mean":
        return out
    before = call.create("slice", [ends], axis=axis, start=0, end=number - 1)
    zero = _zeros(call, "i64", [*lead, 1])
    before = call.create("concat", [zero, before], axis=axis)
    length = call.cast(call.create("sub", [ends, before]), x.dtype)
    length = call.reshape(length, [*lead, number, *[1] * len(inner)])
    if initial is not None:  # an empty segment is the initial value
        length = call.create("maximum", [length, call.constant(1, x.dtype)])
    return call.create("div", [out, length])


@rule("hash_tensor.default")
def _hash(call: Call) -> Any:
    """The exclusive or of the bits of all elements as doubles or 64-bit integers: halves joined until one is left."""
    x = call["self"]
    x = (
        call.create("bitcast", [call.cast(x, "f64")], to="i64")
        if x.dtype.startswith(("f", "bf"))
        else call.cast(x, "i64")
    )
    rank = len(x.shape)
    axes = sorted(axis % rank for axis in call["dim"]) if rank and call["dim"] else list(range(rank))
    rest = [axis for axis in range(rank) if axis not in axes]
    (count,) = fixed([sizes.product([x.shape[axis] for axis in axes])], "the hash of a tensor")
    x = call.permuted(x, [*axes, *rest])
    shape = [x.shape[k] for k in range(len(axes), rank)]
    x = call.reshape(x, [count, *shape])
    if count == 0:
        return call.filled(0)
    while count > 1:
        half = count // 2
        joined = call.create(
            "bitwise_xor",
            [
                call.create("slice", [x], axis=0, start=0, end=half),
                call.create("slice", [x], axis=0, start=half, end=2 * half),
            ],
        )
        odd = [call.create("slice", [x], axis=0, start=2 * half, end=count)] if count % 2 else []
        x, count = call.create("concat", [joined, *odd], axis=0) if odd else joined, half + count % 2
    return call.create("bitcast", [call.reshape(x, call.shape())], to="u64")
