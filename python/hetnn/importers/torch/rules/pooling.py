"""Torch overloads of pooling: windows over one, two or three axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hetnn.element_types import NUMPY
from hetnn.errors import Unsupported
from hetnn.importers.lowering.pooling import pool
from hetnn.importers.lowering.random_numbers import on
from hetnn.importers.lowering.sizes import ceil_divide
from hetnn.importers.torch.rules.call import Call, rule
from hetnn.importers.torch.rules.indexing import fixed

# Windows: one or three axes are two, with the others of size 1 or in the batch


def paired_window(value: Any, count: int) -> list[Any]:
    """One number for each of so many axes."""
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * count if len(values) == 1 else values


def batched(call: Call, axes: int) -> tuple[Any, bool]:
    """The input with a batch in front of its channels and axes, and whether that had to be made."""
    x = call[call.names[0]]
    made = len(x.shape) == axes + 1
    return (call.reshape(x, [1, *x.shape]) if made else x), made


def _pooled(call: Call, axes: int, op: str, window: dict[str, list[int]], **attrs: Any) -> Any:
    return call.reshape(pool(call, op, batched(call, axes)[0], window, **attrs), call.shape())


def _on_images(call: Call, axes: int, op: Callable[[Any], Any]) -> Any:
    """An operation on [N,C,H,W] applied to one or two axes, batched or not; its result has the call's shape."""
    x, _ = batched(call, axes)
    if axes == 1:
        x = call.reshape(x, [x.shape[0], x.shape[1], 1, x.shape[2]])
    return call.reshape(op(x), call.shape())


@rule("max_pool1d.default", "max_pool2d.default", "max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def _max_pool(call: Call) -> Any:
    axes = int(call.target.split("pool")[1][0])
    window = {
        "kernel": paired_window(call["kernel_size"], axes),
        "stride": paired_window(call["stride"] or call["kernel_size"], axes),
        "padding": paired_window(call["padding"], axes),
        "dilation": paired_window(call["dilation"], axes),
    }
    ceil_mode = bool(call["ceil_mode"])
    out = None
    if not call.is_tuple() or call.reads(0):
        out = _pooled(call, axes, "max_pool2d", window, ceil_mode=ceil_mode)
    if not call.is_tuple():
        return out
    places = None
    if call.reads(1):
        x, _ = batched(call, axes)
        places = call.create("max_pool_indices", [x], **window, ceil_mode=ceil_mode)
        places = call.reshape(places, call.shape(1))
    return [out, places]


@rule("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def _avg_pool(call: Call) -> Any:
    axes = int(call.target.split("pool")[1][0])
    window = {
        "kernel": paired_window(call["kernel_size"], axes),
        "stride": paired_window(call["stride"] or call["kernel_size"], axes),
        "padding": paired_window(call["padding"], axes),
    }
    attrs = {"ceil_mode": bool(call["ceil_mode"]), "count_include_pad": bool(call["count_include_pad"])}
    divisor = call.args.get("divisor_override") or 0
    # Integers round once: a mean over three axes is one of the sum.
    if axes < 3 or not (divisor or call.dtype().startswith(("i", "u"))):
        own = {"divisor_override": abs(divisor)} if divisor else {}
        out = _pooled(call, axes, "avg_pool2d", window, **attrs, **own)
        return call.create("neg", [out]) if divisor < 0 else out
    total = _pooled(call, axes, "avg_pool2d", window, **attrs, divisor_override=1)
    divisors = (
        call.constant(divisor, total.dtype) if divisor else _counts(call, window, total, attrs["count_include_pad"])
    )
    return call.create("div", [total, divisors])


def _counts(call: Call, window: dict[str, list[int]], pooled: Any, include_pad: bool) -> Any:
    """How many elements each window of a pooling counts, as `pooled` has them: fewer at the edges."""
    axes = len(window["kernel"])
    if include_pad and not call["ceil_mode"]:
        return call.constant(math.prod(window["kernel"]), pooled.dtype)
    counts = np.ones((1,) * axes, np.int64)
    found, made = call[call.names[0]].shape[-axes:], pooled.shape[-axes:]
    if not all(isinstance(size, int) for size in (*found, *made)):
        raise Unsupported("pooling of integers over windows that count fewer elements at an edge, of an open size")
    for axis, (size, windows) in enumerate(zip(found, made, strict=True)):
        padding = window["padding"][axis]
        begin = np.arange(windows) * window["stride"][axis] - padding
        end = np.minimum(begin + window["kernel"][axis], size + padding)
        if not include_pad:
            begin, end = np.maximum(begin, 0), np.minimum(end, size)
        counts = counts * (end - begin).reshape([-1 if k == axis else 1 for k in range(axes)])
    return call.constant(counts, pooled.dtype)


@rule(
    "adaptive_avg_pool1d.default",
    "adaptive_avg_pool2d.default",
    "_adaptive_avg_pool2d.default",
    "adaptive_avg_pool3d.default",
    "_adaptive_avg_pool3d.default",
)
def _adaptive_avg_pool(call: Call) -> Any:
    size = list(call.shape())
    axes = int(call.target.split("pool")[1][0])
    grid = size[-axes:]
    if axes < 3:
        lone = [1, *grid] if axes == 1 else grid
        return _on_images(call, axes, lambda x: call.create("adaptive_avg_pool2d", [x], output_size=lone))
    x, _ = batched(call, axes)
    n, c, d, h, w = x.shape
    rows = call.reshape(x, [n * c, d, h, w])
    rows = call.create("adaptive_avg_pool2d", [rows], output_size=grid[1:])
    area = grid[1] * grid[2]
    columns = call.reshape(rows, [n, c, d, area])
    return call.reshape(call.create("adaptive_avg_pool2d", [columns], output_size=[grid[0], area]), size)


@rule(
    "adaptive_max_pool1d.default",
    "adaptive_max_pool2d.default",
    "adaptive_max_pool3d.default",
)
def _adaptive_max_pool(call: Call) -> list[Any]:
    """Window i of n over a size s spans [floor(i s / n), ceil((i + 1) s / n)); shorter ones repeat their last index."""
    axes = int(call.target.split("pool")[1][0])
    x, _ = batched(call, axes)
    grid = fixed(call.shape()[-axes:], "adaptive pooling to a grid")
    if not call.reads(1) and not all(isinstance(size, int) for size in x.shape[2:]):
        return [call.reshape(_largest_of_open(call, x, grid), call.shape(0)), None]
    size = fixed(x.shape[2:], "adaptive pooling of an image")
    flat, widths = np.zeros((), np.int64), []
    for axis, (s, n) in enumerate(zip(size, grid, strict=True)):
        begin, end = np.arange(n) * s // n, -(-(np.arange(n) + 1) * s // n)
        widths.append(int((end - begin).max()))
        taps = np.minimum(begin[:, None] + np.arange(widths[-1]), end[:, None] - 1)
        # Axes n, k of each axis of the image, one behind the other.
        flat = flat[..., None, None] * s + taps.reshape([1] * (2 * axis) + list(taps.shape))
    order = [*range(0, 2 * axes, 2), *range(1, 2 * axes, 2)]
    taps = np.ascontiguousarray(flat.transpose(order)).reshape([*grid, math.prod(widths)])
    plane = call.reshape(x, [x.shape[0], x.shape[1], math.prod(size)])
    windows = call.create("gather", [plane, call.constant(taps, "i64")], axis=2)
    table = call.create("expand", [call.constant(taps, "i64")], shape=list(windows.shape))
    return _largest(call, windows, table)


def _largest_of_open(call: Call, x: Any, grid: list[int]) -> Any:
    """The same windows over sizes that a run shows, one axis after the other: none is wider than s / n + 1 elements."""

    def at(op: str, a: Any, b: Any) -> Any:
        return call.create(op, [call.constant(v, "i64") if isinstance(v, (int, np.ndarray)) else v for v in (a, b)])

    for axis, n in enumerate(grid, 2):
        size, width = x.shape[axis], ceil_divide(x.shape[axis], n) + 1
        whole, window = call.whole(size), np.arange(n).reshape(n, 1)
        begin = at("floor_divide", at("mul", window, whole), n)
        end = at("floor_divide", at("add", at("mul", window + 1, whole), n - 1), n)
        taps = at("minimum", at("add", begin, call.create("arange", [], end=width)), at("sub", end, 1))
        windows = call.create("gather", [x, call.reshape(taps, [n * width])], axis=axis)
        parted = call.reshape(windows, [*x.shape[:axis], n, width, *x.shape[axis + 1 :]])
        x = call.create("reduce_max", [parted], axes=[axis + 1])
    return x


def _largest(call: Call, windows: Any, places: Any) -> list[Any]:
    """The largest element of each window, along the last axis, and its place."""
    values = call.reshape(call.create("reduce_max", [windows], axes=[-1]), call.shape(0)) if call.reads(0) else None
    if not call.reads(1):
        return [values, None]
    best = call.create("argmax", [windows], axis=-1, keepdim=True)
    return [values, call.reshape(call.create("gather_elements", [places, best], axis=-1), call.shape(1))]


@rule("fractional_max_pool2d.default", "fractional_max_pool3d.default")
def _fractional_max_pool(call: Call) -> list[Any]:
    """Window i of n over a size s begins at floor((i + u) a) - floor(u a) for a = (s - k) / (n - 1), and the last one
    ends with the axis; u is random, one for each plane and axis. Of images u has those of columns first."""
    axes = int(call.target.split("pool")[1][0])
    x, _ = batched(call, axes)
    size = fixed(x.shape[2:], "fractional pooling of an image")
    grid, kernel = fixed(call.shape()[-axes:], "fractional pooling"), paired_window(call["kernel_size"], axes)
    samples, planes = call["random_samples"], [x.shape[0], x.shape[1]]
    places = call.constant(0, "i64")
    for axis, (s, n, k) in enumerate(zip(size, grid, kernel, strict=True)):
        which = axes - 1 - axis if axes == 2 else axis
        u = call.reshape(call.create("slice", [samples], axis=2, start=which, end=which + 1), [*planes, 1])
        step = np.asarray(s - k, NUMPY[u.dtype]) / np.asarray(max(n - 1, 1), NUMPY[u.dtype])
        moved = call.create("add", [u, call.constant(np.arange(n - 1), u.dtype)])
        begins = [call.create("trunc", [on(call, "mul", value, float(step))]) for value in (moved, u)]
        first = call.cast(call.create("sub", begins), "i64")
        last = call.create("expand", [call.constant(s - k, "i64")], shape=[*planes, 1])
        begin = call.create("concat", [first, last], axis=2) if n > 1 else last
        shape = [*planes, *[1] * (2 * axes)]
        shape[2 + axis] = n
        taps = np.arange(k).reshape([k if other == axis else 1 for other in range(axes)])
        place = call.create("add", [call.reshape(begin, shape), call.constant(taps, "i64")])
        places = call.create("add", [on(call, "mul", places, s), place])
    windows = [*planes, math.prod(grid), math.prod(kernel)]
    places = call.reshape(places, windows)
    flat = call.reshape(places, [*planes, windows[2] * windows[3]])
    plane = call.reshape(x, [*planes, math.prod(size)])
    taken = call.reshape(call.create("gather_elements", [plane, flat], axis=2), windows)
    return _largest(call, taken, places)
