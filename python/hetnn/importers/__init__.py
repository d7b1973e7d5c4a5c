"""Importers: from what users have to a graph of the intermediate representation."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hetnn import _core
from hetnn.errors import InvalidModel, Unsupported
from hetnn.files import read_text
from hetnn.importers.model_file import is_tflite, kind_of

_ACCEPTED = (
    "a torch.export.ExportedProgram, a torch module with args=, an ONNX model (its path, bytes or ModelProto), a "
    "TFLite model (its path or bytes), the path of a .pt2 file, or IR text (or a path of it)"
)


@dataclass(frozen=True)
class Imported:
    """A graph, and how the model's own caller sees inputs and outputs (hetnn.structure): nothing where as lists."""

    graph: _core.Graph
    signature: dict[str, Any] = field(default_factory=dict)
    classes: dict[str, type] = field(default_factory=dict)
    # Of a model whose inputs share the name of a size: imports it again, with a size of each input's own.
    apart: Callable[[], Imported] | None = None
    defaults: Defaults | None = None
    # Of an exported program: what was read, in which torch may have decomposed operators.
    program: Any = None
    # Of such a program and of an ONNX model, by the names of nodes or tensors the values of the graph that they became.
    values: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Defaults:
    """Inputs for which an ONNX model has values: constants of the graph, unless they are opened."""

    inputs: list[str]  # all, in the model's order
    names: frozenset[str]  # of those with values
    opened: Callable[[frozenset[str]], Imported]  # imports it again, with these as inputs


def import_model(model: Any, fix: Mapping[str, Any] | None = None) -> Imported:
    """The graph of `model`: an ExportedProgram, an ONNX or TFLite model, a path, IR text, a graph itself,
    or what was imported before.

    `fix` has numbers for open sizes of an ONNX or TFLite model, and values for inputs of an ONNX model.

    InvalidModel for anything else, saying what was found; Unsupported with all operators that hetnn lacks.
    """
    with _uncollected():
        return _imported(model, fix)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Nearly all that importing makes stays: looking for garbage meanwhile, among all that is there, takes as long as
    all the rest."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _imported(model: Any, fix: Mapping[str, Any] | None) -> Imported:
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    is_text = isinstance(model, str) and (model.lstrip().startswith("graph @") or "\n" in model)
    if isinstance(model, (str, os.PathLike)) and not is_text:
        return _import_path(os.fspath(model), fix)
    if isinstance(model, bytes) and is_tflite(model):
        return _import_tflite(model, fix)
    if isinstance(model, bytes) or kind.split(".")[0] == "onnx":
        return _import_onnx(model, fix)
    _need_no(fix)
    if isinstance(model, Imported):
        return model
    if isinstance(model, _core.Graph):
        return Imported(model)
    if is_text:
        return Imported(_core.Graph.parse(model))
    if kind == "torch.export.exported_program.ExportedProgram":
        from hetnn.importers.torch.graph import import_exported_program

        return import_exported_program(model)
    if any(base.__module__.startswith("torch.nn.modules") for base in type(model).__mro__):
        raise InvalidModel(
            f"got the torch module {type(model).__name__} without what it is called with: give that too, "
            "args=(example_input,), or torch.export.export(model.eval(), (example_input,))."
        )
    raise InvalidModel(f"a model must be {_ACCEPTED}; got {kind}.")


def is_onnx(model: Any) -> bool:
    """Whether import_model takes it for an ONNX model: a ModelProto, its bytes, or the path of one that is there."""
    if isinstance(model, bytes):
        return not is_tflite(model)
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        try:
            return bool(path) and "\n" not in path and _is_there(Path(path)) and kind_of(path) == "onnx"
        except OSError:
            return False
    return type(model).__module__.split(".")[0] == "onnx"


def _import_path(path: str, fix: Mapping[str, Any] | None) -> Imported:
    if not path:
        raise InvalidModel(f"the path of the model is empty. A model must be {_ACCEPTED}.")
    if not _is_there(Path(path)):
        raise InvalidModel(f"there is no file '{path}'. A model must be {_ACCEPTED}.")
    try:
        kind = kind_of(path)
    except OSError as error:
        raise InvalidModel(f"'{path}' cannot be read: {error.strerror}. A model must be {_ACCEPTED}.") from error
    if kind == "hetnn":
        raise InvalidModel(f"'{path}' is compiled already. hetnn.load reads it.")
    if kind == "onnx":
        return _import_onnx(Path(path), fix)
    if kind == "tflite":
        return _import_tflite(path, fix)
    _need_no(fix)
    if kind == "pt2":
        return _import_pt2(path)
    return Imported(_core.Graph.parse(read_text(path)))


def _import_pt2(path: str) -> Imported:
    try:
        import torch

        from hetnn.importers.torch.graph import import_exported_program
    except ModuleNotFoundError as error:
        raise Unsupported(f"reading '{path}' needs {error.name}. Install hetnn[torch].") from error
    try:
        program = torch.export.load(path)
    except Exception as error:  # torch raises many kinds for a file that is not what it expects
        raise InvalidModel(
            f"torch could not read '{path}' as an exported program: {error}. Write it with torch.export.save."
        ) from error
    return import_exported_program(program)


def _import_onnx(model: Any, fix: Mapping[str, Any] | None) -> Imported:
    try:
        from hetnn.importers.onnx.graph import import_onnx
    except ModuleNotFoundError as error:
        raise Unsupported(f"reading ONNX models needs {error.name}. Install hetnn[onnx].") from error
    return import_onnx(model, fix)


def _import_tflite(model: str | bytes, fix: Mapping[str, Any] | None) -> Imported:
    try:
        from hetnn.importers.tflite.graph import import_tflite
    except ModuleNotFoundError as error:
        raise Unsupported(f"reading TFLite models needs {error.name}. Install hetnn[tflite].") from error
    return import_tflite(model, fix)


def _need_no(fix: Mapping[str, Any] | None) -> None:
    if fix:
        raise InvalidModel(
            "fix is for ONNX models and TFLite files. Export others with the sizes and values that stay as they are."
        )


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # no name a file could have
        return False
