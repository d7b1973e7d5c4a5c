"""What callers give as arrays: of numpy, tensors of torch, whatever has DLPack or the buffer protocol."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hetnn.element_types import array_at_once, array_of
from hetnn.errors import InvalidModel, Unsupported

Array = npt.NDArray[Any]
_ARRAYS = frozenset([np.ndarray])
_DLPACK_CPU = 1


def is_torch(value: Any) -> bool:
    """Whether it is a tensor of torch, which is not imported for this."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def are_arrays(values: Any) -> bool:
    """Whether they are plain arrays in a list."""
    return type(values) is list and {*map(type, values)} <= _ARRAYS


def as_arrays(values: Sequence[Any], called: Callable[[int], str]) -> list[Array]:
    """Their memory as arrays, without copies where it allows; `called` names the value of an index in errors."""
    if not hasattr(values, "__iter__"):
        raise InvalidModel(f"the arrays of a run must be a list; got {type(values).__name__}. Write [x].")
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    arrays: list[Array] = []
    for value in values:
        if type(value) is np.ndarray:
            arrays.append(value)
            continue
        array = array_at_once(value) if type(value) is tensor else None
        arrays.append(_as_array(value, partial(called, len(arrays))) if array is None else array)
    return arrays


def _as_array(value: Any, called: Callable[[], str]) -> Array:
    """The value's memory as a numpy array, without a copy where it allows; `called` names it in errors."""
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidModel(
            f"{called()} is a masked array, whose mask would be lost; it must be a plain one. Call .filled(value)."
        )
    if isinstance(value, np.ndarray):
        return value
    if is_torch(value):
        if value.device.type != "cpu":
            raise InvalidModel(
                f"{called()} lies on the device '{value.device}'; it must lie on the cpu. Call .cpu() on it."
            )
        odd = odd_kind(value)
        if odd is not None:
            raise InvalidModel(f"{called()} is a {odd[0]} tensor; hetnn takes dense ones. {odd[1]}")
        try:
            return array_of(value)
        except Unsupported as error:
            raise Unsupported(f"{called()} has no array: {error}") from error
        except (RuntimeError, TypeError) as error:  # fake tensors, element types that numpy lacks
            raise InvalidModel(f"{called()} has no array: {error} Make it a plain tensor.") from error
    if hasattr(value, "__dlpack__"):
        device = value.__dlpack_device__()[0] if hasattr(value, "__dlpack_device__") else _DLPACK_CPU
        if device != _DLPACK_CPU:
            raise InvalidModel(
                f"{called()} lies on the DLPack device {int(device)}; it must lie on the cpu. Copy it there."
            )
        return np.from_dlpack(value)
    if hasattr(value, "__array_interface__") or _has_buffer(value) or isinstance(value, np.generic):
        return np.asarray(value)
    raise InvalidModel(
        f"{called()} must be a tensor or an array; got {type(value).__name__}. Wrap it with numpy.asarray."
    )


def odd_kind(tensor: Any) -> tuple[str, str] | None:
    """Of a torch tensor whose values do not lie in memory one after another: its kind, and what to do."""
    if tensor.is_quantized:
        return "quantized", "Call .dequantize() on it, or .int_repr() for the integers."
    if tensor.is_nested:
        return "nested", "Run its parts one by one, or pad them to one shape."
    if tensor.layout != sys.modules["torch"].strided:
        return "sparse", "Call .to_dense() on it."
    return None


def _has_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except TypeError:
        return False
    return True
