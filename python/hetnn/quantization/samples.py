"""Samples of a model's inputs, from whatever holds them, as lists of arrays in the order of the inputs."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sized
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetnn.element_types import array_of, numpy_type
from hetnn.errors import InvalidModel
from hetnn.executable import Executable, Port
from hetnn.progress import part
from hetnn.report.text import count

Array = NDArray[Any]
Sample = list[Array]

_EXPECTED = (
    "an iterable of inputs (an array, a dict by name, or a tuple each), an .npz file with an axis of samples before "
    "those of each input, or a folder of .npy or .npz files, one a sample"
)


def read_samples(samples: Any, executable: Executable) -> Iterator[Sample]:
    """One list of arrays a sample, read as they are asked for. InvalidModel for one that does not fit the model."""
    given = _from_path(Path(samples), executable) if isinstance(samples, (str, os.PathLike)) else samples
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise InvalidModel(f"samples must be {_EXPECTED}; got {type(samples).__name__}.")
    for number, sample in enumerate(given):
        checked = _checked(sample, number, executable)
        if isinstance(given, Sized):
            with part(number, len(given)):
                yield checked
        else:
            yield checked


def _checked(sample: Any, number: int, executable: Executable) -> Sample:
    named = sample if isinstance(sample, Mapping) else {}
    placed = () if isinstance(sample, Mapping) else tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)
    try:
        passed = executable._arguments.passed(placed, named)
        arrays = [array_of(value) if hasattr(value, "detach") else np.asarray(value) for value in passed]
        _check(arrays, executable.inputs)
    except InvalidModel as error:
        raise InvalidModel(f"sample {number}: {error}") from error
    return arrays


def _check(arrays: Sample, ports: list[Port]) -> None:
    if len(arrays) != len(ports):
        raise InvalidModel(f"the model takes {count(len(ports), 'input')}, {_names(ports)}; got {len(arrays)}.")
    for array, port in zip(arrays, ports, strict=True):
        fits = len(array.shape) == len(port.shape) and all(
            not isinstance(want, int) or want == got for want, got in zip(port.shape, array.shape, strict=True)
        )
        if not fits:
            raise InvalidModel(f"input '{port.name}' must be {list(port.shape)}; got {list(array.shape)}.")
        if array.dtype != numpy_type(port.dtype):
            raise InvalidModel(f"input '{port.name}' must be {numpy_type(port.dtype)}; got {array.dtype}. Convert it.")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InvalidModel(f"input '{port.name}' holds NaN or infinity, of which no scale can be learned.")


def _names(ports: list[Port]) -> str:
    return ", ".join(port.name for port in ports)


def _from_path(path: Path, executable: Executable) -> Iterator[Any]:
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".npy", ".npz"))
        return (_load(file) for file in files)
    if not path.exists():
        raise InvalidModel(f"there is no file or folder '{path}' with samples.")
    held = _load(path)
    if not isinstance(held, dict):
        held = {executable.inputs[0].name: held} if len(executable.inputs) == 1 else {path.stem: held}
    return _rows(held, executable)


def _rows(held: dict[str, Array], executable: Executable) -> Iterator[dict[str, Array]]:
    """Of arrays with an axis of samples in front; or of whole batches one behind the other, as long as the model's."""
    ports = {port.name: port for port in executable.inputs}
    if len(held) == len(ports) and not set(held) & set(ports):
        held = dict(zip(ports, held.values(), strict=True))
    counts: dict[str, int] = {}
    steps: dict[str, int] = {}
    for name, array in held.items():
        axes = len(ports[name].shape) if name in ports else array.ndim - 1
        if array.ndim == axes and axes > 0:
            first = ports[name].shape[0]
            steps[name] = first if isinstance(first, int) else 1
            counts[name] = array.shape[0] // max(steps[name], 1)
        else:
            steps[name], counts[name] = 0, array.shape[0] if array.ndim else 0
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise InvalidModel(f"every input must have as many samples; found {found}.")
    for k in range(min(counts.values(), default=0)):
        yield {
            name: array[k * steps[name] : (k + 1) * steps[name]] if steps[name] else array[k]
            for name, array in held.items()
        }


def _load(path: Path) -> Any:
    try:
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            return loaded
        with loaded as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidModel(f"'{path}' is no .npz or .npy file: {error}. Write it with numpy.savez.") from error
