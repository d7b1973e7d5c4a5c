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
_TOGETHER = 16  # places of a sample, which go together, say as much as one of another
_BLOCK = 64  # weights of a block are told of the errors before it at once
_AT_ONCE = 1000  # so many rows are multiplied together


class Moments:
    """Running second moments of what a filter reads: a window of `taps` (none: of a linear layer) in all channels.

    Windows are taken at stride 1 within the value: their moments are those of the layer's own, near enough.
    """

    def __init__(self, taps: tuple[int, ...]) -> None:
        self._taps = taps
        self._waiting: list[Array] = []
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
        self._waiting.append(flat.astype(np.float64))
        if sum(len(each) for each in self._waiting) >= _AT_ONCE:
            self._multiply()

    def _multiply(self) -> None:
        if self._waiting:
            rows = np.concatenate(self._waiting)
            self._waiting.clear()
            self._sum = rows.T @ rows + (self._sum if self._count else 0.0)
            self._count += len(rows)

    def factor(self, divided_by: Floats | None) -> Floats | None:
        """Upper triangle R, [weights, weights]: R R' are the moments of what is read, divided by one number a channel.

        None where nothing was seen.
        """
        self._multiply()
        if self._count == 0:
            return None
        moments = self._sum / self._count
        size = moments.shape[0]
        diagonal = np.diag(np.diag(moments))
        trusted = self._count / (self._count + _TOGETHER * size)
        moments = trusted * moments + (1 - trusted) * diagonal
        if divided_by is not None:
            s = np.repeat(divided_by, size // divided_by.size)
            moments = moments / np.outer(s, s)
        moments += np.eye(size) * max(_DAMPING * float(np.mean(np.diag(moments))), 1e-12)
        upper: Floats = np.ascontiguousarray(np.linalg.cholesky(moments[::-1, ::-1])[::-1, ::-1])
        return upper


def round_weights(rows: Floats, factor: Floats, nearest: Callable[[Floats, int], Floats]) -> Floats:
    """The reals of rounded weights [filters, weights]; `nearest(column, k)` rounds the weights k of all filters.

    The square of what the layer's result is off by is that of R' e, e being the errors: place k of it is settled by the
    errors up to k, so weight k is rounded to where that place is smallest. It is GPTQ's rounding without an inverse.
    """
    columns = np.ascontiguousarray(rows.T)
    errors = np.zeros_like(columns)
    for start in range(0, len(columns), _BLOCK):
        end = min(start + _BLOCK, len(columns))
        before = factor[:start, start:end].T @ errors[:start]
        for k in range(start, end):
            owed = (before[k - start] + factor[start:k, k] @ errors[start:k]) / factor[k, k]
            errors[k] = columns[k] - nearest(columns[k] + owed, k)
    return np.ascontiguousarray((columns - errors).T)
