"""From an ONNX model to a graph."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from hetnn.errors import DoesNotFit, InvalidModel, Unsupported
from hetnn.importers import Defaults, Imported
from hetnn.importers.lowering.lacking import lacking
from hetnn.importers.lowering.limits import MOST_NODES, TOO_MANY
from hetnn.importers.onnx.builder import Builder
from hetnn.importers.onnx.fixed import Fixed, read_fixed
from hetnn.importers.onnx.functions import count_nodes, functions_of
from hetnn.importers.onnx.model import Weights, check_model, read_model
from hetnn.importers.onnx.node_order import check_initializers
from hetnn.importers.onnx.nodes import MISSING, Nodes, Scope
from hetnn.importers.onnx.ports import Ports, value_names
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.gradient import names_of_variables
from hetnn.importers.onnx.values import NESTED, Fork
from hetnn.structure import Tree

# The version of ONNX from which an initializer need be no input, so that one that is both is a default.
_FIRST_WITH_DEFAULTS = 4


def import_onnx(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    fix: Mapping[str, Any] | None = None,
    apart: bool = False,
    opened: frozenset[str] = frozenset(),
    path: Path | None = None,
) -> Imported:
    """The graph of an ONNX model: initializers as constants, named sizes as symbols, functions opened.

    `fix` has numbers for sizes that the model leaves open, and values for inputs; with `apart`, sizes of one name are
    one in an input only; `opened` are inputs though the model has values for them; `path` is the file that a ModelProto
    was read from. Unsupported lists every operator that hetnn lacks with the names of its nodes, in one error.
    """
    again = partial(import_onnx, model, fix, path=path)
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


class _Importer:
    """One model: its inputs, its initializers, its nodes and its outputs, in this order."""

    def __init__(
        self, model: onnx.ModelProto, path: Path | None, fixed: Fixed, apart: bool, opened: frozenset[str]
    ) -> None:
        self._model, self._fixed, self._opened = model, fixed, opened
        self._builder = Builder(names_of_variables(model.graph.node))
        self._nodes = Nodes(self._builder, Weights(path), functions_of(model), fixed.sizes)
        self._ports = Ports(self._builder, self._settled, fixed.sizes, apart)
        self._trees: list[Tree] = []  # of the model's inputs

    def run(self) -> Imported:
        graph = self._model.graph
        scope = Scope({entry.domain: entry.version for entry in self._model.opset_import})
        if count_nodes(self._model) > MOST_NODES:
            raise InvalidModel(TOO_MANY)
        check_initializers(graph)
        self._lift_inputs(scope)  # first, so that their names are theirs
        for tensor in graph.initializer:
            if tensor.name not in scope.values:
                scope.values[tensor.name] = self._nodes.weight(tensor)
        for sparse in graph.sparse_initializer:
            if sparse.values.name not in scope.values:
                dense = self._nodes.tensor(sparse)
                scope.values[sparse.values.name] = self._builder.constant(dense, sparse.values.name)
        scope.shapes = self._nodes.declared(graph)
        self._nodes.add(graph.node, scope)
        if self._nodes.problems:
            raise lacking(self._nodes.problems)
        return self._finish(scope)

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

    def _lift_inputs(self, scope: Scope) -> None:
        for name, array in self._fixed.inputs.items():
            scope.values[name] = self._builder.constant(array, name)
        for given in self._inputs():
            if given.name in scope.values:
                continue
            scope.values[given.name], tree = self._ports.lift(given.name, given.type)
            self._trees.append(tree)

    def _settled(self, value: Any, name: str) -> Any:
        """A tensor of sizes, or of what one of two branches gives."""
        return Call(self._nodes, onnx.NodeProto(name=name), 1, [value], {})[0]

    def _finish(self, scope: Scope) -> Imported:
        outputs, nested = [], False
        for output in self._model.graph.output:
            if output.name not in scope.values:
                raise InvalidModel(f"nothing gives the model's output '{output.name}'. Export the model again.")
            value = scope.values[output.name]
            if value is MISSING:
                raise Unsupported(f"hetnn does not compute the output '{output.name}'. Leave it out of the model.")
            if isinstance(value, Fork):
                value = self._joined_output(value, output.name, scope.shapes.get(output.name))
            nested |= isinstance(value, NESTED)
            outputs.append(self._ports.give(value, output.name))
        self._builder.generators.keep(self._builder.graph)
        values, graph = value_names(scope.values), self._builder.finish()
        if not nested and all("value" in tree for tree in self._trees):
            return Imported(graph, values=values)
        names = [given.name for given in self._inputs()]
        made = outputs[0] if len(outputs) == 1 else {"tuple": outputs}
        return Imported(graph, {"args": self._trees, "names": names, "kwargs": [], "outputs": made}, values=values)

    def _joined_output(self, fork: Fork, name: str, declared: Sequence[Any] | None) -> Any:
        """What is forked as an output of the rank that the model declares, or of any."""
        call = Call(self._nodes, onnx.NodeProto(name=name), 1, [fork], {})
        try:
            return self._nodes.forks.settled(call, fork, None if declared is None else len(declared))
        except Unsupported:
            if declared is not None:
                raise
            return self._nodes.forks.left_open(call, fork)
