"""Constants of layers as integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# The largest integer of a bias that leaves room for the sums of its layer (passes/canonical/quantized.cpp).
_MOST_BIAS = 2.0**29


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
    """To nearest even, the scales along axis 0."""
    shaped = scales.reshape(-1, *[1] * (weight.ndim - 1)) if scales.size > 1 else scales.reshape([1] * weight.ndim)
    return np.clip(np.rint(weight / shaped), -most, most).astype(np.int8)
