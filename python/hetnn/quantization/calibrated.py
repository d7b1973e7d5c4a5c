"""A float network and what samples showed of it: from these, graphs of fewer bits and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetnn import _core
from hetnn.api import compile
from hetnn.errors import InvalidModel
from hetnn.executable import Executable
from hetnn.importers import Imported
from hetnn.progress import announce
from hetnn.quantization.equalize import (
    Channels,
    Factors,
    between_layers,
    bias_shift,
    channels_of,
    equalized_constants,
    find_factors,
    of_columns,
    shaped,
)
from hetnn.quantization.network import Choice, Network, Node, choose, layers_of
from hetnn.quantization.observe import Noise, Observed, compare
from hetnn.quantization.ranges import CALIBRATORS, Range, Statistics, margin
from hetnn.quantization.rounding import MOST_WEIGHTS, Moments, round_weights
from hetnn.quantization.samples import Array, Sample, read_samples
from hetnn.quantization.schemes import Scale, Scheme, scale_over
from hetnn.quantization.weights import block_scales, codes_of, to_integers, weight_scales

# Samples that noise is measured on.
_MEASURED = 8
_LARGEST_F16 = 65504.0
# So far below the least score lies what is hidden: e^-8 is no half step of shares.
_HIDDEN_BELOW = 8.0

# A layer, which of its inputs, the array, what the integers of it stand for, and what those of blocks do.
Constant = tuple[str, int, Array, "list[float] | None", "tuple[Array, int] | None"]


@dataclass(frozen=True)
class Settings:
    """What the caller of `hetnn.quantize` asked for."""

    scheme: Scheme
    calibrator: str
    functions: bool
    real_sums: bool  # whether what layers write may stay real: of accelerators it is what they write
    rows: frozenset[str]  # operators of rows that the target's accelerators have for integers
    equalize: bool
    correct_bias: bool
    adapt_rounding: bool


class Calibrated:
    """Made once for a model: `observe` sees the samples, `graph` and `noise` may then be asked for many choices."""

    def __init__(
        self,
        imported: Imported,
        network: Network,
        settings: Settings,
        kept: Mapping[str, str],
        threads: int | None,
    ) -> None:
        self.network = network
        self.settings = settings
        self.kept_float = dict(kept)
        self.statistics: dict[str, Statistics] = {}
        self.scales: dict[str, Scale] = {}
        self.count = 0
        self._imported = imported
        self._threads = threads
        self._channels: dict[str, Channels] = {}
        self._moments: dict[tuple[str, tuple[int, ...]], Moments] = {}
        self._moment_factors: dict[tuple[str, tuple[int, ...]], Array | None] = {}
        self._rounded_weights: dict[str, tuple[list[Constant], Noise]] = {}
        self._factors = Factors()
        self._samples: list[Sample] = []

    def choice(self, keep_float: Collection[str] = ()) -> Choice:
        """What becomes integers where these nodes stay float, besides those that do anyway."""
        kept = {*self.kept_float, *keep_float}
        scheme = self.settings.scheme
        if scheme.values is not None:
            settings = self.settings
            return choose(self.network, kept, settings.functions, settings.rows, settings.real_sums)
        if scheme.narrow is not None:
            return Choice({node.name: node for node in self.network.nodes if node.name not in kept})
        layers = layers_of(self.network, kept)
        return Choice({name: node for name, node in layers.items() if node.role == "weights"})

    def observe(self, samples: Any) -> None:
        """Runs the float network on the samples, one after another; twice where channels differ much in size."""
        as_called = compile(self._imported, threads=self._threads)
        if isinstance(samples, Iterator):  # may be read twice
            samples = list(samples)
        if self.settings.equalize and self.settings.scheme.values is not None:
            self._equalize(samples, as_called)
        choice = self.choice()
        self._channels = channels_of(self.network, choice)
        self._moments = self._wanted_moments(choice) if self.settings.adapt_rounding else {}
        values = dict.fromkeys((*choice.scale_of, *self._channels))
        if self.settings.scheme.narrow is not None:
            values = dict.fromkeys(self.network.reals)
        self.statistics = {value: Statistics() for value in values}
        inside = Observed(self.network.graph, list(values), self._threads)
        least, most = np.inf, -np.inf
        for sample in read_samples(samples, as_called):
            for array in (a for a in sample if a.size):
                least, most = min(least, float(array.min())), max(most, float(array.max()))
            for name, value in inside.run(sample)[1].items():
                self.statistics[name].add(value)
                if name in self._channels and self.statistics[name].finite:
                    self._channels[name].add(value)
                    for (of_value, _), moments in self._moments.items():
                        if of_value == name:
                            moments.add(value)
            self.count += 1
            if len(self._samples) < _MEASURED:
                self._samples.append(sample)
        _check_numbers(self.count, least, most)
        for masked in self.statistics:
            if (scores := self.network.hidden_from(masked)) and scores in self.statistics:
                self.statistics[masked] = self.statistics[scores]
        self._leave_out_of_range(choice)
        if self.settings.equalize and self.settings.scheme.values is not None:
            self._find_factors(samples, as_called)
        self.scales = self._find_scales(self.choice(), CALIBRATORS[self.settings.calibrator])

    def _equalize(self, samples: Any, as_called: Executable) -> None:
        """Shares the sizes of channels between layers behind one another: the same network, with other weights."""
        choice = self.choice()
        between = between_layers(self.network, choice)
        if not between:
            return
        channels = {value: Channels(self.network.channel_axis(writer)) for value, writer in between.items()}
        inside = Observed(self.network.graph, list(between), self._threads)
        for sample in read_samples(samples, as_called):
            for name, value in inside.run(sample)[1].items():
                if np.isfinite(value).all():
                    channels[name].add(value)
        constants = equalized_constants(self.network, between, channels, self.settings.scheme.steps)
        if constants:
            self.network = Network(_core.insert_conversions(self.network.graph, set(), {}, constants))

    def _wanted_moments(self, choice: Choice) -> dict[tuple[str, tuple[int, ...]], Moments]:
        """By value and window, of layers that read all channels."""
        out: dict[tuple[str, tuple[int, ...]], Moments] = {}
        for node in choice.nodes.values():
            if node.role == "weights" and self.settings.scheme.narrow is None:
                shape = self.network.constant(node, 1).shape
                if int(np.prod(shape[1:])) <= MOST_WEIGHTS and (len(shape) == 2 or shape[1] > 1):
                    out[node.operands[0], shape[2:]] = Moments(shape[2:])
        return out

    def _leave_out_of_range(self, choice: Choice) -> None:
        most = _LARGEST_F16 if self.settings.scheme.narrow == "f16" else np.inf
        odd = {name for name, seen in self.statistics.items() if not seen.finite or max(-seen.low, seen.high) > most}
        what = "NaN or infinity" if most == np.inf else "what f16 does not hold"
        for node in choice.nodes.values():
            if odd & {*node.operands, *node.outputs}:
                self.kept_float[node.name] = f"the samples make it read or write {what}"

    def _find_factors(self, samples: Any, as_called: Executable) -> None:
        choice = self.choice()
        self._factors = find_factors(self.network, choice, self._channels, self.settings.scheme.steps)
        scaled = [value for value in choice.scale_of if self._factors.of(value) is not None]
        if not scaled:
            return
        self.statistics.update({value: Statistics() for value in scaled})
        inside = Observed(self.network.graph, scaled, self._threads)
        for sample in read_samples(samples, as_called):
            for name, value in inside.run(sample)[1].items():
                self.statistics[name].add(value / self._factor(name))

    def _factor(self, value: str) -> Any:
        """What the value is divided by before it is rounded, so that it broadcasts; 1 where nothing is."""
        found = self._factors.of(value)
        return np.float32(1) if found is None else shaped(found, self._channels[value].axis)

    def _find_scales(self, choice: Choice, calibrate: Callable[[Statistics, int], Range]) -> dict[str, Scale]:
        """By value: those that only move or are joined cover the ranges of all of them."""
        out: dict[str, Scale] = {}
        groups = choice.groups().values()
        for k, group in enumerate(groups):
            announce(k, len(groups))
            ranges = [self._range(value, calibrate) for value in group if self.statistics[value].count]
            low, high = min((r[0] for r in ranges), default=0.0), max((r[1] for r in ranges), default=0.0)
            out.update(dict.fromkeys(group, scale_over(low, high, self.settings.scheme)))
        return out

    def _range(self, value: str, calibrate: Callable[[Statistics, int], Range]) -> Range:
        if self.network.is_either(value):
            numbers = [self.network.constant(self.network.writer[value], index) for index in (1, 2)]
            return float(np.min(numbers)), float(np.max(numbers))
        low, high = calibrate(self.statistics[value], self.settings.scheme.steps)
        # Where all channels fill the range, each of them is cut off by what its own few numbers say.
        one = self.statistics[value].count if self._factors.of(value) is None else self._channels[value].count
        wider = margin(one) * self.settings.scheme.headroom
        hidden = _HIDDEN_BELOW if self.network.hidden_from(value) else 0.0
        return low * wider - hidden, high * wider

    def graph(self, choice: Choice) -> _core.Graph:
        """The network in which the chosen nodes compute in fewer bits."""
        scheme = self.settings.scheme
        if scheme.narrow is not None:
            kept = {node.name for node in self.network.nodes} - set(choice.nodes)
            return _core.compute_narrow(self.network.graph, scheme.narrow, kept)
        values: dict[str, tuple[str, list[float], int, Array | None, Array | None]] = {}
        for value in choice.scale_of if scheme.values is not None else ():
            before = 1 / self._factor(value) if value in self._factors.before else None
            after = self._factor(value) if value in self._factors.after else None
            scale = self.scales[value]
            values[value] = (scheme.values or "", [scale.scale], scale.zero_point, before, after)
        constants: list[Constant] = []
        for node in choice.nodes.values():
            if node.role == "weights":
                constants += self._weights(node)[0]
            elif node.role != "rows":
                constants += self._numbers(node)
        return _core.insert_conversions(self.network.graph, set(choice.nodes) if values else set(), values, constants)

    def round_weights(self) -> None:
        """Rounds those of all layers that may become integers, which takes long; what is asked for later has them."""
        if self.settings.scheme.narrow is not None:
            return
        layers = [node for node in self.choice().nodes.values() if node.role == "weights"]
        sizes = [self.network.constant(node, 1).size for node in layers]
        for k, node in enumerate(layers):
            announce(sum(sizes[:k]), sum(sizes))
            self._weights(node)

    def weights_db(self, choice: Choice) -> dict[str, float]:
        """By layer: power of its weights over that of what rounding them changes."""
        if self.settings.scheme.narrow is not None:
            return {}
        return {node.name: self._weights(node)[1].db for node in choice.nodes.values() if node.role == "weights"}

    def _weights(self, node: Node) -> tuple[list[Constant], Noise]:
        """Weights and the bias of a layer, with the factors of what it reads and writes; computed once."""
        if node.name not in self._rounded_weights:
            self._rounded_weights[node.name] = self._round(node)
        return self._rounded_weights[node.name]

    def _round(self, node: Node) -> tuple[list[Constant], Noise]:
        scheme = self.settings.scheme
        weight = self.network.constant(node, 1).astype(np.float64)
        bias = self.network.constant(node, 2).astype(np.float64) if 2 in node.constants else None
        read, written = node.operands[0], node.outputs[0]
        scaled = weight
        if (s := self._factors.before.get(read)) is not None:
            scaled = scaled * of_columns(s, weight)
        if (f := self._factors.after.get(written)) is not None:
            scaled = scaled / f.reshape(-1, *[1] * (weight.ndim - 1))
            bias = None if bias is None else bias / f
        if scheme.block is not None:
            of_weights = block_scales(scaled, scheme.block, scheme.most_weight)
            moved = self._rounded(node, scaled, of_weights, -scheme.most_weight - 1)
            codes, scales = codes_of(moved, of_weights, scheme.block)
            constants: list[Constant] = [(node.name, 1, codes, None, (scales, scheme.block))]
        else:
            of_filters = weight_scales(scaled, scheme.most_weight, bias, self.scales[read].scale)
            moved = self._rounded(node, scaled, of_filters[:, np.newaxis], -scheme.most_weight)
            integers = to_integers(moved, of_filters, scheme.most_weight)
            constants = [(node.name, 1, integers, of_filters.tolist(), None)]
        if self.settings.correct_bias:
            mean = self._channels[read].mean
            shift = bias_shift(scaled, moved, mean if s is None else mean / s)
            bias = shift if bias is None else bias + shift
        if bias is not None and (self.settings.correct_bias or f is not None):
            constants.append((node.name, 2, bias.astype(np.float32), None, None))
        noise = Noise()
        noise.add(scaled, moved)
        return constants, noise

    def _rounded(self, node: Node, weight: Array, scales: Array, least: int) -> Array:
        """The reals of rounded weights; scales: [filters, weights of a filter], or one for all of these."""
        read, most = node.operands[0], self.settings.scheme.most_weight
        rows = weight.reshape(weight.shape[0], -1)
        scales = np.broadcast_to(scales, rows.shape)

        def nearest(columns: Array, at: Any) -> Any:
            return np.clip(np.rint(columns / scales[:, at]), least, most) * scales[:, at]

        factor = self._moment_factor(read, weight.shape[2:])
        if factor is None or len(factor) != rows.shape[1]:  # a layer in groups
            return np.asarray(nearest(rows, slice(None))).reshape(weight.shape)
        return round_weights(rows, factor, nearest).reshape(weight.shape)

    def _moment_factor(self, read: str, taps: tuple[int, ...]) -> Array | None:
        """Computed once for the layers that read a value through windows of one size."""
        key = (read, taps)
        if key not in self._moment_factors:
            moments = self._moments.get(key)
            self._moment_factors[key] = moments.factor(self._factors.before.get(read)) if moments else None
        return self._moment_factors[key]

    def _numbers(self, node: Node) -> list[Constant]:
        """Constants that are no weights: integers as values are, of one scale."""
        most = self.settings.scheme.high
        out: list[Constant] = []
        for index in node.constants:
            array = self.network.constant(node, index)
            one = np.array([np.abs(array).max(initial=0.0) / most or 1.0])
            out.append((node.name, index, to_integers(array, one, most), one.tolist(), None))
        return out

    def noise(self, choice: Choice, graph: _core.Graph, inside: bool = False) -> tuple[list[Noise], dict[str, Noise]]:
        """Of each output, and where asked of the values, on the first samples: against the float network."""
        names = list(choice.scale_of) if inside else []
        reference = Observed(self.network.graph, names, self._threads)
        other = Observed(graph, [f"{name}.reals" for name in names], self._threads)
        floors = {name: self.scales[name].low for name in names if self.network.hidden_from(name)}
        factors = {value: self._factor(value) for value in self._factors.before}
        return compare(reference, other, self._samples, factors, floors)


def _check_numbers(count: int, least: float, most: float) -> None:
    if count == 0:
        raise InvalidModel("there are no samples: give some inputs of the kind that the model will see.")
    if least == most:
        raise InvalidModel(
            f"all samples hold the one number {least:g}, of which no scale can be learned. Give inputs of the kind "
            "that the model will see."
        )
