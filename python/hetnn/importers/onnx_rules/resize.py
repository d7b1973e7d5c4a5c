"""ONNX resizing of images: along each axis by itself, as picked elements or as a product with weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.onnx_rules.call import LONGEST, Array, Call, is_float, rule
from hetnn.importers.onnx_rules.late import is_late, late


@rule("Upsample")
def _upsample(call: Call) -> Any:
    x = call[0]
    if is_late(call, 1):
        return _late_resize(call, call[1], None)
    shape = call.static_shape(x, "Upsample")
    scales = _reals(call, 1) if call.given(1) else [float(s) for s in call.attr("scales")]
    for scale, axis in _each(scales, list(range(len(shape)))):
        size = _scaled(shape[axis], scale)
        place = _places("asymmetric", shape[axis], size, scale)
        x = _along(call, x, axis, shape[axis], size, scale, place, "floor", call.attr("mode"))
    return x


def _reals(call: Call, index: int) -> list[float]:
    array = call.known(index)
    if array is None or array.dtype == object:
        raise Unsupported("the scales are computed when the model runs; they must be known when compiling")
    return [float(scale) for scale in array.reshape(-1)]


def _late_resize(call: Call, scales: Any, goals: Any) -> Any:
    """By the operator that takes every mode, with scales and goals as values."""
    x = call[0]
    kind = "asymmetric" if call.version < 11 else call.attr("coordinate_transformation_mode", "half_pixel")
    rounding = "floor" if call.version < 11 else call.attr("nearest_mode", "round_prefer_floor")
    region = call.optional(1) if call.version >= 11 and kind == "tf_crop_and_resize" else None
    return late(
        call,
        "resize_over",
        [x, region, scales, goals],
        len(x.shape),
        axes=call.axes(None, len(x.shape)) or [],
        mode={"bilinear": "linear", "bicubic": "cubic"}.get(call.attr("mode"), call.attr("mode")),
        places=kind,
        rounding=rounding,
        antialias=bool(call.attr("antialias", 0)),
        cubic_coefficient=float(call.attr("cubic_coeff_a", -0.75)),
        exclude_outside=bool(call.attr("exclude_outside", 0)),
        outside=float(call.attr("extrapolation_value", 0.0)),
        policy=call.attr("keep_aspect_ratio_policy", "stretch"),
    )


def _each(given: list[Any], axes: list[int]) -> list[tuple[Any, int]]:
    if len(given) != len(axes):
        raise InvalidModel(f"{len(given)} sizes or scales for {len(axes)} axes")
    return list(zip(given, axes, strict=True))


def _scaled(size: int, scale: float, half: float = 0.0) -> int:
    if not 0 <= size * scale <= LONGEST:
        raise InvalidModel(f"an axis of {size} elements resized by {scale}")
    return math.floor(size * scale + half)


@rule("Resize")
def _resize(call: Call) -> Any:
    x = call[0]
    rank = len(x.shape)
    first = 1 if call.version < 11 else 2
    by_goals = call.given(first + 1) and call.version >= 11
    kind = call.attr("coordinate_transformation_mode", "half_pixel") if call.version >= 11 else "asymmetric"
    fixed = all(isinstance(size, int) for size in x.shape) and not is_late(call, first + 1 if by_goals else first)
    weighs = is_float(x.dtype) or call.attr("mode", "nearest") == "nearest"
    if not fixed or not weighs or kind == "tf_crop_and_resize" or call.attr("antialias"):
        return _late_resize(call, None if by_goals else call[first], call[first + 1] if by_goals else None)
    axes = call.axes(None, rank) or list(range(rank))
    shape = call.static_shape(x, "Resize")
    if by_goals:
        goals = call.integers(first + 1, "the sizes")
        scales = [goal / max(shape[axis], 1) for goal, axis in _each(goals, axes)]
        policy = call.attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            scale = min(scales) if policy == "not_larger" else max(scales)
            goals = [_scaled(shape[axis], scale, 0.5) for axis in axes]
            scales = [scale] * len(axes)
    else:
        scales = _reals(call, first)
        goals = [_scaled(shape[axis], scale) for scale, axis in _each(scales, axes)]
    nearest = call.attr("nearest_mode", "round_prefer_floor") if call.version >= 11 else "floor"
    for axis, goal, scale in zip(axes, goals, scales, strict=True):
        place = _places(kind, shape[axis], goal, scale)
        x = _along(call, x, axis, shape[axis], goal, scale, place, nearest, call.attr("mode", "nearest"))
    return x


def _places(kind: str, size: int, goal: int, scale: float) -> Callable[[Array], Array]:
    """Where an entry of the result lies in the input."""
    if kind == "asymmetric":
        return lambda y: y / scale
    if kind == "align_corners":
        return lambda y: y * (size - 1) / (goal - 1) if goal > 1 else y * 0.0
    if kind == "pytorch_half_pixel" and goal <= 1:
        return lambda y: y * 0.0
    if kind == "half_pixel_symmetric":
        whole = scale * size
        offset = size / 2 * (1 - goal / whole)
        return lambda y: offset + (y + 0.5) / scale - 0.5
    if kind not in ("half_pixel", "pytorch_half_pixel"):
        raise Unsupported(f"Resize by {kind}")
    return lambda y: (y + 0.5) / scale - 0.5


_NEAREST: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _along(
    call: Call,
    x: Any,
    axis: int,
    size: int,
    goal: int,
    scale: float,
    place: Callable[[Array], Array],
    nearest: str,
    mode: str,
) -> Any:
    if goal == size and scale == 1:
        return x
    at = place(np.arange(goal, dtype=np.float64))
    if mode == "nearest":
        picked = np.clip(_NEAREST[nearest](at), 0, size - 1)
        return call.create("gather", [x, call.constant(picked, "i64")], axis=axis)
    weights = _weights(call, at, size, mode)
    rank = len(x.shape)
    perm = [k for k in range(rank) if k != axis] + [axis]
    y = call.create("matmul", [call.create("permute", [x], perm=perm), call.constant(weights.T, x.dtype)])
    return call.create("permute", [y], perm=[perm.index(k) for k in range(rank)])


def _weights(call: Call, at: Array, size: int, mode: str) -> Array:
    """[goal, size]: what each entry of the input adds to each of the result; at the border the last entry repeats."""
    outside = bool(call.attr("exclude_outside", 0))
    first = np.floor(at)
    taps = np.arange(0, 2) if mode in ("linear", "bilinear") else np.arange(-1, 3)
    apart = np.abs(at[:, None] - first[:, None] - taps)
    if mode in ("linear", "bilinear"):
        amount = 1 - apart
    else:
        a = float(call.attr("cubic_coeff_a", -0.75))
        near = ((a + 2) * apart - (a + 3)) * apart * apart + 1
        far = ((a * apart - 5 * a) * apart + 8 * a) * apart - 4 * a
        amount = np.where(apart <= 1, near, np.where(apart < 2, far, 0))
    column = (first[:, None] + taps).astype(np.int64)
    if outside:
        amount = np.where((column < 0) | (column >= size), 0, amount)
        amount = amount / amount.sum(axis=1, keepdims=True)
    weights = np.zeros((len(at), size))
    np.add.at(weights, (np.arange(len(at))[:, None], np.clip(column, 0, size - 1)), amount)
    return weights
