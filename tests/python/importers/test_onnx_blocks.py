"""Weights of a few bits in blocks stay such, from MatMulNBits and from DequantizeLinear by blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import hetnn

RNG = np.random.default_rng(3)


def model_of(
    nodes: list[Any], constants: dict[str, Any], x: tuple[int, ...], y: tuple[int, ...], opset: int = 21
) -> ModelProto:
    def tensor(name: str, array: Any) -> Any:
        if array.dtype.kind != "V":
            return numpy_helper.from_array(np.ascontiguousarray(array), name)
        kind = getattr(TensorProto, array.dtype.name.upper())
        return helper.make_tensor(name, kind, array.shape, array.astype(np.int8).ravel().tolist())

    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)],
        [tensor(name, array) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10 if opset < 25 else 13)


def session_of(model: ModelProto) -> onnxruntime.InferenceSession:
    """ONNX Runtime without rewriting the model."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def agrees(model: ModelProto, rows: int, columns: int) -> None:
    """hetnn multiplies by the blocks themselves, and gives what ONNX Runtime does without rewriting the model."""
    x = RNG.standard_normal((rows, columns), np.float32)
    wanted = session_of(model).run(None, {"x": x})[0]
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


BITS = {"i8": np.int8, "u8": np.uint8, "i4": ml_dtypes.int4, "u4": ml_dtypes.uint4, "i2": ml_dtypes.int2}
BITS["u2"] = ml_dtypes.uint2


def in_blocks(kind: str, axis: int, zeros: bool, block: int = 4) -> tuple[dict[str, Any], dict[str, Any]]:
    """Codes, scales and zero points of a shape whose last block is shorter along the axis; attributes."""
    shape, bits = (5, 7, 6), int(kind[1:])
    low = -(2 ** (bits - 1)) if kind[0] == "i" else 0
    of_blocks = tuple(-(-n // block) if k == axis % 3 else n for k, n in enumerate(shape))
    arrays = {
        "codes": RNG.integers(low, low + 2**bits, shape).astype(BITS[kind]),
        "scales": RNG.uniform(0.01, 0.1, of_blocks).astype(np.float32),
    }
    if zeros:
        arrays["zeros"] = RNG.integers(low, low + 2**bits, of_blocks).astype(BITS[kind])
    return arrays, {"axis": axis, "block_size": block}


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("kind", BITS)
def test_dequantizing_equals_the_standard(kind: str, axis: int, zeros: bool) -> None:
    """Constants and values that are computed: the operator's own arithmetic, and folding by it."""
    arrays, attrs = in_blocks(kind, axis, zeros)
    nodes = [
        helper.make_node("DequantizeLinear", list(arrays), ["d"], **attrs),
        helper.make_node("Add", ["d", "x"], ["y"]),
    ]
    model = model_of(nodes, arrays, (1,), (5, 7, 6), 25)
    x = np.zeros(1, np.float32)
    want = ReferenceEvaluator(model).run(None, {"x": x})[0]
    np.testing.assert_array_equal(hetnn.compile(model)(x), want)
    if kind[1:] != "2":
        np.testing.assert_array_equal(want, session_of(model_of(nodes, arrays, (1,), (5, 7, 6))).run(None, {"x": x})[0])


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("kind", BITS)
def test_quantizing_equals_the_standard(kind: str, axis: int, zeros: bool) -> None:
    """To integers in blocks and back, of values that are computed; halves, and beyond both ends of the type."""
    arrays, attrs = in_blocks(kind, axis, zeros)
    del arrays["codes"]
    steps = np.repeat(arrays["scales"], 4, axis)[tuple(slice(n) for n in (5, 7, 6))]
    x = (RNG.integers(-600, 600, (5, 7, 6)) / 2).astype(np.float32) * steps
    told = attrs if zeros else {**attrs, "output_dtype": getattr(TensorProto, np.dtype(BITS[kind]).name.upper())}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *arrays], ["q"], **told),
        helper.make_node("DequantizeLinear", ["q", *arrays], ["y"], **attrs),
    ]
    model = model_of(nodes, arrays, (5, 7, 6), (5, 7, 6), 25)
    want = ReferenceEvaluator(model).run(None, {"x": x})[0]
    executable = hetnn.compile(model)
    np.testing.assert_array_equal(executable(x), want)
    assert [row["kernel"] for row in executable.profile(x)] == [
        "meaning of quantize_blocks",
        "meaning of dequantize_blocks",
    ]
    if kind[1:] != "2":
        np.testing.assert_array_equal(
            want, session_of(model_of(nodes, arrays, (5, 7, 6), (5, 7, 6))).run(None, {"x": x})[0]
        )


def test_rows_of_a_table_in_blocks_become_reals_alone() -> None:
    table = RNG.integers(-8, 8, (50, 64)).astype(ml_dtypes.int4)
    steps = RNG.uniform(0.01, 0.1, (50, 2)).astype(np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=1, block_size=32),
        helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT64),
        helper.make_node("Gather", ["d", "i"], ["y"]),
    ]
    model = model_of(nodes, {"w": table, "s": steps}, (3,), (3, 64))
    x = np.array([49, 0, 7], np.float32)
    executable = hetnn.compile(model)
    np.testing.assert_array_equal(executable(x), session_of(model).run(None, {"x": x})[0])
    assert executable.profile(x)[-1]["kernel"] == "meaning of dequantize_blocks"


def test_a_product_of_16_million_weights_is_a_file_below_10_mb(tmp_path: Path) -> None:
    size, block = 4096, 32
    codes = RNG.integers(-8, 8, (size, size), np.int8).astype(ml_dtypes.int4)
    steps = RNG.uniform(0.01, 0.1, (size // block, size)).astype(np.float16).astype(np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=block),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    packed = codes.astype(np.int8).reshape(-1, 2) & 15
    weight = TensorProto(
        name="w", data_type=TensorProto.INT4, dims=codes.shape, raw_data=(packed[:, 0] | packed[:, 1] << 4).tobytes()
    )
    model = model_of(nodes, {"s": steps}, (1, size), (1, size))
    model.graph.initializer.append(weight)
    executable = hetnn.compile(model)
    executable.save(tmp_path / "y.hetnn")
    assert (tmp_path / "y.hetnn").stat().st_size < 10e6
    x = RNG.standard_normal((1, size), np.float32)
    want = x.astype(np.float64) @ (codes.astype(np.float64) * np.repeat(steps, block, 0))
    np.testing.assert_allclose(executable(x), want, rtol=0, atol=2e-6 * np.abs(want).max())


@pytest.mark.parametrize(
    ("alter", "why"),
    [
        ({"block_size": -4}, "a block must hold 1 element or more; got block_size -4"),
        ({"axis": 3}, "axis"),
        ({"scales": np.ones((5, 2, 5), np.float32)}, r"need real scales \[5,2,6\].*got f32\[5,2,5\]"),
        ({"scales": np.ones((5, 3, 6), np.float32)}, r"need real scales \[5,2,6\].*got f32\[5,3,6\]"),
        (
            {"scales": np.full((5, 2, 6), np.nan, np.float32)},
            "scale of every block must be finite; got nan for block 0",
        ),
    ],
)
def test_what_fits_no_blocks_is_refused(alter: dict[str, Any], why: str) -> None:
    arrays, attrs = in_blocks("i4", 1, False)
    for name, value in alter.items():
        (arrays if name in arrays else attrs)[name] = value
    nodes = [
        helper.make_node("DequantizeLinear", list(arrays), ["d"], **attrs),
        helper.make_node("Add", ["d", "x"], ["y"]),
    ]
    with pytest.raises(hetnn.InvalidModel, match=why):
        hetnn.compile(model_of(nodes, arrays, (1,), (5, 7, 6)))


@pytest.mark.parametrize("scale", [np.nan, np.inf])
def test_a_product_by_scales_that_are_not_finite_is_refused(scale: float) -> None:
    steps = np.ones((64, 2), np.float32)
    steps[1, 1] = scale
    told = {"K": 64, "N": 64, "bits": 4, "block_size": 32}
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **told)
    model = model_of([node], {"w": np.zeros((64, 2, 16), np.uint8), "s": steps}, (1, 64), (1, 64))
    with pytest.raises(hetnn.InvalidModel, match=r"must be finite; got (nan|inf) for block 3 of 128.*block_linear_c8"):
        hetnn.compile(model)


def test_rounding_by_a_scale_of_0_is_refused() -> None:
    arrays, attrs = in_blocks("i8", 1, False)
    arrays["scales"][0, 1, 0] = 0
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scales"], ["q"], **attrs, output_dtype=TensorProto.INT8),
        helper.make_node("DequantizeLinear", ["q", "scales"], ["y"], **attrs),
    ]
    with pytest.raises(hetnn.InvalidModel, match="must be finite and not 0; got 0 for block 6 of 60"):
        hetnn.compile(model_of(nodes, {"scales": arrays["scales"]}, (5, 7, 6), (5, 7, 6)))


def test_an_npu_says_that_it_has_no_blocks() -> None:
    codes = RNG.integers(0, 256, (64, 2, 16), np.uint8)
    steps = RNG.uniform(0.01, 0.1, (64, 2)).astype(np.float32)
    told = {"K": 64, "N": 64, "bits": 4, "block_size": 32}
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **told)
    report = hetnn.plan(model_of([node], {"w": codes, "s": steps}, (1, 64), (1, 64)), "cpu+relu-rows")
    reasons = str(dict(report.why("y")))
    assert "weights of 4 bits in blocks of 32" in reasons
    assert "one scale for each filter" in reasons


def test_an_npu_says_so_of_integers_in_blocks_too() -> None:
    arrays, attrs = in_blocks("i8", 1, False)
    nodes = [helper.make_node("QuantizeLinear", ["x", "scales"], ["q"], **attrs, output_dtype=TensorProto.INT8)]
    nodes.append(helper.make_node("DequantizeLinear", ["q", "scales"], ["y"], **attrs))
    plan = hetnn.plan(model_of(nodes, {"scales": arrays["scales"]}, (5, 7, 6), (5, 7, 6)), "cpu+relu-rows")
    for name in ("q", "y"):
        assert "blocks of 4 along axis 1" in str(dict(plan.why(name)))
