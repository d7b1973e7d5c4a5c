"""Sizes and inputs of ONNX models that are fixed when compiling."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import hetnn

MODEL = """<ir_version: 9, opset_import: ["" : 20]>
agraph (float[n,3] x, float[?,m] y, int64 k, float[3] w) => (float[n,3] z, float[a,m] v) {
  b = Cast <to = 1> (k) s = Mul (x, b) z = Add (s, w) v = Relu (y)
}"""


@pytest.fixture
def model() -> Any:
    return onnx.shape_inference.infer_shapes(parser.parse_model(MODEL))


def test_what_is_fixed_is_no_input_and_no_symbol_any_longer(model: Any) -> None:
    w = np.array([1, 2, 3], np.float32)
    exe = hetnn.compile(model, fix={"n": 2, "y_0": 4, "k": 3, "w": w})
    assert [(port.name, port.shape) for port in exe.inputs] == [("x", (2, 3)), ("y", (4, "m"))]
    x, y = np.ones((2, 3), np.float32), np.full((4, 2), -1, np.float32)
    z, v = exe(x, y)
    np.testing.assert_array_equal(z, 3 * x + w)
    np.testing.assert_array_equal(v, 0 * y)
    with pytest.raises(hetnn.InvalidModel, match="must be 2"):
        exe(np.ones((3, 3), np.float32), y)


def test_plan_and_check_take_it_too(model: Any) -> None:
    assert hetnn.plan(model, fix={"n": 2}).report()
    assert hetnn.check(model, "cpu+relu-only", fix={"n": 2, "y_0": 4}) is not None


@pytest.mark.parametrize(
    ("fix", "message"),
    [
        ({"nn": 2}, "no open size 'nn'. Its inputs are x, y, k, w; its open sizes m, n, y_0"),
        ({"n": -1}, "the size 'n' must be a number that is not negative; got -1"),
        ({"n": 2.5}, "must be a number"),
        ({"n": True}, "must be a number"),
        ({"k": [1, 2]}, r"the input 'k' must be int64\[\]; got int64\[2\]"),
        ({"k": 1.5}, "must be int64"),
        ({"w": np.zeros(3)}, "must be float32"),
        ({"x": np.zeros((2, 4), np.float32)}, r"must be float32\['n', 3\]"),
        ({"w": "text"}, "'w' must be float32"),
    ],
)
def test_what_does_not_fit_is_told(model: Any, fix: dict[str, Any], message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.compile(model, fix=fix)


def test_other_models_have_nothing_to_fix() -> None:
    with pytest.raises(hetnn.InvalidModel, match="fix is for ONNX models and TFLite files"):
        hetnn.compile("graph @main(%x: f32[n]) {\n  %y = relu(%x)\n  return %y\n}", fix={"n": 2})


def test_the_command_fixes(model: Any, tmp_path: Path) -> None:
    path, out = tmp_path / "m.onnx", tmp_path / "m.hetnn"
    onnx.save(model, path)
    fixed = ["--fix", "n=2", "--fix", "y_0=4", "--fix", "m=5", "--fix", "k=3", "--fix", "w=[1,2,3]"]
    command = [sys.executable, "-m", "hetnn", "compile", str(path), "-o", str(out), *fixed, "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["output"] == str(out)
    assert [port.shape for port in hetnn.load(out).inputs] == [(2, 3), (4, 5)]


DEFAULTS = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[n,3] x, float[3] w, float[n,3] y, int64[2] shape) => (float[a,b] z)
<float[3] w = {1, 2, 3}, int64[2] shape = {-1, 3}> {
  p = Mul (x, w) s = Add (p, y) z = Reshape (s, shape)
}"""


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_inputs_with_values_of_the_models_own_may_be_left_out_or_given(target: str) -> None:
    exe = hetnn.compile(parser.parse_model(DEFAULTS), target)
    assert [port.name for port in exe.inputs] == ["x", "y"]
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    w, shape = np.array([-1, 0, 5], np.float32), np.array([3, 2])
    np.testing.assert_array_equal(exe(x, y), x * [1, 2, 3] + 1)
    with pytest.warns(RuntimeWarning, match="w, for which the model has values, is given others"):
        np.testing.assert_array_equal(exe(x, y, w=w), x * w + 1)
    np.testing.assert_array_equal(exe(w=w, x=x, y=y), x * w + 1)
    with pytest.warns(RuntimeWarning, match="shape, w, for which"):
        np.testing.assert_array_equal(exe(x, w, y, shape), (x * w + 1).reshape(3, 2))
    np.testing.assert_array_equal(exe(x, y), x * [1, 2, 3] + 1)
    with pytest.raises(hetnn.InvalidModel, match="the model takes 2 inputs"):
        exe(x, y, w=w, other=w)
    with pytest.raises(hetnn.InvalidModel, match=r"'w' must be"):
        exe(x, y, w=w[:2])


def test_values_of_the_models_own_can_be_fixed_to_others() -> None:
    x, y, w = np.ones((2, 3), np.float32), np.ones((2, 3), np.float32), np.array([-1, 0, 5], np.float32)
    exe = hetnn.compile(parser.parse_model(DEFAULTS), fix={"w": w})
    np.testing.assert_array_equal(exe(x, y), x * w + 1)


def test_weights_of_files_that_list_all_of_them_as_inputs_are_constants() -> None:
    model = parser.parse_model(DEFAULTS.replace("ir_version: 8", "ir_version: 3"))
    with pytest.raises(hetnn.InvalidModel, match="the model takes 2 inputs"):
        hetnn.compile(model)(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32), w=np.ones(3, np.float32))
