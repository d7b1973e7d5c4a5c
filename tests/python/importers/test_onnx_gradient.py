"""ONNX' Gradient, against differences of the function itself."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, helper

import hetnn
from importers.onnx_models import model_of


def model(body: str, y: str = "y") -> ModelProto:
    made = model_of(
        f"""agraph (double[3] a, double[2,3] b, double[2,1] c) => (double[2,3] y, double[3] da, double[2,1] dc) {{
          {body}
          da, dc = ai.onnx.preview.training.Gradient<xs = ["a", "c"], zs = ["b"], y = "{y}">(a, c, b)
        }}"""
    )
    made.opset_import.append(helper.make_opsetid("ai.onnx.preview.training", 1))
    return made


@pytest.mark.parametrize(
    "body",
    [
        "t = Mul(a, b)\n u = Add(t, c)\n y = Mul(u, u)",
        "t = Div(c, a)\n u = Sub(b, t)\n y = Tanh(u)",
        "t = Exp(c)\n u = Neg(a)\n v = Sigmoid(u)\n w = Mul(v, t)\n x = Add(w, b)\n y = Log(x)",
        "t = Identity(a)\n y = Mul(t, b)",
        "t = Mul(a, c)\n u = Erf(t)\n v = Gelu(u)\n y = Mul(v, b)",
        't = Sub(a, c)\n u = Gelu<approximate = "tanh">(t)\n y = Mul(u, b)',
        "t = LeakyRelu<alpha = 0.3>(a)\n u = Elu<alpha = 0.7>(c)\n v = Neg(t)\n w = LeakyRelu(v)\n y = Pow(b, w)",
        "t = Add(a, c)\n u = Softmax(t)\n v = Transpose(u)\n w = MatMul(b, v)\n y = Concat<axis = 1>(w, c)",
        "t = ReduceMean<keepdims = 1>(a)\n u = Max(t, c)\n v = LayerNormalization<axis = 1>(b, a)\n y = Mul(u, v)",
        "t = Sqrt(a)\n u = Atan(c)\n v = Cos(t)\n w = Pow(c, v)\n x = Abs(w)\n y = Add(x, u)",
    ],
)
def test_equals_differences(body: str) -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.uniform(1, 2, 3), rng.uniform(1, 2, (2, 3)), rng.uniform(1, 2, (2, 1))
    exe = hetnn.compile(model(body))
    _, da, dc = exe(a, b, c)
    step = 1e-6
    for x, found in ((a, da), (c, dc)):
        for k in range(x.size):
            sums = []
            for side in (step, -step):
                x.flat[k] += side
                sums.append(exe(a, b, c)[0].sum())
                x.flat[k] -= side
            assert abs((sums[0] - sums[1]) / (2 * step) - found.flat[k]) < 1e-6 * max(1, abs(found.flat[k]))


def test_by_a_constant_as_by_any_value() -> None:
    made = model_of(
        """agraph (float[2] b) => (float[2] y, float[2] dw)
        <float[2] w = {3, 4}> {
          t = Mul(w, w)
          y = Mul(t, b)
          dw = ai.onnx.preview.training.Gradient<xs = ["w"], y = "y">(w)
        }"""
    )
    made.opset_import.append(helper.make_opsetid("ai.onnx.preview.training", 1))
    y, dw = hetnn.compile(made)(np.array([1, 2], np.float32))
    np.testing.assert_array_equal(y, [9, 32])
    np.testing.assert_array_equal(dw, [6, 16])


def test_what_has_no_derivative_is_named() -> None:
    with pytest.raises(hetnn.Unsupported, match="a derivative passes operators that have none: lu 'd"):
        hetnn.compile(model("t = Mul(a, b)\n u = Transpose(t)\n v = MatMul(u, t)\n d = Det(v)\n y = Add(b, d)"))
    with pytest.raises(hetnn.InvalidModel, match="a Gradient of 'z' by"):
        hetnn.compile(model("y = Mul(a, b)", "z"))
