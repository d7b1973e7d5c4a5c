"""Reading ONNX models: from paths, bytes and protos, with weights in files beside the model."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from onnx import numpy_helper

from hetnn.element_types import TYPES
from hetnn.errors import InvalidModel, Unsupported
from hetnn.files import read_bytes
from hetnn.importers.onnx.data_aside import LARGE_BYTES, read_aside

_MOST_BYTES = (1 << 31) - 1  # of a message, as protobuf has it; larger models keep weights in files of their own
_MOST_ELEMENTS = 1 << 28  # of a sparse tensor that is made dense
_WIDEST_BYTES = 16  # of an element, where values must lie to be read as they are


def numbered(known: Mapping[str, int]) -> dict[int, str]:
    """Element types by number, of which the package onnx knows these: older ones lack the newest."""
    return {known[row.onnx]: row.name for row in TYPES if row.onnx in known}


DTYPES = numbered(dict(onnx.TensorProto.DataType.items()))
# Those of complex numbers, by what their parts are.
PARTS: dict[int, str] = {onnx.TensorProto.COMPLEX64: "f32", onnx.TensorProto.COMPLEX128: "f64"}
# Of those that tensors hold several of in a byte.
_PACKED_BITS = {row.name: row.bits for row in TYPES if row.bits < 8}
# Messages in messages, as many as protobuf reads.
_DEEPEST = 100
_STRING, _MESSAGE = FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE
NUMBERS = {name: number for number, name in DTYPES.items()}


def dtype_name(number: int) -> str:
    """hetnn's name of an ONNX element type. Unsupported for those that hetnn lacks."""
    if number not in DTYPES:
        known = onnx.TensorProto.DataType.Name(number) if number in onnx.TensorProto.DataType.values() else str(number)
        raise Unsupported(f"the element type {known}; hetnn has {', '.join(DTYPES.values())}")
    return DTYPES[number]


def read_model(source: str | os.PathLike[str] | bytes) -> tuple[onnx.ModelProto, Path | None]:
    """A model from the bytes of a proto or from a file, and that file's path. InvalidModel when it is none."""
    path: Path | None = None
    if isinstance(source, bytes):
        data, called = source, "the bytes"
    else:
        path = Path(source)
        called = f"'{path}'"
        data = _read_file(path)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise InvalidModel(f"{called}: no ONNX model: {error}. Export it again.") from error
    return model, path


def _read_file(path: Path) -> bytes:
    with suppress(OSError, ValueError, InvalidModel):  # read_bytes says what is wrong, and reads pipes
        data = read_aside(path, _MOST_BYTES)
        if data is not None:
            return data
    return read_bytes(path, _MOST_BYTES)


def check_model(model: onnx.ModelProto) -> None:
    """InvalidModel for a model without graph or operator sets, or with names that are no text."""
    if not model.HasField("graph"):
        raise InvalidModel("the ONNX model has no graph. Export it again.")
    if not model.opset_import:
        raise InvalidModel("the ONNX model names no operator set. Export it again.")
    for entry in model.opset_import:
        if not 1 <= entry.version < 1 << 31:
            raise InvalidModel(f"the ONNX model names the operator set {entry.version}; they begin with 1.")
    _check_texts(model)


def _check_texts(model: onnx.ModelProto) -> None:
    """InvalidModel for a name in it that is no text, or messages that lie deeper in one another than protobuf reads."""
    left: list[tuple[Any, int]] = [(model, 1)]
    while left:
        message, depth = left.pop()
        if depth > _DEEPEST:
            raise InvalidModel(f"the ONNX model holds messages more than {_DEEPEST} deep in one another. Nest less.")
        for descriptor, value in message.ListFields():
            kind = descriptor.type
            if kind == _MESSAGE:
                parts = [value] if isinstance(value, Message) else value
                left.extend([(part, depth + 1) for part in parts])
            elif kind == _STRING:
                for text in [value] if isinstance(value, (str, bytes)) else value:
                    if isinstance(text, bytes):  # what protobuf hands out for text that is not UTF-8
                        raise InvalidModel(
                            f"the ONNX model has a name that is no UTF-8: {text[:40]!r}. Export it again."
                        )


def _memory(size_bytes: int) -> mmap.mmap | bytearray:
    """Much of it goes back to the system as soon as nobody needs it."""
    if size_bytes < LARGE_BYTES:
        return bytearray(size_bytes)
    return mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


class Weights:
    """Tensors of a model, some of which lie in files of its folder.

    Where the model's path is a link, as in caches of models, so may those of its files be: to the folder of its target.
    """

    def __init__(self, path: Path | None) -> None:
        self._model = None if path is None else path.resolve()
        self._folder = None if path is None else path.parent.resolve()
        self._target = None if path is None else path.resolve().parent
        self._files: dict[Path, np.ndarray[Any, Any]] = {}

    def array(self, tensor: onnx.TensorProto) -> np.ndarray[Any, Any]:
        """The tensor's values. InvalidModel where data and shape disagree, or a file lies elsewhere."""
        if tensor.data_type not in PARTS:
            dtype_name(tensor.data_type)
        if any(size < 0 for size in tensor.dims):
            raise InvalidModel(f"the tensor '{tensor.name}' has the shape {list(tensor.dims)}. Sizes are not negative.")
        try:
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                return self._external(tensor)
            return np.asarray(numpy_helper.to_array(tensor))
        except InvalidModel:
            raise
        except (ValueError, TypeError) as error:
            raise InvalidModel(
                f"the tensor '{tensor.name}' cannot be read: {error}. Its data must fill its shape {list(tensor.dims)}."
            ) from error

    def dense(self, sparse: onnx.SparseTensorProto) -> np.ndarray[Any, Any]:
        """A sparse tensor with zeros where it has no value. InvalidModel where its parts disagree."""
        values, places = self.array(sparse.values), self.array(sparse.indices)
        shape, name = [int(size) for size in sparse.dims], sparse.values.name
        if min(shape, default=0) < 0 or math.prod(shape) > _MOST_ELEMENTS:
            raise InvalidModel(f"the sparse tensor '{name}' of {shape}, which may have {_MOST_ELEMENTS} elements")
        if places.ndim == 2 and places.shape[1] == len(shape):
            inside = bool(((places >= 0) & (places < np.array(shape))).all())
            flat = np.ravel_multi_index(tuple(places.T), shape) if inside and len(shape) else np.zeros(0, np.int64)
        else:
            flat = places
            inside = bool(((flat >= 0) & (flat < math.prod(shape))).all())
        if not inside or flat.shape != values.shape or values.ndim != 1:
            raise InvalidModel(
                f"the sparse tensor '{name}' of {shape} with {list(values.shape)} values at places "
                f"{list(places.shape)}; each value has one place in the shape. Export the model again."
            )
        out = np.zeros(math.prod(shape), values.dtype)
        out[flat] = values
        return out.reshape(shape)

    def _external(self, tensor: onnx.TensorProto) -> np.ndarray[Any, Any]:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        if len(entries) != len(tensor.external_data):
            raise InvalidModel(f"the tensor '{tensor.name}' says twice where it lies. Export the model again.")
        path = self._path(tensor.name, entries.get("location", ""))
        size = path.stat().st_size
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
        offset = int(entries.get("offset", 0))
        elems = int(np.prod(list(tensor.dims), dtype=np.int64))
        bits = _PACKED_BITS.get(DTYPES.get(tensor.data_type, ""))
        wanted_bytes = elems * dtype.itemsize if bits is None else -(-elems * bits // 8)
        length = int(entries.get("length", 0)) or wanted_bytes
        if offset < 0 or length != wanted_bytes or offset + length > size:
            raise InvalidModel(
                f"the tensor '{tensor.name}' of {wanted_bytes} bytes lies at {offset} to {offset + length} "
                f"of a file of {size} bytes. Export the model again."
            )
        data = self._read(path, offset, length)
        if bits is None:
            return data.view(dtype).reshape(list(tensor.dims))
        packed = onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=data.tobytes())
        return np.asarray(numpy_helper.to_array(packed))

    def _path(self, name: str, location: str) -> Path:
        if self._folder is None or self._target is None:
            raise InvalidModel(
                f"the tensor '{name}' lies in the file '{location}', but the model was given without a folder. "
                "Give the path of the model."
            )
        try:
            path = (self._folder / location).resolve()
            found = bool(location) and any(map(path.is_relative_to, (self._folder, self._target))) and path.is_file()
        except (OSError, RuntimeError, ValueError):  # no name of a file, or links in a circle
            found = False
        if not found:
            raise InvalidModel(
                f"the tensor '{name}' lies in '{location[:200]}', which must be a file in the model's folder "
                f"'{self._folder}'. Put it there."
            )
        return path

    def _read(self, path: Path, offset: int, length: int) -> np.ndarray[Any, Any]:
        """Bytes of a file: mapped where they lie at a multiple of any type's size, but not those of the model itself,
        which its user may write anew."""
        if path != self._model and offset % _WIDEST_BYTES == 0 and length > 0:
            if path not in self._files:
                self._files[path] = np.memmap(path, np.uint8, "r")
            return self._files[path][offset : offset + length]
        memory = _memory(length)
        with open(path, "rb") as file:
            file.seek(offset)
            if file.readinto(memory) != length:
                raise InvalidModel(f"'{path}' became shorter while it was read. Export the model again.")
        return np.frombuffer(memory, np.uint8)
