"""TFLite's resizing of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.resampling import along
from hetnn.importers.tflite.fixed_point import Array
from hetnn.importers.tflite.integers import quant_only
from hetnn.importers.tflite.rules import integer_nodes as nodes
from hetnn.importers.tflite.rules.call import Call, always, at_one_scale, rule, static
from hetnn.importers.tflite.rules.integer_nodes import on

# Of a weight that resizing is a product with.
_MOST_NUMBERS = 1 << 26
_F32 = np.float32


def _goal(call: Call) -> list[int]:
    goal = call.integers(1, "the new size")
    if len(goal) != 2 or min(goal) < 1:
        raise InvalidModel(f"the new size {goal}")
    return goal


def _scale(call: Call, size: int, goal: int) -> Any:
    """Pixels of the image for one of the result, in f32."""
    if call.option("AlignCorners") and goal > 1:
        return _F32(size - 1) / _F32(goal - 1)
    return _F32(size) / _F32(goal)


@rule("RESIZE_BILINEAR", integers=at_one_scale)
def _bilinear(call: Call) -> Any:
    """By the operator where it takes the same places, else a product along each axis."""
    x, goal = call.first(0), _goal(call)
    if call.option("AlignCorners") and call.option("HalfPixelCenters"):
        raise InvalidModel("align_corners and half_pixel_centers exclude each other")
    if call.typed and call.tensor(0).dtype == "u8":
        reals = on(call, "add", nodes.steps(call, x, 0, "f32"), 128.0)
        whole = call.create("floor", [on(call, "add", _in_order(call, reals, goal), 0.5)])
        return call.placed(nodes.result_of(call, on(call, "add", whole, -128.0 - call.q()["q_zero"])), True)
    if call.typed:
        found = _by_whole_weights(call, x, goal)
        return call.placed(_of_integers(call, x, goal) if found is None else found, True)
    return call.placed(_of_reals(call, x, goal), True)


def _in_order(call: Call, x: Any, goal: list[int]) -> Any:
    """Four products of each pixel, added in LiteRT's order: of integers a half must fall as it does there."""
    sides = []
    for axis, (size, wanted) in enumerate(zip(static(x.shape[2:], "resizing"), goal, strict=True)):
        scale = _scale(call, size, wanted)
        at = np.arange(wanted, dtype=_F32) * scale
        if call.option("HalfPixelCenters"):
            at = (np.arange(wanted, dtype=_F32) + _F32(0.5)) * scale - _F32(0.5)
        low = np.maximum(np.floor(at), 0)
        high = np.minimum(np.ceil(at), size - 1)
        share = (at - low).astype(_F32).reshape([-1, 1] if axis == 0 else [-1])
        sides.append((np.minimum(low, size - 1), high, share))
    (top, bottom, down), (left, right, across) = sides

    def term(rows: Any, columns: Any, by_row: Any, by_column: Any) -> Any:
        value = x
        for axis, places in ((2, rows), (3, columns)):
            index = call.constant(places.astype(np.int64), "i64")
            value = call.create("gather", [value, index], axis=axis, from_end=False)
        for factor in (by_row, by_column):
            value = call.create("mul", [value, call.constant(factor, "f32")])
        return value

    one = _F32(1)
    terms = [
        term(top, left, one - down, one - across),
        term(bottom, left, down, one - across),
        term(top, right, one - down, across),
        term(bottom, right, down, across),
    ]
    return call.folded("add", terms)


def _of_reals(call: Call, x: Any, goal: list[int]) -> Any:
    height, width = static(x.shape[2:], "resizing")
    corners, centred = bool(call.option("AlignCorners")), bool(call.option("HalfPixelCenters"))
    if [height, width] == goal:
        return x
    if centred or (corners and min(goal) > 1):
        return call.create("upsample_bilinear2d", [x], size=goal, align_corners=corners)
    return _resized(call, x, goal, _shares)


def _by_whole_weights(call: Call, x: Any, goal: list[int]) -> Any:
    """Where sides grow by powers of 2 a transposed convolution of every channel, whose weights are bytes; else None.

    Twice the weights, so that rounding twice rounds once: the first has nothing to round. The integers stand for
    themselves less no zero point, because LiteRT's halves lie away from the integer 0.
    """
    size, centred = static(x.shape[2:], "resizing"), bool(call.option("HalfPixelCenters"))
    by_corners = bool(call.option("AlignCorners"))
    factors = [_factor(own, wanted, by_corners) for own, wanted in zip(size, goal, strict=True)]
    if call.tensor(0).dtype != "i8" or max(factors) == 1 or any(f == 0 or f & (f - 1) for f in factors):
        return None
    # Shares of a pixel in what it becomes and in its neighbours, as whole numbers of this sum.
    sums = [1 if factor == 1 else factor * (2 if centred else 1) for factor in factors]
    sides = [_growing_shares(factor, whole, centred) for factor, whole in zip(factors, sums, strict=True)]
    weights = 2 * np.outer(*sides)
    if weights.max() > np.iinfo(np.int8).max:
        return None
    (channels,) = static(x.shape[1:2], "channels")
    kernel = np.broadcast_to(weights.astype(np.int8), (channels, 1, *weights.shape))
    own = {key: value for key, value in call.q().items() if key != "q_rounding"}
    plain = {**call.q(), "q_zero": 0}
    y = call.create("bitcast", [x], to="i8", **quant_only(plain))
    padding = [0, 0]
    for k, (factor, many) in enumerate(zip(factors, size, strict=True)):
        if factor == 1:
            continue
        padding[k] = factor * 3 // 2 if centred else factor - 1
        if by_corners:
            continue
        first, last = (call.create("slice", [y], axis=2 + k, start=at, end=at + 1, inside=True) for at in (0, many - 1))
        y = call.create("concat", [*([first] if centred else []), y, last], axis=2 + k, **plain)
    scale = {"q_scale": [1 / (2.0 * sums[0] * sums[1])], "q_zero": 0}
    filters = call.typed_constant(np.ascontiguousarray(kernel), scale)
    y = call.create("conv_transpose2d", [y, filters], stride=factors, padding=padding, groups=channels, **plain)
    for k, wanted in enumerate(goal):
        if static(y.shape[2 + k : 3 + k], "resizing") != [wanted]:
            y = call.create("slice", [y], axis=2 + k, start=0, end=wanted, inside=True)
    return call.create("bitcast", [y], to="i8", **quant_only(own))


def _factor(size: int, goal: int, by_corners: bool) -> int:
    """By how much an axis grows; 0 where that is no whole number."""
    if by_corners and min(size, goal) > 1:
        size, goal = size - 1, goal - 1
    elif by_corners and size != goal:
        return 0
    return goal // size if goal % size == 0 else 0


def _growing_shares(factor: int, whole: int, centred: bool) -> Array:
    """What a pixel gives, of so much, to those before and behind its own `factor` pixels and to these."""
    if factor == 1:
        return np.ones(1, np.int64)
    if not centred:
        return np.minimum(np.arange(1, 2 * factor), np.arange(1, 2 * factor)[::-1])
    rising = np.arange(1, whole, 2)
    return np.concatenate([rising, rising[::-1]])


def _of_integers(call: Call, x: Any, goal: list[int]) -> Any:
    """Sums of the integers with shares of 10 bits along each axis, rounded once, halves away from zero."""
    y = nodes.steps(call, x, 0, "f64")
    for axis, (size, wanted) in enumerate(zip(static(x.shape[2:], "resizing"), goal, strict=True), start=2):
        y = along(call, y, axis, _integer_shares(call, size, wanted))
    half = call.create("mul", [call.create("sign", [y]), call.like(1 << 19, y)])
    whole = call.create("trunc", [on(call, "mul", call.create("add", [y, half]), 2.0**-20)])
    return nodes.result_of(call, on(call, "sub", call.cast(whole, "i64"), int(call.q()["q_zero"])))


def _integer_shares(call: Call, size: int, goal: int) -> np.ndarray[Any, Any]:
    """What each pixel gives to each of the result, of 1024."""
    scale = ((1 << 10) * size + goal // 2) // goal
    if call.option("AlignCorners") and goal > 1:
        scale = ((1 << 10) * (size - 1) + (goal - 1) // 2) // (goal - 1)
    at = np.arange(goal, dtype=np.int64) * scale
    if call.option("HalfPixelCenters"):
        at = at + scale // 2 - (1 << 9)
    low = np.maximum(at // (1 << 10), 0)
    high = np.minimum((at + (1 << 10) - 1) // (1 << 10), size - 1)
    low = np.minimum(low, size - 1)
    shares = np.zeros((goal, size))
    rows = np.arange(goal)
    np.add.at(shares, (rows, low), (1 << 10) - (at - (1 << 10) * low))
    np.add.at(shares, (rows, high), at - (1 << 10) * low)
    return shares


def _shares(call: Call, size: int, goal: int) -> np.ndarray[Any, Any]:
    """What each pixel gives to each of the result, whose first lies on the image's first."""
    at = np.arange(goal, dtype=_F32) * _scale(call, size, goal)
    low = np.minimum(np.maximum(np.floor(at).astype(np.int64), 0), size - 1)
    high = np.minimum(low + 1, size - 1)
    shares = np.zeros((goal, size), _F32)
    rows = np.arange(goal)
    np.add.at(shares, (rows, low), 1 - (at - low.astype(_F32)))
    np.add.at(shares, (rows, high), at - low.astype(_F32))
    return shares


def _resized(call: Call, x: Any, goal: list[int], shares: Callable[[Call, int, int], np.ndarray[Any, Any]]) -> Any:
    for axis, (size, wanted) in enumerate(zip(static(x.shape[2:], "resizing"), goal, strict=True), start=2):
        if size * wanted > _MOST_NUMBERS:
            raise InvalidModel(f"an axis of {size} as one of {wanted}")
        if size != wanted:
            x = along(call, x, axis, shares(call, size, wanted))
    return x


@rule("RESIZE_NEAREST_NEIGHBOR", integers=always)
def _nearest(call: Call) -> Any:
    x, goal = call.first(0), _goal(call)
    size = static(x.shape[2:], "resizing")
    corners, centred = bool(call.option("AlignCorners")), bool(call.option("HalfPixelCenters"))
    if not corners and all(wanted % own == 0 for own, wanted in zip(size, goal, strict=True)):
        return call.placed(call.create("upsample_nearest2d", [x], size=goal), True)
    for axis, (own, wanted) in enumerate(zip(size, goal, strict=True), start=2):
        at = (np.arange(wanted, dtype=_F32) + _F32(0.5 if centred else 0)) * _scale(call, own, wanted)
        places = np.floor(at + _F32(0.5)) if corners else np.floor(at)
        index = np.clip(places.astype(np.int64), 0, own - 1)
        x = call.create("gather", [x, call.constant(index, "i64")], axis=axis, from_end=False)
    return call.placed(x, True)
