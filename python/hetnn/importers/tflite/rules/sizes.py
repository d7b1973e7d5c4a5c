"""Integers that depend on sizes that a file leaves open, as shapes do: computed as arrays of sizes, not by nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hetnn.importers.lowering import sizes
from hetnn.importers.tflite.model import Array
from hetnn.importers.tflite.rules.call import Call


def is_open(array: Array | None) -> bool:
    """Whether some of the integers depend on an open size."""
    return array is not None and array.dtype == object


def of_sizes(call: Call) -> list[Array] | None:
    """What an operator makes of such integers; None where it has no such meaning."""
    arrays = [call.known(k) for k in range(len(call.inputs))]
    if call.name not in _MEANINGS or any(array is None for array in arrays):
        return None
    found = _MEANINGS[call.name](call, [array for array in arrays if array is not None])
    return found if isinstance(found, list) else [np.asarray(found)]


def settled(array: Array) -> Array:
    """Integers that are all known as numbers."""
    if array.dtype == object and all(isinstance(size, int) for size in array.reshape(-1).tolist()):
        return array.astype(np.int64)
    return array


_divide, _modulo, _maximum, _minimum = (
    np.frompyfunc(each, 2, 1) for each in (sizes.divide, sizes.modulo, sizes.maximum, sizes.minimum)
)


def _by(function: Callable[..., Any]) -> Callable[[Call, list[Array]], Any]:
    return lambda _, arrays: function(*(array.astype(object) for array in arrays))


def _strided_slice(call: Call, arrays: list[Array]) -> Any:
    x, *bounds = arrays
    rows = [[int(number) for number in bound.reshape(-1)] for bound in bounds]
    masks = [int(call.option(f"{name}Mask")) for name in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")]
    index: list[Any] = []
    for k, (begin, end, step) in enumerate(zip(*rows, strict=True)):
        begins, ends, ellipsis, new, shrink = (mask >> k & 1 for mask in masks)
        if ellipsis:
            index.append(...)
        elif new:
            index.append(None)
        else:
            index.append(begin if shrink else slice(None if begins else begin, None if ends else end, step))
    return x[tuple(index)]


def _slice(_: Call, arrays: list[Array]) -> Any:
    x, begins, lengths = arrays
    pairs = zip(begins.reshape(-1).tolist(), lengths.reshape(-1).tolist(), strict=True)
    return x[tuple(slice(begin, None if size == -1 else begin + size) for begin, size in pairs)]


def _squeeze(call: Call, arrays: list[Array]) -> Any:
    return arrays[0].squeeze(tuple(call.option("SqueezeDims", [])) or None)


def _reshape(call: Call, arrays: list[Array]) -> Any:
    return arrays[0].reshape(arrays[1].astype(int) if len(arrays) > 1 else call.option("NewShape", []))


def _unpack(call: Call, arrays: list[Array]) -> list[Array]:
    return [np.asarray(part) for part in np.moveaxis(arrays[0], int(call.option("Axis")), 0)]


_MEANINGS: Mapping[str, Callable[[Call, list[Array]], Any]] = {
    "ADD": _by(np.add),
    "CAST": lambda _, arrays: arrays[0],
    "CONCATENATION": lambda call, arrays: np.concatenate(arrays, int(call.option("Axis"))),
    "EXPAND_DIMS": lambda _, arrays: np.expand_dims(arrays[0], int(arrays[1])),
    "FLOOR_DIV": _by(_divide),
    "FLOOR_MOD": _by(_modulo),
    "GATHER": lambda call, arrays: np.take(arrays[0], arrays[1].astype(int), int(call.option("Axis"))),
    "MAXIMUM": _by(_maximum),
    "MINIMUM": _by(_minimum),
    "MUL": _by(np.multiply),
    "PACK": lambda call, arrays: np.stack(arrays, int(call.option("Axis"))),
    "REDUCE_PROD": lambda _, arrays: np.prod(arrays[0], axis=tuple(arrays[1].reshape(-1).tolist())),
    "RESHAPE": _reshape,
    "SLICE": _slice,
    "SQUEEZE": _squeeze,
    "STRIDED_SLICE": _strided_slice,
    "SUB": _by(np.subtract),
    "UNPACK": _unpack,
}
