"""Factors outside of the integers, for values whose channels differ much in size, and biases for weights that moved.

A layer y = W x may read x / s with weights W s (smoothing), and write y / f with weights W / f, where s and f are one
number a channel: with all channels of one size, integers of one scale lose little in each. What is float anyway before
and behind the layer multiplies by them. Between two layers, y = V relu(W x), V s relu(W / s x) is the same, and nothing
multiplies (cross-layer equalization).
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
_WORTH_BETWEEN = 0.9  # where it costs nothing
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
        self.count = 0

    def add(self, values: Array) -> None:
        """Takes in one sample's values, which are finite."""
        rows = np.moveaxis(values, self.axis, -1).reshape(-1, values.shape[self.axis])
        if rows.size == 0:
            return
        if self.count == 0:
            self.largest, self._sum, self._squares = np.zeros((3, rows.shape[1]))
        self.largest = np.maximum(self.largest, np.abs(rows).max(axis=0))
        self._sum += rows.sum(axis=0, dtype=np.float64)
        self._squares += np.einsum("rc,rc->c", rows, rows)
        self.count += rows.shape[0]

    @property
    def mean(self) -> Floats:
        """Of each channel."""
        return self._sum / max(self.count, 1)

    @property
    def power(self) -> Floats:
        """The mean square of each channel."""
        return self._squares / max(self.count, 1)


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
        elif all(_takes_factors(node, writer) for node in readers):
            weights = [by_columns(network.constant(node, 1)) for node in readers]
            _add(factors.before, value, _smoothing(channels[value], weights, steps))
    return factors


def _add(to: dict[str, Floats], value: str, found: Floats | None) -> None:
    if found is not None:
        to[value] = found


def _takes_factors(node: Node, writer: Node | None) -> bool:
    """A layer with weights; an input of the model is left as it is."""
    return node.role == "weights" and writer is not None


def by_columns(weight: Array) -> Floats:
    """[filters, channels that a filter reads, taps]."""
    return weight.reshape(weight.shape[0], weight.shape[1], -1).astype(np.float64)


def of_columns(s: Floats, weight: Array) -> Floats:
    """What each weight is multiplied by where what its layer reads is divided by `s`; layers in groups too."""
    groups = s.size // weight.shape[1]
    rows = np.repeat(s.reshape(groups, -1), weight.shape[0] // groups, axis=0)
    return rows.reshape(*rows.shape, *[1] * (weight.ndim - 2))


def _levelling(largest: Floats) -> Floats | None:
    """One size for all channels."""
    top = largest.max()
    factors = np.maximum(largest / top, 1 / _MOST_RATIO)
    return factors if np.mean(factors**2) < _WORTH else None


def _smoothing(channels: Channels, weights: Sequence[Floats], steps: int, worth: float = _WORTH) -> Floats | None:
    """The best of some ways to share the sizes of the channels between the values and the weights (SmoothQuant)."""
    of_values = np.maximum(channels.largest / channels.largest.max(), 1 / _MOST_RATIO)
    of_weights = np.max([_largest_of(w, of_values.size) for w in weights], axis=0)
    if not of_weights.any():
        return None
    of_weights = np.maximum(of_weights / of_weights.max(), 1 / _MOST_RATIO)
    tried = [of_values**share / of_weights ** (1 - share) for share in _SHARES]
    tried = [np.maximum(s / s.max(), 1 / _MOST_RATIO) for s in tried]
    best = min(tried, key=lambda s: _noise(channels, weights, s, steps))
    plain = _noise(channels, weights, np.ones_like(of_values), steps)
    return best if _noise(channels, weights, best, steps) < worth * plain else None


def _noise(channels: Channels, weights: Sequence[Floats], s: Floats, steps: int) -> float:
    """Power of what rounding x / s to so many steps, and W s to 8 bits, changes in the layers' results."""
    step = 2 * (channels.largest / s).max() / steps
    total = 0.0
    for w in weights:
        scaled = w * of_columns(s, w)
        from_values = float(np.sum(scaled**2)) * step**2
        of_weights = np.abs(scaled).max(axis=(1, 2)) / 127
        groups = s.size // w.shape[1]
        read = np.repeat((channels.power / s**2).reshape(groups, -1).sum(axis=1), w.shape[0] // groups)
        from_weights = float(of_weights**2 @ read) * w.shape[2]
        total += (from_values + from_weights) / 12
    return total


def _largest_of(w: Floats, channels: int) -> Floats:
    """The largest weight by which each channel is multiplied."""
    groups = channels // w.shape[1]
    largest: Floats = np.abs(w).reshape(groups, -1, *w.shape[1:]).max(axis=(1, 3)).reshape(-1)
    return largest


def between_layers(network: Network, choice: Choice) -> dict[str, Node]:
    """By value that layers alone read: the layer that writes it, by way of nothing but what factors pass."""
    out: dict[str, Node] = {}
    for value in choice.scale_of:
        readers = network.readers.get(value, [])
        if value in network.outputs or not readers or any(r.role != "weights" for r in readers):
            continue
        at = network.writer.get(value)
        while at is not None and at.role in ("rectify", "pool") and _is_read_once(network, at.operands[0]):
            at = network.writer.get(at.operands[0])
        if at is not None and at.role == "weights" and all(node.name in choice.nodes for node in (at, *readers)):
            out[value] = at
    return out


def _is_read_once(network: Network, value: str) -> bool:
    return len(network.readers.get(value, [])) == 1 and value not in network.outputs


def equalized_constants(
    network: Network, between: dict[str, Node], channels: dict[str, Channels], steps: int
) -> list[tuple[str, int, Array, None, None]]:
    """The float constants of layers whose values in between are divided by the factors found for them."""
    changed: dict[tuple[str, int], Floats] = {}

    def constant(node: Node, index: int) -> Floats:
        if (node.name, index) not in changed:
            changed[node.name, index] = network.constant(node, index).astype(np.float64)
        return changed[node.name, index]

    for value, writer in between.items():
        readers = network.readers[value]
        weights = [by_columns(network.constant(node, 1)) for node in readers]
        if not channels[value].largest.any():
            continue
        s = _smoothing(channels[value], weights, steps, _WORTH_BETWEEN)
        if s is None:
            continue
        weight = constant(writer, 1)
        changed[writer.name, 1] = weight / s.reshape(-1, *[1] * (weight.ndim - 1))
        if 2 in writer.constants:
            changed[writer.name, 2] = constant(writer, 2) / s
        for node in readers:
            changed[node.name, 1] = constant(node, 1) * of_columns(s, constant(node, 1))
    return [(name, index, array.astype(np.float32), None, None) for (name, index), array in changed.items()]


def bias_shift(weight: Array, moved: Floats, mean: Floats) -> Floats:
    """What a layer's results lose on average, by filter, where its weights became `moved`: to be added to its bias.

    mean: of each channel that it reads. Where a window hangs over the edge the channels are taken to go on.
    """
    lost = (by_columns(weight) - by_columns(moved)).sum(axis=2)
    groups = mean.size // lost.shape[1]
    of_groups = mean.reshape(groups, 1, -1)
    result: Floats = (lost.reshape(groups, -1, lost.shape[1]) * of_groups).sum(axis=2).reshape(-1)
    return result
