"""From an ONNX model to a graph."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto

from hetnn import _core
from hetnn._core import Dim
from hetnn.element_types import numpy_type
from hetnn.errors import DoesNotFit, InvalidModel, Unsupported
from hetnn.importers import Defaults, Imported
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.folding import folded, is_fixed
from hetnn.importers.lowering.lacking import lacking
from hetnn.importers.lowering.limits import DEEPEST, MOST_NODES, TOO_MANY
from hetnn.importers.lowering.loop_body import DIVIDES, HEAVY, NEEDS_ONE, PICKS, Body, BodyInput, parts_of
from hetnn.importers.lowering.random_numbers import initial_state
from hetnn.importers.lowering.sizes import LONGEST, Size, likely_size, product, symbol_name
from hetnn.importers.onnx.control import CONTROL
from hetnn.importers.onnx.fixed import Fixed, read_fixed, read_size
from hetnn.importers.onnx.fork import Forks
from hetnn.importers.onnx.functions import called_by, count_nodes, functions_of
from hetnn.importers.onnx.model import Weights, check_model, read_model
from hetnn.importers.onnx.node_order import check_initializers, in_order
from hetnn.importers.onnx.ports import HINTS, Ports, value_names
from hetnn.importers.onnx.rules import NESTED, ONE_SIDED, Call, Fork, Sizes, Text, load_rare
from hetnn.importers.onnx.rules.call import ONNX, is_float
from hetnn.importers.onnx.rules.complexes import BY_PARTS, moved_parts
from hetnn.importers.onnx.rules.declare import REFUSED
from hetnn.importers.onnx.rules.gradient import GRADIENT, gradient, names_of_variables
from hetnn.importers.onnx.rules.shape import SIGNED, computes_sizes, of_sizes, on_sizes
from hetnn.importers.onnx.rules.text import CASTS, MEASURES, MOVES, cast_of_texts, constant_texts, equal, moved
from hetnn.importers.onnx.schema import (
    body_of,
    check_attributes,
    check_node,
    check_read,
    has_body,
    presets_of,
    refusal,
    schema_of,
    type_of,
    value_of,
    with_attributes,
)
from hetnn.progress import announce
from hetnn.structure import Tree
from hetnn.texts import packed

# The version of ONNX from which an initializer need be no input, so that one that is both is a default.
_FIRST_WITH_DEFAULTS = 4
# Integers that are computed like a shape, at most.
_MOST_SIZES = 8


def import_onnx(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    fix: Mapping[str, Any] | None = None,
    apart: bool = False,
    opened: frozenset[str] = frozenset(),
) -> Imported:
    """The graph of an ONNX model: initializers as constants, named sizes as symbols, functions opened.

    `fix` has numbers for sizes that the model leaves open, and values for inputs; with `apart`, sizes of one name are
    one in an input only; `opened` are inputs though the model has values for them. Unsupported lists every operator
    that hetnn lacks with the names of its nodes, in one error.
    """
    path: Path | None = None
    again = partial(import_onnx, model, fix)
    if not isinstance(model, onnx.ModelProto):
        model, path = read_model(model)
    check_model(model)
    try:
        importer = _Importer(model, path, read_fixed(model.graph, fix or {}), apart, opened)
        imported = importer.run()
    except MemoryError as error:
        raise DoesNotFit(f"the constants of the model do not fit into memory: {error}. Check its sizes.") from error
    if importer.shares_sizes():
        imported = replace(imported, apart=partial(again, apart=True, opened=opened))
    names = importer.default_inputs()
    if names:
        inputs = [given.name for given in model.graph.input if given.name not in (fix or {})]
        imported = replace(imported, defaults=Defaults(inputs, names, lambda opened: again(apart=apart, opened=opened)))
    return imported


@dataclass
class _Scope:
    """Names of values in a graph or in the body of a function, and what the body is told by its caller."""

    opsets: Mapping[str, int]
    prefix: str = ""
    attrs: Mapping[str, AttributeProto] = field(default_factory=dict)
    values: ChainMap[str, Any] = field(default_factory=ChainMap)
    shapes: dict[str, list[Size | None]] = field(default_factory=dict)  # that the model declares
    whole: bool = False  # what the body lacks makes the operator missing, not the node in it


class _Missing(Exception):
    """A node in the body of an operator's definition that hetnn lacks."""


class _Importer:
    def __init__(
        self, model: onnx.ModelProto, path: Path | None, fixed: Fixed, apart: bool, opened: frozenset[str]
    ) -> None:
        self._model, self._fixed, self._opened = model, fixed, opened
        self._weights = Weights(path)
        self._builder = _core.GraphBuilder("main")
        self._known: dict[str, np.ndarray[Any, Any]] = {}
        self._variables = names_of_variables(model.graph.node)
        self._functions = functions_of(model)
        self._depth = 0
        self._nodes = 0
        self._problems: dict[str, list[str]] = {}
        # Of hetnn, by the model's name, or the input and axis.
        self._symbols: dict[str | tuple[str, int | str], Dim] = {}
        self._taken: set[str] = set()
        self._undefined: dict[Dim, tuple[int, int]] = {}  # symbols that no node gives a value yet, with their ranges
        self._origins: dict[str, tuple[Call, int]] = {}  # which output of which node a value is that may be sizes
        self._sizes: dict[str, np.ndarray[Any, Any]] = {}  # of values that were read as such
        self._found = 0
        self._trees: list[Tree] = []  # of the model's inputs
        self._ports = Ports(self._builder, self._symbols, self._new_symbol, self._settled, fixed.sizes, apart)
        self._generators: list[tuple[Any, str, np.ndarray[Any, Any]]] = []  # the next state, the input, the first state
        self.doubts = 0  # nodes so far that may refuse the values that they meet
        self.layers = 0  # and those that take long
        self.forks = Forks()
        self.broadcast_sizes: dict[Size, set[Size]] = {}
        self._bodies: list[Body] = []  # of loops, each in the one before, that are imported now
        self._missing = object()  # stands for what a node that cannot be imported would give

    def run(self) -> Imported:
        graph = self._model.graph
        scope = _Scope({entry.domain: entry.version for entry in self._model.opset_import})
        if count_nodes(self._model) > MOST_NODES:
            raise InvalidModel(TOO_MANY)
        check_initializers(graph)
        self._lift_inputs(scope)  # first, so that their names are theirs
        for tensor in graph.initializer:
            if tensor.name not in scope.values:
                scope.values[tensor.name] = self._weight(tensor)
        for sparse in graph.sparse_initializer:
            if sparse.values.name not in scope.values:
                scope.values[sparse.values.name] = self.constant(self._weights.dense(sparse), sparse.values.name)
        scope.shapes = self._declared(graph)
        self._add_nodes(graph.node, scope)
        if self._problems:
            raise lacking(self._problems)
        return self._finish(scope)

    # Inputs and constants

    def _weight(self, tensor: onnx.TensorProto) -> Any:
        if tensor.data_type == onnx.TensorProto.STRING:
            return self.texts(*constant_texts(tensor))
        try:
            return self.constant(self._weights.array(tensor), tensor.name)
        except Unsupported as error:
            raise Unsupported(f"the initializer '{tensor.name}' has {error}.") from error

    def shares_sizes(self) -> bool:
        """Whether inputs have sizes of one name."""
        return self._ports.shared

    def _inputs(self) -> list[onnx.ValueInfoProto]:
        """The model's inputs, without the initializers that older models list among them."""
        initialized = {tensor.name for tensor in self._model.graph.initializer} - self._opened
        return [given for given in self._model.graph.input if given.name not in initialized]

    def default_inputs(self) -> frozenset[str]:
        """Inputs for which the model has values that callers may replace; older models list all their weights."""
        if self._model.ir_version < _FIRST_WITH_DEFAULTS:
            return frozenset()
        initialized = {tensor.name for tensor in self._model.graph.initializer}.difference(
            self._fixed.inputs, self._opened
        )
        return frozenset(given.name for given in self._model.graph.input if given.name in initialized)

    def _lift_inputs(self, scope: _Scope) -> None:
        for name, array in self._fixed.inputs.items():
            scope.values[name] = self.constant(array, name)
        for given in self._inputs():
            if given.name in scope.values:
                continue
            scope.values[given.name], tree = self._ports.lift(given.name, given.type)
            self._trees.append(tree)

    def _settled(self, value: Any, name: str) -> Any:
        """A tensor of sizes, or of what one of two branches gives."""
        return Call(self, onnx.NodeProto(name=name), 1, [value], {})[0]

    def _new_symbol(self, called: str, least: int, hint: int) -> Dim:
        name = self._new_name(called)
        self._builder.add_symbol(name, least, LONGEST, hint)
        return Dim.symbol(name)

    def _new_name(self, called: str) -> str:
        symbol = symbol_name(called, self._taken)
        self._taken.add(symbol)
        return symbol

    def new_size(self) -> Dim:
        self._found += 1
        return Dim.symbol(self._new_name(f"u{self._found}"))

    def is_named(self, symbol: str) -> bool:
        return Dim.symbol(symbol) in self._symbols.values()

    def found_size(self, low: int, high: int) -> Dim:
        """A symbol to which the next node that names it gives a value when the model runs."""
        symbol = self.new_size()
        self._undefined[symbol] = (low, high)
        return symbol

    def named_size(self, name: str) -> Dim | None:
        """The symbol of what the model calls a size, where it has a value already."""
        for body in reversed(self._bodies):
            if name in body.named:
                return body.named[name]
        return self._symbols.get(name)

    def name_size(self, name: str, symbol: Dim) -> None:
        (self._bodies[-1].named if self._bodies else self._symbols)[name] = symbol

    def _declared(self, graph: onnx.GraphProto) -> dict[str, list[Size | None]]:
        """The shapes that a graph declares for its values, in numbers and symbols of the inputs; None where open."""
        found: dict[str, list[Size | None]] = {}
        for value in (*graph.value_info, *graph.output):
            tensor = value.type.tensor_type
            sizes = [read_size(dim) for dim in tensor.shape.dim]
            if tensor.HasField("shape"):
                found[value.name] = [
                    self._fixed.sizes.get(size, self._symbols.get(size)) if isinstance(size, str) else size
                    for size in sizes
                ]
        return found

    def constant(self, array: np.ndarray[Any, Any], name: str = "") -> Any:
        """A constant of the graph; bodies of loops read it as any other value from outside."""
        if array.dtype.kind == "c":
            return Complex(self.constant(array.real, f"{name}.real"), self.constant(array.imag, f"{name}.imag"))
        value = self._builder.constant(np.ascontiguousarray(array).reshape(array.shape), name)
        if name not in self._variables:
            self._known[value.name] = array
        return value

    def texts(self, texts: Sequence[bytes], shape: Sequence[int]) -> Text:
        """Texts as constants of the graph."""
        data, spans = packed(texts, shape, "a constant")
        return Text(self.constant(data), self.constant(spans))

    def random(self, shape: Sequence[Size], seed: float | None, node: onnx.NodeProto) -> Any:
        """Numbers drawn from a generator whose state the graph keeps. A seed that is no integer counts by its bits."""
        if self._bodies:
            raise Unsupported("random numbers in the body of a loop")
        name = self._new_name(f"generator{len(self._generators)}")
        seed = float(len(self._generators)) if seed is None else seed
        whole = seed.is_integer() and 0 <= seed < 1 << 32
        number = int(seed) if whole else int(np.float32(seed).view(np.uint32))
        initial = initial_state(number)
        before = self._builder.add_input(name, "u32", list(initial.shape))
        made = self._builder.create("draw", [before], {"shape": list(shape)}, node.name or node.output[0], node.name)
        self._generators.append((made[1], name, initial))
        return made[0]

    def tensor(self, tensor: onnx.TensorProto | onnx.SparseTensorProto) -> np.ndarray[Any, Any]:
        sparse = isinstance(tensor, onnx.SparseTensorProto)
        return self._weights.dense(tensor) if sparse else self._weights.array(tensor)

    def standard(
        self, op_type: str, inputs: Sequence[Any], attrs: dict[str, Any], node: onnx.NodeProto, outputs: int
    ) -> list[Any]:
        """What a node of the standard gives in the place of another one."""
        read = ["" if value is None else f"input{k}" for k, value in enumerate(inputs)]
        given = [f"{node.output[0]}/{op_type}{k}" for k in range(outputs)]
        made = onnx.helper.make_node(op_type, read, given, name=node.name, **attrs)
        newest = onnx.defs.onnx_opset_version()
        if schema_of(op_type, "", newest) is None:
            why = f"it is the standard's {op_type}, which the package onnx {onnx.__version__} does not know"
            raise Unsupported(f"{why}; install a newer one")
        scope = _Scope({"": newest}, f"{node.name}/", whole=True)
        try:
            return self._outputs(made, op_type, list(inputs), scope)
        except _Missing as error:
            raise Unsupported(str(error)) from error

    def known(self, value: Any) -> np.ndarray[Any, Any] | None:
        if 0 in value.shape and all(isinstance(size, int) for size in value.shape):
            return np.zeros(value.shape, numpy_type(value.dtype))
        return self._array(value)

    def know(self, value: Any, array: np.ndarray[Any, Any]) -> None:
        body = next((body for body in self._bodies if body.owns(value)), None)
        (self._known if body is None else body.known)[value.name] = array

    # Nodes

    def create(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any], node: onnx.NodeProto) -> list[Any]:
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
            self._builder.add_symbol(symbol.name, low, high, likely_size(low, min(high, HINTS[1])))
        return list(self._builder.create(op, list(inputs), attrs, node.name or node.output[0], node.name))

    def differentiate(self, y: Any, xs: Sequence[Any]) -> list[Any]:
        return list(self._builder.differentiate(y, list(xs)))

    def _found_by(self, attrs: dict[str, Any]) -> dict[Dim, tuple[int, int]]:
        """The symbols that a node's attributes name, which have no value so far, with their ranges."""
        named = [part for value in attrs.values() for part in parts_of(value) if isinstance(part, Dim)]
        return {part: self._undefined.pop(part) for part in named if part in self._undefined}

    def _array(self, value: Any) -> np.ndarray[Any, Any] | None:
        """What is known of a value, whether of the graph or of a body."""
        for body in self._bodies:
            if body.owns(value):
                return body.known.get(value.name)
        return self._known.get(value.name)

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

    def is_inner(self, value: Any) -> bool:
        """Whether a value, sizes or a size come from the body that is made now."""
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

    def _add_nodes(self, nodes: Sequence[onnx.NodeProto], scope: _Scope) -> None:
        """The nodes of a body. InvalidModel where bodies have no end."""
        if self._depth == DEEPEST:
            raise InvalidModel(
                f"the node '{scope.prefix}': functions and bodies lie more than {DEEPEST} deep in one another. "
                "Does a function call itself?"
            )
        self._depth += 1
        try:
            for k, node in enumerate(in_order(nodes, scope.values, scope.prefix)):
                if not scope.prefix:
                    announce(k, len(nodes))
                self._convert(node, scope)
        finally:
            self._depth -= 1

    def _convert(self, node: onnx.NodeProto, scope: _Scope) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise InvalidModel(f"the node '{scope.prefix}{node.name}': {TOO_MANY}")
        inputs = [scope.values.get(name) if name else None for name in node.input]
        unknown = [name for name in node.input if name and name not in scope.values]
        name = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        where = scope.prefix + (node.name or next(iter(node.output), ""))
        try:
            if unknown:
                raise InvalidModel(
                    f"the node '{where}' reads '{unknown[0]}', which nothing gives. Export the model again."
                )
            outputs = self._outputs(node, name, inputs, scope)
        except (Unsupported, _Missing) as error:
            if scope.whole:
                raise _Missing(f"its definition needs {name}") from error
            text = str(error).split("\n")[0].removesuffix(".")
            self._problems.setdefault(f"{name}{': ' + text if text else ''}", []).append(where)
            outputs = [self._missing] * len(node.output)
        except InvalidModel as error:
            if scope.whole or str(error).startswith("the node '"):
                raise
            raise InvalidModel(f"the node '{where}': {name}: {error}") from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            why = self._refusal(node, inputs, scope)
            if not why:
                raise
            raise InvalidModel(f"the node '{where}': {name}: {why}. Export the model again.") from error
        for output, value in zip(node.output, outputs, strict=False):
            if output:
                scope.values[output] = self._missing if value is None else value

    def _refusal(self, node: onnx.NodeProto, inputs: Sequence[Any], scope: _Scope) -> str:
        """Why the standard does not have a node that no rule took."""
        schema, opset = self._standard(node, scope)
        open_to_none = schema is None or any(value is self._missing for value in inputs)
        return "" if open_to_none else refusal(node, schema, {**scope.opsets, node.domain: opset}, inputs)

    def _standard(self, node: onnx.NodeProto, scope: _Scope) -> tuple[Any, int]:
        """What the standard says of the node's operator, if it has it, and in which operator set."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = scope.opsets.get(domain, scope.opsets.get("ai.onnx", 1) if not domain else 1)
        schema = schema_of(node.op_type, domain, opset)
        return schema, opset if schema is None else max(opset, schema.since_version)

    def _outputs(self, node: onnx.NodeProto, name: str, inputs: list[Any], scope: _Scope) -> list[Any]:
        told = {
            attr.name: scope.attrs[attr.ref_attr_name] if attr.ref_attr_name else attr
            for attr in node.attribute
            if not attr.ref_attr_name or attr.ref_attr_name in scope.attrs
        }
        function = self._functions.get(called_by(node))
        if function is not None:
            return self._open(function, with_attributes(node, told), inputs, scope, whole=scope.whole)
        if node.overload:
            raise InvalidModel(f"the model has no function of that name and the overload '{node.overload}'")
        schema, opset = self._standard(node, scope)
        if schema is None:
            raise Unsupported(REFUSED.get((node.domain, node.op_type), ""))
        attrs = {**presets_of(schema), **told}
        if not scope.whole and not scope.attrs:
            check_node(node, {**scope.opsets, "" if node.domain == "ai.onnx" else node.domain: opset})
        check_attributes(node, schema, attrs)
        row, rule = _meaning(name, schema.since_version)
        if any(value is self._missing for value in inputs):
            if row is None and rule is None and not has_body(schema):
                raise Unsupported("")
            return [self._missing] * len(node.output)
        inline = partial(self._inline, scope)
        values = {key: value_of(attr) for key, attr in attrs.items()}
        call = Call(self, node, schema.since_version, inputs, values, scope.shapes, inline)
        others = [value for value in inputs if not isinstance(value, _core.Value)]
        if name == "Identity" and others and isinstance(others[0], (*NESTED, *ONE_SIDED)):
            return inputs
        if any(isinstance(value, ONE_SIDED) for value in others):
            return self.forks.converted(call, lambda given: self._outputs(node, name, given, scope))
        if name in CONTROL:
            return CONTROL[name](call, inline)
        if name == GRADIENT:
            if len(scope.values.maps) > 1:
                raise Unsupported("a Gradient in the body of another node")
            return gradient(call, scope.values)
        if name in CASTS:
            made = cast_of_texts(call)
            if made is not None:
                return [made]
        if any(isinstance(value, Text) for value in others):
            if name in MOVES or name in MEASURES:
                return moved(call, lambda given: self._outputs(node, name, given, scope))
            if name == "Equal":
                return [equal(call)]
        if name in BY_PARTS and any(isinstance(value, Complex) for value in others):
            return moved_parts(call, lambda given: self._outputs(node, name, given, scope))
        try:
            found = on_sizes(call)
            if found is not None:
                check_read(name, attrs, schema, call.attrs.asked)
                return found
            if row is not None:
                found = call.by_row(row)
            elif rule is not None:
                found = rule(call)
            else:
                raise Unsupported(REFUSED.get((node.domain, node.op_type), ""))
            check_read(name, attrs, schema, call.attrs.asked)
        except Unsupported as reason:
            body = body_of(schema, with_attributes(node, attrs), opset, [type_of(value) for value in inputs])
            if body is None or not attrs.keys() <= schema.attributes.keys():
                raise
            try:
                return self._open(body, with_attributes(node, attrs), inputs, scope, whole=True)
            except _Missing:
                if str(reason):
                    raise reason from None
                raise
        outputs = found if isinstance(found, list) else [found]
        if computes_sizes(call) and not self._bodies and all(map(_may_be_sizes, inputs)):
            passed = {getattr(x, "name", None) for x in inputs}
            for k, value in enumerate(outputs):
                if isinstance(value, _core.Value) and _may_be_sizes(value) and value.name not in passed:
                    self._origins[value.name] = call, k
        return outputs

    def read(self, value: Any) -> np.ndarray[Any, Any] | None:
        """The integers of a value that nodes compute from others as from sizes; None where it is none."""
        if isinstance(value, Sizes):
            return value.array
        # Step by step: chains of nodes may be longer than calls may be deep.
        todo: list[Any] = [value]
        seen: set[str] = set()
        chain: list[tuple[str, Call, int]] = []
        # What a body or a side of a condition reads, others do not have.
        shared = not self._bodies and not self.forks.is_open()
        sizes = self._sizes if shared else dict(self._sizes)
        while todo:
            name = todo[-1].name
            call, k = self._origins.get(name, (None, 0))
            if call is None or name in sizes:
                todo.pop()
                continue
            before = [x for x in call.inputs if x is not None and not isinstance(x, Sizes) and x.name not in seen]
            before = [x for x in before if x.name in self._origins and self.known(x) is None]
            seen.update(x.name for x in before)
            if before:
                todo.extend(before)
                continue
            todo.pop()
            chain.append((name, call, k))
        signed = any(call.node.op_type in SIGNED for _, call, _ in chain)
        for name, call, k in chain:
            given = [self._read_or_found(x, sizes, signed) for x in call.inputs if x is not None]
            try:
                outputs = of_sizes(call, given)
            except Unsupported:
                outputs = None
            if outputs is not None:
                sizes[name] = outputs[k]
        return sizes.get(value.name)

    def _read_or_found(self, value: Any, sizes: dict[str, np.ndarray[Any, Any]], signed: bool) -> np.ndarray[Any, Any]:
        """The integers of a value: known, computed from others, or symbols that stand for them.

        No symbol is negative: what may be (`signed`) is one of how far it is above 0, less one of how far it is below.
        """
        array = value.array if isinstance(value, Sizes) else self.known(value)
        array = sizes.get(value.name) if array is None else array
        if array is None:
            node = onnx.NodeProto(output=[f"{value.name}_sizes"])
            parts = [value]
            if signed:
                zero = self.constant(np.zeros((), numpy_type(value.dtype)))
                parts = [
                    self.create("maximum", [x, zero], {}, node)[0]
                    for x in (value, self.create("neg", [value], {}, node)[0])
                ]
            found = []
            for part in parts:
                symbols = [self.found_size(0, LONGEST) for _ in range(int(np.prod(value.shape)))]
                self.create("read_size", [part], {"sizes": symbols}, node)
                found.append(np.array(symbols, dtype=object).reshape(value.shape))
            array = sizes[value.name] = np.asarray(found[0] - found[1], dtype=object) if signed else found[0]
        return array

    def _open(
        self, body: onnx.FunctionProto, node: onnx.NodeProto, inputs: list[Any], scope: _Scope, whole: bool
    ) -> list[Any]:
        """The nodes of a function in place of a node that calls it."""
        attrs = {attr.name: attr for attr in body.attribute_proto}
        attrs.update((attr.name, attr) for attr in node.attribute)
        inner = _Scope(
            {**scope.opsets, **{entry.domain: entry.version for entry in body.opset_import}},
            f"{scope.prefix}{node.name or node.op_type}/",
            attrs,
            shapes={
                inside: scope.shapes[outside]
                for inside, outside in zip(body.output, node.output, strict=False)
                if outside in scope.shapes
            },
            whole=whole,
        )
        padded = [*inputs, *[None] * (len(body.input) - len(inputs))]
        inner.values.update(zip(body.input, padded, strict=False))
        self._add_nodes(body.node, inner)
        return [inner.values.get(name, self._missing) for name in body.output]

    def _inline(self, scope: _Scope, graph: onnx.GraphProto, prefix: str, inputs: Sequence[Any]) -> list[Any]:
        """The nodes of a graph in an attribute, which may read what its scope has; its outputs."""
        values = ChainMap[str, Any]({}, *scope.values.maps)
        inner = _Scope(scope.opsets, scope.prefix + prefix, scope.attrs, values, self._declared(graph), scope.whole)
        check_initializers(graph)
        values.update((tensor.name, self._weight(tensor)) for tensor in graph.initializer)
        if len(graph.input) != len(inputs):
            raise InvalidModel(f"a body with {len(graph.input)} inputs, which is given {len(inputs)}")
        values.update((given.name, value) for given, value in zip(graph.input, inputs, strict=True))
        self._add_nodes(graph.node, inner)
        lacking = [output.name for output in graph.output if values.get(output.name, self._missing) is self._missing]
        if lacking:
            raise Unsupported(f"'{lacking[0]}' of a body is not computed")
        return [values[output.name] for output in graph.output]

    def _finish(self, scope: _Scope) -> Imported:
        outputs, nested = [], False
        for output in self._model.graph.output:
            if output.name not in scope.values:
                raise InvalidModel(f"nothing gives the model's output '{output.name}'. Export the model again.")
            value = scope.values[output.name]
            if value is self._missing:
                raise Unsupported(f"hetnn does not compute the output '{output.name}'. Leave it out of the model.")
            if isinstance(value, Fork):
                value = self._joined_output(value, output.name, scope.shapes.get(output.name))
            nested |= isinstance(value, NESTED)
            outputs.append(self._ports.give(value, output.name))
        for value, name, initial in self._generators:
            self._builder.output(value, f"{name}.next")
            self._builder.mutation(name, f"{name}.next", initial)
        values, graph = value_names(scope.values), self._builder.finish()  # which drops what nobody reads
        if not nested and all("value" in tree for tree in self._trees):
            return Imported(graph, values=values)
        names = [given.name for given in self._inputs()]
        made = outputs[0] if len(outputs) == 1 else {"tuple": outputs}
        return Imported(graph, {"args": self._trees, "names": names, "kwargs": [], "outputs": made}, values=values)

    def _joined_output(self, fork: Fork, name: str, declared: Sequence[Any] | None) -> Any:
        """What is forked as an output of the rank that the model declares, or of any."""
        call = Call(self, onnx.NodeProto(name=name), 1, [fork], {})
        try:
            return self.forks.settled(call, fork, None if declared is None else len(declared))
        except Unsupported:
            if declared is not None:
                raise
            return self.forks.left_open(call, fork)


def _meaning(name: str, version: int) -> tuple[Any, Any]:
    """The row or the rule of an operator in the form that an operator set gave it."""
    row = ONNX.rows.get(name)
    if row is not None and version >= row.since:
        return row, None
    if "." in name:  # of another domain
        load_rare()
    older = [below for below in _older_forms(name, len(ONNX.rules)) if version < below]
    return None, ONNX.rules.get(f"{name}<{min(older)}" if older else name)


@cache
def _older_forms(name: str, _rules: int) -> list[int]:
    """The operator sets below which an operator has rules of its own, among so many rules."""
    return [int(key.partition("<")[2]) for key in ONNX.rules if key.startswith(f"{name}<")]


def _may_be_sizes(value: Any) -> bool:
    """Whether a value is few integers, or sizes."""
    if not isinstance(value, _core.Value):
        return value is None or isinstance(value, Sizes)
    few = len(value.shape) == 0 or (len(value.shape) == 1 and value.shape[0] in range(1, _MOST_SIZES + 1))
    return few and value.dtype in ("i32", "i64")


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
