"""The cascade around MTCNN's networks, in numpy: image pyramid, suppression of overlaps, refinement, landmarks.

The networks are three callables from one float32 array to a tuple of arrays, so torch modules and compiled executables
serve alike. The constants are those of the published detector.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Network = Callable[[Array], Sequence[Any]]

WINDOW = 12  # pixels that one output of P-Net sees, in each direction
STRIDE = 2  # pixels between two outputs of P-Net
SMALLEST_FACE = 20  # pixels
SCALE_STEP = 0.709  # between two levels of the pyramid
THRESHOLDS = (0.6, 0.7, 0.7)  # least probability after P-Net, R-Net and O-Net


@dataclass(frozen=True)
class Faces:
    """What was found, most probable first, and how many candidates went through each stage."""

    boxes: Array  # [n,4]: left, top, right, bottom in pixels
    probabilities: Array  # [n]
    landmarks: Array  # [n,5,2]: eyes, nose, corners of the mouth as (x, y) in pixels
    candidates: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.boxes)


def pyramid_scales(height: int, width: int) -> list[float]:
    """The scales at which P-Net looks, from the smallest face to the whole image."""
    scale = WINDOW / SMALLEST_FACE
    side = min(height, width) * scale
    scales = []
    while side >= WINDOW:
        scales.append(scale)
        scale *= SCALE_STEP
        side *= SCALE_STEP
    return scales


def _mean_over_bins(values: NDArray[np.float64], axis: int, bins: int) -> NDArray[np.float64]:
    """Averages `axis` over `bins` equal stretches; pixels that a border cuts count fully in both."""
    size = values.shape[axis]
    begin = np.arange(bins) * size // bins
    end = -(-np.arange(1, bins + 1) * size // bins)
    sums = np.cumsum(values, axis=axis)
    sums = np.concatenate([np.zeros_like(sums.take([0], axis)), sums], axis=axis)
    counts = (end - begin).reshape([-1 if k == axis else 1 for k in range(values.ndim)])
    means: NDArray[np.float64] = (sums.take(end, axis) - sums.take(begin, axis)) / counts
    return means


def resize_by_area(image: NDArray[Any], height: int, width: int) -> Array:
    """`image` [H,W,3] as float32 [height,width,3], each pixel the mean of the area it covers."""
    rows = _mean_over_bins(np.asarray(image, np.float64), 0, height)
    return _mean_over_bins(rows, 1, width).astype(np.float32)


def normalize(pixels: Array) -> Array:
    """Pixels [...,H,W,3] from 0..255 to about -1..1, channels first."""
    return np.ascontiguousarray(np.moveaxis((pixels - np.float32(127.5)) * np.float32(0.0078125), -1, -3))


def suppress_overlaps(boxes: Array, scores: Array, threshold: float, smaller_area: bool = False) -> NDArray[np.int64]:
    """Indices of the boxes to keep, best first: each one drops later boxes that overlap it by more than `threshold`.

    The overlap is intersection over union of continuous areas; with `smaller_area`, intersection over the smaller box,
    in whole pixels (both ends count), as the last stage has it.
    """
    extra = np.float32(1 if smaller_area else 0)
    left, top, right, bottom = boxes.T
    areas = (right - left + extra) * (bottom - top + extra)
    left_over = np.argsort(-scores, kind="stable")
    kept = []
    while left_over.size:
        best, left_over = left_over[0], left_over[1:]
        kept.append(best)
        wide = np.minimum(right[best], right[left_over]) - np.maximum(left[best], left[left_over]) + extra
        high = np.minimum(bottom[best], bottom[left_over]) - np.maximum(top[best], top[left_over]) + extra
        shared = np.maximum(wide, 0) * np.maximum(high, 0)
        pair = areas[best], areas[left_over]
        whole = np.minimum(*pair) if smaller_area else pair[0] + pair[1] - shared
        left_over = left_over[shared <= threshold * whole]
    return np.asarray(kept, np.int64)


def windows_above(correction: Array, probability: Array, scale: float, threshold: float) -> tuple[Array, Array, Array]:
    """The windows of one pyramid level that may hold a face: boxes [n,4] in the image, scores [n], corrections [n,4].

    `correction` [4,h,w] and `probability` [h,w] are what P-Net says of each window.
    """
    row, column = np.nonzero(probability >= np.float32(threshold))
    corner = np.stack([column, row], axis=1).astype(np.float32) * STRIDE
    factor = np.float32(scale)
    boxes = np.concatenate([np.floor((corner + 1) / factor), np.floor((corner + WINDOW) / factor)], axis=1)
    return boxes, probability[row, column], correction[:, row, column].T


def shift(boxes: Array, correction: Array, extra: float) -> Array:
    """Moves each edge by its correction, in units of the box's side plus `extra` pixels."""
    sides = boxes[:, 2:] - boxes[:, :2] + np.float32(extra)
    moved: Array = boxes + correction * np.tile(sides, 2)
    return moved


def square(boxes: Array) -> Array:
    """The smallest squares around the same centres."""
    sides = boxes[:, 2:] - boxes[:, :2]
    longest = sides.max(axis=1, keepdims=True)
    corner = boxes[:, :2] + sides * np.float32(0.5) - longest * np.float32(0.5)
    return np.concatenate([corner, corner + longest], axis=1)


def crops(image: NDArray[Any], boxes: Array, side: int) -> tuple[Array, NDArray[np.bool_]]:
    """The part of the image in each box, resized to `side`, normalized: [n,3,side,side]; and which boxes had any.

    Boxes count pixels from 1, both ends included; what hangs over the edge of the image is left out.
    """
    height, width = image.shape[:2]
    whole = np.trunc(boxes).astype(np.int64)
    left, top = np.maximum(whole[:, 0], 1) - 1, np.maximum(whole[:, 1], 1) - 1
    right, bottom = np.minimum(whole[:, 2], width), np.minimum(whole[:, 3], height)
    inside = (right > left) & (bottom > top)
    parts = [resize_by_area(image[top[k] : bottom[k], left[k] : right[k]], side, side) for k in np.flatnonzero(inside)]
    pixels = np.stack(parts) if parts else np.zeros((0, side, side, 3), np.float32)
    return normalize(pixels), inside


def _arrays(outputs: Sequence[Any]) -> list[Array]:
    return [np.asarray(output, np.float32) for output in outputs]


def _propose(image: NDArray[Any], pnet: Network) -> tuple[Array, Array]:
    """P-Net over the pyramid: squares [n,4] and scores [n]."""
    height, width = image.shape[:2]
    levels = []
    for scale in pyramid_scales(height, width):
        level = normalize(resize_by_area(image, math.floor(height * scale + 1), math.floor(width * scale + 1)))
        correction, probability = _arrays(pnet(level[np.newaxis]))
        boxes, scores, corrections = windows_above(correction[0], probability[0, 1], scale, THRESHOLDS[0])
        kept = suppress_overlaps(boxes, scores, 0.5)
        levels.append((boxes[kept], scores[kept], corrections[kept]))
    if not levels:
        return np.zeros((0, 4), np.float32), np.zeros(0, np.float32)
    boxes, scores, corrections = (np.concatenate(parts) for parts in zip(*levels, strict=True))
    kept = suppress_overlaps(boxes, scores, 0.7)
    return square(shift(boxes[kept], corrections[kept], extra=0)), scores[kept]


def detect(image: NDArray[np.uint8], pnet: Network, rnet: Network, onet: Network) -> Faces:
    """The faces in an RGB image [H,W,3] of bytes."""
    if image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(f"expected an RGB image [height,width,3]; got an array of shape {list(image.shape)}")
    boxes, scores = _propose(image, pnet)
    candidates = {"P-Net": len(boxes), "R-Net": 0, "O-Net": 0}
    landmarks = np.zeros((0, 5, 2), np.float32)

    if len(boxes):
        batch, inside = crops(image, boxes, 24)
        correction, probability = _arrays(rnet(batch))
        passed = probability[:, 1] > THRESHOLDS[1]
        boxes, scores, correction = boxes[inside][passed], probability[passed, 1], correction[passed]
        kept = suppress_overlaps(boxes, scores, 0.7)
        boxes, scores = square(shift(boxes[kept], correction[kept], extra=1)), scores[kept]
        candidates["R-Net"] = len(boxes)

    if len(boxes):
        batch, inside = crops(image, boxes, 48)
        correction, points, probability = _arrays(onet(batch))
        passed = probability[:, 1] > THRESHOLDS[2]
        boxes, scores, correction, points = (
            boxes[inside][passed],
            probability[passed, 1],
            correction[passed],
            points[passed],
        )
        sides = boxes[:, 2:] - boxes[:, :2] + 1
        landmarks = points.reshape(-1, 2, 5).transpose(0, 2, 1) * sides[:, None] + boxes[:, None, :2] - 1
        boxes = shift(boxes, correction, extra=1)
        kept = suppress_overlaps(boxes, scores, 0.7, smaller_area=True)
        boxes, scores, landmarks = boxes[kept], scores[kept], landmarks[kept]
        candidates["O-Net"] = len(boxes)

    return Faces(boxes, scores, landmarks, candidates)
