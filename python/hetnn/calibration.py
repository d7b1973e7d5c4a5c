"""What is measured on this machine: its speed, times of a model's nodes, choices that kernels leave open."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hetnn import _core
from hetnn.errors import InvalidModel
from hetnn.executable import Executable
from hetnn.files import read_text
from hetnn.machine import (
    OFF,
    cache_file,
    cache_sizes,
    cpu_name,
    default_threads,
    kept_file,
    usable_threads,
    write_whole,
)
from hetnn.progress import announce, counted, silent

# Where plans look for speeds and kernels for choices, if not in the cache: the path of a file, or "off" for none.
SPEEDS_VARIABLE = "HETNN_CALIBRATION"
CHOICES_VARIABLE = "HETNN_TUNING"
# A disturbance may last longer than some runs, so runs go on for a while.
_FEWEST_RUNS, _MOST_RUNS, _AWHILE_S = 15, 200, 0.5


def speeds_name(threads: int | None = None) -> str:
    """What the cache calls the speeds of this machine at a number of threads."""
    return f"machine-{threads or default_threads()}-threads"


def find_speeds(calibration: Any = None, threads: int | None = None) -> dict[str, Any] | None:
    """The data sheet of the CPU for planning; None stands for the built-in speeds.

    `calibration` is "off", a data sheet, or the path of one. None asks the environment variable HETNN_CALIBRATION for
    the same, then takes what `calibrate` left in the cache for this processor and number of threads, if anything.
    """
    if isinstance(calibration, Mapping):
        return dict(calibration)
    if calibration is None:
        path = kept_file(speeds_name(threads), SPEEDS_VARIABLE)
        if path is None or (path == cache_file(speeds_name(threads)) and not path.is_file()):
            return None
    elif calibration == OFF:
        return None
    elif isinstance(calibration, (str, os.PathLike)):
        path = Path(calibration)
    else:
        raise InvalidModel(f'calibration is "off", a path or a data sheet; got {calibration!r}.')
    try:
        sheet = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise InvalidModel(
            f"the calibration '{path}' is no JSON: {error}. Write it anew with `hetnn calibrate`."
        ) from error
    if not isinstance(sheet, dict):
        raise InvalidModel(f"the calibration '{path}' must be an object; got {type(sheet).__name__}.")
    return sheet


def calibrate(path: str | os.PathLike[str] | None = None, threads: int | None = None) -> Path:
    """Measures how fast this machine multiplies and reads (some seconds) and writes it; returns the file.

    Without a path it is the cache's file, which plans find by themselves from then on.
    """
    file = cache_file(speeds_name(threads)) if path is None else Path(path)
    sheet = measure_speeds(threads)
    write_whole(file, json.dumps(sheet, indent=1) + "\n")
    return file


def measure_speeds(threads: int | None = None) -> dict[str, Any]:
    """The data sheet of this machine's CPU, measured."""
    threads = threads or default_threads()
    small = _measure(_chain_of_small_kernels(), threads)
    kernel_us = small.kernel_us / _SMALL_KERNELS
    samples = _samples()
    found: dict[str, dict[str, float]] = {}
    for k, (figure, amount, graph) in enumerate(samples):
        announce(k, len(samples))
        rates = {}
        for cores, count in (("one", 1), ("all", threads)):
            took_us = _measure(graph, count).of_node["step1"] - kernel_us
            # A kernel that took no time to speak of says nothing about its speed.
            if took_us > kernel_us:
                rates[cores] = amount / took_us
        if len(rates) == 2:
            found[figure] = rates
    sheet: dict[str, Any] = {
        "schema": 2,
        "cpu": cpu_name(),
        "threads": threads,
        "kernel_us": kernel_us,
        "launch_us": max(0.0, small.whole_us - small.kernel_us),
    }
    if "macs" in found:
        sheet["macs_per_us"] = found.pop("macs")
    sheet["bytes_per_us"] = found
    sheet["cache_bytes"] = cache_sizes()
    return sheet


def measure_nodes(plan: _core.NetworkPlan, device: str, threads: int | None = None) -> dict[str, dict[str, float]]:
    """Times of a planned model's nodes on the general processor, in us.

    Nodes that it computes in one launch share that launch's time as their times alone are to each other: a node beside
    its producer costs less than alone, and all together are to add up to the model's time. A node that is a launch by
    itself either way takes the lesser of its two times. `device` is what the plan calls that processor. Integers are
    fed as zeros, so that any index is in range.
    """
    fused = _core.on_general_processor(plan, fusion=True)
    runs = _run([_core.on_general_processor(plan, fusion=False), fused], threads)
    alone, launches = (run.of_node for run in runs)
    measured = {node: min(us, launches.get(node, us)) for node, us in alone.items()}
    for row in json.loads(fused.report())["fusions"]:
        together = sum(alone.get(node, 0.0) for node in row["nodes"])
        launch = sum(launches.get(node, 0.0) for node in row["nodes"])
        if together > 0 and launch > 0:
            measured.update({node: alone[node] * launch / together for node in row["nodes"] if node in alone})
    return {node: {device: us} for node, us in measured.items()}


class Tuning:
    """What kernels leave open: measured when a kind of layer is first compiled, then remembered for this processor.

    Loads what is known before a compilation and saves what it added. Does nothing when switched off. The file is a
    cache: one that cannot be read or written costs time, not results.
    """

    def __init__(self, wanted: bool, threads: int | None) -> None:
        self._file = kept_file("tuning", CHOICES_VARIABLE) if wanted else None
        self._threads = usable_threads(threads)
        self._before: dict[str, int] = {}

    @property
    def threads(self) -> int:
        """For how many threads kernels measure; 0 when they do not."""
        return 0 if self._file is None else self._threads

    def __enter__(self) -> Tuning:
        if self._file is not None:
            _core.learn_tuning(_known_choices(self._file))
            self._before = _core.known_tuning()
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is None:
            return
        known = _core.known_tuning()
        if known == self._before:
            return
        try:
            # Another process may have added to it meanwhile.
            text = json.dumps({**_known_choices(self._file), **known}, indent=1, sort_keys=True)
            write_whole(self._file, text + "\n")
        except OSError:
            pass


def _known_choices(file: Path) -> dict[str, int]:
    try:
        found: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: fan_in for name, fan_in in found.items() if isinstance(fan_in, int) and 2 <= fan_in <= 16}


class _Measurement:
    """The least time over some runs, of each node and of all."""

    def __init__(self) -> None:
        self.of_node: dict[str, float] = {}
        self.kernel_us = float("inf")
        self.whole_us = float("inf")

    def add(self, kernels: list[dict[str, Any]], subprograms: list[dict[str, Any]]) -> None:
        here: dict[str, float] = {}
        for row in kernels:  # a node may take several kernels
            here[row["node"]] = here.get(row["node"], 0.0) + row["wall_us"]
        for node, us in here.items():
            self.of_node[node] = min(us, self.of_node.get(node, float("inf")))
        self.kernel_us = min(self.kernel_us, sum(here.values()))
        self.whole_us = min(self.whole_us, sum(row["finish_us"] - row["start_us"] for row in subprograms))


def _measure(graph: _core.Graph, threads: int | None) -> _Measurement:
    options = {"strategy": "cpu-only", "rewrite": "off", "fusion": False}
    target = {"name": "cpu", "devices": [{"name": "cpu", "kind": "cpu"}]}
    return _run([_core.compile(graph, json.dumps(target), json.dumps(options))], threads)[0]


def _run(compilations: list[_core.Compilation], threads: int | None) -> list[_Measurement]:
    """Runs programs of one interface in turn, so that a disturbance meets all of them."""
    executables = [Executable.from_image(compilation.image(), threads=threads) for compilation in compilations]
    rng = np.random.default_rng(0)
    first = executables[0]
    inputs = [example_of(rng, port.dtype, first.example_shape(port.name)) for port in first.inputs]
    out = [_Measurement() for _ in executables]
    end_s = time.monotonic() + _AWHILE_S
    with counted(silent, "measure"):  # runs that tell how far they are take longer
        for run in range(_MOST_RUNS):
            if run >= _FEWEST_RUNS and time.monotonic() > end_s:
                break
            for executable, measurement in zip(executables, out, strict=True):
                measurement.add(executable.profile(*inputs), executable.last_times)
    return out


def example_of(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An input to measure with: reals are random, integers zeros, so that any index is in range."""
    name = {"f32": "float32", "f64": "float64", "f16": "float16"}.get(dtype)
    if name is not None:
        return rng.standard_normal(shape).astype(name)
    kinds = {"bool": "bool", "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32"}
    return np.zeros(shape, kinds.get(dtype, "int64"))


_SMALL_KERNELS = 16


def _chain_of_small_kernels() -> _core.Graph:
    builder = _core.GraphBuilder("small")
    value = builder.add_input("x", "f32", [1, 16])
    for k in range(_SMALL_KERNELS):
        value = builder.create("relu" if k % 2 else "neg", [value])[0]
    builder.output(value)
    return builder.finish()


# Operators of a chain: name, the shape of a constant it takes, attributes.
_Step = tuple[str, "list[int] | None", dict[str, Any]]


def _chain(shape: list[int], steps: list[_Step]) -> _core.Graph:
    rng = np.random.default_rng(1)
    builder = _core.GraphBuilder("sample")
    value = builder.add_input("x", "f32", shape)
    for k, (op, weight, attrs) in enumerate(steps):
        inputs = [value]
        if weight is not None:
            inputs.append(builder.constant((rng.standard_normal(weight) / weight[-1]).astype(np.float32)))
        value = builder.create(op, inputs, attrs, name=f"step{k}")[0]
    builder.output(value)
    return builder.finish()


def _apart(elements: int) -> _core.Graph:
    """A function whose result cannot take its operand's place, which is read once more."""
    builder = _core.GraphBuilder("sample")
    kept = builder.create("relu", [builder.add_input("x", "f32", [elements])], {}, name="step0")[0]
    moved = builder.create("neg", [kept], {}, name="step1")[0]
    builder.output(builder.create("add", [kept, moved], {}, name="step2")[0])
    return builder.finish()


def _samples() -> list[tuple[str, float, _core.Graph]]:
    """A figure, how much of it the node `step1` of a chain takes, and the chain."""
    vector: _Step = ("relu", None, {})
    rows, width, weights = 512, 512, 4096
    product = _chain([rows, width], [vector, ("linear", [width, width], {}), vector])

    def moved(elements: int) -> tuple[float, _core.Graph]:
        return 8.0 * elements, _apart(elements)

    # From memory come weights above all.
    return [
        ("macs", float(rows * width * width), product),
        ("second_level", *moved(1 << 16)),
        ("third_level", *moved(1 << 19)),
        ("memory", 4.0 * weights**2, _chain([1, weights], [vector, ("linear", [weights, weights], {}), vector])),
    ]
