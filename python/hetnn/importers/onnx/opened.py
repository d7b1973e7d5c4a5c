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

# By operator, the places of inputs that must be known when a model is imported.
_KNOWN = {"Resize": (1, 2), "Upsample": (1,), "QuantizeLinear": (1, 2), "DequantizeLinear": (1, 2)}


def import_opened(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto, fix: Mapping[str, Any] | None
) -> tuple[Imported, dict[str, np.ndarray[Any, Any]]]:
    """The model with its initializers of f32 that have an axis as inputs, and their values by name."""
    path = None
    if not isinstance(model, onnx.ModelProto):
        model, path = read_model(model)
    weights = Weights(path)
    known = {
        name
        for node in model.graph.node
        for place, name in enumerate(node.input)
        if place in _KNOWN.get(node.op_type, ())
    }
    opened = onnx.ModelProto()
    opened.CopyFrom(model)
    values: dict[str, np.ndarray[Any, Any]] = {}
    declared = {given.name for given in model.graph.input}
    for tensor in model.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT or not tensor.dims or tensor.name in known:
            continue
        values[tensor.name] = weights.array(tensor)
        if tensor.name not in declared:
            opened.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    for tensor in opened.graph.initializer:  # which may lie in files beside the model
        if tensor.data_location == onnx.TensorProto.EXTERNAL and tensor.name not in values:
            tensor.CopyFrom(onnx.numpy_helper.from_array(weights.array(tensor), tensor.name))
    return import_onnx(opened, fix, opened=frozenset(values)), values
