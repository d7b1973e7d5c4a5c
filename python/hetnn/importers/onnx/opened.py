"""ONNX models whose parameters are inputs, so that what reads them need not be what reads constants."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from hetnn.importers import Imported
from hetnn.importers.onnx.graph import import_onnx
from hetnn.importers.onnx.model import Weights, read_model

# By operator, the places of inputs that were measured, and of those that must be known when a model is imported.
_STATISTICS = {"BatchNormalization": (3, 4)}
_KNOWN = {"Resize": (1, 2), "Upsample": (1,), "QuantizeLinear": (1, 2), "DequantizeLinear": (1, 2)}


def import_opened(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto, fix: Mapping[str, Any] | None
) -> tuple[Imported, dict[str, np.ndarray[Any, Any]]]:
    """The model with its initializers of f32 that have an axis as inputs, and their values by name."""
    path = None
    if not isinstance(model, onnx.ModelProto):
        model, path = read_model(model)
    weights = Weights(path)
    opened = onnx.ModelProto()
    opened.CopyFrom(model)
    graph = opened.graph
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    _give_statistics_names(graph, initializers)
    known = {
        name for node in graph.node for place, name in enumerate(node.input) if place in _KNOWN.get(node.op_type, ())
    }
    values: dict[str, np.ndarray[Any, Any]] = {}
    declared = {given.name for given in graph.input}
    for name, tensor in initializers.items():
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims and name not in known:
            values[name] = weights.array(tensor)
            if name not in declared:
                graph.input.append(onnx.helper.make_tensor_value_info(name, tensor.data_type, tensor.dims))
    for tensor in graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL and tensor.name not in values:
            tensor.CopyFrom(onnx.numpy_helper.from_array(weights.array(tensor), tensor.name))
    return import_onnx(opened, fix, opened=frozenset(values)), values


def _give_statistics_names(graph: onnx.GraphProto, initializers: Mapping[str, onnx.TensorProto]) -> None:
    """Means and variances of batch norms as initializers of their own: exporters write those down once that are equal,
    so that a variance may be another layer's weight."""
    passed = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Identity"}
    for node in graph.node:
        for place in _STATISTICS.get(node.op_type, ()):
            name = node.input[place] if place < len(node.input) else ""
            while name in passed:
                name = passed[name]
            if name in initializers:
                own = graph.initializer.add()
                own.CopyFrom(initializers[name])
                own.name = node.input[place] = f"{node.output[0]}/{node.input[place]}"
