"""What ONNX Runtime's quantizer writes, each beside ONNX Runtime itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnxruntime import quantization

import hetnn
from importers.onnx_runtime_nodes import (
    RNG,
    Array,
    Fixed,
    Node,
    agrees,
    f32,
    i7,
    i8,
    i32,
    model_of,
    of_runtime,
    restart,
    same,
    saved_by_runtime,
    step,
    u8,
    zero,
)

restart()

B, S, P, N, H = 2, 3, 4, 2, 4  # batch, rows, rows before, heads, size of a head
TWO: dict[str, Any] = {"num_heads": N}
PAST, ENDS = f32(2, B, N, P, H), i32(2, 3)
IDS, SEGMENTS = RNG.integers(0, 9, (2, 5), np.int32), RNG.integers(0, 2, (2, 5), np.int32)
MASK = i32([1] * 5, [1] * 3 + [0] * 2)

IN_U8, IN_I8 = [step(0.02), zero(120)], [step(0.03), zero(-5, np.int8)]
OUT_U8, OUT_I8 = [step(0.05), zero(100)], [step(0.04), zero(9, np.int8)]
POOL: dict[str, Any] = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
CONVOLVED = [step(0.01), zero(3, np.int8), step(2.0), zero(128)]
CODED_TABLES = [Fixed(u8(9, 8)), Fixed(u8(7, 8)), Fixed(u8(2, 8)), Fixed(u8(8)), Fixed(u8(8))]
TABLE_STEPS = [*(step(0.01 * k) for k in range(1, 6)), *(zero(100 + k) for k in range(5))]
LSTM_STEPS = [Fixed(np.float32([0.01])), Fixed(np.uint8([120])), Fixed(np.float32([0.02])), Fixed(np.uint8([130]))]


def f16(*shape: int) -> Array:
    return f32(*shape).astype(np.float16)


def of_4_bits(*shape: int) -> Fixed:
    return Fixed(RNG.integers(-8, 8, shape).astype(ml_dtypes.int4))


BY_GATE = [Fixed(np.full((2, 20), 0.01, np.float32)), Fixed(np.zeros((2, 20), np.int8))] * 2

QUANTIZED = [
    Node("QuantizeLinear", f32(3, 4), *OUT_U8),
    Node("QuantizeLinear", f32(3, 4), step(2**-10), zero(-7, np.int16)),
    Node("QuantizeLinear", f32(3, 4), Fixed(np.float32([0.1, 0.2, 0.3])), Fixed(np.int8([1, 2, 3])), axis=0),
    Node("DequantizeLinear", u8(3, 4), *IN_U8),
    Node("DequantizeLinear", i8(3, 4), Fixed(np.abs(f32(4)) + np.float32(0.01)), Fixed(i8(4)), axis=1),
    Node("QLinearAdd", u8(2, 3, 4), *IN_U8, u8(3, 4), *IN_U8, *OUT_U8),
    Node("QLinearAdd", i8(2, 3, 4), *IN_I8, i8(4), *IN_I8, *OUT_I8),
    Node("QLinearMul", u8(2, 3, 4), *IN_U8, u8(2, 3, 1), *IN_U8, *OUT_U8),
    Node("QLinearMul", i8(4), *IN_I8, i8(4), *IN_I8, *OUT_I8),
    Node("QLinearSigmoid", u8(5, 7), *IN_U8, step(1 / 256), zero(0)),
    Node("QLinearSigmoid", i8(5, 7), *IN_I8, step(1 / 256), zero(-128, np.int8)),
    Node("QLinearLeakyRelu", u8(5, 7), *IN_U8, *OUT_U8, alpha=0.3),
    Node("QLinearLeakyRelu", i8(5, 7), *IN_I8, *OUT_I8),
    Node("QLinearSoftmax", u8(5, 7), *IN_U8, step(1 / 256), zero(0), opset=13).within(steps=1),
    Node("QLinearSoftmax", i8(2, 3, 4), *IN_I8, step(1 / 256), zero(-128, np.int8), opset=11, axis=1).within(steps=1),
    Node("QLinearSoftmax", i8(2, 3, 4), *IN_I8, step(1 / 256), zero(-128, np.int8), opset=13, axis=1).within(steps=1),
    Node("QLinearGlobalAveragePool", u8(2, 3, 4, 5), *IN_U8, *OUT_U8).within(steps=1),
    Node("QLinearGlobalAveragePool", i8(2, 4, 5, 3), *IN_I8, *OUT_I8, channels_last=1).within(steps=1),
    Node("QLinearAveragePool", u8(2, 3, 8, 7), *IN_U8, *OUT_U8, **POOL).within(steps=1),
    Node("QLinearAveragePool", u8(2, 8, 7, 3), *IN_U8, *OUT_U8, channels_last=1, count_include_pad=1, **POOL).within(
        steps=1
    ),
    Node("QLinearAveragePool", i8(2, 3, 8, 7), *IN_I8, *OUT_I8, kernel_shape=[3, 3], ceil_mode=1).within(steps=1),
    Node("NhwcMaxPool", u8(2, 8, 7, 3), **POOL),
    Node("NhwcMaxPool", i8(2, 8, 7, 3), kernel_shape=[2, 2], dilations=[2, 1], ceil_mode=1),
    Node("QLinearConv", u8(2, 8, 7, 4), *IN_U8, Fixed(i7(6, 4, 3, 3)), *CONVOLVED, channels_last=1).within(steps=1),
    Node(
        "QLinearConv", u8(2, 8, 7, 4), *IN_U8, Fixed(i7(4, 1, 3, 3)), *CONVOLVED, channels_last=1, group=4, pads=[1] * 4
    ).within(steps=1),
    Node(
        "QLinearConv", u8(2, 4, 8, 7), *IN_U8, Fixed(i7(6, 4, 3, 3)), *CONVOLVED, i32(*range(6)), strides=[2, 2]
    ).within(steps=1),
    Node("QLinearConcat", *OUT_U8, u8(2, 3), *IN_U8, u8(2, 4), *OUT_U8, axis=1),
    Node("QLinearConcat", *OUT_I8, i8(2, 3), *IN_I8, i8(1, 3), *IN_I8, i8(2, 3), *OUT_I8, axis=-2),
    Node("QLinearWhere", RNG.integers(0, 2, (3, 4)) > 0, u8(3, 4), *IN_U8, u8(4), *OUT_U8, step(0.03), zero(110)),
    Node("QLinearWhere", np.array([True, False, True, False]), i8(4), *IN_I8, i8(3, 4), *IN_I8, *OUT_I8),
    Node("MatMulInteger16", RNG.integers(-999, 999, (3, 4), np.int16), RNG.integers(-999, 999, (4, 5), np.int16)),
    Node("MatMulIntegerToFloat", u8(3, 4), i7(4, 5), step(0.1), step(0.2)),
    Node("MatMulIntegerToFloat", u8(2, 3, 4), u8(4, 5), step(0.1), Fixed(f32(5)), zero(9), Fixed(u8(5)), f32(5)),
    Node("MatMulIntegerToFloat", i7(3, 4), i7(4, 5), step(0.1), step(0.2), zero(9, np.int8)),
    Node("DynamicQuantizeMatMul", f32(3, 4), Fixed(i7(4, 5)), step(0.1), zero(3, np.int8)),
    Node("DynamicQuantizeMatMul", f32(2, 3, 4), Fixed(u8(4, 5)), Fixed(f32(5)), Fixed(u8(5)), f32(5)),
    Node("QGemm", u8(3, 4), *IN_U8, u8(4, 5), *IN_U8, alpha=0.5),
    Node("QGemm", u8(4, 3), *IN_U8, i7(5, 4), *IN_I8, i32(*range(5)), transA=1, transB=1, alpha=2.0),
    Node("QGemm", u8(3, 4), *IN_U8, i7(4, 5), *IN_I8, i32([1], [2], [3]), *OUT_U8),
    Node("QGemm", i7(3, 4), *IN_I8, i7(4, 5), Fixed(f32(5)), Fixed(i7(5)), None, *OUT_I8),
    Node(
        "QAttention", u8(B, S, 6), Fixed(u8(6, 24)), f32(24), step(0.02), step(0.01), ENDS, zero(120), zero(125), **TWO
    ).within(steps=1),
    Node("QAttention", u8(B, S, 6), Fixed(i7(6, 24)), f32(24), step(0.02), Fixed(f32(24) / 50), None, zero(120), **TWO),
    Node(
        "QAttention",
        u8(B, S, 6),
        i7(6, 24),
        f32(24),
        step(0.02),
        step(0.01),
        None,
        None,
        None,
        PAST,
        unidirectional=1,
        outputs=2,
        **TWO,
    ),
    Node("QEmbedLayerNormalization", IDS, SEGMENTS, *CODED_TABLES, MASK, *TABLE_STEPS, outputs=2),
    Node(
        "DynamicQuantizeLSTM",
        f32(3, 2, 4),
        Fixed(i7(2, 4, 20)),
        Fixed(i7(2, 5, 20)),
        *[None] * 5,
        *BY_GATE,
        hidden_size=5,
        direction="bidirectional",
        outputs=3,
    ),
    Node(
        "DynamicQuantizeLSTM",
        f32(3, 2, 4),
        Fixed(u8(1, 4, 20)),
        Fixed(u8(1, 5, 20)),
        Fixed(f32(1, 40)),
        i32(2, 3),
        f32(1, 2, 5),
        f32(1, 2, 5),
        None,
        *LSTM_STEPS,
        hidden_size=5,
        outputs=3,
    ),
]


def packed(rows: int, columns: int, bits: int, block: int) -> list[Fixed]:
    """Weights in blocks: bytes, steps, and what stands for 0, packed by row."""
    count = -(-columns // block)
    zeros = u8(rows, -(-count * bits // 8))
    return [Fixed(u8(rows, count, block * bits // 8)), Fixed(f32(rows, count)), Fixed(zeros)]


def nbits(columns: int, bits: int, block: int = 16, *more: Any, zeros: Any = True, **attrs: Any) -> Node:
    weight, steps, own = packed(5, columns, bits, block)
    own = own if zeros is True else zeros
    told = {"K": columns, "N": 5, "bits": bits, "block_size": block}
    return Node("MatMulNBits", f32(2, 3, columns), weight, steps, own, *more, **told, **attrs).within(1e-4)


OF_4_BITS: dict[str, Any] = {"K": 32, "N": 5, "block_size": 16}
TABLE_OF_8 = Fixed(RNG.integers(0, 256, (9, 64), np.uint8))
PICKS = np.array([[0, 8, -1], [3, 20, 5]])

FLOATS = [f32(9, 32).astype(dtype) for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)]
HALF: dict[str, Any] = {"K": 32, "N": 5, "block_size": 16}

BLOCKS = [
    Node("MatMulNBits", f16(2, 32), Fixed(u8(5, 2, 8)), Fixed(f16(5, 2)), Fixed(u8(5, 1)), **HALF).within(1e-2),
    Node("GatherBlockQuantized", of_4_bits(9, 32), PICKS, Fixed(f32(9, 2)), of_4_bits(9, 2), block_size=16),
    Node(
        "GatherBlockQuantized", of_4_bits(32, 9), PICKS, Fixed(f32(2, 9)), block_size=16, quantize_axis=0, gather_axis=1
    ),
    Node(
        "GatherBlockQuantized", of_4_bits(32, 9), PICKS, Fixed(f16(2, 9)), block_size=16, quantize_axis=0, gather_axis=0
    ),
    Node("GatherBlockQuantized", Fixed(FLOATS[0]), PICKS, Fixed(f32(9, 2)), block_size=16),
    Node("GatherBlockQuantized", Fixed(FLOATS[1]), PICKS, Fixed(f32(1, 1)), block_size=0),
    nbits(48, 4),
    nbits(40, 4, 16, None, Fixed(f32(5))),
    nbits(48, 4, zeros=None),
    nbits(64, 4, 32, zeros=Fixed(f32(5, 2))),
    nbits(48, 8),
    nbits(48, 2),
    Node("MatMulBnb4", f32(2, 32), Fixed(u8(80)), Fixed(f32(10)), quant_type=0, **OF_4_BITS).within(1e-4),
    Node("MatMulBnb4", f32(3, 2, 32), Fixed(u8(80)), Fixed(f32(10)), quant_type=1, **OF_4_BITS).within(1e-4),
    Node("GatherBlockQuantized", Fixed(u8(9, 16)), PICKS, Fixed(f32(9, 2)), block_size=16),
    Node("GatherBlockQuantized", Fixed(u8(9, 32)), PICKS, Fixed(f32(9, 4)), Fixed(u8(9, 2)), block_size=16),
    Node("GatherBlockQuantized", Fixed(u8(9, 48)), PICKS, Fixed(f32(9, 3)), Fixed(u8(9, 3)), block_size=16, bits=8),
    Node(
        "GatherBlockQuantized",
        Fixed(u8(9, 2, 16)),
        PICKS.astype(np.int32),
        Fixed(f32(9, 2, 2)),
        block_size=16,
        bits=4,
        quantize_axis=2,
    ),
]


CASES = [*QUANTIZED, *BLOCKS]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_onnx_runtime(case: Node) -> None:
    agrees(case, case.fixed_sizes())


@pytest.mark.parametrize("case", {case.op: case for case in CASES}.values(), ids=str)
def test_equals_onnx_runtime_where_sizes_are_open(case: Node) -> None:
    agrees(case, case.model)


NET = """g (float[N,3,8,8] x) => (float[N,5] z) {
    a = Conv <pads = [1,1,1,1]> (x, v)
    b = Relu(a)
    c = Conv <pads = [1,1,1,1]> (b, w)
    d = Add(b, c)
    e = LeakyRelu <alpha = 0.25> (d)
    f = MaxPool <kernel_shape = [2,2], strides = [2,2]> (e)
    g = Sigmoid(f)
    h = Mul(f, g)
    i = AveragePool <kernel_shape = [2,2], strides = [2,2]> (h)
    j = Concat <axis = 1> (i, i)
    k = GlobalAveragePool(j)
    l = Flatten(k)
    m = Gemm <transB = 1> (l, u, t)
    z = Softmax <axis = -1> (m)
}"""
NET_WEIGHTS = {"v": f32(4, 3, 3, 3), "w": f32(4, 4, 3, 3) / 3, "u": f32(5, 8), "t": f32(5)}
LAYER = """g (float[S,N,8] x) => (float[S,1,N,8] z) {
    y, h, c = LSTM <hidden_size = 8> (x, w, r, b)
    z = MatMul(y, v)
}"""
LAYER_WEIGHTS = {"w": f32(1, 32, 8), "r": f32(1, 32, 8), "b": f32(1, 64), "v": f32(8, 8)}


class Samples(quantization.CalibrationDataReader):
    """Inputs from which the quantizer takes its steps."""

    def __init__(self, *samples: Array) -> None:
        self.left = iter(samples)

    def get_next(self) -> dict[str, Array] | None:
        sample = next(self.left, None)
        return None if sample is None else {"x": sample}


@pytest.mark.parametrize("level", ["BASIC", "EXTENDED"])
@pytest.mark.parametrize("form", ["QOperator", "QDQ"])
@pytest.mark.parametrize("kind", ["QUInt8", "QInt8"])
def test_what_the_quantizer_of_onnx_runtime_writes(form: str, kind: str, level: str, tmp_path: Path) -> None:
    onnx.save(model_of(NET, **NET_WEIGHTS), tmp_path / "net.onnx")
    x = f32(2, 3, 8, 8)
    quantization.quantize_static(
        tmp_path / "net.onnx",
        tmp_path / "quantized.onnx",
        Samples(x, f32(2, 3, 8, 8)),
        quant_format=quantization.QuantFormat[form],
        activation_type=quantization.QuantType[kind],
        weight_type=quantization.QuantType.QInt8,
        reduce_range=True,
    )
    written = onnx.load(tmp_path / "quantized.onnx")
    wanted = of_runtime(written, {"x": x})[0]
    for model in (written, saved_by_runtime(written, tmp_path, level)):
        same(hetnn.compile(model)(x), wanted, 0.02, 0)


@pytest.mark.parametrize(
    ("text", "weights", "x"),
    [(LAYER, LAYER_WEIGHTS, f32(4, 2, 8)), (NET, NET_WEIGHTS, f32(2, 3, 8, 8))],
    ids=["lstm", "net"],
)
def test_what_the_quantizer_of_onnx_runtime_writes_without_samples(
    text: str, weights: dict[str, Array], x: Array, tmp_path: Path
) -> None:
    onnx.save(model_of(text, **weights), tmp_path / "net.onnx")
    quantization.quantize_dynamic(tmp_path / "net.onnx", tmp_path / "quantized.onnx", reduce_range=True)
    written = onnx.load(tmp_path / "quantized.onnx")
    wanted = of_runtime(written, {"x": x})[0]
    for model in (written, saved_by_runtime(written, tmp_path)):
        same(hetnn.compile(model)(x), wanted, 1e-4, 0)
