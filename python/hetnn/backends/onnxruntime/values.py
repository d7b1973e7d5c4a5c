"""Arrays into a session and out of it, of every element type that is whole bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.element_types import NUMPY, TYPES, numpy_type

# What numpy has from others alone, as ONNX Runtime calls it: our name. And the numbers of ONNX's types.
_BEYOND_NUMPY = {
    f"tensor({row.onnx.lower()})": row.name for row in TYPES if row.onnx and row.name not in NUMPY and row.bits >= 8
}
_NUMBERS = {"bf16": 16, "f8e4m3fn": 17, "f8e4m3fnuz": 18, "f8e5m2": 19, "f8e5m2fnuz": 20, "f8e8m0": 24}
# What ONNX Runtime holds several of in a byte.
PACKED = {f"tensor({row.onnx.lower()})" for row in TYPES if row.onnx and row.bits < 8 and row.name not in NUMPY}


def types_of(session: Any) -> set[str]:
    """The types of inputs and outputs, as ONNX Runtime calls them."""
    return {port.type for port in (*session.get_inputs(), *session.get_outputs())}


def run(session: Any, arrays: list[Any]) -> Sequence[Any]:
    """The outputs of a session for its inputs, in order."""
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if not types_of(session) & _BEYOND_NUMPY.keys():
        return session.run(None, dict(zip((port.name for port in inputs), arrays, strict=True)))  # type: ignore[no-any-return]
    given = {port.name: _value(array, port.type) for port, array in zip(inputs, arrays, strict=True)}
    found = session.run_with_ort_values([port.name for port in outputs], given)
    return [_array(value, port.type) for value, port in zip(found, outputs, strict=True)]


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
