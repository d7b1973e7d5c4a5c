"""Rounding of weights that knows what a layer reads: an error is made good by the weights that are rounded after it.

Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers", 2022, with the
moments of few samples shrunk towards uncorrelated ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]

# Moments of so many weights of a filter at most, from so many places of a sample at most.
MOST_WEIGHTS = 1600
_MOST_ROWS = 2000
_DAMPING = 0.01
_BLOCK = 64  # weights behind a block are told of its errors at once


class Moments:
    """Running second moments of what a filter reads: a window of `taps` (none: of a linear layer) in all channels.

    Windows are taken at stride 1 within the value: their moments are those of the layer's own, near enough.
    """

    def __init__(self, taps: tuple[int, ...]) -> None:
        self._taps = taps
        self._sum: Floats = np.zeros((0, 0))
        self._count = 0

    def add(self, values: Array) -> None:
        """Takes in one sample's values, which are finite."""
        if self._taps:
            if any(size < taps for size, taps in zip(values.shape[-2:], self._taps, strict=True)):
                return
            windows = np.lib.stride_tricks.sliding_window_view(values, self._taps, axis=(-2, -1))
            rows = windows.transpose(0, 2, 3, 1, 4, 5)
            places = rows.shape[0] * rows.shape[1] * rows.shape[2]
            chosen = np.arange(0, places, max(1, -(-places // _MOST_ROWS)))
            flat = rows[np.unravel_index(chosen, rows.shape[:3])].reshape(chosen.size, -1)
        else:
            flat = values.reshape(-1, values.shape[-1])
            flat = flat[:: max(1, -(-flat.shape[0] // _MOST_ROWS))]
        wide = flat.astype(np.float64)
        self._sum = wide.T @ wide + (self._sum if self._count else 0.0)
        self._count += flat.shape[0]

    def matrix(self, divided_by: Floats | None) -> Floats | None:
        """[weights, weights] of what is read divided by one number a channel; None where nothing was seen."""
        if self._count == 0:
            return None
        moments = self._sum / self._count
        size = moments.shape[0]
        diagonal = np.diag(np.diag(moments))
        trusted = self._count / (self._count + size)
        moments = trusted * moments + (1 - trusted) * diagonal
        if divided_by is not None:
            s = np.repeat(divided_by, size // divided_by.size)
            moments = moments / np.outer(s, s)
        damped: Floats = moments + np.eye(size) * max(_DAMPING * float(np.mean(np.diag(moments))), 1e-12)
        return damped


def round_weights(rows: Floats, moments: Floats, nearest: Callable[[Floats, int], Floats]) -> Floats:
    """The reals of rounded weights [filters, weights]; `nearest(column, k)` rounds the weights k of all filters."""
    upper = np.linalg.cholesky(np.linalg.inv(moments)).T
    left, out = rows.copy(), np.empty_like(rows)
    for start in range(0, rows.shape[1], _BLOCK):
        end = min(start + _BLOCK, rows.shape[1])
        errors = np.empty((rows.shape[0], end - start))
        for k in range(start, end):
            out[:, k] = nearest(left[:, k], k)
            errors[:, k - start] = (left[:, k] - out[:, k]) / upper[k, k]
            left[:, k + 1 : end] -= np.outer(errors[:, k - start], upper[k, k + 1 : end])
        left[:, end:] -= errors @ upper[start:end, end:]
    return out
