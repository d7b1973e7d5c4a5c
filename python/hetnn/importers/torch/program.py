"""Exported programs that mean the same and are easier to read."""

from __future__ import annotations

import copy
import operator
from collections import Counter
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

from hetnn.importers.torch.rules.random import DROPOUTS

_WITH_GRAD, _WITH_AUTOCAST = "wrap_with_set_grad_enabled", "wrap_with_autocast"


def without_idle(program: ExportedProgram) -> ExportedProgram:
    """The program without what does nothing: dropout, of whose result, its very input, torch would make a copy that
    misses what is written later, and detaching in place, which torch's functional form keeps and then refuses."""
    names = {f"aten.{name}" for name in DROPOUTS}

    def is_idle(node: Node) -> bool:
        return node.target is torch.ops.aten.detach_.default or (str(node.target) in names and not node.args[2])

    if not any(map(is_idle, program.graph.nodes)):
        return program
    graph = copy.deepcopy(program.graph)
    output = graph.output_node()
    for node in list(filter(is_idle, graph.nodes)):
        node.replace_all_uses_with(node.args[0], delete_user_cb=lambda user: user is not output)
        if node.users:
            output.prepend(node)  # the program's signature names it
        else:
            graph.erase_node(node)
    return _with_graph(program, graph)


def with_values_apart(program: ExportedProgram) -> ExportedProgram:
    """The program with a copy of each value that is written into a state or an input, of which torch's functional
    form names one output each: a value that is written into two of them, or is an input itself, has no name there."""
    copies = [
        node
        for node in program.graph.nodes
        if node.target is torch.ops.aten.copy_.default and node.args[0].op == "placeholder"
    ]
    sources = Counter(node.args[1] for node in copies)
    if not any(times > 1 or source.op == "placeholder" for source, times in sources.items()):
        return program
    graph = copy.deepcopy(program.graph)
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
        if node.args[0].op == "placeholder":
            with graph.inserting_before(node):
                apart = graph.call_function(torch.ops.aten.clone.default, (node.args[1],))
            apart.meta.update({**node.meta, "val": node.args[1].meta["val"]})
            node.update_arg(1, apart)  # alone: what is copied may be what it is written into
    return _with_graph(program, graph)


def inlined(program: ExportedProgram) -> ExportedProgram:
    """The program with what stands in `no_grad` and in autocast that is off in place of a call of it.

    The program itself where an output of it is one of such a call, which its signature names, or a call in such a
    call has graphs of its own.
    """
    wrapping = [node for node in program.graph.nodes if _wrapped(node)]
    if not wrapping or any(_has_others(program.graph_module, node) for node in wrapping):
        return program
    graph = Graph()
    values: dict[Node, Any] = {}
    _copy(program.graph_module, graph, values)
    if any(values[node].name != node.name for node in _named(program.graph)):
        return program
    graph.output(torch.fx.node.map_arg(program.graph.output_node().args[0], values.__getitem__))
    return _with_graph(program, graph)


def _named(graph: Graph) -> list[Node]:
    """The nodes that a program's signature names."""
    return [*graph.find_nodes(op="placeholder"), *graph.output_node().all_input_nodes]


def _wrapped(node: Node) -> tuple[Node, list[Node]] | None:
    """The graph that a node calls, and what it is called with, if it does no more than that."""
    if not isinstance(node.target, torch._ops.HigherOrderOperator):
        return None
    args: list[Any] = list(node.args)
    name = str(node.target)
    if name == _WITH_GRAD:
        return args[1], args[2:]
    if name == _WITH_AUTOCAST and args[2] is False:
        return args[4], args[5:]
    return None


def _graph_of(module: GraphModule, node: Node) -> GraphModule:
    found = _wrapped(node)
    assert found is not None
    return getattr(module, str(found[0].target))  # type: ignore[no-any-return]


def _has_others(module: GraphModule, node: Node) -> bool:
    """Whether what a node wraps reads attributes of its own."""
    inner = _graph_of(module, node)
    wrapping = [node for node in inner.graph.nodes if _wrapped(node)]
    others = [node for node in inner.graph.find_nodes(op="get_attr") if not _is_wrapped_graph(node)]
    return bool(others) or any(_has_others(inner, node) for node in wrapping)


def _copy(module: GraphModule, graph: Graph, values: dict[Node, Any]) -> Any:
    """Appends the module's nodes but its output to a graph, with those that it wraps; what the output gives.

    `values` has what stands for a node, by the node: for those of the placeholders that are given, and then for all.
    """
    for node in module.graph.nodes:
        wrapped = _wrapped(node)
        if wrapped is not None:
            inner = _graph_of(module, node)
            given = dict(
                zip(inner.graph.find_nodes(op="placeholder"), map(values.__getitem__, wrapped[1]), strict=True)
            )
            values[node] = _copy(inner, graph, given)
        elif node.op == "output":
            return torch.fx.node.map_arg(node.args[0], values.__getitem__)
        elif node.target is operator.getitem and not isinstance(values[node.args[0]], Node):
            values[node] = values[node.args[0]][node.args[1]]
        elif node not in values and not _is_wrapped_graph(node):
            values[node] = graph.node_copy(node, values.__getitem__)
    raise AssertionError("a graph without an output")


def _is_wrapped_graph(node: Node) -> bool:
    return node.op == "get_attr" and all(_wrapped(user) is not None for user in node.users)


def _with_graph(program: ExportedProgram, graph: Graph) -> ExportedProgram:
    out = copy.copy(program)
    out._graph_module = GraphModule(program.graph_module, graph)
    out._graph_module.meta.update(program.graph_module.meta)
    return out
