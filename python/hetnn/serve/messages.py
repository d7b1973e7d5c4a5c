"""Requests and answers of one inference as data, and their form in HTTP bodies: JSON, with raw tensors behind it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hetnn.errors import InvalidModel, Unsupported
from hetnn.executable import Array
from hetnn.serve import tensors

SHARED_KEYS = ("shared_memory_region", "shared_memory_offset", "shared_memory_byte_size")
_REQUEST_KEYS = {"id", "parameters", "inputs", "outputs", "model_name", "model_version"}
_INPUT_KEYS = {"name", "shape", "datatype", "parameters", "data"}
_OUTPUT_KEYS = {"name", "parameters"}


@dataclass(frozen=True, slots=True)
class SharedPlace:
    """Where a tensor lies in a registered region."""

    region: str
    offset: int
    byte_size: int


@dataclass(slots=True)
class Input:
    """A tensor that a request brings, or names a shared place for."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    elements: int
    array: Array | None
    shared: SharedPlace | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """An output that a request asks for."""

    name: str
    binary: bool
    shared: SharedPlace | None = None


@dataclass(slots=True)
class Request:
    """One inference. `outputs` empty asks for all."""

    model: str
    version: str = ""
    id: str = ""
    inputs: list[Input] = field(default_factory=list)
    outputs: list[Wanted] = field(default_factory=list)
    binary: bool = False  # outputs that are not named come as raw bytes
    sequence: int | str = 0
    sequence_start: bool = False
    sequence_end: bool = False
    priority: int = 0
    timeout_us: int = 0


@dataclass(slots=True)
class Answer:
    """The outputs of a request in the order they were asked for; those in shared memory are written already."""

    request: Request
    model: str
    version: str
    outputs: list[tuple[Wanted, Array]]


def _object(value: Any, called: str, known: Iterable[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidModel(f"{called} must be an object; got {type(value).__name__}.")
    if unknown := [key for key in value if key not in known]:
        raise InvalidModel(f"{called} has the unknown key {unknown[0]!r:.100}; it takes {', '.join(sorted(known))}.")
    return value


def _text(value: Any, called: str) -> str:
    if not isinstance(value, str):
        raise InvalidModel(f"{called} must be a text; got {type(value).__name__}.")
    return value


def integer(value: Any, called: str) -> int:
    """A size or a count that a request gives."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise InvalidModel(f"{called} must be an integer that is not negative; got {value!r:.100}.")
    return value


def _truth(value: Any, called: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidModel(f"{called} must be true or false; got {value!r:.100}.")
    return value


def parameters_of(value: Any, called: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidModel(f"{called}: its parameters must be an object; got {type(value).__name__}.")
    return value


def shared_place(parameters: Mapping[str, Any], called: str) -> SharedPlace | None:
    """The shared place that parameters name, if they do."""
    if "shared_memory_region" not in parameters:
        if any(key in parameters for key in SHARED_KEYS):
            raise InvalidModel(f"{called}: shared_memory_region is missing beside the other keys of shared memory.")
        return None
    return SharedPlace(
        _text(parameters["shared_memory_region"], f"{called}: shared_memory_region"),
        integer(parameters.get("shared_memory_offset", 0), f"{called}: shared_memory_offset"),
        integer(parameters.get("shared_memory_byte_size"), f"{called}: shared_memory_byte_size"),
    )


def describe_input(name: Any, datatype: Any, shape: Any) -> tuple[Input, str]:
    """An input without its values, and how messages call it."""
    called = f"input '{_text(name, 'the name of an input'):.100}'"
    if not isinstance(datatype, str) or datatype not in tensors.NUMPY:
        raise InvalidModel(f"{called}: unknown datatype {datatype!r:.50}; there are {', '.join(tensors.NUMPY)}.")
    sizes, elements = tensors.shape_of(shape, called)
    return Input(name, datatype, sizes, elements, None), called


def apply_parameters(request: Request, parameters: Mapping[str, Any]) -> None:
    """Takes the parameters that the protocol knows; others are the client's own and mean nothing here."""
    sequence = parameters.get("sequence_id", 0)
    if isinstance(sequence, bool) or not isinstance(sequence, (int, str)):
        raise InvalidModel(f"sequence_id must be a number or a text; got {sequence!r:.100}.")
    request.sequence = sequence
    request.sequence_start = _truth(parameters.get("sequence_start", False), "sequence_start")
    request.sequence_end = _truth(parameters.get("sequence_end", False), "sequence_end")
    request.priority = integer(parameters.get("priority", 0), "priority")
    request.timeout_us = integer(parameters.get("timeout", 0), "timeout")
    request.binary = _truth(parameters.get("binary_data_output", False), "binary_data_output")


def wanted_output(name: Any, parameters: Mapping[str, Any], binary: bool) -> Wanted:
    called = f"output '{_text(name, 'the name of an output'):.100}'"
    if parameters.get("classification"):
        raise Unsupported(f"{called}: the classification extension is not served. Ask for the tensor.")
    binary = _truth(parameters.get("binary_data", binary), f"{called}: binary_data")
    return Wanted(name, binary, shared_place(parameters, called))


def parse_json(body: bytes) -> Any:
    """JSON of a request; InvalidModel for what is none, or is nested deeper than the reader goes."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"the request is no JSON: {error!s:.200}.") from None


@dataclass(frozen=True, slots=True)
class _Head:
    """The JSON of a request, read: all but the raw tensors behind it, of which the sizes are here."""

    request: Request
    inputs: list[tuple[Input, str, int | None]]  # how messages call it, bytes behind the JSON
    raw_bytes: int


# Clients repeat themselves: heads with nothing but raw tensors, and those of answers, by what they follow from.
_MOST_KEPT = 1024
_MOST_KEPT_BYTES = 2048
_heads: dict[bytes, _Head] = {}
_answer_heads: dict[tuple[Any, ...], bytes] = {}
_encode = json.JSONEncoder(separators=(",", ":")).encode


def _keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[key] = value


def _parse_head(head: bytes) -> _Head:
    document = _object(parse_json(head), "the request", _REQUEST_KEYS)
    request = Request("", "", _text(document.get("id", ""), "the request's id"))
    apply_parameters(request, parameters_of(document.get("parameters"), "the request"))
    rows, outputs = document.get("inputs"), document.get("outputs") or []
    if not isinstance(rows, list) or not isinstance(outputs, list):
        raise InvalidModel("the request must have a list 'inputs', and 'outputs' must be a list where it is there.")
    inputs: list[tuple[Input, str, int | None]] = []
    for row in rows:
        row = _object(row, "an input", _INPUT_KEYS)
        made, called = describe_input(row.get("name"), row.get("datatype"), row.get("shape"))
        own = parameters_of(row.get("parameters"), called)
        made.shared = shared_place(own, called)
        size = own.get("binary_data_size")
        if ("data" in row) + (size is not None) + (made.shared is not None) != 1:
            raise InvalidModel(f"{called} must have one of data, binary_data_size and shared_memory_region.")
        if size is not None:
            integer(size, f"{called}: binary_data_size")
        elif made.shared is None:
            made.array = tensors.from_values(row["data"], made.datatype, made.shape, made.elements, called)
        inputs.append((made, called, size))
    for row in outputs:
        row = _object(row, "an output", _OUTPUT_KEYS)
        own = parameters_of(row.get("parameters"), "an output")
        request.outputs.append(wanted_output(row.get("name"), own, request.binary))
    return _Head(request, inputs, sum(size or 0 for _, _, size in inputs))


def parse_request(model: str, version: str, body: bytes, header_bytes: int | None) -> Request:
    """The request in an HTTP body. With `header_bytes`, raw tensors follow that many bytes of JSON."""
    if header_bytes is not None and not 0 <= header_bytes <= len(body):
        raise InvalidModel(
            f"Inference-Header-Content-Length must be in [0, {len(body)}], the size of the body; got {header_bytes}."
        )
    text, raw = body[:header_bytes], memoryview(body)[len(body) if header_bytes is None else header_bytes :]
    head = _heads.get(text)
    if head is None:
        head = _parse_head(text)
        if len(text) <= _MOST_KEPT_BYTES and all(size is not None for _, _, size in head.inputs):
            _keep(_heads, text, head)
    request = replace(head.request, model=model, version=version, inputs=[], outputs=[*head.request.outputs])
    at = 0
    for made, called, size in head.inputs:
        if size is None:
            request.inputs.append(made)
            continue
        if size > len(raw) - at:
            raise InvalidModel(f"{called}: binary_data_size is {size}; {len(raw) - at} bytes are left.")
        array = tensors.from_raw(raw[at : at + size], made.datatype, made.shape, made.elements, called)
        request.inputs.append(Input(made.name, made.datatype, made.shape, made.elements, array))
        at += size
    if at != len(raw):
        raise InvalidModel(f"{len(raw) - at} bytes follow the last tensor; the sizes do not add up to the body.")
    return request


def answer_body(answer: Answer) -> tuple[list[bytes | memoryview], int | None]:
    """The body in parts, and the length of its JSON where raw tensors follow."""
    if not all(wanted.binary and wanted.shared is None for wanted, _ in answer.outputs):
        return _mixed_answer_body(answer)
    raw = [tensors.to_raw(array) for _, array in answer.outputs]
    places = [(wanted.name, array.dtype, array.shape) for wanted, array in answer.outputs]
    key = (answer.model, answer.version, answer.request.id, *places, *map(len, raw))
    head = _answer_heads.get(key)
    if head is None:
        rows = [
            {**_described(wanted, array), "parameters": {"binary_data_size": len(data)}}
            for (wanted, array), data in zip(answer.outputs, raw, strict=True)
        ]
        head = _answer_head(answer, rows)
        if len(head) <= _MOST_KEPT_BYTES:
            _keep(_answer_heads, key, head)
    return [head, *raw], len(head) if raw else None


def _described(wanted: Wanted, array: Array) -> dict[str, Any]:
    return {"name": wanted.name, "datatype": tensors.datatype_of(array), "shape": list(array.shape)}


def _answer_head(answer: Answer, rows: list[dict[str, Any]]) -> bytes:
    document: dict[str, Any] = {"model_name": answer.model, "model_version": answer.version, "outputs": rows}
    if answer.request.id:
        document["id"] = answer.request.id
    return _encode(document).encode()


def _mixed_answer_body(answer: Answer) -> tuple[list[bytes | memoryview], int | None]:
    rows: list[dict[str, Any]] = []
    raw: list[bytes | memoryview] = []
    for wanted, array in answer.outputs:
        row = _described(wanted, array)
        if wanted.shared is not None:
            place = wanted.shared
            row["parameters"] = dict(zip(SHARED_KEYS, (place.region, place.offset, place.byte_size), strict=True))
        elif wanted.binary:
            data = tensors.to_raw(array)
            raw.append(data)
            row["parameters"] = {"binary_data_size": len(data)}
        else:
            row["data"] = tensors.to_values(array, f"output '{wanted.name}'")
        rows.append(row)
    head = _answer_head(answer, rows)
    return [head, *raw], len(head) if raw else None
