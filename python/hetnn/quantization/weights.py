"""Constants of layers as integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def _in_halves(scales: Array) -> Array:
    """The scales rounded to f16, which takes half of the bytes of f32, where all are normal there; else as they are."""
    halves = np.finfo(np.float16)
    if np.all((scales >= float(halves.smallest_normal)) & (scales <= float(halves.max))):
        return scales.astype(np.float16).astype(scales.dtype)
    return scales


def block_scales(weight: Array, block: int, most: int) -> Array:
    """[filters, weights of a filter]: of each weight the scale of its block, that which changes the block least."""
    rows = weight.reshape(weight.shape[0], -1).astype(np.float64)
    length = rows.shape[1]
    padded = np.pad(rows, ((0, 0), (0, -length % block))).reshape(rows.shape[0], -1, block)
    largest = np.abs(padded).max(axis=2, keepdims=True)
    best, least = np.ones_like(largest), np.full_like(largest, np.inf)
    for shrink in _SHRINKS:
        scale = _in_halves(np.where(largest > 0, largest * shrink / most, 1.0))
        error = ((np.clip(np.rint(padded / scale), -most - 1, most) * scale - padded) ** 2).sum(axis=2, keepdims=True)
        best, least = np.where(error < least, scale, best), np.minimum(error, least)
    of_weights: Array = np.repeat(best[..., 0], block, axis=1)[:, :length]
    return of_weights


def codes_of(rounded: Array, scales: Array, block: int) -> tuple[Array, Array]:
    """Weights of a few bits as codes [filters, weights of a filter] and the scale of each block of them.

    `rounded`: what they stand for, of any shape with a filter each; `scales`: [filters, weights of a filter].
    """
    codes = np.rint(rounded.reshape(scales.shape) / scales).astype(np.int8)
    return codes, scales[:, ::block].astype(np.float32)
