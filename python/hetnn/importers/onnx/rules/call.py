"""A node of an ONNX graph: its inputs and attributes, and what its rule builds with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import onnx

from hetnn import _core
from hetnn._core import Dim
from hetnn.element_types import is_float
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.building import BROADCASTING, Building
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.equal_sizes import unified
from hetnn.importers.lowering.loop_body import Body, BodyInput
from hetnn.importers.lowering.sizes import LONGEST, Size
from hetnn.importers.onnx.builder import Builder
from hetnn.importers.onnx.model import dtype_name
from hetnn.importers.onnx.values import (
    NESTED,
    ONE_SIDED,
    Array,
    Fork,
    Items,
    Records,
    Refused,
    Rows,
    Sizes,
    Tensors,
    Text,
)
from hetnn.importers.registry import Front, Rule

Kind = TypeVar("Kind")
# Numbers of a constant that a rule makes.
MOST_NUMBERS = 1 << 28
# Of a constant that is one number everywhere; a larger one is filled by each run (passes/fold_constants.h).
FOLDED_BYTES = 64 << 20
ONNX: Front[Call] = Front("onnx")


def rule(*names: str, before: int = 0) -> Callable[[Rule[Call]], Rule[Call]]:
    """Registers a function for ONNX operators; with `before`, for their versions older than that operator set."""
    return ONNX.rule(*(f"{name}<{before}" if before else name for name in names))


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

    builder: Builder

    @property
    def forks(self) -> Sides:
        """What converts nodes on the sides of conditions."""

    def read(self, value: Any) -> Array | None:
        """The elements of a value where they are known; integers that are computed as sizes are get symbols, to which
        they give values when the model runs."""

    def tensor(self, tensor: onnx.TensorProto | onnx.SparseTensorProto) -> Array:
        """The elements of a tensor of the model. InvalidModel where its data does not fill its shape."""

    def standard(
        self, op_type: str, inputs: Sequence[Any], attrs: dict[str, Any], node: onnx.NodeProto, outputs: int
    ) -> list[Any]:
        """So many outputs of an operator of the standard's newest set, in the node's place."""


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
        self._importer, self._builder = importer, importer.builder
        self.node = node
        self.version = version  # the operator set that defined the operator as it is used here
        self.inputs = list(inputs)
        self.attrs = Attributes(attrs)
        self._shapes = shapes or {}
        self._inline = inline

    def doubts(self) -> int:
        """How many nodes so far may refuse the values that they meet."""
        return self._builder.doubts

    def layers(self) -> int:
        """How many nodes so far take long."""
        return self._builder.layers

    @property
    def forks(self) -> Sides:
        """What converts nodes on the sides of conditions."""
        return self._importer.forks

    @property
    def broadcast_sizes(self) -> dict[Size, set[Size]]:
        """Of sizes that others broadcast to those others."""
        return self._builder.broadcast_sizes

    def is_inner(self, value: Any) -> bool:
        """Whether a value, or a size, comes from the body that is made now."""
        return self._builder.is_inner(value)

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
            return self._builder.known(value)
        if isinstance(value, (*NESTED, *ONE_SIDED)):
            return None
        return value.array if isinstance(value, Sizes) else self._builder.known(value)

    def know(self, value: Any, array: Array) -> Any:
        """A value whose elements are these, though it is computed: rules that ask for numbers find them."""
        self._builder.know(value, array)
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
        return self._builder.is_named(symbol)

    def found_size(self, low: int = 0, high: int = LONGEST) -> Dim:
        """A symbol to which the next node that names it gives a value of that range when the model runs."""
        return self._builder.found_size(low, high)

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
        return self._builder.new_size()

    def named(self, name: str) -> tuple[Dim, bool]:
        """The symbol of what the model calls a size, and whether it has a value already; else as found_size."""
        symbol = self._builder.named_size(name)
        if symbol is not None:
            return symbol, True
        symbol = self.found_size()
        self._builder.name_size(name, symbol)
        return symbol, False

    def inline(self, graph: Any, prefix: str, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a graph in an attribute, whose nodes are added with a prefix for their names."""
        if self._inline is None:
            raise Unsupported(f"the graph of {self.node.op_type} in a place where none is read")
        return self._inline(graph, prefix, inputs)

    def body(self, inputs: Sequence[BodyInput], build: Callable[[Sequence[Any]], list[Any]]) -> tuple[Body, list[Any]]:
        """The body of a loop: what `build` makes of inputs of these types, and the values that it gives."""
        return self._builder.body(inputs, build)

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
        return self._builder.create(op, inputs, attrs, self.node)

    def standard(self, op_type: str, inputs: Sequence[Any], **attrs: Any) -> Any:
        """What an operator of the standard, as the newest operator set has it, makes of values in this node's place."""
        return self.standard_all(op_type, inputs, attrs)[0]

    def standard_all(self, op_type: str, inputs: Sequence[Any], attrs: dict[str, Any], outputs: int = 1) -> list[Any]:
        """The same, with all outputs up to a number. Attributes that are None are left out."""
        told = {name: value for name, value in attrs.items() if value is not None}
        return self._importer.standard(op_type, inputs, told, self.node, outputs)

    def random(self, shape: Sequence[Size], seed: float | None) -> Any:
        """Numbers drawn evenly from [0, 1), by a generator of this node's own."""
        return self._builder.random(shape, seed, self.node)

    def differentiate(self, y: Any, xs: Sequence[Any]) -> list[Any]:
        """The derivatives of the sum of y's elements by each of xs, as if the others were given."""
        return self._builder.differentiate(y, xs)

    def constant(self, value: Any, dtype: str) -> Any:
        """Numbers as a constant of an element type."""
        return self._builder.constant(self.array(value, dtype))

    def texts(self, texts: Sequence[str | bytes], shape: Sequence[int] | None = None) -> Text:
        """Texts as a constant, of rank 1 unless a shape is given."""
        coded = [text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text for text in texts]
        return self._builder.texts(coded, [len(texts)] if shape is None else shape)

    def tensor(self, tensor: onnx.TensorProto | onnx.SparseTensorProto) -> Any:
        """A tensor of an attribute as a constant."""
        if isinstance(tensor, onnx.TensorProto) and tensor.data_type == onnx.TensorProto.STRING:
            return self.texts(list(tensor.string_data), list(tensor.dims))
        return self._builder.constant(self._importer.tensor(tensor))

    def tensor_attr(self, name: str) -> Array:
        """The values of a tensor of an attribute that must be there."""
        if self.attr(name) is None:
            raise InvalidModel(f"{self.node.op_type} needs the attribute {name}, which is absent")
        return self._importer.tensor(self.attr(name))

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
        return value if is_float(value.dtype) else self.cast(value, "f32")
