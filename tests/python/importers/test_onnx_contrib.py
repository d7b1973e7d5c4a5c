"""Operators that ONNX Runtime adds to the standard, each beside ONNX Runtime itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper, parser
from onnxruntime import quantization

import hetnn

MICROSOFT = "com.microsoft"
RNG = np.random.default_rng(0)
Array = np.ndarray[Any, Any]


def f32(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def i32(*values: Any) -> Array:
    return np.array(values, np.int32)


class Node:
    """A model of one node; inputs are arrays, None where one is absent, or a constant of the model."""

    def __init__(self, op: str, *inputs: Any, outputs: int = 1, domain: str = MICROSOFT, **attrs: Any) -> None:
        types = attrs.pop("types", {})  # of outputs whose types nothing else says
        attrs = {key: value for key, value in attrs.items() if value != []}
        self.op, self.tolerance, self.steps = op, 1e-5, 0
        names = ["" if value is None else f"x{k}" for k, value in enumerate(inputs)]
        given = {name: value for name, value in zip(names, inputs, strict=True) if name}
        self.feeds = {name: value for name, value in given.items() if not isinstance(value, Fixed)}
        results = outputs if isinstance(outputs, (list, tuple)) else range(outputs)
        made = [f"y{k}" if k in results else "" for k in range(max(results) + 1)]
        node = helper.make_node(op, names, made, domain=domain, **attrs)
        graph = helper.make_graph(
            [node],
            "g",
            [self.port(name, value) for name, value in self.feeds.items()],
            [self.result(name, types.get(k)) for k, name in enumerate(made) if name],
            [numpy_helper.from_array(value.array, name) for name, value in given.items() if isinstance(value, Fixed)],
        )
        sets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
        self.model = helper.make_model(graph, opset_imports=sets, ir_version=10)

    def port(self, name: str, value: Array) -> onnx.ValueInfoProto:
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        return helper.make_tensor_value_info(name, kind, [f"{name}_{k}" for k in range(value.ndim)])

    def result(self, name: str, kind: int | None) -> onnx.ValueInfoProto:
        return onnx.ValueInfoProto(name=name) if kind is None else helper.make_tensor_value_info(name, kind, None)

    def within(self, tolerance: float = 1e-5, steps: int = 0) -> Node:
        """How far reals, and how many steps integers, may lie apart."""
        self.tolerance, self.steps = tolerance, steps
        return self

    def fixed_sizes(self) -> onnx.ModelProto:
        """The model with the sizes that its inputs have."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        for port in model.graph.input:
            for size, dim in zip(self.feeds[port.name].shape, port.type.tensor_type.shape.dim, strict=True):
                dim.dim_value = size
        return model

    def __repr__(self) -> str:
        return self.op


class Fixed:
    """A constant of the model."""

    def __init__(self, array: Array) -> None:
        self.array = np.asarray(array)


def of_runtime(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    """On one thread: on more, it quantizes what a layer keeps in parts."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    found: list[Array] = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)
    return found


def same(mine: Array, theirs: Array, tolerance: float, steps: int) -> None:
    assert mine.dtype == theirs.dtype
    assert mine.shape == theirs.shape
    if theirs.dtype.kind in "iu":
        assert np.abs(mine.astype(np.int64) - theirs.astype(np.int64)).max(initial=0) <= steps
    else:
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


def agrees(case: Node, model: onnx.ModelProto) -> None:
    given = hetnn.compile(model)(*case.feeds.values())
    wanted = of_runtime(model, case.feeds)
    for mine, theirs in zip(given if isinstance(given, tuple) else [given], wanted, strict=True):
        same(mine, theirs, case.tolerance, case.steps)


IMAGES, FILTERS = f32(2, 4, 6, 7), Fixed(f32(6, 4, 3, 3))
ACTIVATIONS = {
    "Relu": [],
    "Tanh": [],
    "Sigmoid": [],
    "LeakyRelu": [0.25],
    "Clip": [-0.5, 1.5],
    "HardSigmoid": [0.3, 0.4],
}
RNN: dict[str, Any] = {"hidden_size": 5, "domain": "", "outputs": 2}
NUMBERS: dict[str, Any] = {**RNN, "activation_alpha": [0.3, 0.5, 2.0], "activation_beta": [0.4, 0.5]}

FUSED = [
    *(
        Node("FusedConv", IMAGES, FILTERS, Fixed(f32(6)), activation=name, activation_params=numbers)
        for name, numbers in ACTIVATIONS.items()
    ),
    Node("FusedConv", IMAGES, FILTERS, Fixed(f32(6)), f32(2, 6, 6, 7), activation="Relu", pads=[1, 1, 1, 1]),
    Node("FusedConv", IMAGES, Fixed(f32(4, 2, 3, 3)), None, group=2, strides=[2, 1], activation="Relu"),
    Node("FusedConv", IMAGES, FILTERS, dilations=[2, 1], activation="Relu"),
    Node("FusedConv", IMAGES, FILTERS, auto_pad="SAME_LOWER", activation="Relu"),
    Node("FusedGemm", f32(3, 4), Fixed(f32(5, 4)), Fixed(f32(5)), transB=1, activation="Relu"),
    Node("FusedGemm", f32(4, 3), f32(4, 5), f32(3, 1), transA=1, alpha=0.5, beta=2.0, activation="Tanh"),
    Node("FusedGemm", f32(3, 4), f32(4, 5), activation="LeakyRelu", activation_alpha=0.25),
    Node("FusedGemm", f32(3, 4), f32(4, 5), activation="HardSigmoid", activation_alpha=0.3, activation_beta=0.4),
    Node("FusedGemm", f32(3, 4), f32(4, 5), activation="Elu", activation_alpha=0.5),
    Node("FusedGemm", f32(3, 4), f32(4, 5), activation="Softplus"),
    Node("FusedMatMul", f32(2, 3, 4), f32(2, 4, 5), alpha=0.125),
    Node("FusedMatMul", f32(2, 4, 3), f32(2, 5, 4), transA=1, transB=1),
    Node("FusedMatMul", f32(3, 2, 4), f32(2, 4, 5), transBatchA=1),
    Node("FusedMatMul", f32(4, 2, 3), f32(5, 2, 4), transBatchA=1, transBatchB=1, transA=1, transB=1, alpha=2.0),
    Node("FusedMatMul", f32(4, 2, 3, 5), f32(2, 3, 5, 4), transBatchA=1),
    Node("FusedMatMul", f32(4), f32(2, 5, 4), transB=1),
    Node("TransposeMatMul", f32(4, 3), f32(5, 4), transA=1, transB=1, alpha=0.5),
    Node("Gelu", f32(3, 4)),
    Node("BiasGelu", f32(2, 3, 4), f32(4)),
    Node("FastGelu", f32(2, 3, 4), f32(4)),
    Node("FastGelu", f32(2, 3, 4)),
    Node("QuickGelu", f32(3, 4)),
    Node("QuickGelu", f32(3, 4), alpha=1.0),
    Node(
        "LSTM",
        f32(3, 2, 4),
        Fixed(f32(1, 20, 4)),
        Fixed(f32(1, 20, 5)),
        activations=["HardSigmoid", "Elu", "Affine"],
        **NUMBERS,
    ),
    Node(
        "RNN",
        f32(3, 2, 4),
        Fixed(f32(1, 5, 4)),
        Fixed(f32(1, 5, 5)),
        activations=["LeakyRelu"],
        activation_alpha=[0.2],
        **RNN,
    ),
]

X, SKIP, GAMMA, BETA, BIAS = f32(2, 3, 8), f32(2, 3, 8), Fixed(f32(8)), Fixed(f32(8)), Fixed(f32(8))
IDS, SEGMENTS, MASK = (
    RNG.integers(0, 9, (2, 5), np.int32),
    RNG.integers(0, 2, (2, 5), np.int32),
    i32([1] * 5, [1] * 3 + [0] * 2),
)
TABLES = [Fixed(f32(9, 8)), Fixed(f32(7, 8)), Fixed(f32(2, 8)), GAMMA, BETA]

NORMS = [
    Node("SimplifiedLayerNormalization", X, GAMMA, domain=""),
    Node("SimplifiedLayerNormalization", X, GAMMA, domain="", outputs=2, epsilon=1e-2),
    Node("SimplifiedLayerNormalization", X, Fixed(f32(3, 8)), domain="", axis=1, epsilon=1e-2),
    Node("SkipLayerNormalization", X, SKIP, GAMMA, BETA, BIAS, epsilon=1e-3),
    Node("SkipLayerNormalization", X, SKIP, GAMMA),
    Node("SkipLayerNormalization", X, f32(3, 8), GAMMA, BETA, outputs=[0, 3]),
    Node("SkipLayerNormalization", X, f32(1, 3, 8), GAMMA, BETA, BIAS, outputs=[0, 3]),
    Node("SkipLayerNormalization", f32(5, 8), f32(5, 8), GAMMA, BETA),
    Node("SkipSimplifiedLayerNormalization", X, SKIP, GAMMA),
    Node("SkipSimplifiedLayerNormalization", X, f32(1, 3, 8), GAMMA, BIAS, outputs=[0, 3], epsilon=1e-2),
    Node("EmbedLayerNormalization", IDS, SEGMENTS, *TABLES, MASK, outputs=3),
    Node("EmbedLayerNormalization", IDS, None, *TABLES[:2], None, *TABLES[3:], outputs=2, epsilon=1e-2),
    Node("EmbedLayerNormalization", IDS, SEGMENTS, *TABLES, MASK, i32([4, 3, 2, 1, 0]), outputs=3),
]

B, S, P, N, H = 2, 3, 4, 2, 4  # batch, rows, rows before, heads, size of a head
INPUT, TO_QKV, QKV_BIAS, PAST = f32(B, S, 6), Fixed(f32(6, 24)), Fixed(f32(24)), f32(2, B, N, P, H)
ENDS, STARTS = i32(2, 3), i32(0, 1)
ROWS = RNG.integers(0, 2, (B, S, S), np.int32) | np.eye(S, dtype=np.int32)
TWO: dict[str, Any] = {"num_heads": N}
Q, K, V, KEYS = f32(B, S, N * H), f32(B, 5, N * H), f32(B, 5, N * 3), i32([1, 1, 1, 0, 0], [1, 0, 1, 1, 1])
BEFORE = [f32(B, N, P, H), f32(B, N, P, H)]
CACHE = [f32(B, N, 8, H), f32(B, N, 8, H)]
ONE = f32(B, 1, N * H)
SHARED: dict[str, Any] = {**TWO, "outputs": 3, "past_present_share_buffer": 1}

ATTENTION = [
    Node("Attention", INPUT, TO_QKV, QKV_BIAS, **TWO),
    Node("Attention", INPUT, TO_QKV, None, unidirectional=1, scale=0.3, **TWO),
    Node("Attention", INPUT, TO_QKV, QKV_BIAS, ENDS, **TWO),
    Node("Attention", INPUT, TO_QKV, QKV_BIAS, np.concatenate([ENDS, STARTS]), **TWO),
    Node("Attention", INPUT, TO_QKV, QKV_BIAS, i32(*ENDS, *[0] * 6), **TWO),
    Node("Attention", INPUT, TO_QKV, QKV_BIAS, i32([1, 1, 0], [0, 1, 1]), mask_filter_value=-50.0, **TWO),
    Node("Attention", INPUT, TO_QKV, QKV_BIAS, i32([1, 1, 0], [0, 1, 1]), unidirectional=1, **TWO),
    Node("Attention", INPUT, TO_QKV, QKV_BIAS, ROWS, **TWO),
    Node("Attention", INPUT, TO_QKV, QKV_BIAS, None, PAST, outputs=2, unidirectional=1, **TWO),
    Node("Attention", INPUT, TO_QKV, QKV_BIAS, RNG.integers(0, 2, (B, P + S), np.int32), PAST, outputs=2, **TWO),
    Node("Attention", INPUT, TO_QKV, QKV_BIAS, None, None, f32(1, N, S, S), outputs=2, **TWO),
    Node("Attention", INPUT, TO_QKV, QKV_BIAS, None, None, f32(B, 1, S, S), **TWO),
    Node("Attention", INPUT, Fixed(f32(6, 22)), Fixed(f32(22)), qkv_hidden_sizes=[8, 8, 6], **TWO),
    Node("MultiHeadAttention", Q, K, V, **TWO),
    Node("MultiHeadAttention", Q, K, V, f32(2 * N * H + N * 3), scale=0.3, outputs=3, **TWO),
    Node("MultiHeadAttention", Q, K, V, None, KEYS, f32(B, N, S, 5), **TWO),
    Node("MultiHeadAttention", Q, K, V, None, i32(4, 2), f32(1, 1, S, 5), **TWO),
    Node("MultiHeadAttention", Q, K, V, None, RNG.integers(0, 2, (B, S, 5), np.int32), **TWO),
    Node("MultiHeadAttention", Q, Q, Q, None, None, None, *BEFORE, unidirectional=1, outputs=3, **TWO),
    Node("MultiHeadAttention", Q, Q, Q, f32(24), None, f32(B, N, S, P + S), *BEFORE, outputs=3, **TWO),
    Node("MultiHeadAttention", Q, K, V, outputs=4, types={3: onnx.TensorProto.FLOAT}, **TWO),
    Node("MultiHeadAttention", Q, K, V, None, KEYS, outputs=4, types={3: onnx.TensorProto.FLOAT}, **TWO).within(1e-3),
    Node("MultiHeadAttention", Q, Q, Q, None, None, f32(B, N, S, P + S), *CACHE, i32(P), outputs=3, **TWO),
    Node("MultiHeadAttention", Q, Q, Q, None, None, None, *CACHE, i32(P), unidirectional=1, outputs=3, **TWO),
    Node("MultiHeadAttention", Q, f32(B, N, 5, H), f32(B, N, 5, H), **TWO),
    Node("DecoderMaskedMultiHeadAttention", ONE, *CACHE, i32([1] * 5 + [0] * 3, [0] * 2 + [1] * 6), **TWO),
    Node("DecoderMaskedMultiHeadAttention", ONE, *CACHE, scale=0.3, **TWO),
    Node("DecoderMaskedMultiHeadAttention", ONE, ONE, ONE, None, None, *CACHE, i32(P), **SHARED),
    Node(
        "DecoderMaskedMultiHeadAttention", ONE, ONE, ONE, i32([1] * 5, [0, 1] * 2 + [1]), None, *CACHE, i32(P), **SHARED
    ),
    Node("DecoderMaskedMultiHeadAttention", ONE, ONE, ONE, None, None, *CACHE, i32(P), None, None, f32(24), **SHARED),
]

TABLES_OF_2 = [np.cos(f32(16, 2)), np.sin(f32(16, 2))]
AT = np.array([[0, 1, 2], [5, 3, 9]])
AT_3 = RNG.integers(0, 16, (3, B, S))
TABLES_OF_8 = [np.cos(f32(16, 8)), np.sin(f32(16, 8))]
SECTIONS: dict[str, Any] = {"mrope_section": [4, 2, 2]}

ROTARY = [
    Node("RotaryEmbedding", f32(B, S, 8), np.array([2]), *TABLES_OF_2),
    Node("RotaryEmbedding", f32(B, S, 8), AT, *TABLES_OF_2, interleaved=1),
    Node("RotaryEmbedding", f32(B, S, 16), AT, *TABLES_OF_2, num_heads=2, rotary_embedding_dim=4),
    Node("RotaryEmbedding", f32(B, N, S, 8), AT, *TABLES_OF_2, num_heads=2, rotary_embedding_dim=4, interleaved=1),
    Node("RotaryEmbedding", f32(B, N, S, 4), AT, *map(Fixed, TABLES_OF_2)),
    Node("MRotaryEmbedding", f32(B, N, S, 16), AT_3, *TABLES_OF_8, mrope_layout=1, **SECTIONS),
    Node("MRotaryEmbedding", f32(B, S, 32), AT_3, *TABLES_OF_8, interleaved=1, num_heads=2, **SECTIONS),
    Node("MRotaryEmbedding", f32(B, N, S, 16), AT_3, *map(Fixed, TABLES_OF_8), **SECTIONS),
]

GQ, GK, GV = f32(B, S, 4 * 16), f32(B, S, 2 * 16), f32(B, S, 2 * 16)
GQ1, GK1, GV1 = (x[:, :1] for x in (GQ, GK, GV))
FIRST = [None, None, i32(S - 1, S - 1), i32(S)]
LONG = [f32(B, 2, 10, 16), f32(B, 2, 10, 16)]
LATER = [*LONG, i32(6, 4), i32(7)]
GROW = [*(x[:, :, :6] for x in LONG), i32(6, 4), i32(7)]
CHUNK = [*(x[:1] for x in LONG), i32(6), i32(7)]
GROUPS: dict[str, Any] = {"num_heads": 4, "kv_num_heads": 2, "outputs": 3}
ROTATED: dict[str, Any] = {**GROUPS, "do_rotary": 1}
SHOWN: dict[str, Any] = {**GROUPS, "outputs": 4, "types": {3: onnx.TensorProto.FLOAT}}

GROUP = [
    Node("GroupQueryAttention", GQ, GK, GV, *FIRST, **GROUPS),
    Node("GroupQueryAttention", np.concatenate([GQ, GK, GV], 2), None, None, *FIRST, **GROUPS),
    Node("GroupQueryAttention", GQ1, GK1, GV1, *GROW, scale=0.3, **GROUPS),
    Node("GroupQueryAttention", GQ1, GK1, GV1, *LATER, **GROUPS),
    Node("GroupQueryAttention", GQ, GK, GV, *LONG, i32(S - 1, S - 1), i32(S), **GROUPS),
    Node("GroupQueryAttention", GQ[:1], GK[:1], GV[:1], *CHUNK, *TABLES_OF_8, **ROTATED),
    Node("GroupQueryAttention", GQ[:1], GK[:1], GV[:1], *CHUNK, *TABLES_OF_8, np.array([[4, 0, 7]]), **ROTATED),
    Node("GroupQueryAttention", GQ, GK, GV, *FIRST, *TABLES_OF_8, rotary_interleaved=1, **ROTATED),
    Node("GroupQueryAttention", GQ, GK, GV, *FIRST, *TABLES_OF_8, np.array([[2, 5, 7], [0, 1, 2]]), **ROTATED),
    Node("GroupQueryAttention", GQ1, GK1, GV1, *LATER, *TABLES_OF_8, np.array([[3], [9]]), **ROTATED),
    Node("GroupQueryAttention", GQ, GK, GV, *FIRST, local_window_size=2, **GROUPS),
    Node("GroupQueryAttention", GQ1, GK1, GV1, *LATER, local_window_size=3, **GROUPS),
    Node("GroupQueryAttention", GQ, GK, GV, *FIRST, softcap=2.0, **GROUPS),
    Node("GroupQueryAttention", GQ, GK, GV, *FIRST, smooth_softmax=1, **GROUPS),
    Node("GroupQueryAttention", GQ, GK, GV, *FIRST, None, None, None, f32(B, 4, S, S), f32(4), **GROUPS),
    Node("GroupQueryAttention", GQ, GK, GV, *FIRST, None, None, None, f32(1, 1, S, S), f32(4), softcap=1.5, **GROUPS),
    Node("GroupQueryAttention", GQ1, GK1, GV1, *LATER, None, None, None, f32(B, 1, 1, 7), **GROUPS),
    Node("GroupQueryAttention", GQ, GK, GV, *FIRST, causal=0, **GROUPS),
    Node("GroupQueryAttention", GQ, GK, GV, *FIRST, qk_output=1, **SHOWN),
    Node("GroupQueryAttention", GQ, GK, GV, *FIRST, None, None, None, f32(B, 4, S, S), qk_output=2, **SHOWN),
    Node(
        "GroupQueryAttention", GQ, GK, GV, *FIRST, None, None, None, f32(B, 4, S, S), qk_output=1, softcap=1.5, **SHOWN
    ),
    Node("GroupQueryAttention", GQ, GK, GV, *LONG, i32(6, 4), i32(9), *[None] * 9, i32(S, S), **GROUPS),
    Node("GroupQueryAttention", GQ, GK, GV, *LATER, *map(Fixed, TABLES_OF_8), *[None] * 7, i32(S, S), **ROTATED),
]


def u8(*shape: int) -> Array:
    return RNG.integers(0, 256, shape, np.uint8)


def i8(*shape: int) -> Array:
    return RNG.integers(-128, 128, shape, np.int8)


def i7(*shape: int) -> Array:
    """Of whose products with unsigned bytes no processor's sums of pairs overflow, as ONNX Runtime's may."""
    return RNG.integers(-64, 64, shape, np.int8)


def step(number: float) -> Fixed:
    return Fixed(np.float32(number))


def zero(number: int, dtype: type = np.uint8) -> Fixed:
    return Fixed(dtype(number))


IN_U8, IN_I8 = [step(0.02), zero(120)], [step(0.03), zero(-5, np.int8)]
OUT_U8, OUT_I8 = [step(0.05), zero(100)], [step(0.04), zero(9, np.int8)]
POOL: dict[str, Any] = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
CONVOLVED = [step(0.01), zero(3, np.int8), step(2.0), zero(128)]
CODED_TABLES = [Fixed(u8(9, 8)), Fixed(u8(7, 8)), Fixed(u8(2, 8)), Fixed(u8(8)), Fixed(u8(8))]
TABLE_STEPS = [*(step(0.01 * k) for k in range(1, 6)), *(zero(100 + k) for k in range(5))]
LSTM_STEPS = [Fixed(np.float32([0.01])), Fixed(np.uint8([120])), Fixed(np.float32([0.02])), Fixed(np.uint8([130]))]
BY_GATE = [Fixed(np.full((2, 20), 0.01, np.float32)), Fixed(np.zeros((2, 20), np.int8))] * 2

QUANTIZED = [
    Node("QuantizeLinear", f32(3, 4), *OUT_U8),
    Node("QuantizeLinear", f32(3, 4), step(2**-10), zero(-7, np.int16)),
    Node("QuantizeLinear", f32(3, 4), Fixed(np.float32([0.1, 0.2, 0.3])), Fixed(np.int8([1, 2, 3])), axis=0),
    Node("DequantizeLinear", u8(3, 4), *IN_U8),
    Node("DequantizeLinear", i8(3, 4), Fixed(f32(4)), Fixed(i8(4)), axis=1),
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
    Node("QLinearAveragePool", u8(2, 3, 8, 7), *IN_U8, *OUT_U8, **POOL),
    Node("QLinearAveragePool", u8(2, 8, 7, 3), *IN_U8, *OUT_U8, channels_last=1, count_include_pad=1, **POOL),
    Node("QLinearAveragePool", i8(2, 3, 8, 7), *IN_I8, *OUT_I8, kernel_shape=[3, 3], ceil_mode=1).within(steps=1),
    Node("NhwcMaxPool", u8(2, 8, 7, 3), **POOL),
    Node("NhwcMaxPool", i8(2, 8, 7, 3), kernel_shape=[2, 2], dilations=[2, 1], ceil_mode=1),
    Node("QLinearConv", u8(2, 8, 7, 4), *IN_U8, Fixed(i7(6, 4, 3, 3)), *CONVOLVED, channels_last=1),
    Node(
        "QLinearConv", u8(2, 8, 7, 4), *IN_U8, Fixed(i7(4, 1, 3, 3)), *CONVOLVED, channels_last=1, group=4, pads=[1] * 4
    ),
    Node("QLinearConv", u8(2, 4, 8, 7), *IN_U8, Fixed(i7(6, 4, 3, 3)), *CONVOLVED, i32(*range(6)), strides=[2, 2]),
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
    ),
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
CASES = [*FUSED, *NORMS, *ATTENTION, *ROTARY, *GROUP, *QUANTIZED]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_onnx_runtime(case: Node) -> None:
    agrees(case, case.fixed_sizes())


@pytest.mark.parametrize("case", {case.op: case for case in CASES}.values(), ids=str)
def test_equals_onnx_runtime_where_sizes_are_open(case: Node) -> None:
    agrees(case, case.model)


def saved_by_runtime(model: onnx.ModelProto, folder: Path, level: str = "EXTENDED") -> onnx.ModelProto:
    """What ONNX Runtime's optimizer makes of a model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    onnxruntime.InferenceSession(model.SerializeToString(), options)
    return onnx.load(options.optimized_model_filepath)


def model_of(text: str, **constants: Array) -> onnx.ModelProto:
    sets = '["" : 17, "com.microsoft" : 1]'
    model = parser.parse_model(f"<ir_version: 8, opset_import: {sets}>\n{text}")
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return model


CONV = """g (float[N,3,8,8] x) => (float[N,4,4,4] z) {
    a = Conv <pads = [1,1,1,1]> (x, v)
    b = Relu(a)
    c = Conv <pads = [1,1,1,1]> (b, w)
    d = Conv <pads = [1,1,1,1]> (b, u)
    e = Add(c, d)
    f = LeakyRelu <alpha = 0.25> (e)
    z = MaxPool <kernel_shape = [2,2], strides = [2,2]> (f)
}"""
CONV_WEIGHTS = {"v": f32(4, 3, 3, 3), "w": f32(4, 4, 3, 3), "u": f32(4, 4, 3, 3)}
BLOCK = """g (float[N,5,8] x, float[N,5,8] skip) => (float[N,5,8] z) {
    s = Add(x, skip)
    n = LayerNormalization <axis = -1, epsilon = 1e-5> (s, gamma, beta)
    m = MatMul(n, w)
    b = Add(m, bias)
    r = Div(b, root)
    e = Erf(r)
    o = Add(e, one)
    p = Mul(b, o)
    g = Mul(p, half)
    t = Transpose <perm = [0,2,1]> (g)
    q = MatMul(g, t)
    c = Mul(q, half)
    k = Softmax <axis = -1> (c)
    z = MatMul(k, v)
}"""
BLOCK_WEIGHTS = {
    "gamma": f32(8),
    "beta": f32(8),
    "w": f32(8, 16),
    "bias": f32(16),
    "v": f32(5, 8),
    "root": np.float32(2**0.5),
    "one": np.float32(1),
    "half": np.float32(0.5),
}


@pytest.mark.parametrize(
    ("text", "weights", "shapes", "written"),
    [
        (CONV, CONV_WEIGHTS, [(2, 3, 8, 8)], {"FusedConv"}),
        (BLOCK, BLOCK_WEIGHTS, [(2, 5, 8), (2, 5, 8)], {"SkipLayerNormalization", "BiasGelu", "FusedMatMul"}),
    ],
    ids=["conv", "block"],
)
def test_what_the_optimizer_of_onnx_runtime_writes(
    text: str, weights: dict[str, Array], shapes: list[tuple[int, ...]], written: set[str], tmp_path: Path
) -> None:
    model = model_of(text, **weights)
    saved = saved_by_runtime(model, tmp_path)
    assert written <= {node.op_type for node in saved.graph.node}
    inputs = [f32(*shape) for shape in shapes]
    wanted = of_runtime(model, dict(zip([port.name for port in model.graph.input], inputs, strict=True)))
    same(hetnn.compile(saved)(*inputs), wanted[0], 1e-4, 0)


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
