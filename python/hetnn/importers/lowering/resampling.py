"""Resizing along an axis as a product: what each entry of the input gives to each of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def triangle(apart: Array) -> Array:
    """Linear interpolation: the amount by the distance of an entry."""
    return np.asarray(np.maximum(1 - np.abs(apart), 0))


def cubic(apart: Array, a: float) -> Array:
    """Keys' kernel: the amount by the distance of an entry, four of which are not nothing."""
    x = np.abs(apart)
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def interpolation(
    at: Array, size: int, kernel: Callable[[Array], Array], reach: int, exclude_outside: bool = False
) -> Array:
    """[results, size] in the type of `at`, the places of the results: `reach` entries on each side of a place count.
    At the border the last entry stands for those outside, or they are left out and the others make up for them."""
    first, taps = np.floor(at), np.arange(1 - reach, 1 + reach)
    amounts = kernel((at - first)[:, None] - taps.astype(at.dtype))
    columns = (first[:, None] + taps).astype(np.int64)
    if exclude_outside:
        amounts = np.where((columns < 0) | (columns >= size), 0, amounts)
        amounts = amounts / amounts.sum(axis=1, keepdims=True)
    out = np.zeros((len(at), size), at.dtype)
    np.add.at(out, (np.arange(len(at))[:, None], np.clip(columns, 0, size - 1)), amounts)
    return out


def along(call: Any, x: Any, axis: int, shares: Array) -> Any:
    """x with `axis` resized by shares [results, size]: a product with a weight. `call`: a rule's, of any importer."""
    rank = len(x.shape)
    perm = [k for k in range(rank) if k != axis] + [axis]
    y = call.create("matmul", [call.create("permute", [x], perm=perm), call.constant(shares.T, x.dtype)])
    return call.create("permute", [y], perm=[perm.index(k) for k in range(rank)])
