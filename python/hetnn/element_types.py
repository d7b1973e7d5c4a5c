"""What others call hetnn's element types, one table, that of the bindings; tensors of torch as arrays, and back.

Does not import torch: who has a tensor has done so.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hetnn import _runtime
from hetnn.errors import Unsupported

# Those that numpy has itself.
NUMPY: dict[str, np.dtype[Any]] = _runtime.numpy_types()
# Of any. Unsupported where ml_dtypes, which has it, is not installed.
numpy_type = _runtime.numpy_type

# All, each with what others call it.
TYPES = _runtime.element_types()

# In which reals are computed, from the narrowest to the widest.
FLOATS = ("f16", "bf16", "f32", "f64")

# Those of torch that numpy lacks, by the name that torch and ml_dtypes give them: ours, and the integers of their bits.
_BEYOND_NUMPY = {
    row.torch: (row.name, "int16" if row.bits == 16 else "uint8")
    for row in TYPES
    if row.torch and row.name not in NUMPY
}


def is_float(dtype: str) -> bool:
    """Whether an element type is one of reals that compute: f16, bf16, f32 or f64."""
    return dtype in FLOATS


@cache
def _beyond_numpy(dtype: Any) -> tuple[Any, np.dtype[Any]] | None:
    """Of a type of torch's that numpy lacks: integers of its bits in torch, and the arrays' type; None of others."""
    name = str(dtype).removeprefix("torch.")
    if name not in _BEYOND_NUMPY:
        return None
    ours, integers = _BEYOND_NUMPY[name]
    return getattr(sys.modules["torch"], integers), np.dtype(numpy_type(ours))


@cache
def _array_type(dtype: Any) -> np.dtype[Any] | None:
    """The arrays' type of a type of torch's; None where it has none, or tensors have more than their memory."""
    try:
        beyond = _beyond_numpy(dtype)
    except Unsupported:
        return None
    if beyond is not None:
        return beyond[1]
    name = str(dtype).removeprefix("torch.")
    return None if dtype.is_complex else next((NUMPY[row.name] for row in TYPES if row.torch == name), None)


def array_at_once(tensor: Any) -> npt.NDArray[Any] | None:
    """As `array_of`, of a tensor that is nothing but its memory; None of any other."""
    dtype = _array_type(tensor.dtype)
    over: npt.NDArray[Any] | None = None if dtype is None else _runtime.array_over(tensor, dtype)
    if over is not None:
        return over
    try:
        beyond = _beyond_numpy(tensor.dtype)
        array: npt.NDArray[Any] = tensor.numpy() if beyond is None else tensor.view(beyond[0]).numpy().view(beyond[1])
    except (RuntimeError, TypeError, Unsupported):  # of torch's own; the way that takes longer says why
        return None
    return array


def array_of(tensor: Any) -> npt.NDArray[Any]:
    """The values of a dense torch tensor, in its own memory where that lies on the CPU.

    Unsupported for a type that numpy has from ml_dtypes alone where that is not installed; RuntimeError or TypeError
    of torch's own where a tensor has no values, or no array has its type.
    """
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    beyond = _beyond_numpy(tensor.dtype)
    array: npt.NDArray[Any] = plain.numpy() if beyond is None else plain.view(beyond[0]).numpy().view(beyond[1])
    return array


@cache
def _name_of(dtype: np.dtype[Any]) -> str:
    return str(dtype.name)


def tensor_of(array: npt.NDArray[Any]) -> Any:
    """A torch tensor over the memory of an array that `array_of` could have given."""
    torch = sys.modules["torch"]
    name = _name_of(array.dtype)
    if name not in _BEYOND_NUMPY:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(_BEYOND_NUMPY[name][1])).view(getattr(torch, name))
