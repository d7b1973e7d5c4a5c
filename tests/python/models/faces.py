"""Photos with faces, and how well boxes of the same faces agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage import data
from skimage.transform import resize

from mtcnn import cascade

Array = NDArray[Any]


def rgb(gray: Array) -> NDArray[np.uint8]:
    """A photo of three channels from one of one."""
    return np.repeat(gray[..., np.newaxis], 3, axis=-1)


def hundred_faces() -> NDArray[np.uint8]:
    """100 faces of 25x25 pixels, each enlarged to 100x100, in 10 rows."""
    faces = np.stack([resize(face, (100, 100), order=1) for face in data.lfw_subset()[:100]])
    tiled = faces.reshape(10, 10, 100, 100).swapaxes(1, 2).reshape(1000, 1000)
    return rgb((tiled * 255).astype(np.uint8))


def other_photos() -> list[NDArray[np.uint8]]:
    """Two of people, two of none."""
    return [data.astronaut(), rgb(data.camera()), data.coffee(), data.chelsea()]


def overlaps(boxes: Array, others: Array) -> Array:
    """For each box, [x0, y0, x1, y1], the largest intersection over union with one of the others."""
    low = np.maximum(boxes[:, np.newaxis, :2], others[np.newaxis, :, :2])
    high = np.minimum(boxes[:, np.newaxis, 2:], others[np.newaxis, :, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=-1)
    area, other_area = (np.prod(group[:, 2:] - group[:, :2], axis=-1) for group in (boxes, others))
    ratio = common / (area[:, np.newaxis] + other_area - common)
    return np.asarray(ratio.max(axis=1, initial=0))


def seen_by(run: Sequence[cascade.Network], photos: Sequence[NDArray[np.uint8]]) -> list[list[Array]]:
    """What each network of the cascade is given for some photos."""
    seen: list[list[Array]] = [[] for _ in run]

    def noting(k: int) -> cascade.Network:
        def call(x: Array) -> Any:
            seen[k].append(x)
            return run[k](x)

        return call

    for photo in photos:
        cascade.detect(photo, *[noting(k) for k in range(len(run))])
    return seen
