"""ONNX resizing: by operators of images, or along each axis by itself as picked elements or products with weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hetnn import _core
from hetnn.element_types import is_float
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering import sizes
from hetnn.importers.lowering.resampling import along
from hetnn.importers.lowering.sizes import LONGEST, Size
from hetnn.importers.onnx.rules.call import Call, rule
from hetnn.importers.onnx.rules.late import late


class Change(NamedTuple):
    """An axis that gets another size. `scale`: results per entry; None where it is the ratio of sizes not yet known.
    `is_given`: it stands in the model, in f32, and is not a ratio of sizes."""

    axis: int
    goal: Size
    scale: float | None
    is_given: bool = False

    def is_identity(self, size: Size) -> bool:
        """Whether an axis of that size stays as it is."""
        return self.goal == size and self.scale in (None, 1)


class Places(NamedTuple):
    """Where an entry of the result lies in the input, and how it is taken from there."""

    kind: str
    nearest: str
    mode: str


def _own_scales(call: Call) -> list[float]:
    """The scales that older operator sets have as attributes; the first one of height and width alone."""
    if call.version == 1:
        return [1, 1, float(call.attr("height_scale")), float(call.attr("width_scale"))]
    return [float(scale) for scale in call.attr("scales")]


@rule("Upsample")
def _upsample(call: Call) -> Any:
    scales = _reals(call, 1) if call.given(1) else _own_scales(call)
    changes = None if scales is None else _by_scales(call, scales, list(range(len(call[0].shape))))
    return _resampled(call, changes, Places("asymmetric", "floor", call.attr("mode")), scales=1)


@rule("Resize")
def _resize(call: Call) -> Any:
    rank = len(call[0].shape)
    first = 1 if call.version < 11 else 2
    old = call.version < 11
    # The first form left the rounding open; ONNX Runtime's is this one.
    places = Places(
        "asymmetric" if old else call.attr("coordinate_transformation_mode", "half_pixel"),
        "ceil_to_shrink" if old else call.attr("nearest_mode", "round_prefer_floor"),
        call.attr("mode", "nearest"),
    )
    axes = call.axes(None, rank) or list(range(rank))
    if call.given(first + 1) and not old:
        goals = None if call.read(first + 1) is None else call.sizes(first + 1, "the sizes")
        return _resampled(call, None if goals is None else _by_goals(call, goals, axes), places, goals=first + 1)
    scales = _reals(call, first)
    changes = None if scales is None or places.kind == "tf_crop_and_resize" else _by_scales(call, scales, axes)
    return _resampled(call, changes, places, scales=first)


def _reals(call: Call, index: int) -> list[float] | None:
    array = call.known(index)
    return None if array is None or array.dtype == object else [float(scale) for scale in array.reshape(-1)]


def _by_scales(call: Call, scales: list[float], axes: list[int]) -> list[Change] | None:
    """None where a size of the result is not known."""
    changes = []
    for scale, axis in _each(scales, axes):
        size = call[0].shape[axis]
        # A product in f32, so that 0.7 of 10 are 7.
        product = np.float32(size if isinstance(size, int) else 0) * np.float32(scale)
        goal = _scaled(size, scale, float(product)) if isinstance(size, int) else _scaled_symbol(size, scale)
        if goal is None:
            return None
        changes.append(Change(axis, goal, scale, is_given=True))
    return changes


def _by_goals(call: Call, goals: list[Size], axes: list[int]) -> list[Change] | None:
    """None where a size of the result is not known."""
    given = [call[0].shape[axis] for _, axis in _each(goals, axes)]
    policy = call.attr("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        pairs = zip(axes, goals, given, strict=True)
        return [Change(axis, goal, _ratio(goal, size)) for axis, goal, size in pairs]
    scales = [_ratio(goal, size) for goal, size in zip(goals, given, strict=True)]
    known = [scale for scale in scales if scale is not None]
    if len(known) < len(scales):
        return None
    scale = min(known) if policy == "not_larger" else max(known)
    sized = zip(axes, given, strict=True)
    return [Change(axis, _scaled(size, scale, size * scale + 0.5), scale) for axis, size in sized]


def _each(given: Sequence[Any], axes: list[int]) -> list[tuple[Any, int]]:
    if len(given) != len(axes):
        raise InvalidModel(f"{len(given)} sizes or scales for {len(axes)} axes")
    return list(zip(given, axes, strict=True))


def _ratio(goal: Size, size: Size) -> float | None:
    return goal / max(size, 1) if isinstance(goal, int) and isinstance(size, int) else None


def _scaled(size: int, scale: float, product: float) -> int:
    """The size that a product of size and scale is cut to."""
    if not 0 <= size * scale <= LONGEST:
        raise InvalidModel(f"an axis of {size} elements resized by {scale}")
    return math.floor(product)


def _scaled_symbol(size: Size, scale: float) -> Size | None:
    """A symbolic size times a whole number, or by one; None for other scales."""
    if scale >= 1 and scale == int(scale):
        return size * int(scale)
    return sizes.divide(size, int(1 / scale)) if 0 < scale < 1 and 1 / scale == int(1 / scale) else None


def _resampled(
    call: Call, changes: list[Change] | None, places: Places, scales: int | None = None, goals: int | None = None
) -> Any:
    """x in another size, by the fast operators where they mean the same, along one axis after the other where all sizes
    are known, and else by the operator that takes every mode."""
    x = call[0]
    if changes is None:
        return _late_resize(call, places, scales, goals)
    shape = list(x.shape)
    for change in changes:
        shape[change.axis] = change.goal
    changes = [change for change in changes if not change.is_identity(x.shape[change.axis])]
    weighs = is_float(x.dtype) or places.mode == "nearest"
    plain = weighs and places.kind != "tf_crop_and_resize" and not call.attr("antialias", 0)
    if plain and _is_of_images(call, changes, places):
        ratios = [1.0, 1.0]
        for change in changes:
            ratios[change.axis - 2] = change.scale if change.scale is not None else 0.0
        attrs = {"align_corners": places.kind == "align_corners"} if places.mode != "nearest" else {}
        op = "upsample_nearest2d" if places.mode == "nearest" else "upsample_bilinear2d"
        return call.create(op, [x], size=shape[2:], scales=ratios, **attrs)
    if plain and all(isinstance(size, int) for change in changes for size in (x.shape[change.axis], change.goal)):
        for change in changes:
            x = _along(call, x, change, places)
        return x
    y = _late_resize(call, places, scales, goals)
    return y if list(y.shape) == shape else call.create("match_shape", [y], shape=shape)


def _is_of_images(call: Call, changes: list[Change], places: Places) -> bool:
    """Whether an operator of images means the same."""
    if not changes or len(call[0].shape) != 4 or any(change.axis < 2 for change in changes):
        return False
    if 0 in call[0].shape[2:] or any(_is_copied(change, call[0].shape[change.axis]) for change in changes):
        return False
    if places.mode == "nearest":
        grows = places.nearest == "ceil_to_shrink" and all((change.scale or 0) >= 1 for change in changes)
        floors = places.kind == "asymmetric" and (places.nearest == "floor" or grows)
        return floors and all(map(_picks_alike, changes))
    if places.mode not in ("linear", "bilinear") or call.attr("exclude_outside", 0):
        return False
    if places.kind == "pytorch_half_pixel":  # of a single pixel it is not what torch does
        return all(_is_above_one(change, call[0].shape[change.axis]) for change in changes)
    return places.kind in ("half_pixel", "align_corners")


def _is_copied(change: Change, size: Size) -> bool:
    """Whether the operators of images copy or double an axis that ONNX resizes by a scale which is not quite 1 or 2."""
    if change.scale is None or not isinstance(size, int) or change.goal not in (size, 2 * size):
        return False
    return change.scale * size != change.goal


def _is_above_one(change: Change, size: Size) -> bool:
    if isinstance(change.goal, int):
        return change.goal > 1
    return change.scale is not None and change.scale >= 2


# Results of which a scale is looked at: no image is larger.
_LARGEST = 1 << 16


def _picks_alike(change: Change) -> bool:
    """Whether the operator's places, products with the inverse in f32, pick the very entries."""
    if change.scale is None:
        return True
    kind = np.float32 if change.is_given else np.float64
    at = np.arange(_LARGEST)
    mine = np.floor(at.astype(np.float32) * np.float32(1 / change.scale))
    return bool(np.array_equal(mine, np.floor(at.astype(kind) / kind(change.scale))))


def _late_resize(call: Call, places: Places, scales: int | None, goals: int | None) -> Any:
    """By the operator that takes every mode, with scales and goals as values."""
    x = call[0]
    cropped = places.kind == "tf_crop_and_resize"
    return late(
        call,
        "resize_over",
        [
            x,
            call.optional(1) if cropped else None,
            None if scales is None else _scales(call, scales),
            None if goals is None else call[goals],
        ],
        len(x.shape),
        axes=call.axes(None, len(x.shape)) or [],
        mode=_mode(places),
        places=places.kind,
        rounding=places.nearest,
        antialias=bool(call.attr("antialias", 0)),
        cubic_coefficient=float(call.attr("cubic_coeff_a", -0.75)),
        exclude_outside=bool(call.attr("exclude_outside", 0)),
        outside=float(call.attr("extrapolation_value", 0.0)),
        policy=call.attr("keep_aspect_ratio_policy", "stretch"),
    )


def _mode(places: Places) -> str:
    return {"bilinear": "linear", "bicubic": "cubic"}.get(places.mode, places.mode)


def _scales(call: Call, index: int) -> Any:
    return call[index] if call.given(index) else call.constant(call.attr("scales"), "f32")


def _along(call: Call, x: Any, change: Change, places: Places) -> Any:
    axis, goal, size = change.axis, change.goal, x.shape[change.axis]
    assert isinstance(goal, int)
    scale = goal / max(size, 1) if change.scale is None else change.scale
    if goal > LONGEST or scale == 0:
        raise Unsupported(f"an axis of {size} resized to {goal} by {scale:g}; a size is at most {LONGEST}")
    a, outside = float(call.attr("cubic_coeff_a", -0.75)), bool(call.attr("exclude_outside", 0))
    read = _core.resampled(size, goal, scale, _mode(places), places.kind, places.nearest, a, outside, change.is_given)
    if places.mode == "nearest":
        return call.create("gather", [x, call.constant(read, "i64")], axis=axis)
    return along(call, x, axis, read)
