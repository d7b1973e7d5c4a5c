"""Statistics of a value over samples, and calibrators: from them to the range that integers shall cover."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Range = tuple[float, float]

BINS = 4096  # over [-reach, reach]: 2048 on each side of 0


_ENOUGH = 1e5  # numbers whose extremes are taken to be those of all


def margin(count: int) -> float:
    """By how much extremes of so few numbers are to be exceeded by those of many, were they normal; 1 for many."""
    seen = max(count, 3)
    return float(np.sqrt(np.log(max(seen, _ENOUGH)) / np.log(seen)))


class Statistics:
    """Running least and greatest number, sums, and a histogram whose reach doubles when a sample goes beyond it."""

    def __init__(self) -> None:
        self.count = 0
        self.low, self.high = np.inf, -np.inf
        self.squares = 0.0  # sum of x^2
        self.reach = 0.0
        self.bins = np.zeros(BINS, np.int64)
        self.finite = True

    def add(self, values: NDArray[np.float32]) -> None:
        """Takes in one sample's values."""
        if values.size == 0:
            return
        low, high = float(values.min()), float(values.max())
        if not np.isfinite(low) or not np.isfinite(high):  # NaN spreads into both
            self.finite = False
            return
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.count += values.size
        flat = values.reshape(-1)
        self.squares += float(np.vdot(flat, flat)) if abs(high - low) < 1e15 else np.inf
        self._extend(max(abs(low), abs(high)))
        if self.reach == 0:
            self.bins[BINS // 2] += values.size
            return
        places = ((flat + np.float32(self.reach)) * np.float32(BINS / 2 / self.reach)).astype(np.intp)
        found = np.bincount(places, minlength=BINS + 1)
        found[BINS - 1] += found[BINS]  # the end itself
        self.bins += found[:BINS]

    def _extend(self, reach: float) -> None:
        if self.reach == 0:
            self.bins, zeros = np.zeros(BINS, np.int64), int(self.bins.sum())
            self.bins[BINS // 2] = zeros
            self.reach = reach
        while self.reach < reach:  # two bins become one, about the middle
            middle = self.bins.reshape(BINS // 2, 2).sum(axis=1)
            self.bins = np.zeros(BINS, np.int64)
            self.bins[BINS // 4 : BINS // 4 + BINS // 2] = middle
            self.reach *= 2

    @property
    def centres(self) -> Floats:
        """The middles of the histogram's bins."""
        return (np.arange(BINS, dtype=np.float64) + 0.5) * (2 * self.reach / BINS) - self.reach

    def share_beyond(self, low: float, high: float) -> float:
        """Of the numbers, those outside a range."""
        centres, width = self.centres, self.reach / BINS
        beyond = self.bins[(centres + width < low) | (centres - width > high)].sum()
        return float(beyond / max(self.count, 1))

    def noise_db(self, low: float, high: float, steps: int = 255) -> float:
        """Power of the numbers over that of what rounding them to a range's steps changes, in dB."""
        noise = _error(self, low, high, steps) / max(self.count, 1)
        signal = self.squares / max(self.count, 1)
        return float(10 * np.log10(max(signal, 1e-300) / max(noise, 1e-300)))


def _error(statistics: Statistics, low: float, high: float, steps: int) -> float:
    """Sum of squares that rounding to so many steps of a range, and cutting what is beyond it, adds."""
    step = (high - low) / steps
    if step <= 0:
        return statistics.squares
    seen = statistics.bins > 0
    centres, bins = statistics.centres[seen], statistics.bins[seen]
    beyond = np.maximum(low - centres, 0) + np.maximum(centres - high, 0)
    return float(bins @ np.where(beyond > 0, beyond**2, step**2 / 12))


def minmax(statistics: Statistics, steps: int) -> Range:
    """All that was seen."""
    return statistics.low, statistics.high


def percentile(statistics: Statistics, steps: int, share: float = 0.9999) -> Range:
    """The middle part of what was seen that holds this share of the numbers."""
    total = np.cumsum(statistics.bins)
    tail = (1 - share) / 2 * total[-1]
    edges = np.arange(BINS + 1) * (2 * statistics.reach / BINS) - statistics.reach
    low = float(edges[int(np.searchsorted(total, tail, side="right"))])
    high = float(edges[int(np.searchsorted(total, total[-1] - tail, side="left")) + 1])
    return max(low, statistics.low), min(high, statistics.high)


def mse(statistics: Statistics, steps: int) -> Range:
    """The range whose rounding and cutting together change the numbers least, in squares."""
    low, high = min(statistics.low, 0.0), max(statistics.high, 0.0)
    shares = np.geomspace(1, 0.05, 60)
    for _ in range(2):  # one end, then the other
        high = min((high * float(s) for s in shares), key=lambda end: _error(statistics, low, end, steps))
        low = min((low * float(s) for s in shares), key=lambda end: _error(statistics, end, high, steps))
    return low, high


def entropy(statistics: Statistics, steps: int) -> Range:
    """The range in which the distribution of the rounded numbers tells most of that of the numbers (KL divergence).

    As calibration for TensorRT has it: ends move inwards together, what is cut off counts at the ends, and zeros, which
    every range holds exactly, count as often as their neighbours.
    """
    low, high = min(statistics.low, 0.0), max(statistics.high, 0.0)
    widest = max(-low, high)
    levels = min(steps, 255) + 1
    bins = statistics.bins.astype(np.float64)
    middle = slice(BINS // 2 - 1, BINS // 2 + 1)
    bins[middle] = np.minimum(bins[middle], [bins[BINS // 2 - 2], bins[BINS // 2 + 1]])
    best, found = np.inf, widest
    for share in np.linspace(1, 0.2, 48):
        bound = widest * share
        divergence = _divergence(bins, statistics.centres, max(low, -bound), min(high, bound), levels)
        if divergence < best:
            best, found = divergence, bound
    return max(low, -found), min(high, found)


def _divergence(bins: Floats, centres: Floats, low: float, high: float, levels: int) -> float:
    inside = np.flatnonzero((centres >= low) & (centres <= high))
    if inside.size < 2:
        return np.inf
    kept = bins[inside]
    reference = kept.copy()
    reference[0] += bins[: inside[0]].sum()
    reference[-1] += bins[inside[-1] + 1 :].sum()
    level = np.minimum(np.arange(inside.size) * levels // inside.size, levels - 1)
    sums, seen = np.bincount(level, kept, levels), np.bincount(level, kept > 0, levels)
    rounded = np.where(kept > 0, (sums / np.maximum(seen, 1))[level], 0)
    p = reference / max(reference.sum(), 1)
    q = rounded / max(rounded.sum(), 1)
    at = p > 0
    return float(np.sum(p[at] * np.log(p[at] / np.maximum(q[at], 1e-9))))


CALIBRATORS: dict[str, Callable[[Statistics, int], Range]] = {
    "minmax": minmax,
    "percentile": percentile,
    "mse": mse,
    "entropy": entropy,
}
