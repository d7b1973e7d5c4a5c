"""Constants of layers as integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetnn.importers.lowering.blocks import packed

Array = NDArray[Any]

# The largest integer of a bias that leaves room for the sums of its layer (passes/canonical/quantized.cpp).
_MOST_BIAS = 2.0**29
# Of a block's largest weight: what the largest integer may stand for.
_SHRINKS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75)


def weight_scales(weight: Array, most: int, bias: Array | None = None, input_scale: float = 1.0) -> Array:
    """One scale for each filter (axis 0), so that its largest weight is `most` and its bias an integer too."""
    rows = weight.reshape(weight.shape[0], -1).astype(np.float64)
    largest = np.abs(rows).max(axis=1, initial=0.0)
    scales: Array = largest / most
    if bias is not None:
        scales = np.maximum(scales, np.abs(bias.astype(np.float64)) / (_MOST_BIAS * input_scale))
    # A filter of nothing but zeros may have any scale.
    return np.where(scales > 0, scales, scales.max(initial=0.0) or 1.0)


def to_integers(weight: Array, scales: Array, most: int) -> Array:
    """To nearest even, the scales along axis 0; of the smallest type that holds `most`."""
    shaped = scales.reshape(-1, *[1] * (weight.ndim - 1)) if scales.size > 1 else scales.reshape([1] * weight.ndim)
    rounded = np.clip(np.rint(weight / shaped), -most, most)
    return np.asarray(rounded, np.int8 if most <= 127 else np.int16)


def block_scales(weight: Array, block: int, most: int) -> Array:
    """[filters, weights of a filter]: of each weight the scale of its block, that which changes the block least."""
    rows = weight.reshape(weight.shape[0], -1).astype(np.float64)
    length = rows.shape[1]
    padded = np.pad(rows, ((0, 0), (0, -length % block))).reshape(rows.shape[0], -1, block)
    largest = np.abs(padded).max(axis=2, keepdims=True)
    best, least = np.ones_like(largest), np.full_like(largest, np.inf)
    for shrink in _SHRINKS:
        scale = np.where(largest > 0, largest * shrink / most, 1.0)
        error = ((np.clip(np.rint(padded / scale), -most - 1, most) * scale - padded) ** 2).sum(axis=2, keepdims=True)
        best, least = np.where(error < least, scale, best), np.minimum(error, least)
    of_weights: Array = np.repeat(best[..., 0], block, axis=1)[:, :length]
    return of_weights


def in_blocks(op: str, rounded: Array, scales: Array, block: int) -> tuple[Array, None, Array | None]:
    """Weights of 4 bits as a layer of `op` keeps them: codes [filters, blocks, bytes] and a scale each block, or reals.

    `rounded`: what they stand for; `scales`: [filters, weights of a filter].
    """
    if op != "linear":
        return rounded.astype(np.float32), None, None
    codes = np.pad(np.rint(rounded / scales) + 8, ((0, 0), (0, -rounded.shape[1] % block)))
    return packed(codes.reshape(codes.shape[0], -1, block), 4), None, scales[:, ::block].astype(np.float32)
