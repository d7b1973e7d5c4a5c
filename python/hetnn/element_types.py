"""What others call hetnn's element types, one table, that of the bindings; tensors of torch as arrays, and back.

Does not import torch: who has a tensor has done so.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from hetnn import _runtime

# Those that numpy has itself.
NUMPY: dict[str, np.dtype[Any]] = _runtime.numpy_types()
# Of any. Unsupported where ml_dtypes, which has it, is not installed.
numpy_type = _runtime.numpy_type

# All, each with what others call it.
TYPES = _runtime.element_types()

# Those of torch that numpy lacks, by the name that torch and ml_dtypes give them: ours, and the integers of their bits.
_BEYOND_NUMPY = {
    row.torch: (row.name, "int16" if row.bits == 16 else "uint8")
    for row in TYPES
    if row.torch and row.name not in NUMPY
}


def array_of(tensor: Any) -> npt.NDArray[Any]:
    """The values of a dense torch tensor, in its own memory where that lies on the CPU.

    Unsupported for a type that numpy has from ml_dtypes alone where that is not installed; RuntimeError or TypeError
    of torch's own where a tensor has no values, or no array has its type.
    """
    torch = sys.modules["torch"]
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _BEYOND_NUMPY:
        array: npt.NDArray[Any] = plain.numpy()
        return array
    ours, integers = _BEYOND_NUMPY[name]
    bits: npt.NDArray[Any] = plain.view(getattr(torch, integers)).numpy()
    return bits.view(numpy_type(ours))


def tensor_of(array: npt.NDArray[Any]) -> Any:
    """A torch tensor over the memory of an array that `array_of` could have given."""
    torch = sys.modules["torch"]
    name = array.dtype.name
    if name not in _BEYOND_NUMPY:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(_BEYOND_NUMPY[name][1])).view(getattr(torch, name))
