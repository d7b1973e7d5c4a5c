"""Files in which a quantizer wrote steps to integers and back: integers on an NPU, equal to ONNX's meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import hetnn
from hetnn.target import resolve_target
from importers.onnx_models import agrees, f32, model_of


def integers_only() -> dict[str, Any]:
    """cpu and an NPU as relu-only, of which every operator takes i8 alone."""
    cpu, npu = resolve_target("cpu+relu-only")["devices"]
    ops = {name: {**entry, "dtypes": ["i8"]} for name, entry in {**npu["spec"]["ops"], "clamp": {}}.items()}
    return {"name": "integers", "devices": [cpu, {**npu, "name": "npu", "spec": {**npu["spec"], "ops": ops}}]}


class Network:
    """conv, relu, pool, conv, bounds, addition, mean and a linear layer, with steps between them."""

    def __init__(self, signed: bool, shared_bias: bool) -> None:
        self.rng = np.random.default_rng(5)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.integer: type[np.generic] = np.int8 if signed else np.uint8
        self.turn = 0 if signed else 128
        x = self.step("x", 0.02, 3)
        a = self.step(self.conv(x, 3, 8, 0.02, shared_bias), 0.015, -128, "Relu")
        a = self.step(self.node("MaxPool", [a], kernel_shape=[2, 2], strides=[2, 2]), 0.015, -128)
        b = self.step(self.conv(a, 8, 8, 0.015, shared_bias), 0.02, -128, "Clip")
        c = self.step(self.node("Add", [a, b]), 0.03, -128)
        mean = self.step(self.node("GlobalAveragePool", [c]), 0.02, -128)
        flat = self.step(self.node("Flatten", [mean]), 0.02, -128)
        weight = self.weights((5, 8), 0.01)
        y = self.step(self.node("Gemm", [flat, weight, self.bias(5, 0.02 * 0.01)], transB=1), 0.05, 7)
        self.nodes[-1].output[0] = "y"
        assert y
        graph = helper.make_graph(
            self.nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 12, 12])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])],
            self.constants,
        )
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

    def node(self, op: str, inputs: list[str], **attrs: Any) -> str:
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attrs))
        return name

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def step(self, value: str, scale: float, zero: int, activation: str = "") -> str:
        if activation == "Clip":
            value = self.node("Clip", [value, self.constant(np.float32(0)), self.constant(np.float32(3))])
        elif activation:
            value = self.node(activation, [value])
        given = [self.constant(np.float32(scale)), self.constant(self.integer(zero + self.turn))]
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [value, *given]), *given])

    def weights(self, shape: tuple[int, ...], scale: float) -> str:
        q = self.constant(self.rng.integers(-127, 128, shape, np.int8))
        scales, zeros = np.full(shape[0], scale, np.float32), np.zeros(shape[0], np.int8)
        return self.node("DequantizeLinear", [q, self.constant(scales), self.constant(zeros)], axis=0)

    def bias(self, count: int, scale: float) -> str:
        q = self.constant(self.rng.integers(-900, 900, count, np.int32))
        return self.node("DequantizeLinear", [q, self.constant(np.float32(scale)), self.constant(np.int32(0))])

    def conv(self, x: str, channels: int, filters: int, scale: float, shared_bias: bool) -> str:
        weight = self.weights((filters, channels, 3, 3), 0.004)
        bias = self.node("Identity", [self.bias(filters, scale * 0.004)]) if shared_bias else ""
        return self.node("Conv", [x, weight, *([bias] if bias else [])], pads=[1, 1, 1, 1])


@pytest.mark.parametrize("signed", [True, False], ids=["i8", "u8"])
@pytest.mark.parametrize("shared_bias", [True, False])
def test_a_quantized_network_is_one_subgraph_of_integers(signed: bool, shared_bias: bool) -> None:
    model = Network(signed, shared_bias).model
    x = np.random.default_rng(8).standard_normal((2, 3, 12, 12), np.float32)
    (want,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})
    for target, most_steps in (("cpu", 1.01), (integers_only(), 2.01)):
        executable = hetnn.compile(model, target, strategy="take-all", example=[(2, 3, 12, 12)])
        assert float(np.abs(executable(x) - want).max()) <= most_steps * 0.05
    report = executable.report(format="dict")
    assert len(report["subgraphs"]) == 3  # to integers, the network, and back
    assert report["macs_on"]["cpu"] == 0
    assert {row["op"] for row in report["not_on_preferred"]} <= {"quantize", "dequantize"}


def test_integers_that_others_read_are_those_of_onnx() -> None:
    """The integers themselves are an output, beside what stands between them."""
    network = Network(False, False)
    first = next(node for node in network.nodes if node.op_type == "QuantizeLinear")
    network.model.graph.output.append(
        helper.make_tensor_value_info(first.output[0], TensorProto.UINT8, ["n", 3, 12, 12])
    )
    x = np.random.default_rng(8).standard_normal((1, 3, 12, 12), np.float32)
    want = onnx.reference.ReferenceEvaluator(network.model).run(None, {"x": x})
    got = hetnn.compile(network.model, integers_only(), strategy="take-all")(x)
    np.testing.assert_array_equal(got[1], want[1])


def test_an_example_decides_the_plan() -> None:
    model = Network(True, False).model
    plan = hetnn.plan(model, integers_only(), example={"x": np.zeros((64, 3, 12, 12), np.float32)})
    small = hetnn.plan(model, integers_only(), example=[(1, 3, 12, 12)])
    assert plan.report(format="dict")["predicted_us"] > 3 * small.report(format="dict")["predicted_us"]
    for wrong in ([(1, 3, 12, 12)] * 2, [(1, 3, 12)], [(1, 4, 12, 12)], {"z": (1, 3, 12, 12)}):
        with pytest.raises(hetnn.InvalidModel, match="example: "):
            hetnn.plan(model, "cpu", example=wrong)


@pytest.mark.parametrize("op", ["conv2d", "linear"])
def test_weights_with_a_zero_point_stay_on_the_cpu(op: str) -> None:
    """The NPU's products take away the zero point of the input alone."""
    x_shape, w_shape = ("1,2,3,3", "2,2,1,1") if op == "conv2d" else ("9,2", "2,2")
    graph = f"""graph @q {{stage = imported}} (%x: i8{{0.05}}[{x_shape}]) -> (%y) {{
  %w = constant() {{value = i8[{w_shape}] {{10, 20, 30, 40}}, q_scale = [0.01], q_zero = 5}} : i8{{0.01:5}}[{w_shape}]
  %y = {op}(%x, %w) {{q_scale = [0.05]}} : i8{{0.05}}[{x_shape}]
}}"""
    x = np.arange(-90, 90, 10, dtype=np.int8).reshape([int(size) for size in x_shape.split(",")])
    executable = hetnn.compile(graph, integers_only(), strategy="take-all")
    np.testing.assert_array_equal(executable(x), hetnn.compile(graph)(x))
    (row,) = executable.report(format="dict")["not_on_preferred"]
    assert "'w' must have the zero point 0" in row["reasons"][0]["text"]


def _steps(scale: Any, dtype: int, axis: int | None = None) -> onnx.ModelProto:
    """x to integers of a scale and back, with the integers beside."""
    attrs = {} if axis is None else {"axis": axis}
    scales = np.asarray(scale, np.float32)
    zero = helper.make_tensor("z", dtype, scales.shape, [3] * scales.size)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], **attrs),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], **attrs),
    ]
    outputs = [helper.make_tensor_value_info(name, kind, [2, 6]) for name, kind in (("q", dtype), ("y", 1))]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 6])
    graph = helper.make_graph(nodes, "g", [x], outputs, [numpy_helper.from_array(scales, "s"), zero])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("dtype", [TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16])
@pytest.mark.parametrize(("scale", "axis"), [(1e-42, None), (1e-45, None), (1e-38, None), ([0.1, 1e-42], 0)])
def test_denormal_scales_are_computed_with(dtype: int, scale: Any, axis: int | None) -> None:
    """Which tools may write for channels of zeros; as onnxruntime does, whatever becomes of other denormals."""
    session = onnxruntime.InferenceSession(_steps(scale, dtype, axis).SerializeToString())
    x = np.array([[0, 1e-42, -1e-42, 5e-42, 1e-38, 1], [0, 1e-45, -1, 3e-42, -1e-40, 2e-44]], np.float32)
    for mine, theirs in zip(hetnn.compile(_steps(scale, dtype, axis))(x), session.run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_denormal_scale_that_no_type_has_is_refused() -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"the scale 1\.0005.*e-42 of 'x' is denormal; it must be finite and"):
        hetnn.compile(_steps(1e-42, TensorProto.INT4))


@pytest.mark.parametrize(
    ("placing", "size"),
    [("half_pixel", (8, 20)), ("half_pixel", (12, 25)), ("align_corners", (7, 9)), ("align_corners", (22, 5))],
)
def test_an_image_that_grows_between_conversions_is_a_layer_of_integers(placing: str, size: tuple[int, int]) -> None:
    sizes = f"int64[4] sizes = {{2, 3, {size[0]}, {size[1]}}}"
    constants = f"<float s = {{0.1}}, int8 z = {{1}}, float t = {{0.0713}}, int8 o = {{-5}}, {sizes}>"
    how = f'mode = "linear", coordinate_transformation_mode = "{placing}"'
    body = (
        f"q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) r = Resize<{how}>(d, , , sizes) "
        "p = QuantizeLinear(r, t, o) y = DequantizeLinear(p, t, o)"
    )
    model = model_of(f"agraph (float[2,3,4,5] x) => (y) {constants} {{ {body} }}", opset=19)
    x = f32(2, 3, 4, 5)
    on_cpu = agrees(model, x)
    placed = hetnn.compile(model, "cpu+relu-only", strategy="take-all")
    assert {row["op"] for row in placed.report("dict")["not_on_preferred"]} <= {"quantize", "dequantize"}
    np.testing.assert_array_equal(placed(x), on_cpu(x))


def _layer(op: str) -> onnx.ModelProto:
    """Images of u8 [1,16,12,12] between conversions, or by an operator of integers; a result of 8 filters."""
    rng = np.random.default_rng(3)
    held = {
        "s": np.float32(0.02),
        "z": np.uint8(100),
        "w": rng.integers(-127, 128, (8, 16, 3, 3), np.int8),
        "ws": np.full(8, 0.004, np.float32),
        "wz": np.zeros(8, np.int8),
        "t": np.float32(0.0713),
        "o": np.uint8(128),
        "b": (rng.uniform(-1, 1, 8)).astype(np.float32),
        "bq": rng.integers(-3000, 3000, 8, np.int32),
    }
    if op == "QLinearConv":
        nodes = [helper.make_node(op, ["x", "s", "z", "w", "ws", "wz", "t", "o", "bq"], ["y"])]
    else:
        nodes = [
            helper.make_node("DequantizeLinear", ["x", "s", "z"], ["d"]),
            helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
            helper.make_node("Conv", ["d", "wd", "b"], ["c"]),
            helper.make_node("QuantizeLinear", ["c", "t", "o"], ["y"]),
        ]
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 16, 12, 12])
    y = helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 8, 10, 10])
    read = {name for node in nodes for name in node.input}
    constants = [numpy_helper.from_array(np.asarray(array), name) for name, array in held.items() if name in read]
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_the_report_says_how_far_a_layer_of_integers_is_from_the_model_s() -> None:
    model = _layer("Conv")
    integers, reals = hetnn.compile(model), hetnn.compile(model, deterministic=True)
    (note,) = integers.report(format="dict")["notes"]
    stated = float(note["text"].partition("of this one ")[2].partition(" %")[0]) / 100
    x = np.random.default_rng(4).integers(0, 256, (200, 1, 16, 12, 12), np.uint8)
    apart = np.stack([integers(each).astype(int) - reals(each) for each in x])
    assert np.abs(apart).max() == 1
    assert stated / 10 < (apart != 0).mean() <= stated


def test_deterministic_keeps_what_the_model_computes_in_f32() -> None:
    """The quotient, rounded to even, of f32 sums; and of operators of integers the integers."""
    model = _layer("Conv")
    reals = hetnn.compile(model, deterministic=True)
    assert reals.report(format="dict")["notes"] == []
    w, b = (next(numpy_helper.to_array(held) for held in model.graph.initializer if held.name == n) for n in "wb")
    x = np.random.default_rng(4).integers(0, 256, (1, 16, 12, 12), np.uint8)
    steps = (np.float32(0.02) * (x.astype(np.float32) - 100), np.float32(0.004) * w.astype(np.float32), b)
    conv = hetnn.compile(
        model_of("agraph (float[1,16,12,12] x, float[8,16,3,3] w, float[8] b) => (y) { y = Conv(x, w, b) }")
    )
    sums = conv(*steps)
    want = np.clip(np.rint(sums / np.float32(0.0713)) + 128, 0, 255)
    assert (reals(x) != want).mean() < 0.002  # both sum in an order of their own
    of_integers = [hetnn.compile(_layer("QLinearConv"), deterministic=kept) for kept in (False, True)]
    np.testing.assert_array_equal(*(executable(x) for executable in of_integers))
    assert "conv2d_i8" in [row["kernel"] for row in of_integers[1].profile(x)]
    assert [executable.report(format="dict")["notes"] for executable in of_integers] == [[], []]


LAYERS = {
    "matmul": ("MatMul", (3, 16), (16, 10), {}),
    "gemm": ("Gemm", (3, 16), (10, 16), {"transB": 1}),
    "conv": ("Conv", (1, 4, 6, 6), (8, 4, 3, 3), {"pads": [1, 1, 1, 1]}),
    "transposed": ("ConvTranspose", (1, 4, 6, 6), (4, 8, 3, 3), {"strides": [2, 2]}),
}


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("layer", LAYERS)
def test_scales_of_weights_along_either_axis(layer: str, axis: int) -> None:
    """Scales of what is summed over are no factors of the sums: such a layer is computed on the reals."""
    op, shape, weights, attrs = LAYERS[layer]
    rng = np.random.default_rng(3)
    held = {
        "w": rng.integers(-127, 128, weights).astype(np.int8),
        "sw": (rng.random(weights[axis]) * 0.01 + 0.001).astype(np.float32),
        "zw": np.zeros(weights[axis], np.int8),
        "sx": np.float32(0.03),
        "zx": np.int8(2),
        "sy": np.float32(0.05),
        "zy": np.int8(3),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wd"], axis=axis),
        helper.make_node(op, ["xd", "wd"], ["r"], **attrs),
        helper.make_node("QuantizeLinear", ["r", "sy", "zy"], ["y"]),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()]
    graph = helper.make_graph(nodes, "g", [given], [onnx.ValueInfoProto(name="y")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = rng.standard_normal(shape).astype(np.float32)
    wanted = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})[0].astype(int)
    for target in ("reference", "cpu", integers_only()):
        placing = "take-all" if isinstance(target, dict) else "cost"
        got = hetnn.compile(model, target, strategy=placing)(x)
        assert abs(got.astype(int) - wanted).max() <= 1, target


@pytest.mark.parametrize("op", ["Resize", "Transpose", "MaxPool"])
def test_what_is_moved_and_then_given_several_scales(op: str) -> None:
    attrs = {"Transpose": {"perm": [0, 3, 1, 2]}, "MaxPool": {"kernel_shape": [2, 2]}}.get(op, {})
    inputs = ["x", "", "factors"] if op == "Resize" else ["x"]
    constants = [
        numpy_helper.from_array(np.float32([1, 1, 2, 2]), "factors"),
        numpy_helper.from_array(np.float32([0.1, 0.2, 0.05]), "s"),
        numpy_helper.from_array(np.int8([1, 0, -7]), "z"),
    ]
    nodes = [
        helper.make_node(op, inputs, ["m"], **attrs),
        helper.make_node("QuantizeLinear", ["m", "s", "z"], ["y"], axis=1),
    ]
    shape = [1, 2, 4, 3] if op == "Transpose" else [1, 3, 4, 4]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "g", [given], [onnx.ValueInfoProto(name="y")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    agrees(model, np.random.default_rng(1).standard_normal(shape).astype(np.float32))


def test_a_number_that_is_written_as_an_integer_is_known() -> None:
    """What is padded with, as onnxruntime's quantizer writes it: the sizes behind it stay known."""
    scale, zero = numpy_helper.from_array(np.float32(0.02), "scale"), numpy_helper.from_array(np.int8(13), "zero")
    amounts = numpy_helper.from_array(np.array([0, 1, 0, 0, 0, 1, 0, 0]), "amounts")
    fill = numpy_helper.from_array(np.array([63], np.int8), "fill")
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "scale", "zero"], ["xd"]),
        helper.make_node("DequantizeLinear", ["fill", "scale", "zero"], ["value"]),
        helper.make_node("Pad", ["xd", "amounts", "value"], ["p"]),
        helper.make_node("QuantizeLinear", ["p", "scale", "zero"], ["pq"]),
        helper.make_node("DequantizeLinear", ["pq", "scale", "zero"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [scale, zero, amounts, fill],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    x = np.random.default_rng(0).standard_normal((1, 3, 4, 5)).astype(np.float32)
    exe = hetnn.compile(model)
    assert exe.outputs[0].shape == (1, 5, 4, 5)
    assert {row["op"] for row in exe.report("dict")["graph"]} >= {"pad"}
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    assert np.array_equal(exe.run([x])[0], wanted)
    assert (wanted[:, 0] == np.float32(0.02) * 50).all()
