"""A graph as an ONNX model: node by node by the rules, then as a proto."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import hetnn
from hetnn import _core
from hetnn.errors import Unsupported
from hetnn.exporters.onnx.rules import ONNX, Call
from hetnn.exporters.onnx.rules.quant import integers_of, reals_of
from hetnn.exporters.onnx.schema import least_set, number, onnx, schema_of
from hetnn.exporters.onnx.writer import Branch, Node, Value, Writer
from hetnn.exporters.refusal import Refusal
from hetnn.exporters.registry import operators

# Models state no older operator set: what reads ONNX reads this one.
_OLDEST = 13
# Weights of more bytes than a message of protobuf may have lie in a file beside the model.
_MOST_BYTES = 1 << 30


class Export:
    """A graph on its way: what is written, and the nodes that cannot be."""

    def __init__(self, graph: _core.Graph) -> None:
        self.graph = graph
        self.types = graph.types()
        self.refusals: list[Refusal] = []
        # By hetnn's names: a value's own name may be that under which it leaves.
        self.values: dict[str, Value] = {}
        self._reals: dict[str, Value] = {}
        self._called = self._names()
        self.writer = Writer(names={*self.types, *graph.output_names})
        for name, _, _ in graph.inputs:
            self._there(Value(name, self.types[name]["dtype"], tuple(self.types[name]["shape"])), name)
        for name, array in graph.constants().items():
            self.writer.constants[name] = array
            self._there(Value(name, self.types[name]["dtype"], tuple(array.shape), array), name)
        for row in graph.nodes():
            self._write(row)
        if not self.refusals:
            self._give_outputs()
            self._drop_unread()

    def _names(self) -> dict[str, str]:
        """Values that are called as the outputs that they are."""
        inner = {name for name, _, _ in self.graph.inputs} | set(self.graph.constants())
        called: dict[str, str] = {}
        for (name, _, _), wanted in zip(self.graph.outputs, self.graph.output_names, strict=True):
            if name not in inner and name not in called and wanted not in self.types:
                called[name] = wanted
        return called

    def _there(self, value: Value, name: str) -> None:
        self.values[name] = value
        self.writer.declare(value)

    def _write(self, row: dict[str, Any]) -> None:
        """One node by its rule, between conversions where it computes on reals that integers stand for."""
        if any(name is not None and name not in self.values for name in row["inputs"]):
            return  # behind one that is refused
        begin = len(self.writer.nodes)
        traits = operators()[row["op"]]["traits"]
        raw = "integral" in traits or ("movement" in traits and "q_scale" not in row["attrs"])
        inputs = [None if name is None else self._given(name, raw) for name in row["inputs"]]
        types = row["output_types"]
        dtypes = ["f32" if given["quant"] and not raw else given["dtype"] for given in types]
        try:
            rule = ONNX.rules.get(row["op"], Call.by_row)
            made = rule(Call(self.writer, row, inputs, dtypes))
            results = [
                self._of_type(*pair, raw)
                for pair in zip(made if isinstance(made, list) else [made], types, strict=True)
            ]
        except Unsupported as error:
            del self.writer.nodes[begin:]
            self.refusals.append(Refusal(row["name"], row["op"], row["loc"], str(error)))
            return
        self._bind(row, results, begin)

    def _given(self, name: str, raw: bool) -> Value:
        quant = self.types[name]["quant"]
        if quant is None or raw:
            return self.values[name]
        if name not in self._reals:
            self._reals[name] = reals_of(self.writer, self.values[name], quant)
        return self._reals[name]

    def _of_type(self, value: Value, given: dict[str, Any], raw: bool) -> Value:
        if given["quant"] is None or raw:
            return value
        shaped = Value(value.name, value.dtype, tuple(given["shape"]))
        return integers_of(self.writer, shaped, given["quant"], given["dtype"])

    def _bind(self, row: dict[str, Any], results: Sequence[Value], begin: int) -> None:
        """Calls what the node's last steps give by its outputs' names, and the steps by its own."""
        made = {name for node in self.writer.nodes[begin:] for name in node.outputs}
        kept = {value.name for value in (*self._reals.values(), *self.writer.known.values())}
        turned: dict[str, str] = {}
        for name, value, given in zip(row["outputs"], results, row["output_types"], strict=True):
            called = self._called.get(name, name)
            if value.name in made and value.name not in kept and value.name not in turned:
                turned[value.name] = called
            else:
                self.writer.nodes.append(_same(value, called))
            self._there(Value(called, given["dtype"], tuple(given["shape"])), name)
        for k, node in enumerate(self.writer.nodes[begin:]):
            node.inputs = [turned.get(name, name) for name in node.inputs]
            node.outputs = [turned.get(name, name) for name in node.outputs]
            node.name = row["name"] if begin + k + 1 == len(self.writer.nodes) else f"{row['name']}.{k}"
            node.loc = row["loc"]

    def _give_outputs(self) -> None:
        """Each under its own name."""
        self.outputs: list[Value] = []
        for (name, _, _), wanted in zip(self.graph.outputs, self.graph.output_names, strict=True):
            value, given = self.values[name], self.types[name]
            called = wanted
            if value.name != wanted or any(wanted == there.name for there in self.outputs):
                taken = wanted in self.types or any(wanted == there.name for there in self.outputs)
                called = self.writer.fresh(wanted) if taken else wanted
                self.writer.nodes.append(_same(value, called))
                self.writer.nodes[-1].name = called
            self.outputs.append(Value(called, given["dtype"], tuple(given["shape"])))

    def _drop_unread(self) -> None:
        """Leaves out what nothing reads, as sizes that a later form did not need."""
        read = {value.name for value in self.outputs}
        kept: list[Node] = []
        for node in reversed(self.writer.nodes):
            if any(name in read for name in node.outputs):
                kept.append(node)
                read.update(node.inputs)
                read.update(attr.value for attr in node.attrs.values() if isinstance(attr, Branch))
        self.writer.nodes = kept[::-1]
        self.writer.constants = {name: array for name, array in self.writer.constants.items() if name in read}

    # As a proto.

    def _type(self, name: str, value: Value) -> Any:
        shape = [size if isinstance(size, int) else str(size) for size in value.shape or ()]
        return onnx().helper.make_tensor_value_info(name, number(value.dtype), shape)

    def _node(self, node: Node) -> Any:
        make = onnx().helper
        attrs: dict[str, Any] = {}
        for name, attr in node.attrs.items():
            if isinstance(attr, Branch):
                out = self._branch_type(f"{node.outputs[0]}_{name}", attr.value)
                inner = make.make_node("Identity", [attr.value], [out.name])
                attr = make.make_graph([inner], name, [], [out])
            attrs[name] = attr
        proto = make.make_node(node.op_type, node.inputs, node.outputs, node.name, domain=node.domain, **attrs)
        if node.loc:
            proto.doc_string = node.loc
        return proto

    def _branch_type(self, name: str, source: str) -> Any:
        value = next(value for value in self.values.values() if value.name == source)
        return self._type(name, value)

    def proto(self) -> Any:
        """The model. Its operator set is the oldest that has all its operators as they are in the newest."""
        package = onnx()
        make, graph = package.helper, self.graph
        tensors = [package.numpy_helper.from_array(array, name) for name, array in self.writer.constants.items()]
        inputs = [self._type(name, self.values[name]) for name, _, _ in graph.inputs]
        ends = {*(name for name, _, _ in graph.inputs), *(value.name for value in self.outputs), *self.writer.constants}
        inner = [self._type(v.name, v) for v in self.values.values() if v.name not in ends]
        written = {name for node in self.writer.nodes for name in node.outputs}
        main = make.make_graph(
            [self._node(node) for node in self.writer.nodes],
            graph.name,
            inputs,
            [self._type(value.name, value) for value in self.outputs],
            tensors,
            value_info=[info for info in inner if info.name in written],
        )
        since: dict[str, int] = {"": _OLDEST}
        for node in self.writer.nodes:
            least = node.since or schema_of(node.op_type, node.domain).since
            since[node.domain] = max(since.get(node.domain, 1), least)
        sets = [make.make_opsetid(domain, version) for domain, version in since.items()]
        model = make.make_model(
            main,
            producer_name="hetnn",
            producer_version=hetnn.__version__,
            opset_imports=sets,
            ir_version=make.find_min_ir_version_for(sets),
        )
        if graph.mutations:
            states = [{"input": name, "output": output} for name, output in graph.mutations]
            make.set_model_props(model, {"hetnn.states": json.dumps(states)})
        return model


def _same(value: Value, called: str) -> Node:
    return Node("Identity", [value.name], [called], {}, since=least_set("Identity", "", frozenset({value.dtype})))


def unsupported(graph: _core.Graph) -> list[Refusal]:
    """The nodes of a graph that have no form in ONNX, with the reason of each; nothing is made of the others.

    Unsupported where the package onnx, which knows what ONNX has, is not installed.
    """
    return Export(graph).refusals


def refusal(graph: _core.Graph) -> str | None:
    """Why a graph, perhaps of a single node, cannot be written as ONNX; None where it can."""
    return "\n".join(map(str, unsupported(graph))) or None


def export(graph: _core.Graph) -> Any:
    """A graph of any stage as an onnx.ModelProto, typed and with all names of the graph.

    Open sizes are dim_params; states are further inputs and outputs, which the property `hetnn.states` pairs.
    Unsupported with every node that has no form in ONNX, and where the package onnx is not installed.
    """
    made = Export(graph)
    if made.refusals:
        listed = "\n".join(map(str, made.refusals))
        raise Unsupported(
            f"{len(made.refusals)} of {len(graph.nodes())} nodes have no form in ONNX. Leave them out, or "
            f"export the subgraph of a device that has no such node.\n{listed}"
        )
    return made.proto()


def write(graph: _core.Graph, path: str | os.PathLike[str]) -> None:
    """Exports a graph into a file; weights too large for one lie in PATH.data. OSError of the file system."""
    model, name = export(graph), os.fspath(path)
    large = sum(len(tensor.raw_data) for tensor in model.graph.initializer) > _MOST_BYTES
    beside = f"{os.path.basename(name)}.data" if large else None
    onnx().save(model, name, save_as_external_data=large, location=beside)


__all__ = ["Refusal", "export", "refusal", "unsupported", "write"]
