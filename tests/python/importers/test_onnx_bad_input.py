"""ONNX files that are none, are broken, or have no end: each a typed error with its cause, in bounded time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import hetnn
from hetnn.importers import import_model
from importers.onnx_models import model_of as text_model


def value(name: str, shape: list[Any] | None, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model_of(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[str],
    functions: list[onnx.FunctionProto] | None = None,
    **parts: Any,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], **parts)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    return helper.make_model(graph, functions=functions or [], opset_imports=opsets)


def node(op: str, inputs: list[str], outputs: list[str], **attrs: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, name=outputs[0], **attrs)


X = value("x", [2, 3])


@pytest.mark.parametrize("data", [b"\x00", b"garbage", b"\x89PNG\r\n\x1a\n" + bytes(64), bytes(range(256)) * 8])
def test_bytes_that_are_no_model(data: bytes) -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"no ONNX model|has no graph"):
        hetnn.compile(data)


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08\xff")
    with pytest.raises(hetnn.InvalidModel, match=r"m\.onnx': no ONNX model: .*Export it again"):
        hetnn.compile(tmp_path / "m.onnx")


def small_model() -> bytes:
    weight = onnx.numpy_helper.from_array(np.ones((4, 3), np.float32), "w")
    nodes = [node("Gemm", ["x", "w"], ["h"], transB=1), node("Softmax", ["h"], ["y"], axis=-1)]
    return bytes(model_of(nodes, [X], ["y"], initializer=[weight]).SerializeToString())


def test_a_model_that_is_cut_short_or_altered() -> None:
    data, rng, messages = small_model(), random.Random(0), {}
    cut = [data[:size] for size in range(len(data))]
    for _ in range(300):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] = rng.randrange(256)
        cut.append(bytes(changed))
    for each in cut:
        try:
            hetnn.compile(each)
        except hetnn.Error as error:
            messages[str(error)] = type(error)
    assert hetnn.InvalidModel in messages.values()
    assert set(messages.values()) <= {hetnn.InvalidModel, hetnn.Unsupported, hetnn.DoesNotFit}
    assert "" not in messages


CYCLE = model_of([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])], [X], ["b"])
UNGIVEN = model_of([node("Add", ["x", "z"], ["y"])], [X], ["y"])
NO_OUTPUT = model_of([node("Relu", ["x"], ["y"])], [X], ["z"])
LACKING = model_of([node("Conv", ["x"], ["y"])], [X], ["y"])
NEGATIVE = model_of([node("Relu", ["x"], ["y"])], [value("x", [2, -3])], ["y"])
VAST = model_of([node("Relu", ["x"], ["y"])], [value("x", [2**62, 2**62])], ["y"])
VAST_WEIGHT = model_of(
    [node("Add", ["x", "w"], ["y"])],
    [X],
    ["y"],
    initializer=[TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**62, 4], raw_data=bytes(8))],
)
SHORT_WEIGHT = model_of(
    [node("Add", ["x", "w"], ["y"])],
    [X],
    ["y"],
    initializer=[TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], raw_data=bytes(8))],
)
NEGATIVE_WEIGHT = model_of(
    [node("Add", ["x", "w"], ["y"])],
    [X],
    ["y"],
    initializer=[TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[-1], float_data=[1.0])],
)
STRAY_TYPE = model_of([node("Relu", ["x"], ["y"])], [value("x", [2], 99)], ["y"])
OTHER_TYPES = model_of([node("MatMul", ["x", "z"], ["y"])], [X, value("z", [3, 2], TensorProto.INT64)], ["y"])
ENDLESS = model_of(
    [helper.make_node("twice", ["x"], ["y"], domain="f")],
    [X],
    ["y"],
    [
        helper.make_function(
            "f",
            "twice",
            ["x"],
            ["y"],
            [helper.make_node("twice", ["x"], ["y"], domain="f")],
            [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)],
        )
    ],
)


def doubling(depth: int) -> onnx.ModelProto:
    """Functions that each call the next one twice."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    functions = []
    for k in range(depth):
        called = (f"f{k + 1}", "f") if k + 1 < depth else ("Relu", "")
        nodes = [
            helper.make_node(called[0], ["x"], ["h"], domain=called[1]),
            helper.make_node(called[0], ["h"], ["y"], domain=called[1]),
        ]
        functions.append(helper.make_function("f", f"f{k}", ["x"], ["y"], nodes, opsets))
    return model_of([helper.make_node("f0", ["x"], ["y"], domain="f")], [X], ["y"], functions)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (CYCLE, "the node 'a' reads 'b', which nothing gives. Order the nodes"),
        (UNGIVEN, "the node 'y' reads 'z', which nothing gives"),
        (NO_OUTPUT, "nothing gives the model's output 'z'"),
        (LACKING, "the node 'y': Conv: .*has input size 1 not in range"),
        (NEGATIVE, "the input 'x' has the size -3 on axis 1"),
        (VAST, r"its sizes may multiply to 2\^59"),
        (VAST_WEIGHT, "the tensor 'w' cannot be read"),
        (SHORT_WEIGHT, "the tensor 'w' cannot be read: .* Its data must fill its shape"),
        (NEGATIVE_WEIGHT, r"the tensor 'w' has the shape \[-1\]\. Sizes are not negative"),
        (OTHER_TYPES, "the node 'y': MatMul: .*f32.*i64"),
        (ENDLESS, "functions and bodies lie more than 64 deep in one another. Does a function call itself"),
    ],
)
def test_what_is_wrong_is_said(model: onnx.ModelProto, message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.compile(model.SerializeToString())


def test_a_number_that_is_no_type() -> None:
    with pytest.raises(hetnn.Unsupported, match="the input 'x' has the element type 99"):
        hetnn.compile(STRAY_TYPE.SerializeToString())


def test_functions_that_double_have_a_bound() -> None:
    with pytest.raises(hetnn.InvalidModel, match="the model has more than 262144 nodes"):
        hetnn.compile(doubling(60))


def test_bodies_ten_thousand_deep() -> None:
    graph = helper.make_graph([node("Relu", ["x"], ["y"])], "g", [], [onnx.ValueInfoProto(name="y")])
    condition = helper.make_tensor("c", TensorProto.BOOL, [], [True])
    data = graph.SerializeToString()
    for _ in range(10_000):  # by hand: protobuf itself refuses to build so deep a message

        def field(number: int, body: bytes) -> bytes:
            size, digits = len(body), b""
            while size > 127:
                digits += bytes([size & 127 | 128])
                size >>= 7
            return bytes([number << 3 | 2]) + digits + bytes([size]) + body

        attr = field(1, b"then_branch") + field(6, data) + bytes([20 << 3 & 255 | 128, 1, 5])
        data = field(1, field(1, b"c") + field(2, b"y") + field(4, b"If") + field(5, attr))
        if len(data) > 1 << 22:
            break
    model = model_of([], [X], ["y"], initializer=[condition])
    with pytest.raises(hetnn.InvalidModel, match="no ONNX model"):
        hetnn.compile(model.SerializeToString() + field(7, data))


def test_ten_thousand_nodes_in_a_row() -> None:
    nodes = [node("Sigmoid", [f"v{k}" if k else "x"], [f"v{k + 1}"]) for k in range(10_000)]
    assert import_model(model_of(nodes, [X], ["v10000"])).graph


def test_a_loop_without_end() -> None:
    going = helper.make_graph(
        [node("Identity", ["c"], ["d"])],
        "body",
        [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL)],
        [value("d", [], TensorProto.BOOL)],
    )
    condition = helper.make_tensor("c0", TensorProto.BOOL, [], [True])
    loop = helper.make_node("Loop", ["", "c0"], [], name="endless", body=going)
    model = model_of([loop, node("Relu", ["x"], ["y"])], [X], ["y"], initializer=[condition])
    with pytest.raises(hetnn.Unsupported, match=r"Loop: a Loop of more than 4096 rounds .*at endless"):
        hetnn.compile(model)


def test_nodes_with_bodies_that_lack_them() -> None:
    text = """agraph (bool c, float x) => (float y) {
      y = If(c) <then_branch = t () => (float a) { a = Identity(x) }, else_branch = e () => (float b) { b = Neg(x) }>
    }"""
    model = text_model(text)
    node = model.graph.node[0]
    del node.attribute[1]
    with pytest.raises(hetnn.InvalidModel, match="If needs the attribute else_branch, a graph"):
        hetnn.compile(model)
    node.attribute.append(onnx.helper.make_attribute("else_branch", 3))
    with pytest.raises(hetnn.InvalidModel, match="If needs the attribute else_branch, a graph"):
        hetnn.compile(model)


def test_an_identity_of_nothing_in_a_body() -> None:
    text = """agraph (bool c, float x) => (float y) {
      y = If(c) <then_branch = t () => (float a) { a = Identity(x) }, else_branch = e () => (float b) { b = Neg(x) }>
    }"""
    model = text_model(text)
    del model.graph.node[0].attribute[0].g.node[0].input[:]
    with pytest.raises(hetnn.InvalidModel, match="Identity"):
        hetnn.compile(model)
