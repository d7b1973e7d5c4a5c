"""Arrays into a session and out of it, of every element type that is whole bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.backends.backend import Run
from hetnn.element_types import NUMPY, TYPES, numpy_type

# Element types by what ONNX Runtime calls arrays of them.
_TYPES = {f"tensor({row.onnx.lower()})": row for row in TYPES if row.onnx}
# Those that numpy has itself.
IN_NUMPY = {called: NUMPY[row.name] for called, row in _TYPES.items() if row.name in NUMPY}
# Whole bytes that numpy has from others alone: our name. And the numbers of ONNX's types.
_BEYOND_NUMPY = {called: row.name for called, row in _TYPES.items() if called not in IN_NUMPY and row.bits >= 8}
_NUMBERS = {"bf16": 16, "f8e4m3fn": 17, "f8e4m3fnuz": 18, "f8e5m2": 19, "f8e5m2fnuz": 20, "f8e8m0": 24}
# What ONNX Runtime holds several of in a byte.
PACKED = {called for called, row in _TYPES.items() if called not in IN_NUMPY and row.bits < 8}


def types_of(session: Any) -> set[str]:
    """The types of inputs and outputs, as ONNX Runtime calls them."""
    return {port.type for port in (*session.get_inputs(), *session.get_outputs())}


def runner(session: Any) -> Run:
    """Runs a session: arrays of its inputs, in order, to those of its outputs."""
    inputs, outputs = session.get_inputs(), session.get_outputs()
    names, results = [port.name for port in inputs], [port.name for port in outputs]

    def run(arrays: list[Any]) -> Sequence[Any]:
        return session.run(None, dict(zip(names, arrays, strict=True)))  # type: ignore[no-any-return]

    def run_values(arrays: list[Any]) -> Sequence[Any]:
        given = {port.name: _value(array, port.type) for port, array in zip(inputs, arrays, strict=True)}
        found = session.run_with_ort_values(results, given)
        return [_array(value, port.type) for value, port in zip(found, outputs, strict=True)]

    return run_values if types_of(session) & _BEYOND_NUMPY.keys() else run


def _value(array: Any, kind: str) -> Any:
    from onnxruntime import OrtValue

    if kind not in _BEYOND_NUMPY:
        return OrtValue.ortvalue_from_numpy(array)
    bits = array.view(f"uint{8 * array.itemsize}")
    return OrtValue.ortvalue_from_numpy_with_onnx_type(bits, _NUMBERS[_BEYOND_NUMPY[kind]])


def _array(value: Any, kind: str) -> Any:
    if kind not in _BEYOND_NUMPY:
        return value.numpy()
    dtype, shape = numpy_type(_BEYOND_NUMPY[kind]), value.shape()
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(value.data_ptr(), size) if size else b"", dtype).reshape(shape)
