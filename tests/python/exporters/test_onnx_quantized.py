"""Quantized values as ONNX models: calls of each type, blocks of few bits, and tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import hetnn
from exporters.exported import again, assert_equal, by_runtime, checked
from hetnn import _core
from hetnn.element_types import numpy_type

CALLS = [
    ("dequantize(%x) : f32[2,3,5,7]", "i8{0.05:-3}[2,3,5,7]"),
    ("dequantize(%x) : f32[3,2]", "u8{0.1,0.2:3,250@1}[3,2]"),
    ("dequantize(%x) : f32[2,6]", "i16{0.001}[2,6]"),
    ("dequantize(%x) : f32[2,6]", "i32{0.001}[2,6]"),
    ("dequantize(%x) : f32[2,6]", "i64{0.001,0.5@0}[2,6]"),
    ("quantize(%x) {q_scale = [0.05], q_zero = -3} : i8{0.05:-3}[2,3,5,7]", "f32[2,3,5,7]"),
    ("quantize(%x) {to = i16, q_scale = [0.001]} : i16{0.001}[2,6]", "f32[2,6]"),
    ("quantize(%x) {to = u8, q_scale = [0.1,0.02], q_zero = [7,9], q_axis = 1} : u8{0.1,0.02:7,9@1}[3,2]", "f32[3,2]"),
    ("quantize(%x) {to = i32, q_scale = [0.001]} : i32{0.001}[2,6]", "f32[2,6]"),
    ("relu(%x) {q_scale = [0.04], q_zero = -9} : i8{0.04:-9}[2,3,5,7]", "i8{0.05:-3}[2,3,5,7]"),
    ("permute(%x) {perm = [1,0]} : i8{0.05:-3}[3,2]", "i8{0.05:-3}[2,3]"),
    ("reshape(%x) {shape = [6]} : i8{0.05:-3}[6]", "i8{0.05:-3}[2,3]"),
    ("pad(%x) {padding = [1,0,0,2], value = 0.1} : i8{0.05:-3}[3,5]", "i8{0.05:-3}[2,3]"),
    ("max_pool2d(%x) {kernel = [2,2], q_scale = [0.05], q_zero = -3} : i8{0.05:-3}[1,2,2,2]", "i8{0.05:-3}[1,2,4,4]"),
    ("bitcast(%x) {to = i8} : i8[2,3]", "i8{0.05:-3}[2,3]"),
    ("bitcast(%x) {to = u8} : u8[2,3]", "i8{0.05:-3}[2,3]"),
]


@pytest.mark.parametrize(("call", "given"), CALLS)
def test_calls(call: str, given: str) -> None:
    """ONNX Runtime rounds in f32 as hetnn does; wide integers are computed in f64."""
    graph = _core.Graph.parse(f"graph @q {{stage = imported}} (%x: {given}) -> (%y) {{\n  %y = {call}\n}}")
    rng, dtype = np.random.default_rng(1), given.partition("{")[0].partition("[")[0]
    shape = [int(size) for size in given.rpartition("[")[2].rstrip("]").split(",")]
    x: Any = (rng.standard_normal(shape) * 3) if dtype == "f32" else rng.integers(-100, 100, shape) & 127
    feeds = [np.asarray(x).astype(numpy_type(dtype))]
    model, wanted = checked(graph), _core.interpret(graph, feeds)
    theirs = by_runtime(model, feeds)
    assert isinstance(theirs, list), theirs
    assert_equal(theirs, wanted, 0, "ONNX Runtime")
    assert_equal(again(model, feeds), wanted, 0, "imported again")


def test_a_table_of_bytes() -> None:
    builder = _core.GraphBuilder("table")
    x = builder.add_input("x", "i8", [2, 3])
    table = np.random.default_rng(0).integers(-128, 128, 256).astype(np.int8)
    (y,) = builder.create("lookup", [x], {"table": table})
    builder.output(y, "y")
    graph, given = builder.finish(), np.array([[-128, -1, 0], [1, 5, 127]], np.int8)
    model = checked(graph)
    assert_equal(by_runtime(model, [given]), [table[given.astype(int) + 128]], 0, "ONNX Runtime")
    assert_equal(again(model, [given]), [table[given.astype(int) + 128]], 0, "imported again")


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("given", ["zeros", "none"])
def test_products_with_weights_of_few_bits(bits: int, given: str) -> None:
    rng, builder = np.random.default_rng(bits), _core.GraphBuilder("blocks")
    x = builder.add_input("x", "f32", [3, 40])
    codes = builder.constant(rng.integers(0, 256, (5, 3, 2 * bits)).astype(np.uint8))
    scales = builder.constant(rng.random((5, 3)).astype(np.float32))
    zeros = builder.constant(rng.integers(0, 1 << bits, (5, 3)).astype(np.uint8)) if given == "zeros" else None
    bias = builder.constant(rng.random(5).astype(np.float32))
    (y,) = builder.create("block_linear", [x, codes, scales, zeros, bias], {"bits": bits})
    builder.output(y, "y")
    graph, feeds = builder.finish(), [rng.standard_normal((3, 40)).astype(np.float32)]
    model, wanted = checked(graph), _core.interpret(graph, feeds)
    assert_equal(by_runtime(model, feeds), wanted, 1e-5, "ONNX Runtime")
    assert_equal(again(model, feeds), wanted, 1e-5, "imported again")


def test_a_network_that_hetnn_quantized() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 4))
    samples = [(torch.randn(1, 3, 8, 8),) for _ in range(8)]
    graph = hetnn.quantize(module.eval(), samples, "int8", args=samples[0]).graph
    feeds = [samples[0][0].numpy()]
    model, wanted = checked(graph), _core.interpret(graph, feeds)
    assert_equal(again(model, feeds), wanted, 1e-6, "imported again")
    (got,) = by_runtime(model, feeds)
    step = np.unique(np.abs(np.diff(np.unique(wanted[0])))).min()
    assert float(np.abs(got - wanted[0]).max()) <= step * 1.01
