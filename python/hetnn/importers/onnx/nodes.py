"""The nodes of an ONNX graph, function or body, one after another: which row or rule says what each becomes."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import onnx
from onnx import AttributeProto

from hetnn import _core
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.limits import DEEPEST, MOST_NODES, TOO_MANY
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.onnx.builder import Builder
from hetnn.importers.onnx.control import CONTROL
from hetnn.importers.onnx.fixed import read_size
from hetnn.importers.onnx.fork import Forks
from hetnn.importers.onnx.functions import Key, called_by
from hetnn.importers.onnx.model import Weights
from hetnn.importers.onnx.node_order import check_initializers, in_order
from hetnn.importers.onnx.read_sizes import ReadSizes
from hetnn.importers.onnx.rules import load_rare
from hetnn.importers.onnx.rules.by_row import by_row
from hetnn.importers.onnx.rules.call import ONNX, Call
from hetnn.importers.onnx.rules.complexes import BY_PARTS, moved_parts
from hetnn.importers.onnx.rules.declare import REFUSED
from hetnn.importers.onnx.rules.gradient import GRADIENT, gradient
from hetnn.importers.onnx.rules.shape import on_sizes
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
from hetnn.importers.onnx.values import NESTED, ONE_SIDED, Array, Text
from hetnn.progress import announce

# Stands for what a node that cannot be imported would give.
MISSING = object()


@dataclass
class Scope:
    """Names of values in a graph or in the body of a function, and what the body is told by its caller."""

    opsets: Mapping[str, int]
    prefix: str = ""
    attrs: Mapping[str, AttributeProto] = field(default_factory=dict)
    values: ChainMap[str, Any] = field(default_factory=ChainMap)
    shapes: dict[str, list[Size | None]] = field(default_factory=dict)  # that the model declares
    whole: bool = False  # what the body lacks makes the operator missing, not the node in it


class _Missing(Exception):
    """A node in the body of an operator's definition that hetnn lacks."""


class Nodes:
    """Adds nodes to a graph, and notes in `problems` which of them hetnn lacks, with their places in the model."""

    def __init__(
        self, builder: Builder, weights: Weights, functions: Mapping[Key, onnx.FunctionProto], fixed: Mapping[str, int]
    ) -> None:
        self.builder = builder
        self.forks = Forks()
        self.problems: dict[str, list[str]] = {}
        self._weights, self._functions = weights, functions
        self._fixed = fixed  # sizes that the caller knows, by the model's names
        self._sizes = ReadSizes(builder, self.forks)
        self._depth = 0
        self._count = 0

    def add(self, nodes: Sequence[onnx.NodeProto], scope: Scope) -> None:
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

    def _convert(self, node: onnx.NodeProto, scope: Scope) -> None:
        self._count += 1
        if self._count > MOST_NODES:
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
            self.problems.setdefault(f"{name}{': ' + text if text else ''}", []).append(where)
            outputs = [MISSING] * len(node.output)
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
                scope.values[output] = MISSING if value is None else value

    def _refusal(self, node: onnx.NodeProto, inputs: Sequence[Any], scope: Scope) -> str:
        """Why the standard does not have a node that no rule took."""
        schema, opset = self._standard(node, scope)
        open_to_none = schema is None or any(value is MISSING for value in inputs)
        return "" if open_to_none else refusal(node, schema, {**scope.opsets, node.domain: opset}, inputs)

    def _standard(self, node: onnx.NodeProto, scope: Scope) -> tuple[Any, int]:
        """What the standard says of the node's operator, if it has it, and in which operator set."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = scope.opsets.get(domain, scope.opsets.get("ai.onnx", 1) if not domain else 1)
        schema = schema_of(node.op_type, domain, opset)
        return schema, opset if schema is None else max(opset, schema.since_version)

    def _outputs(self, node: onnx.NodeProto, name: str, inputs: list[Any], scope: Scope) -> list[Any]:
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
        if any(value is MISSING for value in inputs):
            if row is None and rule is None and not has_body(schema):
                raise Unsupported("")
            return [MISSING] * len(node.output)
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
                found = by_row(call, row)
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
        self._sizes.note(call, inputs, outputs)
        return outputs

    def _open(
        self, body: onnx.FunctionProto, node: onnx.NodeProto, inputs: list[Any], scope: Scope, whole: bool
    ) -> list[Any]:
        """The nodes of a function in place of a node that calls it."""
        attrs = {attr.name: attr for attr in body.attribute_proto}
        attrs.update((attr.name, attr) for attr in node.attribute)
        inner = Scope(
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
        self.add(body.node, inner)
        return [inner.values.get(name, MISSING) for name in body.output]

    def _inline(self, scope: Scope, graph: onnx.GraphProto, prefix: str, inputs: Sequence[Any]) -> list[Any]:
        """The nodes of a graph in an attribute, which may read what its scope has; its outputs."""
        values = ChainMap[str, Any]({}, *scope.values.maps)
        inner = Scope(scope.opsets, scope.prefix + prefix, scope.attrs, values, self.declared(graph), scope.whole)
        check_initializers(graph)
        values.update((tensor.name, self.weight(tensor)) for tensor in graph.initializer)
        if len(graph.input) != len(inputs):
            raise InvalidModel(f"a body with {len(graph.input)} inputs, which is given {len(inputs)}")
        values.update((given.name, value) for given, value in zip(graph.input, inputs, strict=True))
        self.add(graph.node, inner)
        lacking = [output.name for output in graph.output if values.get(output.name, MISSING) is MISSING]
        if lacking:
            raise Unsupported(f"'{lacking[0]}' of a body is not computed")
        return [values[output.name] for output in graph.output]

    def weight(self, tensor: onnx.TensorProto) -> Any:
        """An initializer as a constant. Unsupported for an element type that hetnn lacks."""
        if tensor.data_type == onnx.TensorProto.STRING:
            return self.builder.texts(*constant_texts(tensor))
        try:
            return self.builder.constant(self._weights.array(tensor), tensor.name)
        except Unsupported as error:
            raise Unsupported(f"the initializer '{tensor.name}' has {error}.") from error

    def declared(self, graph: onnx.GraphProto) -> dict[str, list[Size | None]]:
        """The shapes that a graph declares for its values, in numbers and symbols of the inputs; None where open."""
        found: dict[str, list[Size | None]] = {}
        for value in (*graph.value_info, *graph.output):
            tensor = value.type.tensor_type
            sizes = [read_size(dim) for dim in tensor.shape.dim]
            if tensor.HasField("shape"):
                found[value.name] = [
                    self._fixed.get(size, self.builder.symbols.get(size)) if isinstance(size, str) else size
                    for size in sizes
                ]
        return found

    # What rules build with besides the builder

    def read(self, value: Any) -> Array | None:
        """The integers of a value that nodes compute from others as from sizes; None where it is none."""
        return self._sizes.read(value)

    def tensor(self, tensor: onnx.TensorProto | onnx.SparseTensorProto) -> Array:
        """The elements of a tensor of the model. InvalidModel where its data does not fill its shape."""
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
        scope = Scope({"": newest}, f"{node.name}/", whole=True)
        try:
            return self._outputs(made, op_type, list(inputs), scope)
        except _Missing as error:
            raise Unsupported(str(error)) from error


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
