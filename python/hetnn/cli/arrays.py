"""The arrays that commands feed to an executable and keep from it."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import hetnn

if TYPE_CHECKING:
    from hetnn import Executable

Array = NDArray[Any]

# Element types by hetnn's name, where numpy's name is another.
_NUMPY_NAMES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
}


def read_arrays(path: str) -> dict[str, Array]:
    """The arrays of an .npz file; nothing in it is unpickled."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise hetnn.InvalidModel(f"'{path}' holds one array; expected an .npz, as numpy.savez writes it.")
        with loaded as file:
            return {name: file[name] for name in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, hetnn.Error):
            raise
        raise hetnn.InvalidModel(f"'{path}' is no .npz file: {error}. Write it with numpy.savez.") from error


def match_inputs(executable: Executable, arrays: dict[str, Array], path: str) -> list[Array]:
    """The arrays in the order of the executable's inputs: by name, or in the file's order where no name fits."""
    names = [value.name for value in executable.inputs]
    if set(arrays) == set(names):
        return [arrays[name] for name in names]
    if len(arrays) == len(names) and not set(arrays) & set(names):
        return list(arrays.values())
    raise hetnn.InvalidModel(
        f"'{path}' holds {', '.join(arrays) or 'nothing'}; the model's inputs are {', '.join(names)}. "
        "Name each array after its input, or none of them."
    )


def random_inputs(executable: Executable, seed: int = 0) -> list[Array]:
    """Made-up inputs of the declared shapes, the same for the same seed; varying sizes as in the export's example."""
    rng = np.random.default_rng(seed)
    arrays: list[Array] = []
    for value in executable.inputs:
        shape = executable.example_shape(value.name)
        dtype = np.dtype(_NUMPY_NAMES.get(value.dtype, value.dtype))
        if dtype.kind == "f":
            arrays.append(rng.standard_normal(shape).astype(dtype))
        elif dtype.kind == "b":
            arrays.append(np.ones(shape, dtype))
        else:
            arrays.append(rng.integers(0, 2, shape).astype(dtype))
    return arrays


def as_list(outputs: Any) -> list[Array]:
    """What a call returns, as a list."""
    return [np.asarray(output) for output in (outputs if isinstance(outputs, (tuple, list)) else [outputs])]


def largest_difference(got: Sequence[Array], want: Sequence[Array]) -> float:
    """The greatest difference, relative to the greatest magnitude of the wanted array."""
    worst = 0.0
    for one, other in zip(got, want, strict=True):
        if one.shape != other.shape:
            raise hetnn.InvalidModel(f"an output has shape {list(one.shape)}; the expected one {list(other.shape)}")
        if one.size:
            scale = float(np.abs(other.astype(np.float64)).max()) or 1.0
            difference = float(np.abs(one.astype(np.float64) - other.astype(np.float64)).max()) / scale
            worst = max(worst, difference if np.isfinite(difference) else np.inf)
    return worst
