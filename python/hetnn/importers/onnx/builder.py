"""Builds the graph that an ONNX model becomes: nodes, folded where all is known, constants, sizes, bodies of loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from hetnn import _core
from hetnn._core import Dim
from hetnn.element_types import is_float, numpy_type
from hetnn.errors import Unsupported
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.folding import folded, is_fixed
from hetnn.importers.lowering.loop_body import DIVIDES, HEAVY, NEEDS_ONE, PICKS, Body, BodyInput, parts_of
from hetnn.importers.lowering.random_numbers import Generators
from hetnn.importers.lowering.sizes import LONGEST, Size, likely_size, product, symbol_name
from hetnn.importers.onnx.values import Array, Sizes, Text
from hetnn.texts import packed

# Examples of sizes that a model leaves open: of the first axis, and of the others.
HINTS = (1, 64)


class Builder:
    """A graph as far as it is built, and what is known of its values.

    `variables` are constants by which the model's nodes derive: what is computed of them is not known.
    """

    def __init__(self, variables: Collection[str]) -> None:
        self.graph = _core.GraphBuilder("main")
        self._variables = variables
        self._known: dict[str, Array] = {}
        # Of hetnn, by the model's name, or the input and axis.
        self.symbols: dict[str | tuple[str, int | str], Dim] = {}
        self._taken: set[str] = set()
        self._undefined: dict[Dim, tuple[int, int]] = {}  # symbols that no node gives a value yet, with their ranges
        self._found = 0
        self.generators = Generators()
        self.doubts = 0  # nodes so far that may refuse the values that they meet
        self.layers = 0  # and those that take long
        self.broadcast_sizes: dict[Size, set[Size]] = {}  # of sizes that others broadcast to those others
        self._bodies: list[Body] = []  # of loops, each in the one before, that are built now

    def finish(self) -> _core.Graph:
        """The graph, without what nobody reads; its constants alone keep their elements."""
        self._known.clear()
        return self.graph.finish()

    # Constants

    def constant(self, array: Array, name: str = "") -> Any:
        """An array as a constant of the graph; bodies of loops read it as any other value from outside."""
        if array.dtype.kind == "c":
            return Complex(self.constant(array.real, f"{name}.real"), self.constant(array.imag, f"{name}.imag"))
        value = self.graph.constant(np.ascontiguousarray(array).reshape(array.shape), name)
        if name not in self._variables:
            self._known[value.name] = array
        return value

    def texts(self, texts: Sequence[bytes], shape: Sequence[int]) -> Text:
        """UTF-8 as constants of that shape."""
        data, spans = packed(texts, shape, "a constant")
        return Text(self.constant(data), self.constant(spans))

    def known(self, value: Any) -> Array | None:
        """The elements of a value where they are known now; None where they are not."""
        if 0 in value.shape and all(isinstance(size, int) for size in value.shape):
            return np.zeros(value.shape, numpy_type(value.dtype))
        return self._array(value)

    def know(self, value: Any, array: Array) -> None:
        """Says the elements of a value that is computed from constants and stays as it is."""
        body = next((body for body in self._bodies if body.owns(value)), None)
        (self._known if body is None else body.known)[value.name] = array

    def _array(self, value: Any) -> Array | None:
        """What is known of a value, whether of the graph or of a body."""
        for body in self._bodies:
            if body.owns(value):
                return body.known.get(value.name)
        return self._known.get(value.name)

    # Sizes

    def new_symbol(self, called: str, least: int, hint: int) -> Dim:
        """The symbol of an input's size, with the least that it is and an example."""
        name = self._new_name(called)
        self.graph.add_symbol(name, least, LONGEST, hint)
        return Dim.symbol(name)

    def _new_name(self, called: str) -> str:
        symbol = symbol_name(called, self._taken)
        self._taken.add(symbol)
        return symbol

    def new_size(self) -> Dim:
        """The symbol of a size that a body is handed anew each time."""
        self._found += 1
        return Dim.symbol(self._new_name(f"u{self._found}"))

    def found_size(self, low: int, high: int) -> Dim:
        """A symbol within [low, high] to which the next node that names it gives a value when the model runs."""
        symbol = self.new_size()
        self._undefined[symbol] = (low, high)
        return symbol

    def is_named(self, symbol: str) -> bool:
        """Whether a symbol is one that the model speaks of."""
        return Dim.symbol(symbol) in self.symbols.values()

    def named_size(self, name: str) -> Dim | None:
        """The symbol of what the model calls a size; None where it has no value yet."""
        for body in reversed(self._bodies):
            if name in body.named:
                return body.named[name]
        return self.symbols.get(name)

    def name_size(self, name: str, symbol: Dim) -> None:
        """Gives what the model calls a size its symbol."""
        (self._bodies[-1].named if self._bodies else self.symbols)[name] = symbol

    # Nodes

    def create(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any], node: onnx.NodeProto) -> list[Any]:
        """The outputs of a node of the graph, in the place of the model's node."""
        found = self._found_by(attrs) if self._undefined else {}
        arrays = [None if value is None else self._array(value) for value in inputs]
        known = inputs and all(a is not None or v is None for a, v in zip(arrays, inputs, strict=True))
        if known and is_fixed(op, attrs, found):
            made = folded(op, arrays, attrs, found)
            if made is not None:
                return [self.constant(array) for array in made]
        self.doubts += bool(found) or _may_refuse(op, inputs, arrays, attrs)
        self.layers += op in HEAVY
        if self._bodies:
            return self._record(len(self._bodies), op, inputs, attrs, list(found))
        for symbol, (low, high) in found.items():
            self.graph.add_symbol(symbol.name, low, high, likely_size(low, min(high, HINTS[1])))
        return list(self.graph.create(op, list(inputs), attrs, node.name or node.output[0], node.name))

    def random(self, shape: Sequence[Size], seed: float | None, node: onnx.NodeProto) -> Any:
        """Numbers of [0, 1) in f32 by a generator of the node's own. A seed that is no integer counts by its bits."""
        if self._bodies:
            raise Unsupported("random numbers in the body of a loop")
        place = len(self.generators)
        seed = float(place) if seed is None else seed
        whole = seed.is_integer() and 0 <= seed < 1 << 32
        number = int(seed) if whole else int(np.float32(seed).view(np.uint32))
        name = self._new_name(f"generator{place}")
        return self.generators.draw(self.graph, name, number, shape, node.name or node.output[0], node.name)

    def differentiate(self, y: Any, xs: Sequence[Any]) -> list[Any]:
        """The derivatives of the sum of y's elements by each of xs, along the nodes so far."""
        return list(self.graph.differentiate(y, list(xs)))

    def _found_by(self, attrs: dict[str, Any]) -> dict[Dim, tuple[int, int]]:
        """The symbols that a node's attributes name, which have no value so far, with their ranges."""
        named = [part for value in attrs.values() for part in parts_of(value) if isinstance(part, Dim)]
        return {part: self._undefined.pop(part) for part in named if part in self._undefined}

    # Bodies of loops

    @property
    def in_body(self) -> bool:
        """Whether nodes that are made now stand in the body of a loop."""
        return bool(self._bodies)

    def is_inner(self, value: Any) -> bool:
        """Whether a value, sizes or a size come from the body that is built now."""
        if not self._bodies:
            return False
        sizes = value.array.reshape(-1).tolist() if isinstance(value, Sizes) else [value]
        if isinstance(value, (Sizes, int, Dim)):
            return any(map(self._bodies[-1].finds, sizes))
        return self._bodies[-1].owns(value)

    def body(self, inputs: Sequence[BodyInput], build: Callable[[Sequence[Any]], list[Any]]) -> tuple[Body, list[Any]]:
        """What `build` makes of inputs of these types, as a body, and the values that it gives."""
        body = Body(inputs)
        self._bodies.append(body)
        try:
            outputs = [self._inside(len(self._bodies), value) for value in build(body.inputs)]
        finally:
            self._bodies.pop()
        return body, outputs

    def _record(
        self, depth: int, op: str, inputs: Sequence[Any], attrs: dict[str, Any], found: Sequence[Dim]
    ) -> list[Any]:
        """A node of the body at that depth."""
        return self._bodies[depth - 1].create(op, [self._inside(depth, value) for value in inputs], attrs, found)

    def _inside(self, depth: int, value: Any) -> Any:
        """A value as the body at that depth reads it: through all those around it."""
        array = None if value is None else self._array(value)
        for k, body in enumerate(self._bodies[:depth]):
            if value is not None and not any(inner.owns(value) for inner in self._bodies[k + 1 : depth]):
                value = body.take(value, array)
        return value


def _may_refuse(op: str, inputs: Sequence[Any], arrays: Sequence[Any], attrs: Mapping[str, Any]) -> bool:
    """Whether a node takes some values and sizes only: indices of an axis, divisors of integers, sizes that fit."""
    is_open = any(isinstance(size, Dim) for size in [*inputs[0].shape, *attrs.get("sizes", [])]) if inputs else False
    if op in PICKS:
        return is_open or any(array is None for array in arrays[1:] or arrays)
    if op in NEEDS_ONE:
        return is_open
    if op == "pad":
        only_grows = all(isinstance(size, int) and size >= 0 for size in attrs["padding"])
        return is_open and not (only_grows and attrs.get("mode", "constant") == "constant")
    if op == "reshape":
        return product(inputs[0].shape) != product(attrs["shape"])
    if op == "expand":
        pairs = zip(reversed(inputs[0].shape), reversed(attrs["shape"]), strict=False)
        return any(size not in (1, wanted) for size, wanted in pairs)
    return op in ("loop", "match_shape") or (op in DIVIDES and arrays[1] is None and not is_float(inputs[1].dtype))
