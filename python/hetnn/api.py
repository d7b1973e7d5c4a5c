"""Compiling and planning: from a model and a target to an executable or a plan."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from hetnn import _core
from hetnn.calibration import Tuning, find_speeds, measure_nodes
from hetnn.errors import InvalidModel, Unsupported
from hetnn.executable import Executable
from hetnn.importers import import_model
from hetnn.planning import Plan
from hetnn.target import resolve_target

# A pin is `{pattern: device}` or a list of {"name" | "regex" | "op" | "module": pattern, "device": name, "hard": bool}.
Pins: TypeAlias = "Mapping[str, str] | Iterable[Mapping[str, Any]]"

_REWRITE_MODES = ("auto", "always", "off")


def compile(
    model: Any,
    target: Any = "cpu",
    *,
    strategy: str = "cost",
    threads: int | None = None,
    pin: Pins | None = None,
    strict: str | None = None,
    rewrite: str = "auto",
    disabled_rules: Iterable[str] = (),
    fusion: bool | str = True,
    deterministic: bool = False,
    tune: bool = True,
    shapes: Iterable[Mapping[str, int]] = (),
    options: Mapping[str, Any] | None = None,
    memory_budget: Mapping[str, float] | None = None,
    overlap: bool = False,
    calibration: Any = None,
    calibrate: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Executable:
    """Compiles `model` for `target` into an executable.

    model: a torch ExportedProgram, the path of a .pt2 file, an ONNX model (path, bytes or ModelProto), IR text or a
        path of it.
    target: "cpu", "cpu+NAME" with the name of an NPU preset or the path of its JSON file, a dict of such a file.
    strategy, options: the partitioner's strategy and its options (docs/partitioning.md).
    threads: CPU threads of a run; None takes all the process may use.
    pin: devices for nodes; strict: a device on which every node must run, else Unsupported lists those that do not.
    rewrite: "auto" keeps rewritten activations where the plan gets faster, "always" and "off" decide it.
    disabled_rules: names of rewriting rules not to use. fusion: False gives one kernel a node.
    deterministic: fused sums round as the model's own sequence of additions does, to the last bit.
    tune: measure on this machine, once for each kind of layer, what kernels leave open (at most 50 ms each).
    memory_budget: most bytes of constants on a device: {"relu-only": 500_000}.
    overlap: plan for devices that work at the same time: the shortest schedule in place of the least sum of times.
    shapes: values of a dynamic model's symbols for which accelerators are compiled now; others follow when first run.
    calibration: speeds of the CPU for planning: "off" for the built-in ones, the path of a file of `hetnn calibrate`,
        or its content. None takes the environment's HETNN_CALIBRATION, else what this machine's cache holds.
    calibrate: measures the model's nodes on the CPU and plans with these times.
    progress: called with the name of each step.
    Errors: InvalidModel, Unsupported and DoesNotFit, with the model's own source lines.
    """
    step = progress or _silent
    began = time.perf_counter()
    step("import")
    imported = import_model(model)
    settings = _settings(
        strategy, pin, strict, rewrite, disabled_rules, fusion, options, memory_budget, overlap, shapes
    )
    settings["deterministic"] = bool(deterministic)
    described = _with_speeds(resolve_target(target), calibration, threads)
    if calibrate:
        step("calibrate")
        settings["measured_us"] = _measured_us(imported.graph, described, settings, threads)
    step("compile")
    with Tuning(tune, threads) as tuning:
        settings["tune_threads"] = tuning.threads
        compilation = _core.compile(imported.graph, json.dumps(described), json.dumps(settings))
    executable = Executable.from_image(compilation.image(), threads=threads, specializer=compilation.specialize)
    executable.passes = compilation.passes
    executable.compile_s = time.perf_counter() - began
    return executable


def plan(
    model: Any,
    target: Any = "cpu",
    *,
    strategy: str = "cost",
    pin: Pins | None = None,
    strict: str | None = None,
    rewrite: str = "auto",
    disabled_rules: Iterable[str] = (),
    options: Mapping[str, Any] | None = None,
    memory_budget: Mapping[str, float] | None = None,
    overlap: bool = False,
    shapes: Iterable[Mapping[str, int]] = (),
    calibration: Any = None,
    calibrate: bool = False,
) -> Plan:
    """What `compile` would decide, without compiling: the dry run. Arguments as there."""
    graph = import_model(model).graph
    settings = _settings(strategy, pin, strict, rewrite, disabled_rules, True, options, memory_budget, overlap, shapes)
    described = _with_speeds(resolve_target(target), calibration, None)
    if calibrate:
        settings["measured_us"] = _measured_us(graph, described, settings, None)
    return Plan(_core.plan(graph, json.dumps(described), json.dumps(settings)))


def check(model: Any, target: Any = "cpu") -> list[dict[str, Any]]:
    """Every node that no accelerator of the target takes as it stands, with all reasons of each and source lines.

    The rows are those of the report's `not_on_preferred`, before any rewriting; `device` is None where the general
    processor does not take the node either.
    """
    rows: list[dict[str, Any]] = json.loads(_core.check(import_model(model).graph, json.dumps(resolve_target(target))))
    return rows


def _with_speeds(target: dict[str, Any], calibration: Any, threads: int | None) -> dict[str, Any]:
    """The target with the CPU's measured speeds as its data sheet, where it has none of its own."""
    speeds = find_speeds(calibration, threads)
    if speeds is None:
        return target
    devices = [
        {**device, "spec": speeds} if device.get("kind") == "cpu" and "spec" not in device else device
        for device in target["devices"]
    ]
    return {**target, "devices": devices}


def _measured_us(
    graph: _core.Graph, target: Mapping[str, Any], settings: Mapping[str, Any], threads: int | None
) -> dict[str, dict[str, float]]:
    """Times of the nodes on the general processor: of the model as written, and of what rewriting makes of it."""
    general = target["devices"][0]
    if general.get("kind") != "cpu":
        raise Unsupported(
            f"calibrate measures nodes on a general processor of kind cpu; the target's is '{general.get('kind')}'."
        )
    measured: dict[str, dict[str, float]] = {}
    for rewrite in dict.fromkeys(("off", settings["rewrite"])):
        planned = _core.plan(graph, json.dumps(target), json.dumps({**settings, "rewrite": rewrite}))
        measured.update(measure_nodes(planned, str(general["name"]), threads))
    return measured


def _settings(
    strategy: str,
    pin: Pins | None,
    strict: str | None,
    rewrite: str,
    disabled_rules: Iterable[str],
    fusion: bool | str,
    options: Mapping[str, Any] | None,
    memory_budget: Mapping[str, float] | None,
    overlap: bool,
    shapes: Iterable[Mapping[str, int]],
) -> dict[str, Any]:
    if rewrite not in _REWRITE_MODES:
        raise InvalidModel(f"rewrite must be one of {', '.join(_REWRITE_MODES)}; got {rewrite!r}.")
    if fusion not in (True, False, "on", "off"):
        raise InvalidModel(f"fusion must be True, False, 'on' or 'off'; got {fusion!r}.")
    return {
        "strategy": strategy,
        "options": {**(options or {}), **({"overlap": True} if overlap else {})},
        "pins": _pins(pin),
        "strict": strict or "",
        "rewrite": rewrite,
        "disabled_rules": list(disabled_rules),
        "fusion": fusion in (True, "on"),
        "memory_budget": _finite(memory_budget or {}),
        "shapes": [_sizes(bindings) for bindings in shapes],
    }


def _finite(memory_budget: Mapping[str, float]) -> dict[str, float]:
    for device, size_bytes in memory_budget.items():
        if not isinstance(size_bytes, (int, float)) or not math.isfinite(size_bytes):
            raise InvalidModel(f"memory_budget of '{device}' must be a finite number of bytes; got {size_bytes!r}.")
    return dict(memory_budget)


def _sizes(bindings: Mapping[str, int]) -> dict[str, int]:
    if not isinstance(bindings, Mapping):
        raise InvalidModel(f'shapes holds a size for each symbol, {{"h": 64, "w": 80}}; got {bindings!r}.')
    return dict(bindings)


def _pins(pin: Pins | None) -> list[dict[str, Any]]:
    if pin is None:
        return []
    if isinstance(pin, Mapping):
        return [{"by": "name", "pattern": name, "device": device, "hard": True} for name, device in pin.items()]
    rows = []
    for row in pin:
        kinds = [kind for kind in ("name", "regex", "op", "module") if kind in row]
        if len(kinds) != 1 or "device" not in row or not set(row) <= {kinds[0], "device", "hard"}:
            raise InvalidModel(
                f"a pin names a device and one of name, regex, op, module; got {dict(row)}. "
                'Write {"regex": "layer1.*", "device": "cpu", "hard": True}.'
            )
        hard = bool(row.get("hard", True))
        rows.append({"by": kinds[0], "pattern": str(row[kinds[0]]), "device": str(row["device"]), "hard": hard})
    return rows


def _silent(_: str) -> None:
    pass
