"""Scales and zero points with which integers stand for no reals: one rule for every front, with what was found."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
import torch.ao.quantization.fx._decomposed
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor

import hetnn
from importers.tflite_files import Quant, Told, constant, one

assert torch.ao.quantization.fx._decomposed
Q = torch.ops.quantized_decomposed

POSITIVE = "a scale must be positive and finite; got "
BAD_SCALES = [(0.0, "0"), (-0.5, "-0.5"), (np.nan, "nan"), (np.inf, "inf")]


def onnx_model(op: str, x: TensorProto, scale: Any, zero: Any, **attrs: Any) -> onnx.ModelProto:
    """One conversion of x [2, 3], whose scale and zero point are constants."""
    held = [numpy_helper.from_array(np.asarray(scale, np.float32), "s")]
    if zero is not None:
        held.append(zero if isinstance(zero, TensorProto) else numpy_helper.from_array(np.asarray(zero), "z"))
    node = helper.make_node(op, ["x", "s", *(["z"] if zero is not None else [])], ["y"], **attrs)
    given = helper.make_tensor_value_info("x", x, [2, 3])
    graph = helper.make_graph([node], "g", [given], [onnx.ValueInfoProto(name="y")], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def refusal(model: Any, kind: type[hetnn.Error] = hetnn.InvalidModel) -> str:
    with pytest.raises(kind) as error:
        hetnn.compile(model)
    return str(error.value)


@pytest.mark.parametrize(("scale", "found"), BAD_SCALES)
@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_scales_of_onnx(op: str, scale: float, found: str) -> None:
    kind = TensorProto.FLOAT if op == "QuantizeLinear" else TensorProto.INT8
    text = refusal(onnx_model(op, kind, scale, np.int8(0)))
    assert f"the integers of 'x': {POSITIVE}{found}. Quantize the model again" in text
    text = refusal(onnx_model(op, kind, [0.1, scale], np.zeros(2, np.int8), axis=0))
    assert f"{POSITIVE}{found} at 1. Quantize" in text


@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_counts_and_zero_points_of_onnx(op: str) -> None:
    kind = TensorProto.FLOAT if op == "QuantizeLinear" else TensorProto.INT8
    text = refusal(onnx_model(op, kind, [0.1, 0.2], np.zeros(2, np.int8), axis=1))
    assert "there must be one scale, or one for each of the 3 indices of their axis; got 2. Quantize" in text
    text = refusal(onnx_model(op, kind, [0.1, 0.2], np.zeros(3, np.int8), axis=0))
    assert "there must be as many zero points as scales, 2; got 3. Quantize" in text
    nibble = helper.make_tensor("z", TensorProto.INT4, [], b"\x0f", raw=True)
    assert hetnn.compile(onnx_model("QuantizeLinear", TensorProto.FLOAT, 0.5, nibble)) is not None


def test_a_zero_point_of_another_type() -> None:
    text = refusal(onnx_model("DequantizeLinear", TensorProto.INT8, 0.1, np.uint8(3)))
    assert "the zero point of 'x' is u8; it must be i8, as the integers are" in text


def layer_of_integers(**changed: Any) -> onnx.ModelProto:
    """QLinearConv of images [1,2,4,4]; constants by the names of its inputs."""
    held = {
        "x_scale": np.float32(0.05),
        "x_zero": np.uint8(3),
        "w": np.ones((2, 2, 1, 1), np.int8),
        "w_scale": np.array([0.1, 0.2], np.float32),
        "w_zero": np.zeros(2, np.int8),
        "y_scale": np.float32(0.1),
        "y_zero": np.uint8(7),
        **changed,
    }
    node = helper.make_node("QLinearConv", ["x", *held], ["y"])
    given = helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 2, 4, 4])
    constants = [numpy_helper.from_array(array, name) for name, array in held.items()]
    graph = helper.make_graph([node], "g", [given], [onnx.ValueInfoProto(name="y")], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_operators_of_integers() -> None:
    assert f"'x': {POSITIVE}0. Quantize" in refusal(layer_of_integers(x_scale=np.float32(0)))
    assert f"'y': {POSITIVE}nan. Quantize" in refusal(layer_of_integers(y_scale=np.float32(np.nan)))
    wrong = np.array([0.1, -0.2], np.float32)
    assert f"'w': {POSITIVE}-0.2 at 1. Quantize" in refusal(layer_of_integers(w_scale=wrong))
    many = {"w_scale": np.full(3, 0.1, np.float32), "w_zero": np.zeros(3, np.int8)}
    assert "'w': there must be one scale, or one for each of the 2" in refusal(layer_of_integers(**many))


class Steps(torch.nn.Module):
    """To integers and back by one scale."""

    def __init__(self, scale: float, zero: int) -> None:
        super().__init__()
        self.scale, self.zero = scale, zero

    def forward(self, x: Tensor) -> Tensor:
        q = Q.quantize_per_tensor(x, self.scale, self.zero, -128, 127, torch.int8)
        result: Tensor = Q.dequantize_per_tensor(q, self.scale, self.zero, -128, 127, torch.int8)
        return result


@pytest.mark.parametrize(("scale", "found"), BAD_SCALES)
def test_scales_of_torch(scale: float, found: str) -> None:
    text = refusal(torch.export.export(Steps(scale, 0), (torch.ones(2, 3),)), hetnn.Unsupported)
    assert f"{POSITIVE}{found}. Quantize the model again" in text


@pytest.mark.parametrize(("scale", "found"), BAD_SCALES)
def test_scales_of_tflite(scale: float, found: str) -> None:
    wrong = Told([2, 4], "i8", quant=Quant(scale), name="wrong")
    right = Told([2, 4], "i8", quant=Quant(0.1))
    for told in ([wrong], [right]):
        text = refusal(one("RELU", told, [right if told == [wrong] else wrong]))
        assert f"the integers of 'wrong': {POSITIVE}{found}. Quantize" in text
    weight = constant(np.ones((3, 4)), "i8", Quant([0.1, scale, 0.1], [0, 0, 0]), "w")
    text = refusal(one("FULLY_CONNECTED", [right, weight], [Told([2, 3], "i8", quant=Quant(0.1))], LINEAR))
    assert f"the integers of 'w': {POSITIVE}{found} at 1. Quantize" in text


LINEAR = {"": "FullyConnectedOptions"}


@pytest.mark.parametrize("zero", [-129, 128, 1 << 40])
def test_zero_points_of_tflite(zero: int) -> None:
    wrong = Told([2, 4], "i8", quant=Quant(0.1, zero))
    assert f"a zero point of i8 must lie in [-128, 127]; got {zero}" in refusal(one("RELU", [wrong], [wrong]))


def test_counts_of_tflite() -> None:
    right = Told([2, 4], "i8", quant=Quant(0.1))
    weight = constant(np.ones((3, 4)), "i8", Quant([0.1, 0.2], [0, 0]), "w")
    text = refusal(one("FULLY_CONNECTED", [right, weight], [Told([2, 3], "i8", quant=Quant(0.1))], LINEAR))
    assert "the tensor 'w' of i8[3, 4] has 2 scales along the axis 0; there must be one, or one for each" in text


def test_a_bias_at_another_scale_than_the_sums() -> None:
    x, y = Told([2, 4], "i8", quant=Quant(0.1)), Told([2, 3], "i8", quant=Quant(0.1))
    weight = constant(np.ones((3, 4)), "i8", Quant(0.02), "w")

    def layer(scale: float) -> bytes:
        return one("FULLY_CONNECTED", [x, weight, constant([1, 2, 3], "i32", Quant(scale), "b")], [y], LINEAR)

    assert "the bias 'b' has the scale 0.2; it must be that of the sums, the input's times the weights', 0.002" in (
        refusal(layer(0.2))
    )
    assert hetnn.compile(layer(0.002)) is not None


def test_indices_with_a_scale_of_nothing_are_indices() -> None:
    """As older converters wrote them."""
    x = Told([5, 3])
    rows = constant([4, 0, 4], "i32", Quant(0.0))
    got = hetnn.compile(one("GATHER", [x, rows], [Told([3, 3])], {"": "GatherOptions"}))(
        given := np.random.default_rng(0).standard_normal((5, 3), np.float32)
    )
    np.testing.assert_array_equal(got, given[[4, 0, 4]])
