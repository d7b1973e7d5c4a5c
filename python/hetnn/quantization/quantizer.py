"""`hetnn.quantize`: from a float model and samples to one that computes in fewer bits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hetnn import _core
from hetnn.api import compile, imported_model
from hetnn.errors import InvalidModel
from hetnn.importers import Imported
from hetnn.options import with_options
from hetnn.progress import Progress, counted, silent
from hetnn.quantization.calibrated import Calibrated, Settings
from hetnn.quantization.network import Network, layers_of
from hetnn.quantization.observe import Noise
from hetnn.quantization.ranges import CALIBRATORS
from hetnn.quantization.report import QuantizeReport, ValueRow
from hetnn.quantization.schemes import scheme_of
from hetnn.quantization.sensitivity import Bound, find_kept, layer_noise
from hetnn.report.shown import Shown
from hetnn.target import resolve_target

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hetnn._core import CompileOptions


@dataclass(frozen=True, repr=False)
class Quantized(Shown, Imported):
    """A model that computes in fewer bits, which `hetnn.compile` takes, and its report, as which it shows."""

    report: QuantizeReport = field(default_factory=lambda: QuantizeReport("", "", 0))

    def __str__(self) -> str:
        return str(self.report)

    __repr__ = __str__

    def _card(self) -> str:
        return self.report._card()


@with_options
def quantize(
    model: Any,
    samples: Any,
    scheme: str = "int8",
    calibrator: str = "mse",
    target: Any = None,
    *,
    keep_float: str | Collection[str] = (),
    at_least_db: float | None = None,
    at_least_cosine: float | None = None,
    sensitivity: bool = False,
    equalize: bool = True,
    correct_bias: bool = True,
    adapt_rounding: bool = True,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    example: Sequence[Any] | Mapping[str, Any] | None = None,
    fix: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Unpack[CompileOptions],
) -> Any:
    """Quantizes `model` after training, on samples of its inputs; compiled where a target is given.

    model: what hetnn.compile takes, in float.
    samples: an iterable of inputs (an array, a dict by name, or a tuple each); an .npz file with an axis of samples
        before the axes of each input, or whole batches behind one another; a folder of .npy or .npz files, one each.
    scheme: "int8": values and weights as i8, weights with a scale for each filter, biases as i32; "int16x8": values as
        i16; "int4-weights" or "int4": weights rounded to 4 bits in blocks of 32, values float; "f16", "bf16": all of it
        as such floats.
    calibrator: how ranges come from what was seen: "minmax" takes all of it, "percentile" the middle 99.99 %, "mse"
        the range that changes the numbers least, "entropy" the one that keeps their distribution.
    target: as hetnn.compile takes it, with its options; without one the answer is a Quantized, which it takes too.
    keep_float: names of nodes, or of the modules they came from, that stay float; "auto": as few layers as it takes for
        every output to have `at_least_db` of signal over noise (20 where nothing is said) and `at_least_cosine` to the
        float network, on the first samples.
    sensitivity: whether the report tells the noise of the outputs where each layer alone is quantized.
    equalize: whether channels of very different size get factors where values are float anyway (docs/quantize.md).
    correct_bias: whether biases make good what rounding the weights changes on average.
    adapt_rounding: whether a weight is rounded so that it makes good what rounding others changed (GPTQ).
    args, kwargs, dynamic_shapes, example, fix, progress: as hetnn.compile takes them.
    Both answers tell what was decided: `Quantized.report`, `Executable.quantization`.
    Errors: InvalidModel for samples that do not fit the model or of which no scale can be learned, for unknown names,
    and for a model that has integers already; Unsupported where "auto" cannot reach what is asked.
    """
    if calibrator not in CALIBRATORS:
        raise InvalidModel(f"there is no calibrator '{calibrator}'; there are {', '.join(CALIBRATORS)}.")
    bound = _bound(keep_float, at_least_db, at_least_cosine)
    devices = [] if target is None else resolve_target(target)["devices"]
    rows = _rows_of(devices)
    functions, real_sums = len(devices) > 1, len(devices) == 1
    settings = Settings(
        scheme_of(scheme), calibrator, functions, real_sums, rows, equalize, correct_bias, adapt_rounding
    )
    step = progress or silent
    with counted(step, "import"):
        imported = imported_model(model, args, kwargs, dynamic_shapes, fix)
    network = Network(_core.for_integers(imported.graph, attention="softmax" in rows))
    _refuse_integers(network)
    kept = _named(network, () if bound else keep_float)
    calibrated = Calibrated(imported, network, settings, kept, options.get("threads"))
    if not layers_of(network, kept):
        raise InvalidModel("the model has no layer to compute in fewer bits; nothing is to be quantized.")
    with counted(step, "calibrate"):
        calibrated.observe(samples)
    with counted(step, "round weights"):
        calibrated.round_weights()
    of_layers: Mapping[str, list[Noise]] = {}
    if sensitivity or bound:
        with counted(step, "measure each layer"):
            of_layers = layer_noise(calibrated)
    if bound:
        with counted(step, "choose layers to keep"):
            calibrated.kept_float.update(find_kept(calibrated, of_layers, bound))
    quantized = _finish(imported, calibrated, of_layers, step)
    if target is None:
        return quantized
    executable = compile(quantized, target, example=example, progress=progress, **options)
    executable.quantization = quantized.report
    return executable


def _bound(keep_float: str | Collection[str], db: float | None, cosine: float | None) -> Bound | None:
    """What "auto" must reach; None where layers are named. InvalidModel for a bound without it."""
    if keep_float == "auto":
        return Bound(20.0 if db is None and cosine is None else db, cosine)
    if db is not None or cosine is not None:
        raise InvalidModel('at_least_db and at_least_cosine say what keep_float="auto" must reach; give that too.')
    return None


def _finish(
    imported: Imported, calibrated: Calibrated, of_layers: Mapping[str, list[Noise]], step: Progress
) -> Quantized:
    """The quantized model with its report."""
    settings, network = calibrated.settings, calibrated.network
    choice = calibrated.choice()
    graph = calibrated.graph(choice)
    with counted(step, "measure the noise"):
        outputs, values = calibrated.noise(choice, graph, inside=True)
    by_output = dict(zip(network.graph.output_names, outputs, strict=False))
    report = QuantizeReport(
        settings.scheme.name,
        settings.calibrator,
        calibrated.count,
        [_row(calibrated, value, values[value].db) for value in choice.scale_of],
        weights_db=calibrated.weights_db(choice),
        sensitivity_db={layer: min(noise.db for noise in noises) for layer, noises in of_layers.items()},
        kept_float=dict(calibrated.kept_float),
        outputs_db={name: noise.db for name, noise in by_output.items()},
        cosine={name: noise.cosine for name, noise in by_output.items()},
    )
    # A model whose inputs share a size is kept to be imported again for those to whom they differ: that would be float.
    return Quantized(_core.canonicalize(graph), imported.signature, imported.classes, apart=None, report=report)


def _row(calibrated: Calibrated, value: str, noise_db: float) -> ValueRow:
    node = calibrated.network.writer.get(value)
    seen, scale = calibrated.statistics[value], calibrated.scales[value]
    return ValueRow(
        value,
        node.name if node else value,
        node.op if node else "input",
        node.loc if node else "",
        scale.scale,
        scale.zero_point,
        scale.low,
        scale.high,
        seen.share_beyond(scale.low - scale.scale / 2, scale.high + scale.scale / 2),
        seen.noise_db(scale.low, scale.high, calibrated.settings.scheme.steps),
        noise_db,
    )


def _named(network: Network, keep_float: str | Collection[str]) -> dict[str, str]:
    """The nodes that go by these names or stem from modules of these names, and why they stay float."""
    out: dict[str, str] = {}
    for name in [keep_float] if isinstance(keep_float, str) else keep_float:
        found = [
            node.name
            for node in network.nodes
            if any(called == name or called.startswith(f"{name}.") for called in node.names)
        ]
        if not found:
            known = ", ".join(itertools.islice(layers_of(network, ()), 8))
            raise InvalidModel(f"keep_float: the model has no node or module '{name}'; some are {known}.")
        out.update(dict.fromkeys(found, "as asked"))
    return out


def _rows_of(devices: list[dict[str, Any]]) -> frozenset[str]:
    """Operators of rows that a data sheet among them lists for i8."""
    listed = {
        op
        for device in devices
        for op, entry in (device.get("spec") or {}).get("ops", {}).items()
        if "i8" in entry.get("dtypes", ())
    }
    return frozenset(listed & {"softmax", "layer_norm"})


def _refuse_integers(network: Network) -> None:
    for node in network.nodes:
        if node.quantized:
            raise InvalidModel(
                f"the model is quantized already: {node.op} '{node.name}'. Give the float model, or compile this one."
            )


__all__ = ["Quantized", "quantize"]
