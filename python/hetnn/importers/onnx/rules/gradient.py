"""ONNX' Gradient: derivatives of one value of a graph by others, backwards along elementwise nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.formulas import build_formula, formula
from hetnn.importers.onnx.rules.call import ONNX, Call
from hetnn.importers.registry import Row

GRADIENT = "ai.onnx.preview.training.Gradient"


def _passed() -> dict[str, Row]:
    """The operators that are elementwise functions, which have slopes."""
    return {name: row for name, row in ONNX.rows.items() if formula(row.op["name"], "slopes") is not None}


def _parts(call: Call, node: onnx.NodeProto, given: Any, inputs: Sequence[Any]) -> list[Any]:
    """What comes to each input of a node of what comes to its output; None where it is nothing."""
    if node.op_type == "Identity":
        return [given]
    row = _passed()[node.op_type]
    told = {attr.name: onnx.helper.get_attribute_value(attr) for attr in node.attribute}
    theirs = dict(word.partition(":")[::2] for word in row.arguments)
    preset = {attr["name"]: attr["default"] for attr in row.op["attrs"]}
    attrs = {ours: told.get(theirs.get(ours) or ours, default) for ours, default in preset.items()}
    form = attrs.get("approximate", b"none")
    form = form.decode() if isinstance(form, bytes) else form
    name = row.op["name"] if form == "none" else f"{row.op['name']}_{form}"
    operands = dict(zip("xy", (call.cast(x, given.dtype) for x in inputs), strict=False))
    operands |= {ours: call.like(value, given) for ours, value in attrs.items() if isinstance(value, (int, float))}
    return [_times(call, given, slope) for slope in build_formula(call, name, "slopes", operands, given.dtype)]


def _times(call: Call, given: Any, slope: Any) -> Any:
    if isinstance(slope, float) and slope in (0, 1, -1):
        return None if slope == 0 else given if slope == 1 else call.create("neg", [given])
    return call.create("mul", [given, call.like(slope, given) if isinstance(slope, float) else slope])


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
        if node.op_type not in ("Identity", *_passed()) or node.domain not in ("", "ai.onnx"):
            raise Unsupported(f"a Gradient through {node.op_type}; it passes {', '.join(('Identity', *_passed()))}")
        inputs = [call.value(values[name]) for name in node.input]
        parts = _parts(call, node, given, inputs)
        for name, x, part in zip(node.input, inputs, parts, strict=True):
            if name in moving and part is not None:
                own = _summed(call, part, x)
                found[name] = call.create("add", [found[name], own]) if name in found else own
    none = [call.broadcast_to(call.like(0, x), x.shape) for x in (call.value(values[name]) for name in xs)]
    return [found.get(name, zero) for name, zero in zip(xs, none, strict=True)]


def _summed(call: Call, part: Any, like: Any) -> Any:
    """What comes to a value that was broadcast: the sum over the axes along which it was."""
    more = len(part.shape) - len(like.shape)
    axes = [k for k, size in enumerate(part.shape) if k < more or (like.shape[k - more] == 1 and size != 1)]
    return call.reshape(call.create("sum", [part], axes=axes, keepdim=True), like.shape) if axes else part
