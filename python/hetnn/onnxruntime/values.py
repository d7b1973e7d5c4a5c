"""Arrays by ONNX Runtime's names, and what fits an input."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetnn import element_types
from hetnn.onnxruntime.errors import InvalidArgument
from hetnn.onnxruntime.options import NodeArg

Array = NDArray[Any]


class OrtValue:
    """An array with ONNX Runtime's names around it; it lies on the CPU."""

    def __init__(self, array: Any) -> None:
        self._array = array

    @classmethod
    def ortvalue_from_numpy(cls, array: Array, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """Shares the array's memory."""
        return cls(array)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """Zeros of a shape and numpy type."""
        return cls(np.zeros(tuple(shape), element_type))

    def numpy(self) -> Any:
        """The array itself."""
        return self._array

    def shape(self) -> list[int]:
        """Of the array."""
        return list(np.shape(self._array))

    def element_type(self) -> Any:
        """The numpy type of its elements."""
        return self._array.dtype

    def data_type(self) -> str:
        """Such as "tensor(float)"."""
        return type_of(self._array)

    def device_name(self) -> str:
        """Always "cpu"."""
        return "cpu"

    def is_tensor(self) -> bool:
        """Whether it is no sequence."""
        return not isinstance(self._array, list)

    def is_tensor_sequence(self) -> bool:
        """Whether it is a list of tensors."""
        return isinstance(self._array, list)

    def is_sparse_tensor(self) -> bool:
        """Always False."""
        return False

    def has_value(self) -> bool:
        """Whether it is no empty optional."""
        return self._array is not None

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._array.ctypes.data)

    def tensor_size_in_bytes(self) -> int:
        """Of its elements."""
        return int(self._array.nbytes)

    def update_inplace(self, array: Array) -> None:
        """Copies values in."""
        np.copyto(self._array, array)


def array_at(device_type: str, element_type: Any, shape: Sequence[int], pointer: int) -> Array:
    """Memory of the caller's as an array."""
    if device_type != "cpu":
        raise InvalidArgument(f"memory must lie on the cpu; got the device '{device_type}'.")
    dtype = np.dtype(element_type)
    size = int(np.prod(shape)) * dtype.itemsize
    bytes_there = (ctypes.c_byte * size).from_address(pointer)
    return np.frombuffer(bytes_there, dtype).reshape(tuple(shape))


def arg_of(value: Any) -> NodeArg:
    """Of an ONNX ValueInfoProto."""
    kind = value.type.WhichOneof("value")
    inner, called = value.type, "{}"
    while kind in ("sequence_type", "optional_type"):
        called = called.format("seq({})" if kind == "sequence_type" else "optional({})")
        inner = getattr(inner, kind).elem_type
        kind = inner.WhichOneof("value")
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return NodeArg(value.name, [], called.format("map"))
    import onnx

    tensor = getattr(inner, kind)
    name = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
    sizes = [d.dim_param or d.dim_value or None for d in tensor.shape.dim]
    return NodeArg(value.name, sizes, called.format(f"tensor({name})"))


# What ONNX Runtime calls arrays, by hetnn's name of their element type and by numpy's.
TYPES = {row.name: f"tensor({row.onnx.lower()})" for row in element_types.TYPES if row.onnx}
_BY_NUMPY = {row.numpy: TYPES[row.name] for row in element_types.TYPES if row.onnx} | {"object": "tensor(string)"}
_NUMPY = {TYPES[name]: dtype for name, dtype in element_types.NUMPY.items()}


def type_of(array: Any) -> str:
    """Such as "tensor(float)"."""
    name = np.asarray(array).dtype.name
    return _BY_NUMPY.get(name, f"tensor({name})")


def fed(value: Any, arg: NodeArg) -> Any:
    """The array that an input takes: of lists and numbers one of its type; of arrays themselves, which must have it."""
    if isinstance(value, OrtValue):
        value = value.numpy()
    if not arg.type.startswith("tensor("):
        return value
    if arg.type == "tensor(string)":
        return np.asarray(value, object) if not isinstance(value, np.ndarray) else value
    if not isinstance(value, np.ndarray):
        value = np.asarray(value, _NUMPY.get(arg.type))
    if type_of(value) != arg.type:
        raise InvalidArgument(
            "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Unexpected input data type. Actual: "
            f"({type_of(value)}) , expected: ({arg.type}) for input '{arg.name}'"
        )
    if value.ndim != len(arg.shape) and arg.shape:
        raise InvalidArgument(
            f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid rank for input: {arg.name} Got: {value.ndim} "
            f"Expected: {len(arg.shape)} Please fix either the inputs/outputs or the model."
        )
    return value
