"""Layers that read integers and whose result stays real: what quantizers leave that round only what layers read."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import hetnn

Array = NDArray[Any]
RNG = np.random.default_rng(0)


def model(op: str, bias: str) -> onnx.ModelProto:
    """Of one layer between DequantizeLinear and GELU; the bias of integers or of reals."""
    weight = RNG.integers(-100, 100, (24, 40) if op == "Gemm" else (24, 40, 3, 3)).astype(np.int8)
    shape = [6, 40] if op == "Gemm" else [2, 40, 7, 5]
    constants = {
        "s": np.float32(0.05),
        "z": np.int8(3),
        "w": weight,
        "ws": np.linspace(0.002, 0.01, 24, dtype=np.float32),
        "wz": np.zeros(24, np.int8),
        "b": RNG.standard_normal(24).astype(np.float32),
        "bi": RNG.integers(-3000, 3000, 24).astype(np.int32),
        "bs": np.linspace(0.002, 0.01, 24, dtype=np.float32) * np.float32(0.05),
    }
    reads = ["d", "wd", "bd" if bias == "integers" else "b"]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        helper.make_node("DequantizeLinear", ["bi", "bs"], ["bd"], axis=0),
        helper.make_node(op, reads, ["l"], **({"transB": 1} if op == "Gemm" else {})),
        helper.make_node("Gelu", ["l"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("bias", ["integers", "reals"])
@pytest.mark.parametrize("op", ["Gemm", "Conv"])
def test_they_are_layers_of_integers_on_the_cpu(op: str, bias: str) -> None:
    given = model(op, bias)
    x = RNG.standard_normal([6, 40] if op == "Gemm" else [2, 40, 7, 5]).astype(np.float32) * 2
    executable = hetnn.compile(given)
    want = hetnn.compile(given, deterministic=True)(x)
    np.testing.assert_allclose(executable(x), want, rtol=0, atol=1e-6 * np.abs(want).max())
    kernels = {row["kernel"] for row in executable.profile(x)}
    assert {kernel for kernel in kernels if kernel.startswith(("linear", "conv2d"))} <= {"linear_i8", "conv2d_i8"}
    assert kernels & {"linear_i8", "conv2d_i8"}


def test_an_accelerator_that_gives_reals_has_the_layer_as_it_is() -> None:
    executable = hetnn.compile(model("Gemm", "reals"), target="cpu+relu-only", strategy="take-all")
    where = {row["node"]: row["device"] for row in executable.report("dict")["graph"]}
    assert "relu-only" in where.values()


@pytest.mark.parametrize(("target", "keeps"), [("cpu", True), ("cpu+relu-rows", False)])
def test_quantizing_leaves_results_real_for_the_cpu_alone(target: str, keeps: bool) -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 8), torch.nn.Softmax(-1))
    exported = torch.export.export(module.eval(), (torch.randn(4, 16),))
    made = hetnn.quantize(exported, [(torch.randn(4, 16).numpy(),) for _ in range(8)], target=target)
    written = [row.op for row in made.quantization.values]
    assert ("linear" not in written) == keeps
