"""A part of a model with its inputs and what is expected of it, in one file: an .npz, nothing in which is unpickled."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hetnn.arrays import Array
from hetnn.errors import InvalidModel

if TYPE_CHECKING:
    from hetnn.inside.compare import Comparison

_FORMAT = "hetnn replay 1"


@dataclass(frozen=True)
class Part:
    """IR text, target and options that it is compiled with, the bound that was set, and arrays by name."""

    graph: str
    target: dict[str, Any]
    options: dict[str, Any]
    bound: float | None
    inputs: dict[str, Array]
    expected: dict[str, Array]

    def run(self) -> tuple[dict[str, Array], dict[str, Array], list[dict[str, Any]]]:
        """Compiles and runs it: what is expected, what came, and the rows of its nodes."""
        from hetnn import _runtime
        from hetnn.api import compile
        from hetnn.inside.values import real

        executable = compile(self.graph, self.target, **self.options)
        results = executable.run([self.inputs[port.name] for port in executable.inputs])
        quants = _runtime.quants(executable._engine)
        names = [port.name for port in executable.outputs]
        got = {n: real(np.asarray(r), q) for n, r, q in zip(names, results, quants, strict=True)}
        return self.expected, got, executable.report(format="dict")["graph"]


def write_part(path: str | os.PathLike[str], part: Part) -> None:
    """Writes the file; OSError of it."""
    arrays = {f"input/{name}": array for name, array in part.inputs.items()}
    arrays |= {f"expected/{name}": array for name, array in part.expected.items()}
    # Types that numpy lacks are stored as bytes.
    types = {name: array.dtype.name for name, array in arrays.items() if array.dtype.kind == "V"}
    arrays = {name: array.view(np.uint8) if name in types else array for name, array in arrays.items()}
    about = {"format": _FORMAT, "target": part.target, "options": part.options, "bound": part.bound, "types": types}
    arrays |= {"about": _bytes(json.dumps(about)), "graph": _bytes(part.graph)}
    with open(path, "wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def read_part(path: str | os.PathLike[str]) -> Part:
    """Reads what `Executable.bisect` wrote. InvalidModel for any other file."""
    try:
        with np.load(os.fspath(path), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(_text(arrays.pop("about")))
        graph = _text(arrays.pop("graph"))
        if about["format"] != _FORMAT:
            raise InvalidModel(f"'{path}' is of format {about['format']!r}; this version of hetnn reads '{_FORMAT}'.")
        target, options, bound = about["target"], about["options"], about["bound"]
        for name, dtype in about["types"].items():
            arrays[name] = arrays[name].view(_named_type(dtype))
    except InvalidModel:
        raise
    except (ValueError, KeyError, TypeError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise InvalidModel(f"'{path}' is no file of exe.bisect or `hetnn bisect`: {error}.") from error
    return Part(graph, target, options, bound, _under("input/", arrays), _under("expected/", arrays))


def replay(path: str | os.PathLike[str]) -> Comparison:
    """Compiles and runs the part in a file that `Executable.bisect` wrote, and compares it with what is expected.

    InvalidModel for any other file.
    """
    from hetnn.inside.compare import compare_values

    part = read_part(path)
    return compare_values(*part.run(), "what is expected", part.bound)


def _named_type(name: str) -> Any:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))


def _under(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _bytes(text: str) -> Array:
    return np.frombuffer(text.encode(), np.uint8)


def _text(array: Array) -> str:
    return array.tobytes().decode()
