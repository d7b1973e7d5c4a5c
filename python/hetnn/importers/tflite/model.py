"""Reading TFLite files: tables of the schema as plain data, every place checked before it is read."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import tflite
from tflite.utils import BUILTIN_OPCODE2NAME

from hetnn.element_types import TYPES, numpy_type
from hetnn.errors import InvalidModel, Unsupported
from hetnn.files import read_bytes
from hetnn.importers.model_file import is_tflite
from hetnn.importers.tflite.sparse import Level, densified

Array = np.ndarray[Any, Any]

# Offsets of the format have 31 bits; data behind the tables may lie farther.
_MOST_BYTES = 1 << 36
_MOST_AXES = 32
# What the schema's package calls element types, by their numbers, and what hetnn does: of those that it lacks, texts
# and complex numbers and what is newer than it, the schema's name.
_OURS = {row.tflite: row.name for row in TYPES if row.tflite}
DTYPES = {number: _OURS.get(name, name) for name, number in vars(tflite.TensorType).items() if isinstance(number, int)}
# Elements of a sparse tensor that is made dense, at most.
_MOST_DENSE = 1 << 28
_SPARSE_VECTORS = {1: tflite.Int32Vector, 2: tflite.Uint16Vector, 3: tflite.Uint8Vector}
# What flatbuffers and numpy raise where an offset, a length or a text is none.
_FAULTS = (
    *(struct.error, IndexError, KeyError, ValueError, TypeError, OverflowError, MemoryError, AttributeError),
    AssertionError,
)


@dataclass(frozen=True)
class Quantization:
    """What integers stand for: scale (q - zero point), of each index of an axis where there are several."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int


@dataclass(frozen=True)
class Tensor:
    """A tensor of a subgraph; `signature` has -1 for sizes that the model leaves open, `data` is of a constant."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    quant: Quantization | None
    data: Array | None
    is_variable: bool


@dataclass(frozen=True)
class Operator:
    """An operator by its name in the schema; -1 among the inputs is one that is absent."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Subgraph:
    """Operators in the order in which they run."""

    name: str
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]


@dataclass(frozen=True)
class Signature:
    """What a caller names the inputs and outputs of a subgraph: names by tensors."""

    key: str
    subgraph: int
    inputs: Mapping[int, str]
    outputs: Mapping[int, str]


@dataclass(frozen=True)
class Model:
    """What hetnn reads of a file: its subgraphs, of which the first is the model, and the names of its ports."""

    subgraphs: tuple[Subgraph, ...]
    signatures: tuple[Signature, ...] = field(default=())


def read_model(source: str | os.PathLike[str] | bytes) -> Model:
    """A model from a file or its bytes. InvalidModel when it is none, Unsupported for sparse tensors in a form
    that hetnn does not read."""
    called = "the bytes" if isinstance(source, bytes) else f"'{os.fspath(source)}'"
    data = source if isinstance(source, bytes) else read_bytes(source, _MOST_BYTES)
    if not is_tflite(data):
        raise InvalidModel(f"{called}: no TFLite model, bytes 4 to 8 are {data[4:8]!r}, not b'TFL3'. Convert it again.")
    with _reading(called):
        return _Reader(data).model()


@contextmanager
def _reading(called: str) -> Iterator[None]:
    """Turns what the flatbuffers of a damaged file raise into InvalidModel: Python's have no verifier."""
    try:
        yield
    except (InvalidModel, Unsupported) as error:
        raise type(error)(f"{called}: {error}") from error
    except _FAULTS as error:
        raise InvalidModel(
            f"{called} is damaged: a table points outside the file ({type(error).__name__}: {error}). Convert it again."
        ) from error


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        # Entries of vectors that may still be read. Each lies in the file once, so that a file that has more shares one
        # vector among tables to take time and memory.
        self._budget = 2 * len(data) + 64
        self._buffers: dict[int, Array] = {}

    def model(self) -> Model:
        self._model = tflite.Model.GetRootAs(self._data, 0)
        self._codes = [self._code(code) for code in self._tables(self._model, "OperatorCodes")]
        subgraphs = tuple(self._subgraph(graph) for graph in self._tables(self._model, "Subgraphs"))
        if not subgraphs:
            raise InvalidModel("the model has no subgraph. Convert it again.")
        return Model(subgraphs, tuple(self._signature(each) for each in self._tables(self._model, "SignatureDefs")))

    # Vectors and texts

    def _length(self, length: int, entry_bytes: int = 1) -> int:
        self._budget -= length * entry_bytes
        if length < 0 or self._budget < 0:
            raise InvalidModel(f"a vector of {length} entries in a file of {len(self._data)} bytes. Convert it again.")
        return length

    def _tables(self, owner: Any, name: str) -> list[Any]:
        return [getattr(owner, name)(k) for k in range(self._length(getattr(owner, f"{name}Length")(), 4))]

    def _numbers(self, owner: Any, name: str) -> Array:
        """A vector of numbers; empty where there is none."""
        self._length(getattr(owner, f"{name}Length")())
        found = getattr(owner, f"{name}AsNumpy")()
        return found if isinstance(found, np.ndarray) else np.zeros(0, np.int64)

    def _text(self, found: bytes | None) -> str:
        self._length(len(found or b""))
        return (found or b"").decode("utf-8", "replace")

    # Tables

    def _code(self, code: Any) -> str:
        # Numbers above 127 stand in the newer field; the older one says 127 then.
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        if number == tflite.BuiltinOperator.CUSTOM:
            return f"CUSTOM {self._text(code.CustomCode()) or '(without a name)'}"
        return str(BUILTIN_OPCODE2NAME.get(number, f"BUILTIN {number}"))

    def _subgraph(self, graph: Any) -> Subgraph:
        tensors = tuple(self._tensor(tensor) for tensor in self._tables(graph, "Tensors"))
        operators = tuple(self._operator(operator, len(tensors)) for operator in self._tables(graph, "Operators"))
        inputs, outputs = (self._places(graph, name, len(tensors)) for name in ("Inputs", "Outputs"))
        return Subgraph(self._text(graph.Name()), tensors, inputs, outputs, operators)

    def _places(self, owner: Any, name: str, count: int, least: int = 0) -> tuple[int, ...]:
        """Numbers of tensors."""
        found = tuple(map(int, self._numbers(owner, name)))
        wrong = [place for place in found if not least <= place < count]
        if wrong:
            raise InvalidModel(
                f"{name.lower()} name the tensor {wrong[0]}, of which there are {count}. Convert it again."
            )
        return found

    def _operator(self, operator: Any, tensors: int) -> Operator:
        index = operator.OpcodeIndex()
        if index >= len(self._codes):
            raise InvalidModel(f"an operator has the code {index}, of which there are {len(self._codes)}.")
        inputs = self._places(operator, "Inputs", tensors, least=-1)
        outputs = self._places(operator, "Outputs", tensors)
        inner = self._places(operator, "Intermediates", tensors, least=-1)
        return Operator(self._codes[index], inputs, outputs, inner, self._options(operator))

    def _options(self, operator: Any) -> dict[str, Any]:
        """What an operator is told, by the schema's names; nothing where the file leaves the table out."""
        for which, names in (("BuiltinOptions", _options_names(1)), ("BuiltinOptions2", _options_names(2))):
            name = names.get(getattr(operator, f"{which}Type")(), "NONE")
            table = getattr(operator, which)()
            if name == "NONE" or table is None:
                continue
            options = getattr(tflite, name)()
            options.Init(table.Bytes, table.Pos)
            return {field: self._option(options, field) for field in _fields(name)}
        return {}

    def _option(self, options: Any, name: str) -> Any:
        if hasattr(options, f"{name}AsNumpy"):
            return self._numbers(options, name).tolist()
        found = getattr(options, name)()
        return self._text(found) if isinstance(found, bytes) else found

    def _tensor(self, tensor: Any) -> Tensor:
        name, number = self._text(tensor.Name()), tensor.Type()
        if number not in DTYPES:
            raise InvalidModel(f"the tensor '{name}' has the element type {number}, which the schema lacks.")
        shape, signature = (tuple(map(int, self._numbers(tensor, which))) for which in ("Shape", "ShapeSignature"))
        if len(shape) > _MOST_AXES or any(size < 0 for size in shape):
            raise InvalidModel(f"the tensor '{name}' has the shape {list(shape[:_MOST_AXES])}. Sizes are not negative.")
        quant = self._quantization(tensor, name, shape, DTYPES[number])
        data = self._constant(tensor, name, DTYPES[number], shape)
        signature = signature if len(signature) == len(shape) else shape
        return Tensor(name, DTYPES[number], shape, signature, quant, data, bool(tensor.IsVariable()))

    def _quantization(self, tensor: Any, name: str, shape: Sequence[int], dtype: str) -> Quantization | None:
        table = tensor.Quantization()
        if table is None:
            return None
        scales, zeros = (self._numbers(table, which) for which in ("Scale", "ZeroPoint"))
        # Of indices and sizes converters may say a scale of 0, as of what stands for itself.
        if scales.size == 0 or (dtype in ("i32", "i64", "bool") and not np.any(scales)):
            return None
        zeros = zeros if zeros.size else np.zeros(1, np.int64)
        if zeros.size not in (1, scales.size):
            raise InvalidModel(f"the tensor '{name}' has {scales.size} scales and {zeros.size} zero points.")
        axis = table.QuantizedDimension()
        if scales.size > 1 and not (0 <= axis < len(shape) and shape[axis] == scales.size):
            raise InvalidModel(
                f"the tensor '{name}' of {dtype}{list(shape)} has {scales.size} scales along the axis {axis}; there "
                "must be one, or one for each index of an axis. Convert it again."
            )
        return Quantization(tuple(map(float, scales)), tuple(map(int, zeros)), axis)

    # Constants

    def _constant(self, tensor: Any, name: str, dtype: str, shape: Sequence[int]) -> Array | None:
        """The values of a tensor that has any. InvalidModel where its data does not fill its shape."""
        data = self._buffer(tensor.Buffer(), name)
        if data.size == 0 or dtype.isupper():
            return None
        sparsity = tensor.Sparsity()
        if sparsity is not None:
            return self._densified(sparsity, name, dtype, shape, data)
        count = 1
        for size in shape:
            count *= size
        bits = 4 if dtype == "i4" else 8 * numpy_type(dtype).itemsize
        if data.size != (wanted := -(-count * bits // 8)):
            raise InvalidModel(
                f"the tensor '{name}' of {dtype}{list(shape)} takes {wanted} bytes; its buffer has {data.size}."
            )
        return (_nibbles(data, count) if dtype == "i4" else data.view(numpy_type(dtype))).reshape(shape)

    def _densified(self, table: Any, name: str, dtype: str, shape: Sequence[int], data: Array) -> Array:
        if dtype == "i4" or data.size % numpy_type(dtype).itemsize or math.prod(shape) > _MOST_DENSE:
            raise Unsupported(f"the sparse tensor '{name}' of {dtype}{list(shape)} in {data.size} bytes")
        levels = []
        for axis in self._tables(table, "DimMetadata"):
            parts = ("ArraySegments", "ArrayIndices") if axis.Format() else ()
            levels.append(Level(axis.DenseSize(), *(self._runs(axis, part) for part in parts)))
        order, blocks = (self._numbers(table, part).tolist() for part in ("TraversalOrder", "BlockMap"))
        try:
            return densified(data.view(numpy_type(dtype)), shape, order, blocks, levels, len(self._data))
        except InvalidModel as error:
            raise InvalidModel(f"the sparse tensor '{name}': {error}. Convert it again.") from error

    def _runs(self, axis: Any, part: str) -> Array:
        """Integers in a vector of one of three widths."""
        vector = _SPARSE_VECTORS[getattr(axis, f"{part}Type")()]()
        table = getattr(axis, part)()
        vector.Init(table.Bytes, table.Pos)
        return self._numbers(vector, "Values")

    def _buffer(self, index: int, name: str) -> Array:
        """The bytes of a buffer, which may lie behind the tables; buffer 0 is empty."""
        if index not in self._buffers:
            if index >= self._model.BuffersLength():
                raise InvalidModel(f"the tensor '{name}' lies in buffer {index} of {self._model.BuffersLength()}.")
            buffer = self._model.Buffers(index)
            offset, size = buffer.Offset(), buffer.Size()
            if offset > 1:
                if offset + size > len(self._data):
                    raise InvalidModel(
                        f"the tensor '{name}' lies at {offset} to {offset + size} of a file of {len(self._data)} bytes."
                    )
                self._buffers[index] = np.frombuffer(self._data, np.uint8, size, offset)
            else:
                self._buffers[index] = self._numbers(buffer, "Data").view(np.uint8)
        return self._buffers[index]

    def _signature(self, signature: Any) -> Signature:
        sides = [
            {each.TensorIndex(): self._text(each.Name()) for each in self._tables(signature, side)}
            for side in ("Inputs", "Outputs")
        ]
        return Signature(self._text(signature.SignatureKey()), signature.SubgraphIndex(), *sides)


def _nibbles(data: Array, count: int) -> Array:
    """Integers of 4 bits, the lower half of a byte first, as i8."""
    pairs = np.stack([data << 4, data], axis=-1).view(np.int8) >> 4
    return pairs.reshape(-1)[:count]


@cache
def _options_names(which: int) -> dict[int, str]:
    """Tables of options by their numbers in one of the schema's two unions."""
    union = {1: tflite.BuiltinOptions, 2: tflite.BuiltinOptions2}[which]
    return {number: name for name, number in vars(union).items() if isinstance(number, int)}


@cache
def _fields(name: str) -> tuple[str, ...]:
    """The fields of a table of options."""

    def kept(each: str) -> bool:
        return (
            each[0].isupper()
            and each != "Init"
            and not each.startswith("GetRootAs")
            and not each.endswith(("AsNumpy", "Length", "IsNone", "HasIdentifier"))
        )

    return tuple(filter(kept, vars(getattr(tflite, name))))
