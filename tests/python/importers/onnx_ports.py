"""Models of ONNX nodes with ports of any size, and what ONNX Runtime makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import hetnn
from importers.onnx_runtime_nodes import Array, of_runtime, same

FLOAT, INT64, INT32, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.STRING
Port = tuple[int, "list[Any] | None"]


def model_of(
    nodes: list[Any], inputs: dict[str, Port], outputs: dict[str, int], opset: int = 18, **constants: Array
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, *port) for name, port in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return model


def agrees(model: onnx.ModelProto, wanted: list[Array] | None = None, **feeds: Array) -> None:
    given = hetnn.compile(model)(**feeds)
    wanted = of_runtime(model, feeds) if wanted is None else wanted
    for mine, theirs in zip(given if isinstance(given, tuple) else [given], wanted, strict=True):
        same(np.asarray(mine), np.asarray(theirs), 1e-4, 0)


def declared(model: onnx.ModelProto, shape: list[Any]) -> onnx.ModelProto:
    """The model, its first output of a shape that it declares."""
    kind = model.graph.output[0].type.tensor_type.elem_type
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(model.graph.output[0].name, kind, shape))
    return model
