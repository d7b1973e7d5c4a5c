"""Files of ONNX models without their tensors' large data, which stay in the file until they are read one by one.

What protobuf parses has a copy of all data, and gives another for each tensor that is asked for. The fields and their
encoding: onnx.proto and protobuf's documentation of its wire format.
"""

from __future__ import annotations

import mmap
import os

from hetnn.files import open_file

# Smaller models are read whole, and smaller data stay in the model.
LARGE_BYTES = 1 << 16

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
# Which fields of a message lead to tensors, by number.
_INNER: dict[str, dict[int, str]] = {
    "ModelProto": {7: "GraphProto", 25: "FunctionProto"},
    "GraphProto": {1: "NodeProto", 5: "TensorProto"},
    "FunctionProto": {7: "NodeProto"},
    "NodeProto": {5: "AttributeProto"},
    "AttributeProto": {5: "TensorProto", 6: "GraphProto"},
}
_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14  # of a TensorProto
_KEY, _VALUE = 1, 2  # of a StringStringEntryProto
_EXTERNAL = 1  # of TensorProto's DataLocation


class _NoMessage(Exception):
    """What is read is not as protobuf writes it; its own parser says why."""


def read_aside(path: str | os.PathLike[str], most_bytes: int) -> bytes | None:
    """The model in a file, its tensors' large data as external ones that lie in that file. None where it is no file,
    is larger than `most_bytes`, has no such data, or is no message."""
    name = os.path.basename(path)
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if not LARGE_BYTES <= size <= most_bytes or not _is_text(name):
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _rewritten("ModelProto", data, 0, size, name)
            except (_NoMessage, RecursionError):
                return None


def _is_text(name: str) -> bool:
    try:
        return bool(name.encode())
    except UnicodeEncodeError:  # a file's name may be any bytes, a text of protobuf must be UTF-8
        return False


def _rewritten(message: str, data: mmap.mmap, at: int, end: int, location: str) -> bytes | None:
    """The message between these places with the large tensors in it rewritten; None where it has none."""
    if message == "TensorProto":
        return _tensor_aside(data, at, end, location)
    inner, parts = _INNER[message], []
    kept = at  # up to here all is in `parts`
    while at < end:
        number, kind, begin, after = _field(data, at, end)
        if number in inner and kind == _LENGTH and after - begin >= LARGE_BYTES:
            value = _rewritten(inner[number], data, begin, after, location)
            if value is not None:
                parts += [data[kept:at], _bytes_field(number, value)]
                kept = after
        at = after
    return b"".join([*parts, data[kept:end]]) if parts else None


def _tensor_aside(data: mmap.mmap, at: int, end: int, location: str) -> bytes | None:
    """A tensor whose data are said to lie where they lie; None where they are small, or elsewhere already."""
    rest: list[bytes] = []
    place: tuple[int, int] | None = None
    while at < end:
        number, kind, begin, after = _field(data, at, end)
        if number in (_EXTERNAL_DATA, _DATA_LOCATION):
            return None
        if number == _RAW_DATA and kind == _LENGTH:
            place = begin, after - begin  # the last one counts
        else:
            rest.append(data[at:after])
        at = after
    if place is None or place[1] < LARGE_BYTES:
        return None
    for key, value in (("location", location), ("offset", str(place[0])), ("length", str(place[1]))):
        entry = _bytes_field(_KEY, key.encode()) + _bytes_field(_VALUE, value.encode())
        rest.append(_bytes_field(_EXTERNAL_DATA, entry))
    rest.append(_varint(_DATA_LOCATION << 3 | _VARINT) + _varint(_EXTERNAL))
    return b"".join(rest)


def _field(data: mmap.mmap, at: int, end: int) -> tuple[int, int, int, int]:
    """Of the field that begins there: its number and kind, where its value begins, and what comes behind it."""
    tag, at = _read_varint(data, at, end)
    kind, begin = tag & 7, at
    if kind == _LENGTH:
        length, begin = _read_varint(data, at, end)
        after = begin + length
    elif kind == _VARINT:
        _, after = _read_varint(data, at, end)
    elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
        after = at + (8 if kind == _EIGHT_BYTES else 4)
    else:
        raise _NoMessage
    if after > end:
        raise _NoMessage
    return tag >> 3, kind, begin, after


def _read_varint(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise _NoMessage


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _bytes_field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH) + _varint(len(value)) + value
