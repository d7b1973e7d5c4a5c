"""Sizes and inputs of an ONNX model that its caller fixes when compiling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from hetnn.errors import InvalidModel


@dataclass(frozen=True)
class Fixed:
    """Sizes by the model's names of them, and values by the names of inputs, which are inputs no longer."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    inputs: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)


# What exporters write where a size is open and has no name: two of them may differ.
_NO_NAMES = frozenset({"", "?", "*", "None", "-1"})


def read_size(dim: Any) -> int | str | None:
    """A size as a model declares it: a number, or what the model calls it; None where it is open without a name."""
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return None if dim.dim_param.strip() in _NO_NAMES else str(dim.dim_param)


def size_name(name: str, axis: int, dim: Any) -> str:
    """What an open size of an input is called: as the model does, or by the input and the axis."""
    return str(read_size(dim) or f"{name}_{axis}")


def read_fixed(graph: onnx.GraphProto, given: Mapping[str, Any]) -> Fixed:
    """What is given, checked against the model. InvalidModel for other names, and for values that do not fit."""
    weights = {tensor.name for tensor in graph.initializer}
    every = {value.name: value.type.tensor_type for value in graph.input}
    inputs = {name: tensor for name, tensor in every.items() if name not in weights}
    open_sizes = {
        size_name(name, axis, dim)
        for name, tensor in inputs.items()
        for axis, dim in enumerate(tensor.shape.dim)
        if not isinstance(read_size(dim), int)
    }
    sizes: dict[str, int] = {}
    values: dict[str, np.ndarray[Any, Any]] = {}
    for name, value in given.items():
        if name in every:
            values[name] = _value(name, every[name], value)
        elif name in open_sizes:
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
                raise InvalidModel(f"fix: the size '{name}' must be a number that is not negative; got {value!r}.")
            sizes[name] = int(value)
        else:
            raise InvalidModel(
                f"fix: the model has no input and no open size '{name}'. Its inputs are {', '.join(inputs) or 'none'}; "
                f"its open sizes {', '.join(sorted(open_sizes)) or 'none'}."
            )
    return Fixed(sizes, values)


def _value(name: str, tensor: onnx.TypeProto.Tensor, value: Any) -> np.ndarray[Any, Any]:
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        array = np.asarray(value)
        fits = array.dtype == dtype or (
            not isinstance(value, np.ndarray) and np.can_cast(array.dtype, dtype, "same_kind")
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidModel(f"fix: the input '{name}' is no tensor of numbers that could be fixed: {error}.") from error
    sizes = [read_size(dim) for dim in tensor.shape.dim]
    fits = fits and array.ndim == len(sizes)
    fits = fits and all(size == n for size, n in zip(sizes, array.shape, strict=True) if isinstance(size, int))
    if not fits:
        wanted = ["?" if size is None else size for size in sizes]
        raise InvalidModel(
            f"fix: the input '{name}' must be {dtype}{wanted}; got {array.dtype}{list(array.shape)}. "
            "Give an array of that type and shape."
        )
    return array.astype(dtype)
