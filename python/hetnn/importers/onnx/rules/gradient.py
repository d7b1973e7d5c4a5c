"""ONNX' Gradient: derivatives of one value of a graph by others, backwards along elementwise nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.onnx.rules.call import Call

GRADIENT = "ai.onnx.preview.training.Gradient"


def _mul(call: Call, a: Any, b: Any) -> Any:
    return call.create("mul", [a, b])


def _neg(call: Call, x: Any) -> Any:
    return call.create("neg", [x])


def _one_minus(call: Call, x: Any) -> Any:
    return call.create("sub", [call.like(1, x), x])


# What comes to each input of a node: of the call, what comes to its output, its inputs and its output.
_Part = Callable[[Call, Any, "Sequence[Any]", Any], "list[Any]"]
_PARTS: dict[str, _Part] = {
    "Identity": lambda call, g, x, y: [g],
    "Add": lambda call, g, x, y: [g, g],
    "Sub": lambda call, g, x, y: [g, _neg(call, g)],
    "Mul": lambda call, g, x, y: [_mul(call, g, x[1]), _mul(call, g, x[0])],
    "Div": lambda call, g, x, y: [
        call.create("div", [g, x[1]]),
        _neg(call, call.create("div", [_mul(call, g, y), x[1]])),
    ],
    "Neg": lambda call, g, x, y: [_neg(call, g)],
    "Exp": lambda call, g, x, y: [_mul(call, g, y)],
    "Log": lambda call, g, x, y: [call.create("div", [g, x[0]])],
    "Tanh": lambda call, g, x, y: [_mul(call, g, _one_minus(call, _mul(call, y, y)))],
    "Sigmoid": lambda call, g, x, y: [_mul(call, g, _mul(call, y, _one_minus(call, y)))],
}


def gradient(call: Call, nodes: Sequence[onnx.NodeProto], values: Mapping[str, Any]) -> list[Any]:
    """The derivatives by `xs` of `y`, along the nodes before this one. Unsupported names a node that it cannot pass."""
    xs, y = list(call.attr("xs") or []), str(call.attr("y"))
    if any(name not in values for name in (*xs, y)):
        raise InvalidModel(f"a Gradient of '{y}' by {xs}, which the graph does not have")
    moving = set(xs)
    way = []
    for node in nodes:
        if moving.intersection(node.input) and not moving.intersection(node.output):
            moving.update(node.output)
            way.append(node)
    whole = call.value(values[y])
    found: dict[str, Any] = {y: call.broadcast_to(call.like(1, whole), whole.shape)}
    for node in reversed(way):
        given = found.pop(node.output[0], None) if node.output[0] not in xs else None
        if given is None:
            continue
        if node.op_type not in _PARTS or node.domain not in ("", "ai.onnx"):
            raise Unsupported(f"a Gradient through {node.op_type}; it passes {', '.join(_PARTS)}")
        inputs = [call.value(values[name]) for name in node.input]
        parts = _PARTS[node.op_type](call, given, inputs, call.value(values[node.output[0]]))
        for name, x, part in zip(node.input, inputs, parts, strict=True):
            if name in moving:
                own = _summed(call, part, x)
                found[name] = call.create("add", [found[name], own]) if name in found else own
    none = [call.broadcast_to(call.like(0, x), x.shape) for x in (call.value(values[name]) for name in xs)]
    return [found.get(name, zero) for name, zero in zip(xs, none, strict=True)]


def _summed(call: Call, part: Any, like: Any) -> Any:
    """What comes to a value that was broadcast: the sum over the axes along which it was."""
    more = len(part.shape) - len(like.shape)
    axes = [k for k, size in enumerate(part.shape) if k < more or (like.shape[k - more] == 1 and size != 1)]
    return call.reshape(call.create("sum", [part], axes=axes, keepdim=True), like.shape) if axes else part
