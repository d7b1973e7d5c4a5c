"""ONNX' Gradient: derivatives of one value of a graph by others, as hetnn differentiates graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import onnx

from hetnn.errors import InvalidModel
from hetnn.importers.onnx.rules.call import Call

GRADIENT = "ai.onnx.preview.training.Gradient"


def names_of_variables(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Values by which a graph's nodes derive: what is computed of them is no constant, though they are."""
    return {
        name.decode()
        for node in nodes
        if f"{node.domain}.{node.op_type}" == GRADIENT
        for attr in node.attribute
        if attr.name == "xs"
        for name in attr.strings
    }


def gradient(call: Call, values: Mapping[str, Any]) -> list[Any]:
    """The derivatives by `xs` of `y`, each as if the others were given. Unsupported names all nodes that have none."""
    xs, y = list(call.attr("xs") or []), str(call.attr("y"))
    if any(name not in values for name in (*xs, y)):
        raise InvalidModel(f"a Gradient of '{y}' by {xs}, which the graph does not have")
    return call.differentiate(call.value(values[y]), [call.value(values[name]) for name in xs])
