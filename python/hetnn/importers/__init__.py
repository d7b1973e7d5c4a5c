"""Importers: from what users have to a graph of the intermediate representation."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hetnn import _core
from hetnn.errors import InvalidModel, Unsupported
from hetnn.text_file import read_text

_ACCEPTED = (
    "a torch.export.ExportedProgram, an ONNX model (its path, bytes or ModelProto), the path of a .pt2 file, "
    "or IR text (or a path of it)"
)


@dataclass(frozen=True)
class Imported:
    """A graph, and how the model's own caller sees its outputs."""

    graph: _core.Graph
    signature: dict[str, Any] = field(default_factory=dict)


def import_model(model: Any) -> Imported:
    """The graph of `model`: an ExportedProgram, an ONNX model, a path, IR text, or a graph itself.

    InvalidModel for anything else, saying what was found; Unsupported with all operators that hetnn lacks.
    """
    if isinstance(model, _core.Graph):
        return Imported(model)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    if kind == "torch.export.exported_program.ExportedProgram":
        from hetnn.importers.torch_export import import_exported_program

        return import_exported_program(model)
    if isinstance(model, (str, os.PathLike)):
        return _import_text_or_path(os.fspath(model))
    if any(base.__module__.startswith("torch.nn.modules") for base in type(model).__mro__):
        raise InvalidModel(
            f"got the torch module {type(model).__name__}; export it first: "
            "torch.export.export(model.eval(), (example_input,))."
        )
    if isinstance(model, bytes) or kind.split(".")[0] == "onnx":
        return _import_onnx(model)
    raise InvalidModel(f"a model must be {_ACCEPTED}; got {kind}.")


def _import_text_or_path(text: str) -> Imported:
    if text.lstrip().startswith("graph @") or "\n" in text:
        return Imported(_core.Graph.parse(text))
    path = Path(text)
    if not _is_there(path):
        raise InvalidModel(f"there is no file '{text}'. A model must be {_ACCEPTED}.")
    if path.suffix == ".onnx":
        return _import_onnx(path)
    if path.suffix == ".pt2":
        import torch

        from hetnn.importers.torch_export import import_exported_program

        return import_exported_program(torch.export.load(path))
    return Imported(_core.Graph.parse(read_text(path)))


def _import_onnx(model: Any) -> Imported:
    try:
        from hetnn.importers.onnx_graph import import_onnx
    except ModuleNotFoundError as error:
        raise Unsupported(f"reading ONNX models needs {error.name}. Install hetnn[onnx].") from error
    return import_onnx(model)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # no name a file could have
        return False
