"""Backends of vendors who write C: a shared library by the header hetnn/backend.h, as a Backend like any other."""

from __future__ import annotations

import ctypes
import json
import os
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hetnn.backends.backend import Backend, Port, Reason, Run
from hetnn.element_types import TYPES, numpy_type
from hetnn.errors import DoesNotFit, Error, InternalError, InvalidModel, Unavailable, Unsupported

if TYPE_CHECKING:
    from hetnn import _core

# hetnn_status, and the numbers of hetnn_dtype, which stand in the order of their table.
_OK = 0
_KINDS: dict[int, type[Error]] = {1: InvalidModel, 2: Unsupported, 3: DoesNotFit, 4: InternalError, 5: Unavailable}
_NAMES = [row.name for row in TYPES]
_ENTRY = "hetnn_backend_entry"


class _Port(ctypes.Structure):
    _fields_ = (("size", c_size_t), ("name", c_char_p), ("dtype", c_int), ("rank", c_int32), ("dims", POINTER(c_int64)))


class _Tensor(ctypes.Structure):
    _fields_ = (("size", c_size_t), ("data", c_void_p), ("dtype", c_int), ("rank", c_int32), ("dims", POINTER(c_int64)))


_FAIL = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
_REASON = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p, c_char_p, c_char_p)
_CODE = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)


class _Host(ctypes.Structure):
    _fields_ = (("size", c_size_t), ("context", c_void_p), ("fail", _FAIL), ("reason", _REASON), ("code", _CODE))


class _Subgraph(ctypes.Structure):
    _fields_ = (
        ("size", c_size_t),
        ("op", c_char_p),
        ("text", c_char_p),
        ("text_bytes", c_size_t),
        ("onnx", c_void_p),
        ("onnx_bytes", c_size_t),
        ("inputs", POINTER(_Port)),
        ("input_count", c_size_t),
        ("outputs", POINTER(_Port)),
        ("output_count", c_size_t),
    )


_HOST, _GRAPH, _PORTS, _TENSORS = POINTER(_Host), POINTER(_Subgraph), POINTER(_Port), POINTER(_Tensor)
_MADE = POINTER(c_void_p)


class _Functions(ctypes.Structure):
    _fields_ = (
        ("size", c_size_t),
        ("version", c_char_p),
        ("wants_onnx", c_int32),
        ("make", ctypes.CFUNCTYPE(c_int, c_char_p, c_char_p, _HOST, _MADE)),
        ("free", ctypes.CFUNCTYPE(None, c_void_p)),
        ("supports", ctypes.CFUNCTYPE(c_int, c_void_p, _GRAPH, _HOST)),
        ("time_us", ctypes.CFUNCTYPE(c_double, c_void_p, _GRAPH, c_double, c_double, c_double)),
        ("compile", ctypes.CFUNCTYPE(c_int, c_void_p, _GRAPH, _HOST)),
        (
            "open",
            ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, c_size_t, _PORTS, c_size_t, _PORTS, c_size_t, _HOST, _MADE),
        ),
        ("close", ctypes.CFUNCTYPE(None, c_void_p)),
        ("run", ctypes.CFUNCTYPE(c_int, c_void_p, _TENSORS, c_size_t, _TENSORS, c_size_t, _HOST)),
    )


class Library(Backend):
    """A device of a shared library. Derive a class that names it as `path`; no file and no target can name another."""

    path: ClassVar[str | os.PathLike[str]]

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        super().__init__(name, spec)
        self._functions = _functions_of(name, self.path)
        self._lock = threading.Lock()
        made = c_void_p()
        answer = _Answer(name)
        answer.to(self._functions.make(name.encode(), json.dumps(self.spec).encode(), answer.host, ctypes.byref(made)))
        self._device = made
        weakref.finalize(self, self._functions.free, made)

    @property
    def version(self) -> str:
        """As the library says."""
        return bytes(self._functions.version or b"").decode()

    def supports(self, node: _core.Graph) -> Iterable[Reason | str]:
        """As the library says."""
        answer = _Answer(self.name)
        with self._lock:
            return answer.to(self._functions.supports(self._device, self._graph(node), answer.host)).reasons

    def time_us(self, node: _core.Graph, macs: float, flops: float, bytes: int) -> float:
        """As the library says; by the figures of the spec where it does not."""
        if not self._functions.time_us:
            return super().time_us(node, macs, flops, bytes)
        with self._lock:
            return float(self._functions.time_us(self._device, self._graph(node), macs, flops, bytes))

    def compile(self, graph: _core.Graph) -> bytes:
        """As the library does."""
        answer = _Answer(self.name)
        with self._lock:
            return answer.to(self._functions.compile(self._device, self._graph(graph), answer.host)).code

    def open(self, code: bytes, inputs: Sequence[Port], outputs: Sequence[Port]) -> Run:
        """What the library runs."""
        opened, answer = c_void_p(), _Answer(self.name)
        sides = [_ports(inputs), len(inputs), _ports(outputs), len(outputs)]
        with self._lock:
            answer.to(self._functions.open(self._device, code, len(code), *sides, answer.host, ctypes.byref(opened)))
        return _Opened(self, opened, [_NAMES.index(port.dtype) for port in inputs], len(outputs))

    def _graph(self, graph: _core.Graph) -> Any:
        text, onnx = graph.print().encode(), b""
        if self._functions.wants_onnx:
            from hetnn.exporters.onnx import export, refusal

            if refusal(graph) is None:
                onnx = export(graph).SerializeToString()
        inputs, outputs = ([Port(*row) for row in side] for side in (graph.inputs, graph.outputs))
        model = ctypes.cast(c_char_p(onnx), c_void_p) if onnx else None
        op = graph.nodes()[-1]["op"].encode()
        sides = [_ports(inputs), len(inputs), _ports(outputs), len(outputs)]
        made = _Subgraph(ctypes.sizeof(_Subgraph), op, text, len(text), model, len(onnx), *sides)
        made.kept = onnx
        return ctypes.byref(made)


class _Opened:
    """Code that the library has opened; closed when nobody can run it any more."""

    def __init__(self, device: Library, opened: c_void_p, types: list[int], output_count: int) -> None:
        self._device, self._opened, self._types, self._output_count = device, opened, types, output_count
        self._lock = threading.Lock()
        weakref.finalize(self, device._functions.close, opened)

    def __call__(self, arrays: list[Any]) -> Sequence[Any]:
        given, made = (_Tensor * len(arrays))(), (_Tensor * self._output_count)()
        for tensor, array, dtype in zip(given, arrays, self._types, strict=True):
            dims = (c_int64 * array.ndim)(*array.shape)
            tensor.size, tensor.data, tensor.dtype = ctypes.sizeof(_Tensor), array.ctypes.data, dtype
            tensor.rank, tensor.dims = array.ndim, dims
        for tensor in made:
            tensor.size = ctypes.sizeof(_Tensor)
        answer = _Answer(self._device.name)
        with self._lock:
            answer.to(self._device._functions.run(self._opened, given, len(given), made, len(made), answer.host))
            return [_array(self._device.name, tensor) for tensor in made]


class _Answer:
    """What a call tells its host."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._why: tuple[str, str | None] | None = None
        self.reasons: list[Reason] = []
        self.code = b""
        # Kept here, since C keeps none of Python's objects.
        self._calls = _FAIL(self._fail), _REASON(self._reason), _CODE(self._code)
        self._host = _Host(ctypes.sizeof(_Host), None, *self._calls)
        self.host = ctypes.byref(self._host)

    def to(self, status: int) -> _Answer:
        """Itself, or the error that the status says."""
        if status == _OK:
            return self
        text, node = self._why or (f"its library gave the status {status}, and no text.", None)
        error = _KINDS.get(status, Unavailable)(f"device '{self._device}': {text}")
        if node is not None:
            error.node = node  # type: ignore[attr-defined]
        raise error

    def _fail(self, _: Any, message: bytes | None, node: bytes | None) -> None:
        self._why = _words(message), None if node is None else _words(node)

    def _reason(self, _: Any, *words: bytes | None) -> None:
        self.reasons.append(Reason(*map(_words, words)))

    def _code(self, _: Any, data: int | None, count: int) -> None:
        self.code = ctypes.string_at(data, count) if data and count else b""


def _words(text: bytes | None) -> str:
    return (text or b"").decode(errors="replace")


def _ports(ports: Sequence[Port]) -> Any:
    rows = (_Port * len(ports))()
    for row, port in zip(rows, ports, strict=True):
        dims = (c_int64 * len(port.shape))(*(size if isinstance(size, int) else -1 for size in port.shape))
        row.size, row.name, row.dtype = ctypes.sizeof(_Port), port.name.encode(), _NAMES.index(port.dtype)
        row.rank, row.dims = len(port.shape), dims
    return rows


def _array(device: str, tensor: _Tensor) -> Any:
    if not 0 <= tensor.dtype < len(_NAMES) or not 0 <= tensor.rank <= 8 or (tensor.rank and not tensor.dims):
        raise InvalidModel(f"device '{device}': its library gave an output of type {tensor.dtype}, rank {tensor.rank}.")
    shape = [int(tensor.dims[k]) for k in range(tensor.rank)]
    dtype = np.dtype(numpy_type(_NAMES[tensor.dtype]))
    bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if min(shape, default=0) < 0 or (bytes and not tensor.data):
        raise InvalidModel(f"device '{device}': its library gave an output of shape {shape} without data.")
    return np.frombuffer(ctypes.string_at(tensor.data, bytes) if bytes else b"", dtype).reshape(shape)


_loaded: dict[str, _Functions] = {}


def _functions_of(device: str, path: str | os.PathLike[str]) -> _Functions:
    name = os.fspath(path)
    if name in _loaded:
        return _loaded[name]
    try:
        entry = getattr(ctypes.CDLL(name), _ENTRY)
    except (OSError, AttributeError) as error:
        raise Unavailable(f"device '{device}': {error}. Its library must export {_ENTRY} (hetnn/backend.h).") from error
    entry.restype = POINTER(_Functions)
    found = entry()
    if not found or found.contents.size < ctypes.sizeof(_Functions):
        size = found.contents.size if found else 0
        raise Unavailable(
            f"device '{device}': '{name}' gives a hetnn_backend of {size} bytes; {ctypes.sizeof(_Functions)} are "
            "expected. Build it with this hetnn's header."
        )
    functions: _Functions = found.contents
    missing = [one for one, _ in _Functions._fields_[3:] if one != "time_us" and not getattr(functions, one)]
    if missing:
        raise Unavailable(f"device '{device}': '{name}' lacks {', '.join(missing)}; only time_us may be null.")
    _loaded[name] = functions
    return functions
