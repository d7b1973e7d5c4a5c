"""Builds small TFLite files by the schema's own builders, and runs them on LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite
from ai_edge_litert.interpreter import Interpreter, OpResolverType

Array = np.ndarray[Any, Any]
TYPES = {
    "f32": 0,
    "f16": 1,
    "i32": 2,
    "u8": 3,
    "i64": 4,
    "bool": 6,
    "i16": 7,
    "i8": 9,
    "f64": 10,
    "RESOURCE": 13,
    "u32": 15,
    "i4": 17,
}
NUMPY = {
    "f32": np.float32,
    "f16": np.float16,
    "i32": np.int32,
    "u8": np.uint8,
    "i64": np.int64,
    "bool": np.bool_,
    "i16": np.int16,
    "i8": np.int8,
    "f64": np.float64,
    "u32": np.uint32,
}
# Of operators that LiteRT does not have in their first version.
_VERSIONS = {"BROADCAST_TO": 2}
NAMES = {np.dtype(kind): name for name, kind in NUMPY.items()}


@dataclass(frozen=True)
class Quant:
    """What integers stand for: scales, zero points, and the axis of several."""

    scale: float | Sequence[float]
    zero: int | Sequence[int] = 0
    axis: int = 0


@dataclass(frozen=True)
class Told:
    """A tensor of a file; `data` makes it a constant, of bytes as they lie in the file.

    Two numbers are the offset and the size of bytes behind the file's tables.
    """

    shape: Sequence[int]
    dtype: str = "f32"
    data: bytes | tuple[int, int] | None = None
    quant: Quant | None = None
    name: str = ""
    signature: Sequence[int] | None = None
    is_variable: bool = False


def constant(array: Any, dtype: str | None = None, quant: Quant | None = None, name: str = "") -> Told:
    """A constant of numbers; of i4 two in a byte."""
    if dtype == "i4":
        numbers = np.append(np.ravel(array).astype(np.int8), np.zeros(np.size(array) % 2, np.int8))
        packed = (numbers[::2] & 15 | numbers[1::2] << 4).astype(np.uint8)
        return Told(np.shape(array), "i4", packed.tobytes(), quant, name)
    array = np.asarray(array, None if dtype is None else NUMPY[dtype])
    return Told(array.shape, NAMES[array.dtype], array.tobytes(), quant, name)


@dataclass
class Graph:
    """A subgraph: tensors are named by their places."""

    name: str = "main"
    tensors: list[Told] = field(default_factory=list)
    operators: list[tuple[str, list[int], list[int], Mapping[str, Any], list[int]]] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def tensor(self, told: Told) -> int:
        self.tensors.append(told)
        return len(self.tensors) - 1

    def input(self, told: Told) -> int:
        self.inputs.append(self.tensor(told))
        return self.inputs[-1]

    def op(
        self,
        name: str,
        inputs: Sequence[int],
        outputs: Sequence[Told],
        options: Mapping[str, Any] | None = None,
        intermediates: Sequence[int] = (),
    ) -> list[int]:
        """Adds an operator, whose results are new tensors. `options` has the schema's fields, and "" its table."""
        places = [self.tensor(told) for told in outputs]
        self.operators.append((name, list(inputs), places, dict(options or {}), list(intermediates)))
        return places


def model_bytes(graphs: Sequence[Graph], signatures: Sequence[Mapping[str, Any]] = ()) -> bytes:
    """The file. A signature has `key`, `graph`, and by name the tensors of `inputs` and `outputs`."""
    return _Writer().model(graphs, signatures)


class _Writer:
    def __init__(self) -> None:
        self._to = flatbuffers.Builder(1024)
        self._codes: list[str] = []
        self._data: list[bytes | tuple[int, int]] = [b""]

    def model(self, graphs: Sequence[Graph], signatures: Sequence[Mapping[str, Any]]) -> bytes:
        to = self._to
        subgraphs = self._offsets([self._graph(graph) for graph in graphs])
        codes = self._offsets([self._code(name) for name in self._codes])
        buffers = self._offsets([self._buffer(data) for data in self._data])
        signed = self._offsets([self._signature(each) for each in signatures])
        tflite.ModelStart(to)
        tflite.ModelAddVersion(to, 3)
        tflite.ModelAddOperatorCodes(to, codes)
        tflite.ModelAddSubgraphs(to, subgraphs)
        tflite.ModelAddBuffers(to, buffers)
        if signatures:
            tflite.ModelAddSignatureDefs(to, signed)
        to.Finish(tflite.ModelEnd(to), b"TFL3")
        return bytes(to.Output())

    def _offsets(self, tables: Sequence[int]) -> int:
        self._to.StartVector(4, len(tables), 4)
        for table in reversed(tables):
            self._to.PrependUOffsetTRelative(table)
        return int(self._to.EndVector())

    def _numbers(self, values: Any, dtype: Any) -> int:
        return int(self._to.CreateNumpyVector(np.asarray(values, dtype)))

    def _code(self, name: str) -> int:
        is_custom = not hasattr(tflite.BuiltinOperator, name)
        text = self._to.CreateString(name) if is_custom else 0
        number = 32 if is_custom else getattr(tflite.BuiltinOperator, name)
        tflite.OperatorCodeStart(self._to)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(self._to, min(number, 127))
        tflite.OperatorCodeAddBuiltinCode(self._to, number)
        tflite.OperatorCodeAddVersion(self._to, _VERSIONS.get(name, 1))
        if is_custom:
            tflite.OperatorCodeAddCustomCode(self._to, text)
        return int(tflite.OperatorCodeEnd(self._to))

    def _buffer(self, data: bytes | tuple[int, int]) -> int:
        place = 0
        if isinstance(data, tuple):
            tflite.BufferStart(self._to)
            tflite.BufferAddOffset(self._to, data[0])
            tflite.BufferAddSize(self._to, data[1])
            return int(tflite.BufferEnd(self._to))
        if data:
            self._to.StartVector(1, len(data), 16)
            self._to.head -= len(data)
            self._to.Bytes[self._to.head : self._to.head + len(data)] = data
            place = self._to.EndVector()
        tflite.BufferStart(self._to)
        if data:
            tflite.BufferAddData(self._to, place)
        return int(tflite.BufferEnd(self._to))

    def _signature(self, told: Mapping[str, Any]) -> int:
        key = self._to.CreateString(told["key"])
        sides = [self._offsets([self._named(*each) for each in told[side].items()]) for side in ("inputs", "outputs")]
        tflite.SignatureDefStart(self._to)
        tflite.SignatureDefAddSignatureKey(self._to, key)
        tflite.SignatureDefAddInputs(self._to, sides[0])
        tflite.SignatureDefAddOutputs(self._to, sides[1])
        tflite.SignatureDefAddSubgraphIndex(self._to, told.get("graph", 0))
        return int(tflite.SignatureDefEnd(self._to))

    def _named(self, name: str, place: int) -> int:
        text = self._to.CreateString(name)
        tflite.TensorMapStart(self._to)
        tflite.TensorMapAddName(self._to, text)
        tflite.TensorMapAddTensorIndex(self._to, place)
        return int(tflite.TensorMapEnd(self._to))

    def _graph(self, graph: Graph) -> int:
        tensors = self._offsets([self._tensor(told, k) for k, told in enumerate(graph.tensors)])
        operators = self._offsets([self._operator(*each) for each in graph.operators])
        inputs, outputs = (self._numbers(places, np.int32) for places in (graph.inputs, graph.outputs))
        name = self._to.CreateString(graph.name)
        tflite.SubGraphStart(self._to)
        tflite.SubGraphAddName(self._to, name)
        tflite.SubGraphAddTensors(self._to, tensors)
        tflite.SubGraphAddOperators(self._to, operators)
        tflite.SubGraphAddInputs(self._to, inputs)
        tflite.SubGraphAddOutputs(self._to, outputs)
        return int(tflite.SubGraphEnd(self._to))

    def _tensor(self, told: Told, place: int) -> int:
        buffer = 0
        if told.data is not None:
            buffer = len(self._data)
            self._data.append(told.data)
        name = self._to.CreateString(told.name or f"tensor{place}")
        shape = self._numbers(told.shape, np.int32)
        signature = None if told.signature is None else self._numbers(told.signature, np.int32)
        quant = None if told.quant is None else self._quant(told.quant)
        tflite.TensorStart(self._to)
        tflite.TensorAddName(self._to, name)
        tflite.TensorAddShape(self._to, shape)
        if signature is not None:
            tflite.TensorAddShapeSignature(self._to, signature)
        tflite.TensorAddType(self._to, TYPES[told.dtype])
        tflite.TensorAddBuffer(self._to, buffer)
        tflite.TensorAddIsVariable(self._to, told.is_variable)
        if quant is not None:
            tflite.TensorAddQuantization(self._to, quant)
        return int(tflite.TensorEnd(self._to))

    def _quant(self, quant: Quant) -> int:
        scales = np.atleast_1d(np.asarray(quant.scale, np.float32))
        zeros = np.broadcast_to(np.asarray(quant.zero, np.int64), scales.shape)
        of_scales, of_zeros = self._numbers(scales, np.float32), self._numbers(np.ascontiguousarray(zeros), np.int64)
        tflite.QuantizationParametersStart(self._to)
        tflite.QuantizationParametersAddScale(self._to, of_scales)
        tflite.QuantizationParametersAddZeroPoint(self._to, of_zeros)
        tflite.QuantizationParametersAddQuantizedDimension(self._to, quant.axis)
        return int(tflite.QuantizationParametersEnd(self._to))

    def _operator(
        self, name: str, inputs: list[int], outputs: list[int], told: Mapping[str, Any], intermediates: list[int]
    ) -> int:
        if name not in self._codes:
            self._codes.append(name)
        table = told.get("", "")
        options = self._options(table, {key: value for key, value in told.items() if key}) if table else 0
        places = [self._numbers(each, np.int32) for each in (inputs, outputs, intermediates)]
        tflite.OperatorStart(self._to)
        tflite.OperatorAddOpcodeIndex(self._to, self._codes.index(name))
        tflite.OperatorAddInputs(self._to, places[0])
        tflite.OperatorAddOutputs(self._to, places[1])
        if intermediates:
            tflite.OperatorAddIntermediates(self._to, places[2])
        if table:
            tflite.OperatorAddBuiltinOptionsType(self._to, getattr(tflite.BuiltinOptions, table))
            tflite.OperatorAddBuiltinOptions(self._to, options)
        return int(tflite.OperatorEnd(self._to))

    def _options(self, table: str, told: Mapping[str, Any]) -> int:
        fields = {
            key: self._to.CreateString(value)
            if isinstance(value, str)
            else self._numbers(value, np.float32 if any(isinstance(v, float) for v in value) else np.int32)
            if isinstance(value, (list, tuple))
            else value
            for key, value in told.items()
        }
        getattr(tflite, f"{table}Start")(self._to)
        for key, value in fields.items():
            getattr(tflite, f"{table}Add{key}")(self._to, value)
        return int(getattr(tflite, f"{table}End")(self._to))


def one(
    name: str, operands: Sequence[Told | None], results: Sequence[Told], options: Mapping[str, Any] | None = None
) -> bytes:
    """A model of one operator: operands without data are its inputs."""
    return model_bytes([one_graph(name, operands, results, options)])


def one_graph(
    name: str, operands: Sequence[Told | None], results: Sequence[Told], options: Mapping[str, Any] | None = None
) -> Graph:
    graph = Graph()
    places = [
        -1 if told is None else graph.tensor(told) if told.data is not None or told.is_variable else graph.input(told)
        for told in operands
    ]
    graph.outputs = graph.op(name, places, results, options)
    return graph


def random_inputs(data: bytes, seed: int = 0) -> list[Array]:
    """Inputs for a model, in its order."""
    rng = np.random.default_rng(seed)
    found = []
    for row in Interpreter(model_content=data).get_input_details():
        kind, shape = np.dtype(row["dtype"]), row["shape"]
        if kind.kind == "f":
            found.append(rng.standard_normal(shape).astype(kind))
        elif kind.kind == "b":
            found.append(rng.integers(0, 2, shape).astype(kind))
        else:
            limits = np.iinfo(kind)
            low, high = max(int(limits.min), -100000), min(int(limits.max), 100000)
            found.append(rng.integers(low, high + 1, shape).astype(kind))
    return found


def reference(data: bytes, runs: Sequence[Sequence[Array]], fast: bool = False) -> list[list[Array]]:
    """What LiteRT's reference kernels give for each run, one after another; its fast ones where it has no others."""
    kinds = [OpResolverType.BUILTIN_REF] * (not fast) + [OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES]
    for kind in kinds:
        try:
            interpreter = Interpreter(model_content=data, experimental_op_resolver_type=kind)
            interpreter.allocate_tensors()
            break
        except ValueError as error:
            if "Didn't find op" not in str(error) or kind == kinds[-1]:
                raise
    found = []
    for inputs in runs:
        for row, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(row["index"], array)
        interpreter.invoke()
        found.append([np.array(interpreter.get_tensor(row["index"])) for row in interpreter.get_output_details()])
    return found
