"""What ONNX files of other exporters have: functions of one name, sizes without a name, names of every script."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import hetnn
from importers.onnx_models import f32, model_of

FLOAT = onnx.TensorProto.FLOAT


def file_of(nodes: list[Any], inputs: list[Any], outputs: list[str], **given: Any) -> onnx.ModelProto:
    """A model whose outputs' shapes are not declared."""
    opsets = [helper.make_opsetid(domain, version) for domain, version in given.pop("opsets", {"": 18}).items()]
    made = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
    functions = given.pop("functions", [])
    graph = helper.make_graph(nodes, "g", inputs, made, **given)
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def value(name: str, *shape: Any) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, shape)


def call(overload: str, given: str, made: str) -> onnx.NodeProto:
    return helper.make_node("Layer", [given], [made], domain="own", overload=overload)


def layer(overload: str, *nodes: onnx.NodeProto) -> onnx.FunctionProto:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_function("own", "Layer", ["v"], ["o"], nodes, opsets, overload=overload)


# Functions


def test_functions_of_one_name_are_told_apart_by_their_overload() -> None:
    functions = [
        layer("", helper.make_node("Relu", ["v"], ["o"])),
        layer("one", helper.make_node("Neg", ["v"], ["o"])),
        layer("both", call("", "v", "a"), call("one", "a", "o")),
    ]
    nodes = [call("", "x", "a"), call("one", "x", "b"), call("both", "x", "c")]
    opsets = {"": 18, "own": 1}
    model = file_of(nodes, [value("x", "n", 3)], ["a", "b", "c"], functions=functions, opsets=opsets)
    x = f32(2, 3)
    for given, wanted in zip(hetnn.compile(model)(x), [np.maximum(x, 0), -x, -np.maximum(x, 0)], strict=True):
        np.testing.assert_array_equal(given, wanted)


def test_an_overload_that_is_not_there_is_told() -> None:
    functions = [layer("one", helper.make_node("Relu", ["v"], ["o"]))]
    model = file_of([call("two", "x", "a")], [value("x", 3)], ["a"], functions=functions, opsets={"": 18, "own": 1})
    with pytest.raises(hetnn.InvalidModel, match=r"'a': own.Layer: the model has no function .* the overload 'two'"):
        hetnn.compile(model)


# Sizes


@pytest.mark.parametrize("unnamed", [-1, -7, "?", "*", "None", "-1", "", None])
def test_sizes_without_a_name_have_nothing_to_do_with_one_another(unnamed: Any) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["z"], ["b"])]
    model = file_of(nodes, [value("x", unnamed, 3, unnamed), value("z", unnamed)], ["a", "b"])
    model.graph.output[0].CopyFrom(value("a", unnamed, unnamed, unnamed))
    exe = hetnn.compile(model)
    assert [port.shape for port in exe.inputs] == [("x_0", 3, "x_2"), ("z_0",)]
    for sizes in ((2, 5, 4), (1, 1, 7)):
        x, z = f32(sizes[0], 3, sizes[1]), f32(sizes[2])
        a, b = exe(x, z)
        np.testing.assert_array_equal(a, np.maximum(x, 0))
        np.testing.assert_array_equal(b, -z)
    fixed = hetnn.compile(model, fix={"x_0": 2, "z": z})
    assert [port.shape for port in fixed.inputs] == [(2, 3, "x_2")]


def test_a_size_that_is_named_as_hetnn_names_another() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["z"], ["b"])]
    exe = hetnn.compile(file_of(nodes, [value("x", -1), value("z", "x_0")], ["a", "b"]))
    x, z = f32(2), f32(3)
    np.testing.assert_array_equal(exe(x, z)[1], -z)


@pytest.mark.parametrize("unnamed", [-1, "?"])
def test_a_loop_whose_state_has_an_unnamed_size(unnamed: Any) -> None:
    text = """agraph (int64 n, bool go, float[k] x) => (float[k] y) {
      y = Loop(n, go, x) <body = body (int64 i, bool g, float[k] s) => (bool h, float[k] t) {
        h = Identity(g) t = Concat <axis = 0> (s, s)
      }>
    }"""
    model = model_of(text)
    body = model.graph.node[0].attribute[0].g
    body.output[1].CopyFrom(value("t", unnamed))
    x = f32(3)
    given = hetnn.compile(model)(np.int64(2), np.bool_(True), x)
    np.testing.assert_array_equal(given, np.tile(x, 4))
