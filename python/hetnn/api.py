"""Compiling and planning: from a model and a target to an executable or a plan."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetnn import _core
from hetnn.backends.registry import all_measure
from hetnn.calibration import Tuning, find_speeds, measure_nodes
from hetnn.default_inputs import DefaultInputs
from hetnn.errors import InvalidModel, Unsupported
from hetnn.example_sizes import sizes_of
from hetnn.executable import Executable
from hetnn.importers import Imported, import_model
from hetnn.importers.model_file import kind_of
from hetnn.inside.source import Source
from hetnn.json_text import dump_json, load_json
from hetnn.log import logger
from hetnn.options import read_options, with_options
from hetnn.planning import Plan, part_of
from hetnn.progress import Step, Telling, counted, silent
from hetnn.remote.places import places_of
from hetnn.report.checked import Checked
from hetnn.report.rows import Rows
from hetnn.sizes_apart import SizesApart
from hetnn.target import places_in, resolve_target
from hetnn.trials import fastest

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hetnn._core import CompileOptions


@with_options
def compile(
    model: Any,
    target: Any = "cpu",
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    fix: Mapping[str, Any] | None = None,
    example: Sequence[Any] | Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Unpack[CompileOptions],
) -> Executable:
    """Compiles `model` for `target` into an executable.

    model: a torch ExportedProgram, a torch module or function with what it is called with, the path of a .pt2 file, an
        ONNX model (path, bytes or ModelProto), a TFLite model (path or bytes), IR text or a path of it.
    target: "cpu", "cpu+NAME" with the name of an NPU preset or the path of its JSON file, a dict of such a file; or a
        target file or dict, of which devices that stand elsewhere (`at`) are then run there.
    args, kwargs: what a module is called with; it is exported in evaluation mode, with `dynamic_shapes` as
        torch.export.export takes them.
    fix: of an ONNX or TFLite model, numbers for sizes that it leaves open, by its names for them (an unnamed one is
        that of its input, `_` and the axis); of an ONNX model values for inputs too, which are inputs no longer:
        {"sequence": 576, "sr": 16000}.
    example: inputs of the sizes that matter most, or their shapes, in order or by name: what a dynamic model is planned
        for. Other sizes run as well.
    progress: called with the name of each step, each pass of the compiler among them, and again while it lasts; the
        name has `left_s`, the seconds that it is going to take (of a pass: that compiling is), or None where that is
        not known.
        What it raises ends the work.
    An ONNX model whose inputs share the name of a size is kept, to be compiled again for callers to whom they differ;
    so is one that has values for some of its inputs (initializers), for callers who give others.
    Errors: InvalidModel, Unsupported and DoesNotFit, with the model's own source lines.
    """
    step = progress or silent
    began = time.perf_counter()
    settings = read_options(options)
    threads = settings.get("threads")
    with counted(step, "import"):
        imported = imported_model(model, args, kwargs, dynamic_shapes, fix)
    _plan_for(example, imported.graph, settings)
    settings["schedule"] = _schedule_text(settings["schedule"])
    if settings["states"] and imported.signature:
        raise Unsupported("states are named for models whose arguments are a list; a torch module keeps its buffers.")
    described, places = _with_speeds(resolve_target(target), settings), places_of(places_in(target))
    measuring = all_measure(described)
    _measure(imported.graph, described, settings, measuring, step)
    with Tuning(settings["tune"], threads) as tuning:
        settings.update(tune=tuning.threads > 0, threads=tuning.threads)
        if measuring and settings["strategy"] == "cost":
            executable = fastest(
                lambda strategy: _compiled(imported, described, {**settings, "strategy": strategy}, threads, step)
            )
        else:
            given = not isinstance(model, (Imported, _core.Graph))
            executable = _compiled(imported, described, settings, threads, step, given)
    if places:
        executable._move(places)
    _core.return_free_memory()  # of reading the image
    executable._source = Source(lambda: imported_model(model, args, kwargs, dynamic_shapes, fix), target, options)
    executable.compile_s = time.perf_counter() - began
    for row in executable.passes:
        logger.debug("%s, %s: %.1f ms", row["stage"], row["name"], row["ms"])
    logger.info("compiled for %s in %.2f s", described.get("name"), executable.compile_s)
    again = imported.apart
    executable._apart = None if again is None else SizesApart(lambda: compile(again(), target, **options))
    defaults = imported.defaults
    if defaults is not None:
        executable._defaults = DefaultInputs(
            defaults.inputs, defaults.names, lambda opened: compile(defaults.opened(opened), target, **options)
        )
    return executable


def _compiled(
    imported: Imported,
    target: Mapping[str, Any],
    settings: Mapping[str, Any],
    threads: int | None,
    step: Callable[[str], None],
    given: bool = False,
) -> Executable:
    """`given`: nobody else has the graph, of which nothing is left."""
    signature = dump_json(imported.signature, "signature") if imported.signature else ""
    described, options = dump_json(target, "target"), dump_json(settings, "options")
    telling = None if step is silent else Telling(step)
    compilation = _core.compile(imported.graph, described, options, signature, telling, given)
    passes = compilation.passes
    step(Step("load"))
    for_more_shapes = compilation.has_variants
    image = compilation.image() if for_more_shapes else compilation.take_image()
    executable = Executable.from_image(image, threads, imported.classes)
    if for_more_shapes:
        executable._engine.set_specializer(compilation.specialize)
    executable.passes = passes
    return executable


@with_options
def plan(
    model: Any,
    target: Any = "cpu",
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    fix: Mapping[str, Any] | None = None,
    example: Sequence[Any] | Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Unpack[CompileOptions],
) -> Plan:
    """What `compile` would decide, without compiling: the dry run. Arguments as there."""
    step, settings = progress or silent, read_options(options)
    with counted(step, "import"):
        graph = imported_model(model, args, kwargs, dynamic_shapes, fix).graph
    _plan_for(example, graph, settings)
    return _planned(graph, target, settings, step)


def _planned(graph: _core.Graph, target: Any, settings: dict[str, Any], step: Callable[[str], None]) -> Plan:
    described = _with_speeds(resolve_target(target), settings)
    _measure(graph, described, settings, all_measure(described), step)
    telling = None if step is silent else Telling(step)
    return Plan(_core.plan(graph, dump_json(described, "target"), dump_json(settings, "options"), telling))


def check(
    model: Any,
    target: Any = "cpu",
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    fix: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Rows:
    """Every node that no accelerator of the target takes as it stands, with all reasons of each and source lines.

    They print as text. The rows are those of the report's `not_on_preferred`, before any rewriting; `device` is None
    where the general processor does not take the node either.
    """
    described = dump_json(resolve_target(target), "target")
    with counted(progress or silent, "import"):
        graph = imported_model(model, args, kwargs, dynamic_shapes, fix).graph
    return Checked(load_json(_core.check(graph, described), "the answer"), nothing="every node fits")


@with_options
def export(
    model: Any,
    path: str | os.PathLike[str],
    *,
    target: Any = None,
    subgraph: str | None = None,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    fix: Mapping[str, Any] | None = None,
    example: Sequence[Any] | Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Unpack[CompileOptions],
) -> None:
    """Writes `model` as a file that other tools read: an ONNX model where `path` ends in .onnx, TOSA 1.0 in .tosa.

    model: as `compile` takes it; or an executable or a .hetnn file that was compiled with `keep_graph=True`, whose plan
        is made: it takes `subgraph` and nothing else.
    target: None: the model as it is. Else what planning for it makes of the model: nodes that its accelerators lack
        are rewritten, as the option `rewrite` says, so that another compiler for such a device takes the file.
    subgraph: with a target, what one device is given alone, by the name that plan and reports have for it: "npu.0".
    Other arguments and options as those of `plan`. Types, names and open sizes are the graph's; states are further
    inputs and outputs. What must hold of a run's values is not looked at by the file's readers. TOSA files hold
    integers of fixed sizes: most often what an NPU is given of a quantized model.
    Errors: Unsupported with every node that the file has no form for, and why; InvalidModel; OSError of the file.
    """
    write, step = _writer_of(path), progress or silent
    if _is_compiled(model):
        told = {"target": target, "args": args, "kwargs": kwargs, "dynamic_shapes": dynamic_shapes, "fix": fix}
        given = [name for name, value in {**told, "example": example, **options}.items() if value is not None]
        if given:
            raise InvalidModel(
                f"what is compiled already has its plan; '{given[0]}' is for models. Compile the model with it."
            )
        with counted(step, "read"):
            kept = _kept_graph(model)
        return write(part_of(kept, subgraph), path)
    with counted(step, "import"):
        graph = imported_model(model, args, kwargs, dynamic_shapes, fix).graph
    if target is None:
        if subgraph is not None:
            raise InvalidModel(f"the subgraph '{subgraph}' is one of a plan; name the target that it is planned for.")
        if options:
            raise InvalidModel(f"'{next(iter(options))}' is an option of a plan; name the target that is planned for.")
        return write(_core.canonicalize(graph), path)
    settings = read_options(options)
    _plan_for(example, graph, settings)
    planned = _planned(graph, target, settings, step)
    step(Step("write"))
    return write(planned.graph(subgraph), path)


def _is_compiled(model: Any) -> bool:
    if isinstance(model, (str, os.PathLike)):
        return os.path.isfile(model) and kind_of(os.fspath(model)) == "hetnn"
    return isinstance(model, Executable)


def _kept_graph(compiled: Any) -> _core.Graph:
    """Of an executable, or of a file, whose devices need not be there. InvalidModel where none was kept."""
    if isinstance(compiled, Executable):
        kept, called = _core.kept_graph(compiled._engine), "the executable"
    else:
        kept, called = _core.kept_graph_of_file(os.fspath(compiled)), f"'{os.fspath(compiled)}'"
    if kept is None:
        raise InvalidModel(
            f"{called} holds no graph. Compile the model with keep_graph=True (`hetnn compile --keep-graph`), or "
            "export the model that it was compiled from."
        )
    return kept


def _writer_of(path: str | os.PathLike[str]) -> Callable[[_core.Graph, str | os.PathLike[str]], None]:
    """What writes a graph into a file of that name. Unsupported for a kind of file that hetnn does not write."""
    kind = os.path.splitext(os.fspath(path))[1]
    if kind not in (".onnx", ".tosa"):
        raise Unsupported(
            f"hetnn writes ONNX and TOSA files; got '{os.fspath(path)}'. Name a file that ends in .onnx or .tosa."
        )
    if kind == ".tosa":
        from hetnn.exporters.tosa import write
    else:
        from hetnn.exporters.onnx import write
    return write


def imported_model(
    model: Any,
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    fix: Mapping[str, Any] | None,
) -> Imported:
    """The model's graph; a module that comes with what it is called with is exported first."""
    if args is None and kwargs is None and dynamic_shapes is None:
        return import_model(model, fix)
    try:
        from hetnn.importers.torch.module import export
    except ModuleNotFoundError as error:
        raise Unsupported(f"exporting a module needs {error.name}. Install hetnn[torch].") from error
    return import_model(export(model, args, kwargs, dynamic_shapes), fix)


def _plan_for(example: Sequence[Any] | Mapping[str, Any] | None, graph: _core.Graph, settings: dict[str, Any]) -> None:
    """Puts an example's sizes before all other `shapes`: the first are what plans are made for."""
    if example is not None:
        settings["shapes"] = [sizes_of(example, graph), *(settings["shapes"] or [])]


def _with_speeds(target: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The target with the CPU's measured speeds as its data sheet, where it has none of its own."""
    speeds = find_speeds(settings.get("calibration"), settings.get("threads"))
    if speeds is None:
        return target
    devices = [
        {**device, "spec": speeds} if device.get("kind") == "cpu" and "spec" not in device else device
        for device in target["devices"]
    ]
    return {**target, "devices": devices}


# Strategies that place nodes whatever they take.
_WITHOUT_TIMES = frozenset({"cpu-only", "take-all"})


def _measure(
    graph: _core.Graph,
    target: Mapping[str, Any],
    settings: dict[str, Any],
    measuring: bool,
    step: Callable[[str], None],
) -> None:
    """Puts times of the general processor's into the settings, where they are asked for, or where those of all other
    devices are measured ones and are weighed: times of two scales cannot be compared."""
    weighed = measuring and settings["strategy"] not in _WITHOUT_TIMES
    if settings["calibrate"] or (weighed and not settings["measured_us"] and target["devices"][0]["kind"] == "cpu"):
        step("calibrate")
        settings["measured_us"] = _measured_us(graph, target, settings)


def _measured_us(
    graph: _core.Graph, target: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, dict[str, float]]:
    """Times of the nodes on the general processor: of the model as written, and of what rewriting makes of it."""
    general = target["devices"][0]
    if general.get("kind") != "cpu":
        raise Unsupported(
            f"calibrate measures nodes on a general processor of kind cpu; the target's is '{general.get('kind')}'."
        )
    measured: dict[str, dict[str, float]] = {}
    for rewrite in dict.fromkeys(("off", settings["rewrite"])):
        options = dump_json({**settings, "rewrite": rewrite}, "options")
        planned = _core.plan(graph, dump_json(target, "target"), options)
        measured.update(measure_nodes(planned, str(general["name"]), settings.get("threads")))
    return measured


def _schedule_text(schedule: str | None) -> str | None:
    """The text itself, or that of a file."""
    if not schedule or "\n" in schedule:
        return schedule
    try:
        return Path(schedule).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidModel(
            f"schedule: '{schedule}' is neither the text that `hetnn schedule` prints nor a file of it: {error}"
        ) from error
