"""The functions of an ONNX model, and how many nodes it has when they stand in place of their calls."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from hetnn.importers.lowering.limits import DEEPEST

Key = tuple[str, str, str]


def functions_of(model: onnx.ModelProto) -> dict[Key, onnx.FunctionProto]:
    """The functions by what calls them: a domain, a name, and which of the functions of that name."""
    return {(function.domain, function.name, function.overload): function for function in model.functions}


def called_by(node: onnx.NodeProto) -> Key:
    """The key of the function that a node calls, if it calls one."""
    return node.domain, node.op_type, node.overload


def count_nodes(model: onnx.ModelProto) -> int:
    """At least so many: of bodies, which may run never or often, nothing counts, nor of what calls itself."""
    functions = functions_of(model)
    counts: dict[Key, int] = {}

    def count(nodes: Iterable[onnx.NodeProto], deepest: int) -> int:
        return sum(1 + called(node, deepest) for node in nodes)

    def called(node: onnx.NodeProto, deepest: int) -> int:
        key = called_by(node)
        if key in functions and key not in counts and deepest:
            counts[key] = 0  # while it is counted
            counts[key] = count(functions[key].node, deepest - 1)
        return counts.get(key, 0)

    return count(model.graph.node, DEEPEST)
