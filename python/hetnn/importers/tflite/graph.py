"""From a TFLite model to a graph."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hetnn import _core
from hetnn._core import Dim
from hetnn.element_types import numpy_type
from hetnn.errors import DoesNotFit, InvalidModel, Unsupported
from hetnn.importers import Imported
from hetnn.importers.lowering.folding import folded, is_fixed
from hetnn.importers.lowering.lacking import lacking
from hetnn.importers.lowering.limits import DEEPEST, MOST_NODES, TOO_MANY
from hetnn.importers.lowering.loop_body import Body, BodyInput, loop_node
from hetnn.importers.lowering.sizes import LONGEST, Size, likely_size, symbol_name
from hetnn.importers.tflite.held import TO_FIRST, TO_LAST, First, Held
from hetnn.importers.tflite.integers import (
    constant_attributes,
    demand_reals,
    dequantized,
    file_form,
    graph_form,
    quantized,
    signed,
)
from hetnn.importers.tflite.model import Array, Model, Operator, Subgraph, Tensor, read_model
from hetnn.importers.tflite.rules import INTEGERS, TFLITE, Call, NodeMaker
from hetnn.importers.tflite.rules.call import LoopStep
from hetnn.importers.tflite.rules.sizes import is_open, of_sizes, settled
from hetnn.importers.tflite.states import States


def import_tflite(source: str | os.PathLike[str] | bytes, fix: Mapping[str, Any] | None = None) -> Imported:
    """The graph of a TFLite model's first subgraph: constant buffers as constants, variable tensors as states.

    Inputs and outputs have the names of its signature, where it has one, else those of the tensors, and the file's
    layout. Sizes that the file leaves open are symbols; where an operator does not take them, all are as the file
    states them. `fix` has numbers for open sizes, by the input's name, `_` and the axis.
    Unsupported lists every operator that hetnn lacks with the names of its results, in one error.
    """
    try:
        model = read_model(source)
        importer = _Importer(model, fix or {})
        try:
            return importer.run()
        except Unsupported:
            if not importer.has_symbols:
                raise
        return _Importer(model, fix or {}, opens=False).run()
    except MemoryError as error:
        raise DoesNotFit(f"the constants of the model do not fit into memory: {error}. Check its sizes.") from error


# Of rounds, where only a condition ends them.
_ANY_NUMBER = 2**63 - 1


class _Missing(Exception):
    """An operator reads what one that hetnn lacks would give."""


@dataclass
class _Scope:
    """A subgraph where it is called, and what its tensors hold so far."""

    graph: Subgraph
    values: dict[int, Held | None] = field(default_factory=dict)


class _Importer:
    def __init__(self, model: Model, fix: Mapping[str, Any], opens: bool = True) -> None:
        self._model = model
        self._fix, self._opens = fix, opens
        self.has_symbols = False
        self._builder = _core.GraphBuilder("main")
        self._known: dict[str, Array] = {}
        self._problems: dict[str, list[str]] = {}
        self._nodes = 0
        self._taken: set[str] = set()
        self._symbols: set[str] = set()
        self._unread, self._open = set(fix), set[str]()
        self._states = States(self._lift)
        self._depth = 0
        self._bodies: list[Body] = []  # of the loop that is imported now

    def run(self) -> Imported:
        graph = self._model.subgraphs[0]
        signature = next((each for each in self._model.signatures if each.subgraph == 0), None)
        names = (signature.inputs, signature.outputs) if signature else ({}, {})
        scope = _Scope(graph)
        for place in graph.inputs:
            tensor = graph.tensors[place]
            _, scope.values[place] = self._lift(tensor, names[0].get(place) or tensor.name or "input")
        if self._unread:
            unknown, known = (", ".join(sorted(names)) for names in (self._unread, self._open))
            raise InvalidModel(f"fix names {unknown}; the sizes that the file leaves open are {known or 'none'}.")
        self._add_operators(scope)
        if self._problems:
            raise lacking(self._problems)
        states = self._states.each()
        taken, self._taken = self._taken, set()
        for place in graph.outputs:
            held = self._value(scope, place)
            assert held is not None  # else there are problems
            self._give(held, graph.tensors[place], names[1].get(place) or graph.tensors[place].name or "output")
        self._taken |= taken
        for name, tensor, initial, held in states:
            self._builder.mutation(name, self._give(held, tensor, f"{name}.next", plain=True), initial)
        return Imported(self._builder.finish())

    def _give(self, held: Held, tensor: Tensor, wanted: str, plain: bool = False) -> str:
        """Adds an output; its name."""
        name = self._name(wanted)
        self._builder.output(file_form(NodeMaker(self, name), self.laid(held, False, name), tensor, plain), name)
        return name

    # Inputs, constants, names

    def _name(self, wanted: str) -> str:
        name, k = wanted, 1
        while name in self._taken:
            name, k = f"{wanted}_{k}", k + 1
        self._taken.add(name)
        return name

    def _lift(self, tensor: Tensor, wanted: str) -> tuple[str, Held]:
        """Adds an input of a tensor's type: its name, and what it holds."""
        _check_dtype(tensor)
        name = self._name(wanted)
        shape = [
            self._size(name, axis, *sizes)
            for axis, sizes in enumerate(zip(tensor.shape, tensor.signature, strict=True))
        ]
        value = self._builder.add_input(name, tensor.dtype, shape)
        return name, Held(tensor.quant, None, {False: graph_form(NodeMaker(self, name), value, tensor)})

    def _size(self, name: str, axis: int, stated: int, signed: int) -> Size:
        """The size of an input's axis: what the file states, a symbol, or what it is fixed to."""
        called = f"{name}_{axis}"
        if signed >= 0:
            return stated
        self._open.add(called)
        if called in self._fix:
            self._unread.discard(called)
            return int(self._fix[called])
        if not self._opens:
            return stated
        symbol = symbol_name(called, self._symbols)
        self._symbols.add(symbol)
        self._builder.add_symbol(symbol, 0, LONGEST, max(stated, 1))
        self.has_symbols = True
        return Dim.symbol(symbol)

    def constant(self, array: Array, attrs: dict[str, Any] | None = None) -> Any:
        """A constant; with attributes, of integers that stand for reals."""
        array = np.ascontiguousarray(array).reshape(array.shape)
        if attrs:
            value = self._builder.create("constant", [], {"value": array, **attrs})[0]
        else:
            value = self._builder.constant(array, "")
            self._known[value.name] = array
        return value

    def known(self, value: Any) -> Array | None:
        for body in self._bodies:
            if body.owns(value):
                return body.known.get(value.name)
        return self._known.get(value.name)

    # Layouts

    def laid(self, held: Held, first: bool, name: str) -> Any:
        """A tensor's value in one of the two layouts, made when it is first asked for."""
        if held.variable:
            raise InvalidModel(f"the variable '{held.variable}' is used as a value. Convert the model again.")
        if first in held.values:
            return held.values[first]
        if held.array is None:
            value = self.permuted(held.values[not first], TO_FIRST if first else TO_LAST, name)
        else:
            value = self.turned(held, TO_FIRST if first else range(held.array.ndim), name)
        if not self._bodies:  # what a loop's body makes is known there alone
            held.values[first] = value
        return value

    def turned(self, held: Held, axes: Sequence[int], name: str) -> Any:
        """A tensor's value with its axes in another order; constants keep what their integers stand for."""
        if held.array is None:
            return self.permuted(self.laid(held, False, name), axes, name)
        if is_open(held.array):
            return self.permuted(self._of_sizes(held.array, name), axes, name)
        attrs = constant_attributes(held.quant, held.array, axes)
        array = held.array.transpose(axes)
        return self.constant(signed(array) if attrs else array, attrs)

    def _of_sizes(self, array: Array, name: str) -> Any:
        """Integers that depend on sizes as a value."""
        place = NodeMaker(self, name)
        parts = [place.reshape(place.whole(size), [1]) for size in array.reshape(-1).tolist()]
        return place.reshape(place.cast(place.joined(parts, 0), "i32"), list(array.shape))

    def permuted(self, value: Any, perm: Sequence[int], name: str) -> Any:
        """Axes in another order; a view where only axes of size 1 move."""
        if list(perm) == list(range(len(perm))):
            return value
        shape = [value.shape[axis] for axis in perm]
        if [axis for axis in perm if value.shape[axis] != 1] == [k for k, n in enumerate(value.shape) if n != 1]:
            return self.create("reshape", [value], {"shape": shape}, name)[0]
        return self.create("permute", [value], {"perm": list(perm)}, name)[0]

    # Operators

    def create(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any], name: str) -> list[Any]:
        arrays = [None if value is None else self.known(value) for value in inputs]
        if inputs and all(a is not None or v is None for a, v in zip(arrays, inputs, strict=True)):
            made = folded(op, arrays, attrs, {}) if is_fixed(op, attrs, {}) and "q_scale" not in attrs else None
            if made is not None:
                return [self.constant(array) for array in made]
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise InvalidModel(TOO_MANY)
        if self._bodies:
            body = self._bodies[-1]
            given = [None if x is None else body.take(x, array) for x, array in zip(inputs, arrays, strict=True)]
            return body.create(op, given, attrs, [])
        return list(self._builder.create(op, list(inputs), attrs, name, name))

    def _value(self, scope: _Scope, place: int) -> Held | None:
        """What stands for a tensor; None for what an operator that hetnn lacks would give."""
        if place in scope.values:
            return scope.values[place]
        tensor = scope.graph.tensors[place]
        data = tensor.data
        if data is None and tensor.is_variable:
            _check_dtype(tensor)
            return self._states.read((scope.graph.name, place), tensor, tensor.name or "state")
        if data is None:
            if 0 not in tensor.shape:
                raise InvalidModel(
                    f"the tensor '{tensor.name}' is read, but nothing gives it before. Convert it again."
                )
            _check_dtype(tensor)
            data = np.zeros(tensor.shape, numpy_type(tensor.dtype))
        scope.values[place] = Held(tensor.quant, data, {})
        return scope.values[place]

    def _add_operators(self, scope: _Scope) -> None:
        tensors = scope.graph.tensors
        for operator in scope.graph.operators:
            where = next((tensors[place].name for place in operator.outputs), operator.name)
            found: list[Held | None]
            try:
                found = self._outputs(operator, scope)
            except (Unsupported, _Missing) as error:
                text = str(error).split("\n")[0].removesuffix(".")
                if text or isinstance(error, Unsupported):
                    self._problems.setdefault(f"{operator.name}{': ' + text if text else ''}", []).append(where)
                found = [None] * len(operator.outputs)
            except InvalidModel as error:
                if str(error).startswith("the operator '"):
                    raise
                raise InvalidModel(f"the operator '{where}': {operator.name}: {error}") from error
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise InvalidModel(
                    f"the operator '{where}': {operator.name}: its operands do not fit it: {error}. Convert it again."
                ) from error
            scope.values.update(zip(operator.outputs, found, strict=True))

    def _outputs(self, operator: Operator, scope: _Scope) -> list[Held | None]:
        rule = TFLITE.rules.get(operator.name)
        if rule is None:
            raise Unsupported("")
        inputs = [None if place < 0 else self._value(scope, place) for place in operator.inputs]
        if any(held is None for held, place in zip(inputs, operator.inputs, strict=True) if place >= 0):
            raise _Missing
        self._scope = scope
        call = Call(self, operator, scope.graph.tensors, inputs)
        if any(held is not None and is_open(held.array) for held in inputs):
            sizes = of_sizes(call)
            if sizes is not None:
                return [Held(None, settled(each), {}) for each in sizes]
        quantized_ones = any(held is not None and held.quant is not None for held in inputs)
        call.typed = quantized_ones and operator.name in INTEGERS and INTEGERS[operator.name](call)
        by_reals = quantized_ones and not call.typed
        if quantized_ones:
            for place, held in zip(operator.inputs, inputs, strict=True):
                if held is not None:
                    demand_reals(scope.graph.tensors[place], held.quant)
        if by_reals:
            call.inputs = [held and dequantized(call, held) for held in inputs]
        found = rule(call)
        results = found if isinstance(found, list) else [found]
        if len(results) < len(operator.outputs):
            raise InvalidModel(f"it has {len(operator.outputs)} results; it gives {len(results)}")
        return [self._result(call, value, place, by_reals) for place, value in enumerate(results[: len(call.outputs)])]

    # Subgraphs and variables

    def inline(self, subgraph: int, inputs: Sequence[Held]) -> list[Held]:
        """What a subgraph makes of inputs."""
        if not 0 <= subgraph < len(self._model.subgraphs):
            raise InvalidModel(f"the subgraph {subgraph}, of which there are {len(self._model.subgraphs)}")
        if self._depth == DEEPEST:
            raise InvalidModel(f"subgraphs lie more than {DEEPEST} deep in one another. Does one call itself?")
        graph = self._model.subgraphs[subgraph]
        if len(graph.inputs) != len(inputs):
            raise InvalidModel(f"the subgraph {subgraph} of {len(graph.inputs)} inputs is given {len(inputs)}")
        scope = _Scope(graph, dict(zip(graph.inputs, inputs, strict=True)))
        self._nodes += len(graph.operators)
        if self._nodes > MOST_NODES:
            raise InvalidModel(TOO_MANY)
        self._depth += 1
        try:
            self._add_operators(scope)
        finally:
            self._depth -= 1
        found = [self._value(scope, place) for place in graph.outputs]
        if any(held is None for held in found):
            raise _Missing
        return [held for held in found if held is not None]

    @contextmanager
    def on_one_side(self) -> Iterator[None]:
        self._states.one_sided += 1
        try:
            yield
        finally:
            self._states.one_sided -= 1

    def initialize(self, subgraph: int) -> None:
        """What is written there, variables begin with."""
        self._states.is_first = True
        try:
            self.inline(subgraph, [])
        finally:
            self._states.is_first = False

    def read_variable(self, name: str, tensor: Tensor) -> Held:
        return self._states.read(name, tensor, name)

    def assign_variable(self, name: str, held: Held, tensor: Tensor) -> None:
        self._states.write(name, held, name)

    def write_tensor(self, place: int, held: Held) -> None:
        graph = self._scope.graph
        self._states.write((graph.name, place), held, graph.tensors[place].name)

    # Loops, and sizes from values

    def found_size(self, most: int) -> Dim:
        """A symbol to which the next node that names it gives a value of that range when the model runs."""
        if self._bodies:
            raise Unsupported("a size that values give, in a loop")
        name = symbol_name(f"found{len(self._symbols)}", self._symbols)
        self._symbols.add(name)
        self._builder.add_symbol(name, 0, most, likely_size(0, most))
        return Dim.symbol(name)

    def loop(self, state: Sequence[Held], tensors: Sequence[Tensor], going: Any, step: LoopStep) -> list[Held]:
        """What `step` makes of a state as long as a condition holds: `going` at first, then what it gives itself."""
        if self._bodies:
            raise Unsupported("a loop as long as values say in another one")
        place = NodeMaker(self, tensors[0].name)

        def plain(held: Held, tensor: Tensor) -> Any:
            return file_form(place, self.laid(held, False, place.label), tensor, plain=True)

        def typed(value: Any, tensor: Tensor) -> Held:
            return Held(tensor.quant, None, {False: graph_form(place, value, tensor)})

        flat = list(map(plain, state, tensors))
        body = Body([BodyInput("i64", []), BodyInput("bool", []), *(BodyInput(v.dtype, list(v.shape)) for v in flat)])
        self._bodies.append(body)
        try:
            with self.on_one_side():
                goes, found = step(list(map(typed, body.inputs[2:], tensors)))
                given = [goes, *map(plain, found, tensors)]
            given = [body.take(value, self.known(value)) for value in given]
        finally:
            self._bodies.pop()
        for before, after in zip(flat, given[1:], strict=True):
            if before.dtype != after.dtype or list(before.shape) != list(after.shape):
                raise Unsupported(
                    f"a loop that changes {before.dtype}{list(before.shape)} to {after.dtype}{list(after.shape)}"
                )
        trips = place.constant(_ANY_NUMBER, "i64")
        made = loop_node(place, body, given, [trips, going], flat, self.found_size(LONGEST), [])
        return list(map(typed, made, tensors))

    def _result(self, call: Call, value: Any, output: int, by_reals: bool) -> Held:
        tensor = call.outputs[output]
        if isinstance(value, Held):
            return value
        first = isinstance(value, First)
        value = value.value if first else value
        if by_reals and tensor.quant is not None and value.dtype == "f32":
            value = quantized(call, value, tensor)
        array = self.known(value)
        if array is not None and first:
            array = array.transpose(TO_LAST)
        return Held(tensor.quant, array, {first: value}, first)


def _check_dtype(tensor: Tensor) -> None:
    """Unsupported for a tensor of an element type that hetnn lacks."""
    if tensor.dtype.isupper() or tensor.dtype == "i4":
        raise Unsupported(f"the tensor '{tensor.name}' is of {tensor.dtype}, of which hetnn has no tensors.")
