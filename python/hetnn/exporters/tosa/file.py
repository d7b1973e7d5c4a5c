"""The bytes of a TOSA 1.0 file, by FlatBuffers' builder, which is imported when asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hetnn.errors import Unsupported
from hetnn.exporters.tosa.schema import TABLES, attribute, number

Array = np.ndarray[Any, Any]
VERSION = (1, 0, 0)
_IDENTIFIER = b"TOSA"
_DTYPES = {"i8": "INT8", "i16": "INT16", "i32": "INT32", "i48": "INT48", "bool": "BOOL"}
_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i48": 6, "bool": 1}


@dataclass
class Op:
    """An operator of the file; `attrs` are the fields of its attribute, `node` is what it was written for."""

    kind: str
    inputs: list[str]
    outputs: list[str]
    attrs: dict[str, Any]
    loc: str = ""
    node: str = ""


@dataclass
class Block:
    """Tensors by name (shape, type and the values of a constant), shapes, and operators in order."""

    name: str
    tensors: dict[str, tuple[list[int], str, Array | None]] = field(default_factory=dict)
    shapes: dict[str, list[int]] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


def _vector(builder: Any, size_bytes: int, data: bytes, count: int) -> int:
    builder.StartVector(size_bytes, count, max(size_bytes, 8 if size_bytes == 1 else size_bytes))
    builder.head -= len(data)
    builder.Bytes[builder.head : builder.head + len(data)] = data
    return int(builder.EndVector())


def _value(builder: Any, value: Any) -> Any:
    """A field's value, or where it lies."""
    if isinstance(value, str):
        return builder.CreateString(value)
    if isinstance(value, bytes):
        return _vector(builder, 1, value, len(value))
    if isinstance(value, list):
        return _vector(builder, 4, np.array(value, "<i4").tobytes(), len(value))
    return value


def _table(builder: Any, name: str, fields: dict[str, Any]) -> int:
    places = TABLES.get(name, {})
    ready = {key: _value(builder, value) for key, value in fields.items()}
    builder.StartObject(len(places))
    for place, (key, kind) in enumerate(places.items()):
        if key not in ready:
            continue
        getattr(builder, "PrependUOffsetTRelative" if kind == "at" else f"Prepend{kind}")(ready[key])
        builder.Slot(place)
    return int(builder.EndObject())


def _offsets(builder: Any, places: Sequence[int]) -> int:
    builder.StartVector(4, len(places), 4)
    for place in reversed(places):
        builder.PrependUOffsetTRelative(place)
    return int(builder.EndVector())


def _names(builder: Any, names: Sequence[str]) -> int:
    return _offsets(builder, [builder.CreateString(name) for name in names])


def packed(values: Array, dtype: str) -> bytes:
    """Little-endian integers of so many bytes each."""
    wide = np.ascontiguousarray(values, "<i8").reshape(-1)
    return wide.view(np.uint8).reshape(-1, 8)[:, : _BYTES[dtype]].tobytes()


def data_of(block: Block) -> bytes:
    """The file."""
    try:
        import flatbuffers
    except ModuleNotFoundError as error:
        raise Unsupported(f"writing TOSA files needs {error.name}. Run pip install 'hetnn[tosa]'.") from error
    builder = flatbuffers.Builder(1 << 16)

    def each(parts: Sequence[Callable[[], int]]) -> int:
        return _offsets(builder, [part() for part in parts])

    def tensor(name: str) -> int:
        shape, dtype, values = block.tensors[name]
        told: dict[str, Any] = {"Name": name, "Shape": shape, "Type": number("DType", _DTYPES[dtype])}
        if values is not None:
            told["Data"] = packed(values, dtype)
        return _table(builder, "TosaTensor", told)

    def shape(name: str) -> int:
        sizes = block.shapes[name]
        return _table(
            builder, "TosaShape", {"Name": name, "Rank": len(sizes), "Data": np.array(sizes, "<i8").tobytes()}
        )

    def operator(op: Op) -> int:
        told: dict[str, Any] = {
            "Op": number("Op", op.kind),
            "AttributeType": number("Op", op.kind),
            "Attribute": _table(builder, attribute(op.kind), op.attrs),
            "Inputs": _names(builder, op.inputs),
            "Outputs": _names(builder, op.outputs),
            "Location": _table(builder, "OpLocation", {"Text": op.loc}),
        }
        return _table(builder, "TosaOperator", told)

    basic: dict[str, Any] = {
        "Operators": each([lambda op=op: operator(op) for op in block.ops]),  # type: ignore[misc]
        "Tensors": each([lambda name=name: tensor(name) for name in block.tensors]),  # type: ignore[misc]
        "Shapes": each([lambda name=name: shape(name) for name in block.shapes]),  # type: ignore[misc]
        "Inputs": _names(builder, block.inputs),
        "Outputs": _names(builder, block.outputs),
    }
    main = _table(builder, "TosaBasicBlock", {"Name": block.name, **basic})
    region = _table(builder, "TosaRegion", {"Name": block.name, "Blocks": _offsets(builder, [main])})
    version = dict(zip(("_Major", "_Minor", "_Patch"), VERSION, strict=True))
    stated = _table(builder, "Version", {**version, "_Draft": False})
    regions = _offsets(builder, [region])
    graph = _table(builder, "TosaGraph", {"Version": stated, "Regions": regions})
    builder.Finish(graph, _IDENTIFIER)
    return bytes(builder.Output())
