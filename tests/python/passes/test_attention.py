"""Attention that an exporter wrote out runs as one kernel and still computes what was written."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import hetnn

HEADS, ROWS, KEYS, DEPTH = 2, 5, 7, 8


def written_out(*, without_nan: bool, shares: bool = False, masked: bool = True) -> onnx.ModelProto:
    """softmax(q k^T / sqrt(DEPTH) + mask) v as torch.onnx writes it; `shares`: the softmax is an output, too."""
    kinds = {"q": (ROWS, DEPTH), "k": (KEYS, DEPTH), "v": (KEYS, 3)}
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, HEADS, *s]) for n, s in kinds.items()]
    inputs.append(helper.make_tensor_value_info("seen", TensorProto.BOOL, [1, 1, ROWS, KEYS]))
    scale = float(DEPTH**-0.25)
    numbers = {"c": scale, "zero": 0.0, "hidden": -np.inf}
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("Mul", ["q", "c"], ["qc"]),
        helper.make_node("Mul", ["kt", "c"], ["kc"]),
        helper.make_node("MatMul", ["qc", "kc"], ["product"]),
        helper.make_node("Where", ["seen", "zero", "hidden"], ["mask"]),
        helper.make_node("Add", ["product", "mask"], ["added"]),
        helper.make_node("Softmax", ["added" if masked else "product"], ["softmax"], axis=-1),
        helper.make_node("IsNaN", ["softmax"], ["nan"]),
        helper.make_node("Where", ["nan", "zero", "softmax"], ["clean"]),
        helper.make_node("MatMul", ["clean" if without_nan else "softmax", "v"], ["y"]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, HEADS, ROWS, 3])]
    if shares:
        outputs.append(helper.make_tensor_value_info("softmax", TensorProto.FLOAT, [1, HEADS, ROWS, KEYS]))
    constants = [helper.make_tensor(n, TensorProto.FLOAT, [], [value]) for n, value in numbers.items()]
    graph = helper.make_graph(nodes, "attention", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def arrays(seed: int, broken: bool) -> list[np.ndarray]:
    """q, k, v and what is seen: a row that sees nothing, and with `broken` a NaN and an infinity."""
    rng = np.random.default_rng(seed)
    q, k, v = (
        rng.standard_normal((1, HEADS, n, d)).astype(np.float32) for n, d in ((ROWS, DEPTH), (KEYS, DEPTH), (KEYS, 3))
    )
    seen = rng.random((1, 1, ROWS, KEYS)) < 0.6
    seen[0, 0, 2], seen[0, 0, 3, 0] = False, True
    if broken:
        q[0, 0, 0, 1], k[0, 1, 4, 2] = np.nan, np.inf
    return [q, k, v, seen]


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("without_nan", [False, True])
def test_written_out_attention_is_one_kernel(without_nan: bool, masked: bool, broken: bool) -> None:
    model = written_out(without_nan=without_nan, masked=masked)
    executable = hetnn.compile(model, "cpu")
    given = arrays(3, broken)
    with np.errstate(invalid="ignore"):
        want = onnxruntime.InferenceSession(model.SerializeToString()).run(
            None, dict(zip(["q", "k", "v", "seen"], given, strict=True))
        )[0]
    np.testing.assert_allclose(executable(*given), want, rtol=1e-5, atol=1e-6)
    kernels = [row["kernel"] for row in executable.profile(*given)]
    assert "attention" in kernels
    assert "softmax" not in kernels


def test_a_softmax_that_others_read_stays() -> None:
    model = written_out(without_nan=False, shares=True)
    executable = hetnn.compile(model, "cpu")
    given = arrays(4, broken=False)
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(
        None, dict(zip(["q", "k", "v", "seen"], given, strict=True))
    )
    for got, expected in zip(executable(*given), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    assert "attention" not in [row["kernel"] for row in executable.profile(*given)]


def test_deterministic_compilation_keeps_what_was_written() -> None:
    executable = hetnn.compile(written_out(without_nan=True), "cpu", deterministic=True)
    assert "attention" not in [row["kernel"] for row in executable.profile(*arrays(5, broken=False))]
