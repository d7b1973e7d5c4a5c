"""Sparse constants of a TFLite file made dense."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Level:
    """An axis in the order in which values lie: all its entries, or those of each run of the level before.

    Run k has the entries `indices[segments[k]:segments[k + 1]]`.
    """

    size: int
    segments: Array | None = None
    indices: Array | None = None


def densified(
    values: Array,
    shape: Sequence[int],
    order: Sequence[int],
    block_map: Sequence[int],
    levels: Sequence[Level],
    most: int,
) -> Array:
    """The tensor of these values, zero elsewhere.

    `order` has the axis of each level; those behind the tensor's own are blocks, of the axes in `block_map`.
    InvalidModel for what is no such tensor, or where a level has more than `most` places.
    """
    if sorted(order) != list(range(len(shape) + len(block_map))) or len(levels) != len(order):
        raise InvalidModel(f"{len(levels)} levels in the order {list(order)[:9]} of a tensor of rank {len(shape)}")
    if any(not 0 <= axis < len(shape) for axis in block_map) or len(set(block_map)) < len(block_map):
        raise InvalidModel(f"blocks of the axes {list(block_map)} of a tensor of rank {len(shape)}")
    coordinates: list[Array] = []
    count = 1
    for level in levels:
        parents, entries = _entries(level, count, most)
        coordinates = [each[parents] for each in coordinates] + [entries]
        count = len(entries)
    if count != values.size:
        raise InvalidModel(f"{values.size} values for {count} places")
    by_axis = dict(zip(order, coordinates, strict=True))
    sizes = dict(zip(order, (level.size for level in levels), strict=True))
    places = [by_axis[axis] for axis in range(len(shape))]
    for k, axis in enumerate(block_map):
        places[axis] = places[axis] * sizes[len(shape) + k] + by_axis[len(shape) + k]
    if any(each.size and not 0 <= each.min() <= each.max() < size for each, size in zip(places, shape, strict=True)):
        raise InvalidModel(f"values outside of {list(shape)}")
    dense = np.zeros(math.prod(shape), values.dtype)
    dense[np.ravel_multi_index(tuple(places), tuple(shape))] = values
    return dense.reshape(shape)


def _entries(level: Level, count: int, most: int) -> tuple[Array, Array]:
    """Of each place of a level: which one of the level before it lies in, and its index."""
    if level.segments is None or level.indices is None:
        if level.size < 0 or count * level.size > most:
            raise InvalidModel(f"a level of {level.size} entries in each of {count} places")
        return np.repeat(np.arange(count), level.size), np.tile(np.arange(level.size), count)
    segments, indices = level.segments.astype(np.int64), level.indices.astype(np.int64)
    lengths = np.diff(segments)
    if len(segments) != count + 1 or segments[0] != 0 or segments[-1] != len(indices) or lengths.min(initial=0) < 0:
        raise InvalidModel(f"{len(segments)} ends of {len(indices)} indices in {count} places")
    return np.repeat(np.arange(count), lengths), indices
