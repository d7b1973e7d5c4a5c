"""Sums of products of integers, exact: in f32 as far as it holds every sum of a part, and parts are added in i32."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from hetnn.element_types import NUMPY
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.conv import convolve_node
from hetnn.importers.onnx.rules.product import multiply
from hetnn.importers.onnx.values import Array

# Up to here every integer is f32, so that sums of no larger products round nowhere, in whatever order they are added.
_EXACT = 1 << 24
# Of more parts f64, which holds every sum, takes less.
_MOST_PARTS = 8


def centred(call: Call, x: Any, zero: Any, dtype: str) -> Any:
    """x - zero as numbers that cannot overflow."""
    x = call.cast(x, dtype)
    return x if zero is None else call.create("sub", [x, call.cast(zero, dtype)])


def _sizes(call: Call, x: Any, zero: Any) -> Array:
    """|x - zero| where both are known; else the greatest that it may be, of no axis."""
    known, nothing = call.known_of(x), np.zeros(1, np.int64) if zero is None else call.known_of(zero)
    if known is not None and nothing is not None:
        return np.asarray(np.abs(known.astype(np.int64) - nothing.astype(np.int64)))
    limits = np.iinfo(NUMPY[x.dtype])
    ends = np.array([limits.min, limits.max]) if nothing is None or not nothing.size else nothing.astype(np.int64)
    return np.asarray(max(int(limits.max) - int(ends.min()), int(ends.max()) - int(limits.min)))


def product_of(call: Call, a: Any, b: Any, a_zero: Any, b_zero: Any) -> Any:
    """(a - a_zero) (b - b_zero) of integers as i32; zero points that broadcast with them."""
    count = a.shape[-1]
    ends = [0, count]
    if isinstance(count, int) and len(b.shape) >= 2:
        ends = _ends(count, int(_sizes(call, a, a_zero).max(initial=0)), _sizes(call, b, b_zero))
    if not isinstance(count, int) or len(ends) - 1 > _MOST_PARTS or len(b.shape) < 2:
        return call.cast(multiply(call, centred(call, a, a_zero, "f64"), centred(call, b, b_zero, "f64")), "i32")
    left, right = centred(call, a, a_zero, "f32"), centred(call, b, b_zero, "f32")
    parts = []
    for start, end in pairwise(ends):
        sides = [left, right]
        if len(ends) > 2:
            axes = (len(a.shape) - 1, len(b.shape) - 2)
            sides = [
                call.create("slice", [x], axis=axis, start=start, end=end) for x, axis in zip(sides, axes, strict=True)
            ]
        parts.append(call.cast(multiply(call, *sides), "i32"))
    return call.folded("add", parts)


def _ends(count: int, factor: int, sizes: Array) -> list[int]:
    """Where parts of so many products begin and end, each of at most `factor` times its size [..., count, n]."""
    if sizes.ndim == 0:
        step = max(_EXACT // max(factor * int(sizes), 1), 1)
        return [*range(0, count, step), count] if count else [0, 0]
    rows = np.moveaxis(sizes, -2, 0).reshape(count, -1)
    ends, whole = [0], np.cumsum(rows * factor, axis=0) if rows.size else np.zeros((count, 1))
    while ends[-1] < count and len(ends) <= _MOST_PARTS + 1:
        before = whole[ends[-1] - 1] if ends[-1] else 0
        fits = int(np.count_nonzero((whole[ends[-1] :] - before).max(axis=1) <= _EXACT))
        ends.append(ends[-1] + max(fits, 1))
    return ends if len(ends) > 1 else [0, 0]


def convolution_of(call: Call, x: Any, weight: Any, x_zero: Any, weight_zero: Any) -> Any:
    """The node's convolution of x - x_zero by weight - weight_zero, of integers, as i32.

    Parts are groups of channels: [N, groups · parts · filters, ...], of which the parts are added.
    """
    groups, shape = int(call.attr("group")), list(weight.shape)
    most = int(_sizes(call, x, x_zero).max(initial=0))
    parts, whole = _groups_of_channels(call, shape, most, _sizes(call, weight, weight_zero))
    dtype = "f32" if parts else "f64"
    x, weight = centred(call, x, x_zero, dtype), centred(call, weight, weight_zero, dtype)
    if parts < 2:
        return call.cast(convolve_node(call, x, weight, None, groups), "i32")
    filters, channels = shape[0] // groups, shape[1] // parts
    apart = call.reshape(weight, [groups, filters, parts, channels, *shape[2:]])
    turned = call.create("permute", [apart], perm=[0, 2, 1, *range(3, len(shape) + 2)])
    weight = call.reshape(turned, [shape[0] * parts, channels, *shape[2:]])
    y = convolve_node(call, x, weight, None, groups * parts)
    of_parts = call.reshape(y, [y.shape[0], groups, parts, filters, *y.shape[2:]])
    summands = [call.entry(of_parts, k, axis=2) for k in range(parts)]
    if not whole:
        summands = [call.cast(value, "i32") for value in summands]
    return call.cast(call.reshape(call.folded("add", summands), [y.shape[0], shape[0], *y.shape[2:]]), "i32")


def _groups_of_channels(call: Call, shape: list[Any], factor: int, sizes: Array) -> tuple[int, bool]:
    """Into how many parts the channels of [filters, channels, ...] are divided, 0 where too many would be needed, and
    whether f32 holds their sums as well.

    Two at least where a kernel might otherwise multiply transforms of the windows, which are no integers.
    """
    if not all(isinstance(size, int) for size in shape) or 0 in shape:
        return 0, False
    fast = shape[-2:] == [3, 3] and int(call.attr("group")) == 1 and shape[1] > 1
    for parts in range(2 if fast else 1, _MOST_PARTS + 1):
        if shape[1] % parts:
            continue
        of_parts = np.broadcast_to(sizes, shape).reshape(shape[0], parts, -1).sum(axis=2)
        if int(of_parts.max()) * factor <= _EXACT:
            return parts, int(of_parts.sum(axis=1).max()) * factor <= _EXACT
    return 0, False
