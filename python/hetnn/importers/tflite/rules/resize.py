"""TFLite's resizing of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.resampling import along
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
    height, width = static(x.shape[2:], "resizing")
    corners, centred = bool(call.option("AlignCorners")), bool(call.option("HalfPixelCenters"))
    if corners and centred:
        raise InvalidModel("align_corners and half_pixel_centers exclude each other")
    if call.typed:
        return call.placed(_of_integers(call, x, goal), True)
    if [height, width] == goal:
        return call.placed(x, True)
    if centred or (corners and min(goal) > 1):
        return call.placed(call.create("upsample_bilinear2d", [x], size=goal, align_corners=corners), True)
    return call.placed(_resized(call, x, goal, _shares), True)


def _of_integers(call: Call, x: Any, goal: list[int]) -> Any:
    """Sums of the integers with shares of 10 bits along each axis, rounded once, halves away from zero."""
    y = on(call, "add", nodes.steps(call, x, 0, "f64"), 128.0 if call.tensor(0).dtype == "u8" else 0.0)
    for axis, (size, wanted) in enumerate(zip(static(x.shape[2:], "resizing"), goal, strict=True), start=2):
        y = along(call, y, axis, _integer_shares(call, size, wanted))
    half = call.create("mul", [call.create("sign", [y]), call.like(1 << 19, y)])
    whole = call.create("trunc", [on(call, "mul", call.create("add", [y, half]), 2.0**-20)])
    zero = float(call.q()["q_zero"] + (128 if call.tensor(0).dtype == "u8" else 0))
    return nodes.result_of(call, call.cast(on(call, "add", whole, -zero), "i64"))


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
