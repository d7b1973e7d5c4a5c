"""ONNX models whose parameters are inputs, so that what reads them need not be what reads constants."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx

from hetnn.importers import Imported
from hetnn.importers.onnx.graph import import_onnx
from hetnn.importers.onnx.model import Weights, read_model

_NORM, _DROPOUT = "BatchNormalization", "Dropout"
# Of a batch norm: its mean and variance among its inputs, and in training mode its outputs that are the next ones.
_STATISTICS = {3: 1, 4: 2}
# By operator, the places of inputs that must be known when a model is imported.
_KNOWN = {"Resize": (1, 2), "Upsample": (1,), "QuantizeLinear": (1, 2), "DequantizeLinear": (1, 2)}


@dataclass(frozen=True)
class Opened:
    """A model whose parameters are inputs, with their values by name.

    running: of statistics that the model keeps in training mode, the last outputs, which are what they become.
    evaluated: imports the model as it is for inference, with the same inputs.
    """

    imported: Imported
    values: dict[str, np.ndarray[Any, Any]]
    running: dict[str, str]
    evaluated: Callable[[], Imported]


def import_opened(model: str | os.PathLike[str] | bytes | onnx.ModelProto, fix: Mapping[str, Any] | None) -> Opened:
    """The model with its initializers of f32 that have an axis as inputs, but statistics that stay as they are."""
    path = None
    if not isinstance(model, onnx.ModelProto):
        model, path = read_model(model)
    weights = Weights(path)
    opened = onnx.ModelProto()
    opened.CopyFrom(model)
    graph = opened.graph
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    running = _take_statistics(graph, initializers)
    for node in graph.node:
        for place in _KNOWN.get(node.op_type, ()):
            initializers.pop(node.input[place] if place < len(node.input) else "", None)
    values: dict[str, np.ndarray[Any, Any]] = {}
    declared = {given.name for given in graph.input}
    for name, tensor in initializers.items():
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims:
            values[name] = weights.array(tensor)
            if name not in declared:
                graph.input.append(onnx.helper.make_tensor_value_info(name, tensor.data_type, tensor.dims))
    names = frozenset(values)
    trained = onnx.ModelProto()
    trained.CopyFrom(opened)
    for name, output in running.items():
        found = onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, values[name].shape)
        trained.graph.output.append(found)
    _evaluate(graph)
    imported = partial(import_onnx, fix=fix, opened=names, path=path)
    return Opened(imported(trained), values, running, lambda: imported(opened))


def _take_statistics(graph: onnx.GraphProto, initializers: dict[str, onnx.TensorProto]) -> dict[str, str]:
    """Takes means and variances of batch norms out of the initializers, but those that the model changes; these, and
    the outputs that are the next ones.

    One that something else reads too, because exporters write down once what is equal, gets a name of its own.
    """
    passed = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Identity"}
    reads = Counter(name for node in graph.node for name in node.input)
    running: dict[str, str] = {}
    for node in graph.node:
        for place, output in _STATISTICS.items() if node.op_type == _NORM else ():
            given = name = node.input[place] if place < len(node.input) else ""
            while name in passed:
                name = passed[name]
            if name not in initializers:
                continue
            tensor = initializers[name]
            if reads[name] == 1 and name == given:
                del initializers[name]
            else:
                tensor = graph.initializer.add()
                tensor.CopyFrom(initializers[name])
                tensor.name = node.input[place] = f"{node.output[0]}/{given}"
            if output < len(node.output) and node.output[output]:
                initializers[tensor.name] = tensor
                running[tensor.name] = node.output[output]
    return running


def _evaluate(graph: onnx.GraphProto) -> None:
    """Puts norms and dropouts into the mode of inference."""
    for node in graph.node:
        if node.op_type == _NORM:
            kept = [attr for attr in node.attribute if attr.name != "training_mode"]
            del node.attribute[:], node.output[1:]
            node.attribute.extend(kept)
        elif node.op_type == _DROPOUT and len(node.input) > 2:
            del node.input[2:]
