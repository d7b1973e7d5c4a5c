"""From a float model and samples to one whose layers compute on integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hetnn import _core
from hetnn.api import compile
from hetnn.errors import InvalidModel
from hetnn.executable import Executable
from hetnn.importers import Imported, import_model
from hetnn.quantization.equalize import Factors, bias_shift, channels_of, find_factors, shaped
from hetnn.quantization.network import Choice, Network, Node, choose
from hetnn.quantization.observe import Observed, compare
from hetnn.quantization.ranges import CALIBRATORS, Range, Statistics
from hetnn.quantization.report import QuantizeReport, ValueRow
from hetnn.quantization.samples import Array, Sample, read_samples
from hetnn.quantization.weights import to_integers, weight_scales
from hetnn.target import resolve_target

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hetnn._core import CompileOptions

SCHEMES = ("int8",)
# Samples that noise is measured on.
_MEASURED = 8


# A layer, which of its inputs, the array, and what the integers of it stand for.
_Constant = tuple[str, int, Array, "list[float] | None"]


@dataclass(frozen=True)
class _Settings:
    calibrator: str
    keep_float: Collection[str]
    functions: bool
    equalize: bool
    correct_bias: bool


@dataclass(frozen=True)
class Quantized(Imported):
    """A model that computes in fewer bits, which `hetnn.compile` takes, and how it came about."""

    report: QuantizeReport = field(default_factory=lambda: QuantizeReport("", "", 0))


def quantize(
    model: Any,
    samples: Any,
    scheme: str = "int8",
    calibrator: str = "mse",
    target: Any = None,
    *,
    keep_float: Collection[str] = (),
    equalize: bool = True,
    correct_bias: bool = True,
    fix: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Unpack[CompileOptions],
) -> Any:
    """Quantizes `model` after training, on samples of its inputs; compiled where a target is given.

    model: what hetnn.compile takes, in float.
    samples: an iterable of inputs (an array, a dict by name, or a tuple each); an .npz file with an axis of samples
        before the axes of each input, or whole batches behind one another; a folder of .npy or .npz files, one each.
    scheme: "int8": values and weights as i8, weights with a scale for each filter, biases as i32.
    calibrator: how ranges come from what was seen: "minmax" takes all of it, "percentile" the middle 99.99 %, "mse"
        the range that changes the numbers least, "entropy" the one that keeps their distribution.
    target: as hetnn.compile takes it, with its options; without one the answer is a Quantized, which it takes too.
    keep_float: names of nodes, or of the modules they came from, that stay float.
    equalize: whether channels of very different size get factors where values are float anyway (docs/quantize.md).
    correct_bias: whether biases make good what rounding the weights changes on average.
    Both answers tell what was decided: `Quantized.report`, `Executable.quantization`.
    Errors: InvalidModel for samples that do not fit the model or of which no scale can be learned, for unknown names,
    and for a model that has integers already.
    """
    if scheme not in SCHEMES:
        raise InvalidModel(f"there is no scheme '{scheme}'; there are {', '.join(SCHEMES)}.")
    if calibrator not in CALIBRATORS:
        raise InvalidModel(f"there is no calibrator '{calibrator}'; there are {', '.join(CALIBRATORS)}.")
    step = progress or (lambda _: None)
    step("import")
    imported = import_model(model, fix)
    functions = target is not None and len(resolve_target(target)["devices"]) > 1
    settings = _Settings(calibrator, keep_float, functions, equalize, correct_bias)
    quantizer = _Quantizer(imported, settings, options.get("threads"))
    step("calibrate")
    quantizer.observe(samples)
    step("quantize")
    quantized = quantizer.finish(scheme)
    if target is None:
        return quantized
    executable = compile(quantized, target, progress=progress, **options)
    executable.quantization = quantized.report
    return executable


@dataclass(frozen=True)
class _Scale:
    """Of one value or several: real = scale * (integer - zero_point)."""

    scale: float
    zero_point: int
    low: float
    high: float


def _scale_over(low: float, high: float) -> _Scale:
    """Of i8 over a range, which gets to hold 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / 255
    if not scale > 0:
        return _Scale(1.0, 0, low, high)
    zero_point = int(np.clip(np.rint(-128 - low / scale), -128, 127))
    return _Scale(scale, zero_point, (-128 - zero_point) * scale, (127 - zero_point) * scale)


class _Quantizer:
    """One model on its way: what is chosen, what was seen, what is made of it."""

    def __init__(self, imported: Imported, settings: _Settings, threads: int | None) -> None:
        self._imported = imported
        self._threads = threads
        self._settings = settings
        self._network = Network(_core.canonicalize(imported.graph))
        _refuse_integers(self._network)
        self._kept_float = self._named(settings.keep_float)
        self._choice = self._chosen()
        if not any(node.role in ("weights", "product") for node in self._choice.nodes.values()):
            raise InvalidModel("the model has no layer that integers could compute; nothing is to be quantized.")
        self._statistics = {value: Statistics() for value in self._choice.scale_of}
        self._channels = channels_of(self._network, self._choice)
        self._factors = Factors()
        self._kept: list[Sample] = []
        self._count = 0

    def _chosen(self) -> Choice:
        return choose(self._network, self._kept_float, self._settings.functions)

    def observe(self, samples: Any) -> None:
        """Runs the float network on the samples, one after another; twice where channels differ much in size."""
        as_called = compile(self._imported, threads=self._threads)
        if isinstance(samples, Iterator):  # read twice below
            samples = list(samples)
        inside = Observed(self._network.graph, list(self._choice.scale_of), self._threads)
        least, most = np.inf, -np.inf
        for sample in read_samples(samples, as_called):
            for array in (a for a in sample if a.size):
                least, most = min(least, float(array.min())), max(most, float(array.max()))
            _, values = inside.run(sample)
            for name, value in values.items():
                self._statistics[name].add(value)
                if name in self._channels and self._statistics[name].finite:
                    self._channels[name].add(value)
            self._count += 1
            if len(self._kept) < _MEASURED:
                self._kept.append(sample)
        if self._count == 0:
            raise InvalidModel("there are no samples: give some inputs of the kind that the model will see.")
        if least == most:
            raise InvalidModel(
                f"all samples hold the one number {least:g}, of which no scale can be learned. Give inputs of the kind "
                "that the model will see."
            )
        self._leave_infinite()
        if self._settings.equalize:
            self._factors = find_factors(self._network, self._choice, self._channels)
        scaled = [value for value in self._choice.scale_of if self._factors.of(value) is not None]
        if not scaled:
            return
        self._statistics.update({value: Statistics() for value in scaled})
        inside = Observed(self._network.graph, scaled, self._threads)
        for sample in read_samples(samples, as_called):
            for name, value in inside.run(sample)[1].items():
                self._statistics[name].add(value / self._factor(name))

    def _leave_infinite(self) -> None:
        odd = {value for value, seen in self._statistics.items() if not seen.finite}
        for node in self._choice.nodes.values():
            if odd & {*node.operands, *node.outputs}:
                self._kept_float[node.name] = "the samples make it read or write NaN or infinity"
        if odd:
            self._choice = self._chosen()

    def finish(self, scheme: str) -> Quantized:
        """The quantized model with its report."""
        scales = self._scales(CALIBRATORS[self._settings.calibrator])
        graph = self._insert(scales)
        report = QuantizeReport(scheme, self._settings.calibrator, self._count, kept_float=dict(self._kept_float))
        names = list(self._choice.scale_of)
        reference = Observed(self._network.graph, names, self._threads)
        got = Observed(graph, [f"{name}.reals" for name in names], self._threads)
        outputs, values = compare(reference, got, self._kept, {v: self._factor(v) for v in self._factors.before})
        for value in names:
            node = self._network.writer.get(value)
            seen, scale = self._statistics[value], scales[value]
            report.values.append(
                ValueRow(
                    value,
                    node.name if node else value,
                    node.op if node else "input",
                    node.loc if node else "",
                    scale.scale,
                    scale.zero_point,
                    scale.low,
                    scale.high,
                    seen.share_beyond(scale.low - scale.scale / 2, scale.high + scale.scale / 2),
                    seen.noise_db(scale.low, scale.high),
                    values[value].db,
                )
            )
        for name, noise in zip(self._network.graph.output_names, outputs, strict=False):
            report.outputs_db[name], report.cosine[name] = noise.db, noise.cosine
        return Quantized(
            _core.canonicalize(graph), self._imported.signature, self._imported.classes, self._imported.apart, report
        )

    def _factor(self, value: str) -> Any:
        """What the value is divided by before it is rounded, so that it broadcasts; 1 where nothing is."""
        found = self._factors.of(value)
        return np.float32(1) if found is None else shaped(found, self._channels[value].axis)

    def _scales(self, calibrate: Callable[[Statistics, int], Range]) -> dict[str, _Scale]:
        """By value: those that only move or are joined cover the ranges of all of them."""
        out: dict[str, _Scale] = {}
        for group in self._choice.groups().values():
            ranges = [self._range(value, calibrate) for value in group if self._statistics[value].count]
            scale = _scale_over(min((r[0] for r in ranges), default=0.0), max((r[1] for r in ranges), default=0.0))
            out.update(dict.fromkeys(group, scale))
        return out

    def _range(self, value: str, calibrate: Callable[[Statistics, int], Range]) -> Range:
        low, high = calibrate(self._statistics[value], 255)
        margin = 1.0 if self._factors.of(value) is None else self._channels[value].margin
        return low * margin, high * margin

    def _insert(self, scales: Mapping[str, _Scale]) -> _core.Graph:
        values: dict[str, tuple[str, list[float], int, Array | None, Array | None]] = {}
        for value in self._choice.scale_of:
            before = 1 / self._factor(value) if value in self._factors.before else None
            after = self._factor(value) if value in self._factors.after else None
            values[value] = ("i8", [scales[value].scale], scales[value].zero_point, before, after)
        constants: list[_Constant] = []
        for node in self._choice.nodes.values():
            constants += self._layer(node, scales) if node.role == "weights" else self._numbers(node)
        return _core.insert_conversions(self._network.graph, set(self._choice.nodes), values, constants)

    def _layer(self, node: Node, scales: Mapping[str, _Scale]) -> list[_Constant]:
        """Weights by filter and the bias of a layer, with the factors of what it reads and writes."""
        weight = self._network.constant(node, 1).astype(np.float64)
        bias = self._network.constant(node, 2).astype(np.float64) if 2 in node.constants else None
        read, written = node.operands[0], node.outputs[0]
        scaled = weight
        if (s := self._factors.before.get(read)) is not None:
            scaled = scaled * s.reshape(1, -1, *[1] * (weight.ndim - 2))
        if (f := self._factors.after.get(written)) is not None:
            scaled = scaled / f.reshape(-1, *[1] * (weight.ndim - 1))
            bias = None if bias is None else bias / f
        of_filters = weight_scales(scaled, 127, bias, scales[read].scale)
        integers = to_integers(scaled, of_filters, 127)
        constants: list[_Constant] = [(node.name, 1, integers, of_filters.tolist())]
        if self._settings.correct_bias:
            moved = integers * of_filters.reshape(-1, *[1] * (weight.ndim - 1))
            mean = self._channels[read].mean
            shift = bias_shift(scaled, moved, mean if s is None else mean / s)
            bias = shift if bias is None else bias + shift
        if bias is not None and (self._settings.correct_bias or written in self._factors.after):
            constants.append((node.name, 2, bias.astype(np.float32), None))
        return constants

    def _numbers(self, node: Node) -> list[_Constant]:
        out: list[_Constant] = []
        for index in node.constants:
            array = self._network.constant(node, index)
            one = np.array([np.abs(array).max(initial=0.0) / 127 or 1.0])
            out.append((node.name, index, to_integers(array, one, 127), one.tolist()))
        return out

    def _named(self, keep_float: Collection[str]) -> dict[str, str]:
        """The nodes that go by these names or stem from modules of these names."""
        if isinstance(keep_float, str):
            keep_float = [keep_float]
        out: dict[str, str] = {}
        for name in keep_float:
            found = [
                node.name
                for node in self._network.nodes
                if any(called == name or called.startswith(f"{name}.") for called in node.names)
            ]
            if not found:
                known = ", ".join(itertools.islice((n.name for n in self._network.nodes if n.role == "weights"), 8))
                raise InvalidModel(f"keep_float: the model has no node or module '{name}'; some are {known}.")
            out.update(dict.fromkeys(found, "as asked"))
        return out


def _refuse_integers(network: Network) -> None:
    for node in network.nodes:
        if node.op in ("quantize", "dequantize"):
            raise InvalidModel(
                f"the model is quantized already: {node.op} '{node.name}'. Give the float model, or compile this one."
            )


__all__ = ["Executable", "Quantized", "quantize"]
