"""A node of an ONNX graph: its inputs and attributes, and what its rule builds with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import onnx

from hetnn import _core
from hetnn._core import Dim
from hetnn.element_types import NUMPY
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.building import BROADCASTING, Building
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.equal_sizes import unified
from hetnn.importers.lowering.loop_body import Body, BodyInput
from hetnn.importers.lowering.sizes import LONGEST, Size
from hetnn.importers.onnx.model import dtype_name
from hetnn.importers.registry import Front, Row, Rule

Array = np.ndarray[Any, Any]
Kind = TypeVar("Kind")
# Numbers of a constant that a rule makes.
MOST_NUMBERS = 1 << 28
# Of a constant that is one number everywhere; a larger one is filled by each run (passes/fold_constants.h).
FOLDED_BYTES = 64 << 20
_FLOATS = ("f16", "bf16", "f32", "f64")
ONNX: Front[Call] = Front("onnx")


def rule(*names: str, before: int = 0) -> Callable[[Rule[Call]], Rule[Call]]:
    """Registers a function for ONNX operators; with `before`, for their versions older than that operator set."""
    return ONNX.rule(*(f"{name}<{before}" if before else name for name in names))


@dataclass(frozen=True)
class Sizes:
    """Integers that depend on the model's symbols, as shapes do: an array of sizes."""

    array: Array
    dtype: str = "i64"

    @property
    def shape(self) -> list[int]:
        """That of the array."""
        return list(self.array.shape)


@dataclass(frozen=True)
class Items:
    """A sequence of values whose length is known; `dtype` is that of an empty one."""

    values: tuple[Any, ...]
    dtype: str = "f32"


@dataclass(frozen=True)
class Tensors:
    """A sequence whose length may be known only when the model runs, as two values (ops/sequence/sequence.h).

    `sizes` is what is known of every tensor's shape: None where its rank is not, in it None where a size is not; a text
    is what the model calls a size. `begun`: a loop begins with it and no tensor is in it, so that it says nothing of
    those that rounds put there.
    """

    values: Any
    shapes: Any
    sizes: tuple[int | str | None, ...] | None
    begun: bool = False


@dataclass(frozen=True)
class AnyRank:
    """A tensor that leaves the model and whose rank only a run says: its elements, and a row of its rank and sizes."""

    values: Any
    shapes: Any


@dataclass(frozen=True)
class Maybe:
    """An optional value of which a bool says whether it is there; where it is not, what `value` holds means nothing."""

    there: Any
    value: Any


@dataclass(frozen=True)
class Nothing:
    """An optional value that is absent."""


@dataclass(frozen=True)
class Records:
    """Of each row of a matrix its numbers by a key for each column, as what classifiers give ends."""

    keys: tuple[int | str, ...]
    rows: Any


@dataclass(frozen=True)
class Text:
    """A tensor of texts, as two values (ops/text/text.h)."""

    bytes: Any
    spans: Any

    @property
    def shape(self) -> list[Size]:
        """The shape of the tensor of texts."""
        return list(self.spans.shape)


@dataclass(frozen=True)
class Fork:
    """One of two values that are unlike in rank: the first where the condition holds. Each may be a Fork in turn."""

    condition: Any
    sides: tuple[Any, Any]


@dataclass(frozen=True)
class Rows:
    """A value that is computed only where the conditions of `path` hold, or do not: of one row there, else of none.

    `sizes` are those of a row, None where only `rows` says them.
    """

    rows: Any
    sizes: Sequence[Size | None]
    path: tuple[tuple[Any, bool], ...]


@dataclass(frozen=True)
class Refused:
    """What a node gives on a side of a Fork where the standard has no such node, and why."""

    reason: str


# What one side of a condition has.
ONE_SIDED = (Fork, Rows, Refused)
# What is no tensor of real numbers.
NESTED = (AnyRank, Items, Tensors, Maybe, Nothing, Records, Text, Complex)


# Adds the nodes of a graph in an attribute, with a prefix for their names and its inputs; gives its outputs.
Inline = Callable[[Any, str, "Sequence[Any]"], "list[Any]"]


class Sides(Protocol):
    """The two sides of a condition that is not known: what each gives, and one value of both."""

    def side(self, call: Call, condition: Any, holds: bool, convert: Callable[[], list[Any]]) -> list[Any]:
        """What `convert` gives where the condition holds, or does not."""

    def joined(self, call: Call, condition: Any, a: Any, b: Any) -> Any:
        """One value of both sides, or a Fork where they are unlike."""

    def read(self, call: Call, x: Rows) -> Any:
        """The one row of a value that the side that is converted now has."""

    def settled(self, call: Call, fork: Fork) -> Any:
        """One value of a Fork. Unsupported where its rank or element type depends on the condition."""

    def explain(self, condition: Any, reason: str) -> None:
        """Says what a condition decides, for refusals of what depends on it."""


class Attributes(Mapping[str, Any]):
    """What a node is told, and which of it was looked at."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._told = told
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.asked.add(name)
        return self._told[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._told)

    def __len__(self) -> int:
        return len(self._told)


class Importer(Protocol):
    """What a call needs of the importer that makes it."""

    doubts: int
    layers: int
    broadcast_sizes: dict[Size, set[Size]]

    @property
    def forks(self) -> Sides:
        """What converts nodes on the sides of conditions."""

    def is_inner(self, value: Any) -> bool:
        """Whether a value, or a size, comes from the body that is made now."""

    def create(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any], node: onnx.NodeProto) -> list[Any]:
        """The outputs of a node of the graph, in the place of the model's node."""

    def differentiate(self, y: Any, xs: Sequence[Any]) -> list[Any]:
        """The derivatives of the sum of y's elements by each of xs, along the nodes so far."""

    def constant(self, array: Array, name: str = "") -> Any:
        """An array as a constant."""

    def texts(self, texts: Sequence[bytes], shape: Sequence[int]) -> Text:
        """UTF-8 as a constant of that shape."""

    def known(self, value: Any) -> Array | None:
        """The elements of a value where they are known now; None where they are not."""

    def know(self, value: Any, array: Array) -> None:
        """Says the elements of a value that is computed from constants and stays as it is."""

    def read(self, value: Any) -> Array | None:
        """As `known`; integers that are computed as sizes are get symbols, to which they give values when the model
        runs."""

    def found_size(self, low: int, high: int) -> Dim:
        """A symbol within [low, high] to which the next node that names it gives its value."""

    def tensor(self, tensor: onnx.TensorProto | onnx.SparseTensorProto) -> Array:
        """The elements of a tensor of the model. InvalidModel where its data does not fill its shape."""

    def standard(
        self, op_type: str, inputs: Sequence[Any], attrs: dict[str, Any], node: onnx.NodeProto, outputs: int
    ) -> list[Any]:
        """So many outputs of an operator of the standard's newest set, in the node's place."""

    def random(self, shape: Sequence[Size], seed: float | None, node: onnx.NodeProto) -> Any:
        """Numbers of [0, 1) in f32, by a generator of the node's own."""

    def new_size(self) -> Dim:
        """The symbol of a size that a body is handed anew each time."""

    def is_named(self, symbol: str) -> bool:
        """Whether a symbol is one that the model speaks of."""

    def named_size(self, name: str) -> Dim | None:
        """The symbol of what the model calls a size; None where it has none yet."""

    def name_size(self, name: str, symbol: Dim) -> None:
        """Gives what the model calls a size its symbol."""

    def body(self, inputs: Sequence[BodyInput], build: Callable[[Sequence[Any]], list[Any]]) -> tuple[Body, list[Any]]:
        """The body of a loop: what `build` makes of inputs of these types, and the values that it gives."""


class Call(Building):
    """One node: inputs in order (values, sizes, None where absent) and attributes with the schema's defaults."""

    def __init__(
        self,
        importer: Importer,
        node: onnx.NodeProto,
        version: int,
        inputs: Sequence[Any],
        attrs: Mapping[str, Any],
        shapes: Mapping[str, list[Size | None]] | None = None,
        inline: Inline | None = None,
    ) -> None:
        self._importer = importer
        self.node = node
        self.version = version  # the operator set that defined the operator as it is used here
        self.inputs = list(inputs)
        self.attrs = Attributes(attrs)
        self._shapes = shapes or {}
        self._inline = inline

    def doubts(self) -> int:
        """How many nodes so far may refuse the values that they meet."""
        return self._importer.doubts

    def layers(self) -> int:
        """How many nodes so far take long."""
        return self._importer.layers

    @property
    def forks(self) -> Sides:
        """What converts nodes on the sides of conditions."""
        return self._importer.forks

    @property
    def broadcast_sizes(self) -> dict[Size, set[Size]]:
        """Of sizes that others broadcast to those others."""
        return self._importer.broadcast_sizes

    def is_inner(self, value: Any) -> bool:
        """Whether a value, or a size, comes from the body that is made now."""
        return self._importer.is_inner(value)

    # Inputs and attributes

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute, or what it is by itself; `default` where it is neither given nor anything by itself."""
        return self.attrs.get(name, default)

    def given(self, index: int) -> bool:
        """Whether there is an input of that number."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def __getitem__(self, index: int) -> Any:
        """An input that must be there, as a value that nodes can read."""
        if not self.given(index):
            raise InvalidModel(f"{self.node.op_type} needs input {index}, which is absent")
        return self.value(self.inputs[index])

    def optional(self, index: int) -> Any:
        """An input as a value that nodes can read; None where it is absent."""
        return self[index] if self.given(index) else None

    def shape(self, index: int, least: int, most: int | None = None) -> list[Size]:
        """The shape of an input whose rank must lie within a range; `most`: as `least` where it is not given."""
        shape, most = list(self[index].shape), least if most is None else most
        if not least <= len(shape) <= most:
            wanted = str(least) if least == most else f"at least {least}" if most > 99 else f"{least} to {most}"
            raise InvalidModel(f"input {index} of {self.node.op_type} has the shape {shape}; its rank must be {wanted}")
        return shape

    def all_inputs(self) -> list[Any]:
        """All inputs, None where one is absent."""
        return [self.optional(k) for k in range(len(self.inputs))]

    def values(self) -> list[Any]:
        """All inputs, which must be there."""
        return [self[k] for k in range(len(self.inputs))]

    def known(self, index: int) -> Array | None:
        """An input's elements where they are known now: numbers, or sizes; None where they are not."""
        if not self.given(index):
            return None
        return self.known_of(self.inputs[index])

    def known_of(self, value: Any) -> Array | None:
        """As `known`, of a value that a rule has."""
        if isinstance(value, _core.Value):  # as nearly all are
            return self._importer.known(value)
        if isinstance(value, (*NESTED, *ONE_SIDED)):
            return None
        return value.array if isinstance(value, Sizes) else self._importer.known(value)

    def know(self, value: Any, array: Array) -> Any:
        """A value whose elements are these, though it is computed: rules that ask for numbers find them."""
        self._importer.know(value, array)
        return value

    def read(self, index: int) -> Array | None:
        """As `known`; what is computed from integers of the model as from sizes is read from them when it runs."""
        array = self.known(index)
        if array is None and self.given(index) and not isinstance(self.inputs[index], NESTED):
            return self._importer.read(self.inputs[index])
        return array

    def is_known(self, value: Any) -> bool:
        """Whether a value that a rule made or got is a constant."""
        return self.known_of(value) is not None

    def sizes(self, index: int, called: str) -> list[Size]:
        """The integers in an input. Unsupported where they are computed from values of the model."""
        array = self.read(index)
        if array is None:
            raise Unsupported(f"{called} is computed when the model runs; it must be known when compiling")
        if array.dtype.kind not in "iuO":
            raise InvalidModel(f"{called} must be integers; got {array.dtype}")
        return [x if isinstance(x, Dim) else int(x) for x in array.reshape(-1).tolist()]

    def integers(self, index: int, called: str) -> list[int]:
        """As `sizes`, but no symbols."""
        out = []
        for size in self.sizes(index, called):
            if not isinstance(size, int):
                raise Unsupported(f"{called} depends on the symbolic size {size}")
            out.append(size)
        return out

    def number(self, index: int, called: str) -> Any:
        """The one element of an input."""
        array = self.known(index)
        if array is None or array.size != 1 or array.dtype == object:
            raise Unsupported(f"{called} must be one number that is known when compiling")
        return array.reshape(-1)[0].item()

    def size(self, index: int, called: str, low: int = 0, high: int = LONGEST) -> Size:
        """The one integer of an input as a size: a symbol where it is computed when the model runs."""
        if self.known(index) is not None:
            found = self.sizes(index, called)
            if len(found) != 1:
                raise InvalidModel(f"{called} must be one integer; got {len(found)}")
            return found[0]
        symbol = self.found_size(low, high)
        self.create("read_size", [self.reshape(self.cast(self[index], "i64"), [])], sizes=[symbol])
        return symbol

    def is_named(self, symbol: str) -> bool:
        """Whether a symbol is one that the model speaks of."""
        return self._importer.is_named(symbol)

    def found_size(self, low: int = 0, high: int = LONGEST) -> Dim:
        """A symbol to which the next node that names it gives a value of that range when the model runs."""
        return self._importer.found_size(low, high)

    def axes(self, index: int | None, rank: int, name: str = "axes") -> list[int] | None:
        """Axes from an input or, in older operator sets, an attribute; counted from the front. None: not given."""
        if index is not None and self.given(index):
            found: Any = self.integers(index, name)
        else:
            found = self.attr(name)
        if found is None:
            return None
        return [self.axis(axis, rank) for axis in ([found] if isinstance(found, int) else found)]

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front. InvalidModel where the rank does not have it."""
        if not -rank <= axis < rank:
            raise InvalidModel(f"axis {axis} of a tensor of rank {rank}")
        return axis % rank

    def ranked(self, index: int, least: int, most: int | None = None) -> Any:
        """An input that has at least `least` axes, and at most `most`."""
        value, rank = self[index], len(self[index].shape)
        if rank < least or (most is not None and rank > most):
            wanted = str(least) if most == least else f"{least} or more" if most is None else f"{least} to {most}"
            raise InvalidModel(f"input {index} has {rank} axes, {list(value.shape)}; there must be {wanted}")
        return value

    def dtype_attr(self, name: str) -> str:
        """The element type that an attribute names by number. Unsupported where hetnn lacks it."""
        return dtype_name(int(self.attr(name)))

    def one_of(self, name: str, ours: Mapping[str, Kind], preset: str) -> Kind:
        """What the word in an attribute is here."""
        word = self.attr(name, preset)
        if word not in ours:
            raise InvalidModel(f"{name} must be one of {', '.join(ours)}; got {word!r}")
        return ours[word]

    def declared(self, output: int = 0) -> list[Size | None] | None:
        """The shape that the model declares for an output, if any; None for sizes that it leaves open."""
        return self._shapes.get(self.node.output[output])

    def outputs_used(self) -> int:
        """How many outputs are named, up to the last one."""
        return max((k + 1 for k, name in enumerate(self.node.output) if name), default=0)

    def new_size(self) -> Dim:
        """The symbol of a size that a body is handed anew each time."""
        return self._importer.new_size()

    def named(self, name: str) -> tuple[Dim, bool]:
        """The symbol of what the model calls a size, and whether it has a value already; else as found_size."""
        symbol = self._importer.named_size(name)
        if symbol is not None:
            return symbol, True
        symbol = self.found_size()
        self._importer.name_size(name, symbol)
        return symbol, False

    def inline(self, graph: Any, prefix: str, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a graph in an attribute, whose nodes are added with a prefix for their names."""
        if self._inline is None:
            raise Unsupported(f"the graph of {self.node.op_type} in a place where none is read")
        return self._inline(graph, prefix, inputs)

    def body(self, inputs: Sequence[BodyInput], build: Callable[[Sequence[Any]], list[Any]]) -> tuple[Body, list[Any]]:
        """The body of a loop: what `build` makes of inputs of these types, and the values that it gives."""
        return self._importer.body(inputs, build)

    # What rules build with

    def value(self, found: Any) -> Any:
        """Sizes as a value that nodes can read; values as they are."""
        if isinstance(found, _core.Value):
            return found
        if isinstance(found, Fork):
            found = self.forks.settled(self, found)
        if isinstance(found, Rows):
            found = self.forks.read(self, found)
        if isinstance(found, Refused):
            raise InvalidModel(found.reason)
        if isinstance(found, (Text, Complex)):
            what = "texts" if isinstance(found, Text) else "complex numbers"
            raise Unsupported(f"{self.node.op_type} of {what}")
        if isinstance(found, Records):
            raise Unsupported(f"{self.node.op_type} of records")
        if isinstance(found, NESTED):
            what = "a sequence" if isinstance(found, (Items, Tensors)) else "an optional value"
            raise InvalidModel(f"{self.node.op_type} needs a tensor; got {what}")
        if not isinstance(found, Sizes):
            return found
        parts = [self.reshape(self.whole(x if isinstance(x, Dim) else int(x)), [1]) for x in found.array.reshape(-1)]
        return self.cast(self.reshape(self.joined(parts, 0), found.shape), found.dtype)

    def create_all(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any]) -> list[Any]:
        """The outputs of a node of the graph; inputs that broadcast are taken as of equal sizes where they meet."""
        if len(inputs) > 1 and op in BROADCASTING and None not in inputs:
            inputs = unified(self, inputs, broadcast=True)
        return self._importer.create(op, inputs, attrs, self.node)

    def standard(self, op_type: str, inputs: Sequence[Any], **attrs: Any) -> Any:
        """What an operator of the standard, as the newest operator set has it, makes of values in this node's place."""
        return self.standard_all(op_type, inputs, attrs)[0]

    def standard_all(self, op_type: str, inputs: Sequence[Any], attrs: dict[str, Any], outputs: int = 1) -> list[Any]:
        """The same, with all outputs up to a number. Attributes that are None are left out."""
        told = {name: value for name, value in attrs.items() if value is not None}
        return self._importer.standard(op_type, inputs, told, self.node, outputs)

    def random(self, shape: Sequence[Size], seed: float | None) -> Any:
        """Numbers drawn evenly from [0, 1), by a generator of this node's own."""
        return self._importer.random(shape, seed, self.node)

    def differentiate(self, y: Any, xs: Sequence[Any]) -> list[Any]:
        """The derivatives of the sum of y's elements by each of xs, as if the others were given."""
        return self._importer.differentiate(y, xs)

    def constant(self, value: Any, dtype: str) -> Any:
        """Numbers as a constant of an element type."""
        return self._importer.constant(self.array(value, dtype))

    def texts(self, texts: Sequence[str | bytes], shape: Sequence[int] | None = None) -> Text:
        """Texts as a constant, of rank 1 unless a shape is given."""
        coded = [text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text for text in texts]
        return self._importer.texts(coded, [len(texts)] if shape is None else shape)

    def tensor(self, tensor: onnx.TensorProto | onnx.SparseTensorProto) -> Any:
        """A tensor of an attribute as a constant."""
        if isinstance(tensor, onnx.TensorProto) and tensor.data_type == onnx.TensorProto.STRING:
            return self.texts(list(tensor.string_data), list(tensor.dims))
        return self._importer.constant(self._importer.tensor(tensor))

    def tensor_attr(self, name: str) -> Array:
        """The values of a tensor of an attribute that must be there."""
        if self.attr(name) is None:
            raise InvalidModel(f"{self.node.op_type} needs the attribute {name}, which is absent")
        return self._importer.tensor(self.attr(name))

    def by_row(self, row: Row) -> Any:
        """What a one-to-one name means."""
        given = self.aligned() if row.elementwise else self.all_inputs()
        fills: dict[str, Any] = {}
        attrs: dict[str, Any] = {}
        for word in row.arguments:
            name, _, fixed = word.partition("=")
            ours, _, theirs = name.partition(":")
            if fixed:
                attrs[name] = self._of_kind(row.attr_kinds[name], fixed)
            elif ours in row.attr_kinds:
                if self.attrs.get(theirs or ours) is not None:
                    attrs[ours] = self._of_kind(row.attr_kinds[ours], self.attrs[theirs or ours])
            elif given:
                fills[ours] = given.pop(0)
        if given and row.variadic:
            fills[row.inputs[-1]] = [fills[row.inputs[-1]], *given]
            given = []
        if any(value is not None for value in given):
            raise Unsupported(f"an input more than {row.op['name']} takes")
        inputs: list[Any] = []
        for name in row.inputs:
            found = fills.get(name)
            inputs.extend(found if isinstance(found, list) else [found])
        if row.op["name"] == "concat":
            if None in inputs:
                raise InvalidModel("an input is not given; Concat joins all that it names")
            inputs = unified(self, inputs, apart=[self.axis(attrs["axis"], len(inputs[0].shape))])
        return self._of_one_type(row, inputs, attrs)

    def _of_one_type(self, row: Row, inputs: list[Any], attrs: dict[str, Any]) -> Any:
        wanted = inputs[0].dtype if inputs and inputs[0] is not None else ""
        mixed = row.elementwise and len(inputs) == 2 and inputs[1].dtype != wanted
        if mixed:
            common = wider(wanted, inputs[1].dtype)
            inputs = [self.cast(x, common) for x in inputs]
        outputs = self.create_all(row.op["name"], inputs, attrs)
        if mixed and outputs[0].dtype != "bool":
            return self.cast(outputs[0], wanted)
        return outputs[0] if len(outputs) == 1 else outputs

    def _of_kind(self, kind: str, value: Any) -> Any:
        """An attribute as one of hetnn's: element types by name, booleans of 0 and 1."""
        if kind == "dtype":
            return dtype_name(int(value))
        if kind == "boolean":
            return bool(int(value))
        return {"integer": int, "real": float}.get(kind, lambda same: same)(value)

    def aligned(self) -> list[Any]:
        """The inputs; before operator set 7 the second one may be placed along inner axes of the first."""
        inputs = self.values()
        if self.attr("broadcast") and self.attr("axis") is not None and len(inputs) == 2:
            first, second = inputs
            axis = self.axis(self.attr("axis"), len(first.shape))
            behind = len(first.shape) - axis - len(second.shape)
            inputs[1] = self.reshape(second, [*second.shape, *[1] * max(behind, 0)])
        return inputs

    def linear(self, x: Any, weight: Any, bias: Any) -> Any:
        """A linear layer where the weight is known, which devices may pack, else a product."""
        if self.is_known(weight):
            return super().linear(x, weight, bias)
        y = self.create("matmul", [x, self.create("permute", [weight], perm=[1, 0])])
        return y if bias is None else self.create("add", [y, bias])

    def static_shape(self, value: Any, what: str, axes: slice = slice(None)) -> list[int]:
        """The sizes of these axes. Unsupported where one is a symbol."""
        sizes = list(value.shape)[axes]
        if not all(isinstance(size, int) for size in sizes):
            raise Unsupported(f"{what} of symbolic size {list(value.shape)}")
        return sizes

    def in_f32(self, value: Any) -> Any:
        """Numbers in a type in which reals compute."""
        return value if value.dtype in _FLOATS else self.cast(value, "f32")


def is_float(dtype: str) -> bool:
    """Whether an element type is one of reals that compute: f16, bf16, f32 or f64."""
    return dtype in _FLOATS


def wider(a: str, b: str) -> str:
    """The element type in which operands of two types are computed."""
    reals = [dtype for dtype in (a, b) if is_float(dtype)]
    if set(reals) == {"f16", "bf16"}:
        return "f32"
    if reals:
        return max(reals, key=_FLOATS.index)
    if not {a, b} <= NUMPY.keys():
        raise Unsupported(f"operands of {a} and {b}")
    common = np.promote_types(NUMPY[a], NUMPY[b])
    return next(name for name, dtype in NUMPY.items() if common == dtype)
