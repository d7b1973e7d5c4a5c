"""Factors outside of the integers, for values whose channels differ much in size, and biases for weights that moved.

A layer y = W x may read x / s with weights W s (smoothing), and write y / f with weights W / f, where s and f are one
number a channel: with all channels of one size, integers of one scale lose little in each. What is float anyway before
and behind the layer multiplies by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetnn.quantization.network import Choice, Network, Node

Array = NDArray[Any]
Floats = NDArray[np.float64]

# The noise power that factors must take away to be worth a product each, and the greatest ratio between two of them.
_WORTH = 0.5
_MOST_RATIO = 1e4
_STEPS = 255
_SHARES = (0.0, 0.25, 0.4, 0.5, 0.6, 0.75, 1.0)


class Channels:
    """Running figures of each channel of a value; `axis` counts from the back."""

    def __init__(self, axis: int) -> None:
        self.axis = axis
        self.largest: Floats = np.zeros(0)
        self._sum: Floats = np.zeros(0)
        self._squares: Floats = np.zeros(0)
        self._count = 0

    def add(self, values: Array) -> None:
        """Takes in one sample's values, which are finite."""
        rows = np.moveaxis(values, self.axis, -1).reshape(-1, values.shape[self.axis])
        if rows.size == 0:
            return
        if self._count == 0:
            self.largest, self._sum, self._squares = np.zeros((3, rows.shape[1]))
        self.largest = np.maximum(self.largest, np.abs(rows).max(axis=0))
        self._sum += rows.sum(axis=0, dtype=np.float64)
        self._squares += np.einsum("rc,rc->c", rows, rows)
        self._count += rows.shape[0]

    @property
    def mean(self) -> Floats:
        """Of each channel."""
        return self._sum / max(self._count, 1)

    @property
    def margin(self) -> float:
        """By how much a hundred times as many rows would likely go beyond the largest, as normal ones would.

        Where all channels fill the range, each of them is as likely to be cut off by it as its own few numbers say.
        """
        rows = np.log(max(self._count, 3))
        return float(np.sqrt((rows + np.log(100)) / rows))

    @property
    def power(self) -> Floats:
        """The mean square of each channel."""
        return self._squares / max(self._count, 1)


@dataclass
class Factors:
    """By value: `before` is the s of what layers read, `after` the f of what a layer writes, one number a channel."""

    before: dict[str, Floats] = field(default_factory=dict)
    after: dict[str, Floats] = field(default_factory=dict)

    def of(self, value: str) -> Floats | None:
        """What a value is divided by where it becomes integers."""
        found = self.before.get(value)
        return self.after.get(value) if found is None else found


def shaped(factors: Floats, axis: int) -> NDArray[np.float32]:
    """So that they broadcast over a value whose channels are `axis`, from the back."""
    return factors.astype(np.float32).reshape(-1, *[1] * (-axis - 1))


def channels_of(network: Network, choice: Choice) -> dict[str, Channels]:
    """Of everything that layers with weights read, and of what they write for others."""
    out: dict[str, Channels] = {}
    for node in choice.nodes.values():
        if node.role == "weights":
            axis = network.channel_axis(node)
            out.setdefault(node.operands[0], Channels(axis))
            if node.outputs[0] in choice.scale_of:
                out.setdefault(node.outputs[0], Channels(axis))
    return out


def find_factors(network: Network, choice: Choice, channels: dict[str, Channels], steps: int) -> Factors:
    """Those that take away at least half of the noise of a value, as far as it can be told without running.

    steps: of the integers of values. Where these are far more than weights have, results need no factors.
    """
    factors = Factors()
    sizes = {first: len(group) for first, group in choice.groups().items()}
    for value, first in choice.scale_of.items():
        if value not in channels or sizes[first] > 1 or not channels[value].largest.any():
            continue
        writer = network.writer.get(value)
        readers = [node for node in network.readers.get(value, []) if node.name in choice.nodes]
        if writer is not None and writer.name in choice.nodes:
            if writer.role == "weights" and not readers and steps <= _STEPS:
                _add(factors.after, value, _levelling(channels[value].largest))
        elif all(_takes_factors(network, node, value, writer) for node in readers):
            weights = [by_columns(network.constant(node, 1)) for node in readers]
            _add(factors.before, value, _smoothing(channels[value], weights, steps))
    return factors


def _add(to: dict[str, Floats], value: str, found: Floats | None) -> None:
    if found is not None:
        to[value] = found


def _takes_factors(network: Network, node: Node, value: str, writer: Node | None) -> bool:
    """A layer without groups that reads nothing but this; an input of the model is left as it is."""
    if node.role != "weights" or writer is None:
        return False
    weight = network.constant(node, 1)
    return bool(weight.shape[1] > 1 or weight.ndim == 2)


def by_columns(weight: Array) -> Floats:
    """[filters, channels, taps]."""
    return weight.reshape(weight.shape[0], weight.shape[1], -1).astype(np.float64)


def _levelling(largest: Floats) -> Floats | None:
    """One size for all channels."""
    top = largest.max()
    factors = np.maximum(largest / top, 1 / _MOST_RATIO)
    return factors if np.mean(factors**2) < _WORTH else None


def _smoothing(channels: Channels, weights: Sequence[Floats], steps: int) -> Floats | None:
    """The best of some ways to share the sizes of the channels between the values and the weights (SmoothQuant)."""
    of_values = np.maximum(channels.largest / channels.largest.max(), 1 / _MOST_RATIO)
    of_weights = np.max([np.abs(w).max(axis=(0, 2)) for w in weights], axis=0)
    if of_weights.shape != of_values.shape or not of_weights.any():  # a layer in groups
        return None
    of_weights = np.maximum(of_weights / of_weights.max(), 1 / _MOST_RATIO)
    tried = [of_values**share / of_weights ** (1 - share) for share in _SHARES]
    tried = [np.maximum(s / s.max(), 1 / _MOST_RATIO) for s in tried]
    best = min(tried, key=lambda s: _noise(channels, weights, s, steps))
    plain = _noise(channels, weights, np.ones_like(of_values), steps)
    return best if _noise(channels, weights, best, steps) < _WORTH * plain else None


def _noise(channels: Channels, weights: Sequence[Floats], s: Floats, steps: int) -> float:
    """Power of what rounding x / s to so many steps, and W s to 8 bits, changes in the layers' results."""
    step = 2 * (channels.largest / s).max() / steps
    total = 0.0
    for w in weights:
        scaled = w * s[None, :, None]
        from_values = float(np.sum(scaled**2)) * step**2
        of_weights = np.abs(scaled).max(axis=(1, 2)) / 127
        from_weights = float(np.sum(of_weights**2)) * w.shape[2] * float(np.sum(channels.power / s**2))
        total += (from_values + from_weights) / 12
    return total


def bias_shift(weight: Array, moved: Floats, mean: Floats) -> Floats:
    """What a layer's results lose on average, by filter, where its weights became `moved`: to be added to its bias.

    mean: of each channel that it reads. Where a window hangs over the edge the channels are taken to go on.
    """
    lost = (by_columns(weight) - by_columns(moved)).sum(axis=2)
    groups = mean.size // lost.shape[1]
    of_groups = mean.reshape(groups, 1, -1)
    result: Floats = (lost.reshape(groups, -1, lost.shape[1]) * of_groups).sum(axis=2).reshape(-1)
    return result
