"""Tensors of the protocol: data types, and arrays as raw bytes, JSON values or typed contents, checked."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.executable import Array

# The protocol's name of each element type of hetnn, and numpy's.
_ROWS: list[tuple[str, str, np.dtype[Any]]] = [
    ("f32", "FP32", np.dtype(np.float32)),
    ("f64", "FP64", np.dtype(np.float64)),
    ("f16", "FP16", np.dtype(np.float16)),
    ("bf16", "BF16", np.dtype(ml_dtypes.bfloat16)),
    ("i8", "INT8", np.dtype(np.int8)),
    ("i16", "INT16", np.dtype(np.int16)),
    ("i32", "INT32", np.dtype(np.int32)),
    ("i64", "INT64", np.dtype(np.int64)),
    ("u8", "UINT8", np.dtype(np.uint8)),
    ("u16", "UINT16", np.dtype(np.uint16)),
    ("u32", "UINT32", np.dtype(np.uint32)),
    ("u64", "UINT64", np.dtype(np.uint64)),
    ("bool", "BOOL", np.dtype(np.bool_)),
    ("string", "BYTES", np.dtype(np.object_)),
]
DATATYPES = {dtype: datatype for dtype, datatype, _ in _ROWS}
NUMPY = {datatype: numpy for _, datatype, numpy in _ROWS}
_OF_NUMPY = {numpy: datatype for _, datatype, numpy in _ROWS}
_MOST_ELEMENTS = 1 << 40
# What JSON's numbers may become: numpy's kinds of the values as they were written.
_WRITTEN_AS = {"f": "fiu", "i": "iu", "u": "iu", "b": "b"}


def shape_of(value: Any, called: str) -> tuple[tuple[int, ...], int]:
    """A shape that a request gives, and its number of elements."""
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise InvalidModel(f"{called}: its shape must be a list of sizes; got {type(value).__name__}.")
    shape = tuple(value)
    for size in shape:
        if type(size) is not int or size < 0:
            raise InvalidModel(f"{called}: its shape must be a list of integers, none negative; got {value!r:.200}.")
    elements = math.prod(shape)
    if elements > _MOST_ELEMENTS:
        raise InvalidModel(f"{called}: its shape {value!r:.200} has more elements than any request may.")
    return shape, elements


def from_raw(data: bytes | memoryview, datatype: str, shape: tuple[int, ...], elements: int, called: str) -> Array:
    """The array whose values lie in `data`, row by row, little-endian; strings each after their length."""
    dtype = NUMPY[datatype]
    if datatype == "BYTES":
        return _strings(data, shape, elements, called)
    if len(data) != elements * dtype.itemsize:
        raise InvalidModel(
            f"{called}: {datatype}{list(shape)} takes {elements * dtype.itemsize} bytes; got {len(data)}."
        )
    out = np.frombuffer(data, dtype).reshape(shape)
    return out if out.flags.aligned else out.copy()


def _strings(data: bytes | memoryview, shape: tuple[int, ...], elements: int, called: str) -> Array:
    values: list[bytes] = []
    view, at = memoryview(data), 0
    while at < len(view):
        if at + 4 > len(view):
            break
        (size,) = struct.unpack_from("<I", view, at)
        if at + 4 + size > len(view):
            break
        values.append(bytes(view[at + 4 : at + 4 + size]))
        at += 4 + size
    if at != len(view) or len(values) != elements:
        raise InvalidModel(
            f"{called}: expected {elements} strings, each after its length in four bytes; got {len(values)}, and "
            f"{len(view) - at} bytes that are none."
        )
    out = np.empty(elements, np.object_)
    out[:] = values
    return out.reshape(shape)


def from_values(data: Any, datatype: str, shape: tuple[int, ...], elements: int, called: str) -> Array:
    """The array of values written out: a list, flat or nested. Nothing is rounded or cast but numbers to floats."""
    dtype = NUMPY[datatype]
    if datatype == "BF16":
        raise Unsupported(f"{called}: BF16 has no form in JSON. Send it as binary data.")
    if datatype == "BYTES":
        return _strings_written(data, shape, elements, called)
    if not isinstance(data, list):
        raise InvalidModel(f"{called}: its data must be a list; got {type(data).__name__}.")
    try:
        written = np.array(data)
    except (ValueError, OverflowError):
        raise InvalidModel(f"{called}: its data is no regular list of {datatype}.") from None
    if written.size != elements:
        raise InvalidModel(f"{called}: {datatype}{list(shape)} takes {elements} values; got {written.size}.")
    if elements and written.dtype.kind not in _WRITTEN_AS[dtype.kind]:
        raise InvalidModel(f"{called}: its data must be values of {datatype}; got {written.dtype}.")
    with np.errstate(over="ignore"):
        out = written.astype(dtype)
    if dtype.kind in "iu" and elements and not np.array_equal(out, written):
        raise InvalidModel(f"{called}: its data holds values beyond {datatype}.")
    return out.reshape(shape)


def _strings_written(data: Any, shape: tuple[int, ...], elements: int, called: str) -> Array:
    flat: list[bytes] = []
    rest = [data]
    while rest:
        value = rest.pop()
        if isinstance(value, list):
            rest.extend(reversed(value))
        elif isinstance(value, (str, bytes)):
            flat.append(value.encode() if isinstance(value, str) else value)
        else:
            raise InvalidModel(f"{called}: its data must be strings; got {type(value).__name__}.")
    if len(flat) != elements:
        raise InvalidModel(f"{called}: BYTES{list(shape)} takes {elements} strings; got {len(flat)}.")
    out = np.empty(elements, np.object_)
    out[:] = flat
    return out.reshape(shape)


def datatype_of(array: Array) -> str:
    return _OF_NUMPY[array.dtype]


def to_raw(array: Array) -> bytes | memoryview:
    """The array's values, row by row."""
    if array.dtype == np.object_:
        texts = [value if isinstance(value, bytes) else str(value).encode() for value in array.ravel()]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    if not array.flags.c_contiguous or array.dtype.kind == "V":
        return array.tobytes()
    return memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def to_values(array: Array, called: str) -> list[Any]:
    """The array's values as JSON writes them, flat."""
    if array.dtype == np.object_:
        try:
            return [value.decode() if isinstance(value, bytes) else str(value) for value in array.ravel()]
        except UnicodeDecodeError:
            raise InvalidModel(f"{called} holds bytes that are no text. Ask for it as binary data.") from None
    if array.dtype.kind == "V":
        raise Unsupported(f"{called}: BF16 has no form in JSON. Ask for it as binary data.")
    return list(array.ravel().tolist())
