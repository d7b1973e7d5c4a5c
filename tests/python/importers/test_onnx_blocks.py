"""Weights of a few bits in blocks stay such, from MatMulNBits and from DequantizeLinear by blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import hetnn

RNG = np.random.default_rng(3)


def model_of(nodes: list[Any], constants: dict[str, Any], x: tuple[int, ...], y: tuple[int, ...]) -> ModelProto:
    def tensor(name: str, array: Any) -> Any:
        if array.dtype.kind != "V":
            return numpy_helper.from_array(np.ascontiguousarray(array), name)
        kind = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4}[array.dtype.name]
        return helper.make_tensor(name, kind, array.shape, array.astype(np.int8).ravel().tolist())

    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)],
        [tensor(name, array) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def agrees(model: ModelProto, rows: int, columns: int) -> None:
    """hetnn multiplies by the blocks themselves, and gives what ONNX Runtime does without rewriting the model."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    x = RNG.standard_normal((rows, columns), np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = session.run(None, {"x": x})[0]
    executable = hetnn.compile(model)
    np.testing.assert_allclose(executable(x), wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())
    assert [row["kernel"] for row in executable.profile(x)] == ["block_linear"]


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("form", ["MatMul", "Transpose", "Gemm", "Gemm turned"])
@pytest.mark.parametrize("kind", ["int4", "uint4"])
def test_dequantized_by_blocks(kind: str, form: str, zeros: bool) -> None:
    columns, rows, block = (100, 40, 32) if zeros else (96, 33, 16)
    count, (low, high) = -(-columns // block), (0, 16) if kind == "uint4" else (-8, 8)
    dtype = getattr(ml_dtypes, kind)
    weight = RNG.integers(low, high, (columns, rows)).astype(dtype)
    steps = RNG.uniform(0.01, 0.1, (count, rows)).astype(np.float32)
    nothing = RNG.integers(low, high, (count, rows)).astype(dtype)
    axis = 0
    if form in ("Transpose", "Gemm turned"):
        weight, steps, nothing, axis = weight.T, steps.T, nothing.T, 1
    constants = {"w": weight, "s": steps}
    if zeros:
        constants["z"] = nothing
    nodes = [helper.make_node("DequantizeLinear", list(constants), ["d"], axis=axis, block_size=block)]
    if form.startswith("Gemm"):
        constants["c"] = RNG.standard_normal(rows, np.float32)
        nodes.append(helper.make_node("Gemm", ["x", "d", "c"], ["y"], transB=axis))
    elif form == "Transpose":
        nodes += [helper.make_node("Transpose", ["d"], ["t"]), helper.make_node("MatMul", ["x", "t"], ["y"])]
    else:
        nodes.append(helper.make_node("MatMul", ["x", "d"], ["y"]))
    agrees(model_of(nodes, constants, (3, columns), (3, rows)), 3, columns)


@pytest.mark.parametrize(("block", "kind", "bytes_each"), [(32, np.float16, 0.5625), (128, np.float32, 0.53125)])
def test_a_saved_program_keeps_the_packed_bytes(tmp_path: Path, block: int, kind: Any, bytes_each: float) -> None:
    size = 512
    # Steps that f16 holds are kept as such.
    steps = RNG.uniform(0.01, 0.1, (size, size // block)).astype(kind).astype(np.float32)
    codes = RNG.integers(0, 256, (size, size // block, block // 2), np.uint8)
    told = {"K": size, "N": size, "bits": 4, "block_size": block}
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **told)
    model = model_of([node], {"w": codes, "s": steps}, (1, size), (1, size))
    agrees(model, 1, size)
    hetnn.compile(model).save(tmp_path / "y.hetnn")
    assert (tmp_path / "y.hetnn").stat().st_size < size * size * bytes_each + 8000
