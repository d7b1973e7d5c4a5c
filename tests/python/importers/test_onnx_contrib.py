"""What ONNX Runtime's optimizer joins, and its attention, each beside ONNX Runtime itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import hetnn
from importers.onnx_runtime_nodes import (
    RNG,
    Array,
    Fixed,
    Node,
    agrees,
    f32,
    i32,
    model_of,
    of_runtime,
    restart,
    same,
    saved_by_runtime,
    u8,
)

restart()

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
    Node("SimplifiedLayerNormalization", X, Fixed(f32(8).astype(np.float16)), domain="").within(2e-3),
    Node("SimplifiedLayerNormalization", X.astype(np.float16), GAMMA, domain="", outputs=2).within(2e-3),
    Node("SkipLayerNormalization", *(x.astype(np.float16) for x in (X, SKIP, f32(8), f32(8)))).within(2e-3),
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
    Node("MultiHeadAttention", Q, K, V, mask_filter_value=-5.0, **TWO),
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


CODES = [RNG.integers(-90, 90, (B, 2, 10, 16), np.int8) for _ in range(2)]
HALF_CODES = [u8(B, 2, 10, 8) for _ in range(2)]
ONE_STEP, BY_CHANNEL = Fixed(np.float32([0.05])), Fixed(np.abs(f32(1, 2, 1, 16)) / 20)
BY = {kind: {"k_quant_type": f"PER_{kind}", "v_quant_type": f"PER_{kind}"} for kind in ("TENSOR", "CHANNEL")}
INTEGERS: dict[str, Any] = {**GROUPS, "kv_cache_bit_width": 8}
HALVES: dict[str, Any] = {**GROUPS, "kv_cache_bit_width": 4}
STEPS_BEHIND = [i32(6, 4), i32(7), *[None] * 5]
WINDOW: dict[str, Any] = {**GROUPS, "sliding_window_cache": 1, "local_window_size": 3}

CACHES = [
    Node("GroupQueryAttention", GQ1, GK1, GV1, *CODES, *STEPS_BEHIND, ONE_STEP, ONE_STEP, **BY["TENSOR"], **INTEGERS),
    Node("GroupQueryAttention", GQ1, GK1, GV1, *CODES, *STEPS_BEHIND, *[BY_CHANNEL] * 2, **BY["CHANNEL"], **INTEGERS),
    Node(
        "GroupQueryAttention", GQ1, GK1, GV1, *HALF_CODES, *STEPS_BEHIND, ONE_STEP, ONE_STEP, **BY["TENSOR"], **HALVES
    ),
    Node(
        "GroupQueryAttention", GQ1, GK1, GV1, *HALF_CODES, *STEPS_BEHIND, *[BY_CHANNEL] * 2, **BY["CHANNEL"], **HALVES
    ),
    Node("GroupQueryAttention", GQ1, GK1, GV1, *(x[:, :, :3] for x in LONG), i32(8, 8), i32(9), **WINDOW),
    Node("GroupQueryAttention", GQ1, GK1, GV1, *(x[:, :, :5] for x in LONG), i32(9, 4), i32(10), **WINDOW).rows(3),
    Node("GroupQueryAttention", GQ1, GK1, GV1, *(x[:, :, :5] for x in LONG), i32(5, 5), i32(6), **WINDOW).rows(3),
    Node("GroupQueryAttention", GQ[:1], GK[:1], GV[:1], *(x[:1, :, :4] for x in LONG), i32(9), i32(10), **WINDOW).rows(
        3
    ),
]

LAYOUT = [
    Fixed(i32([0, 1, 3, 5], [0, 1, 2, 4])),
    Fixed(i32([0, 0, 1, 1, 2], [0, 1, 0, 2, -1])),
]
SQ, SK, SV = f32(B, 40, 4 * 16), f32(B, 40, 2 * 16), f32(B, 40, 2 * 16)
SPARSE: dict[str, Any] = {**GROUPS, "sparse_block_size": 16, "shared": {"y1": "x3", "y2": "x4"}}
SPARSE_CACHE = [f32(B, 2, 48, 16), f32(B, 2, 48, 16)]

# Of sequences that are shorter than the longest, ONNX Runtime reads scores that it never computed.
SPARSE_CASES = [
    Node("SparseAttention", SQ, SK, SV, *SPARSE_CACHE, *LAYOUT, i32(40), i32(40, 40), **SPARSE),
    Node("SparseAttention", GQ1, GK1, GV1, *SPARSE_CACHE, *LAYOUT, i32(35), i32(35, 35), scale=0.5, **SPARSE),
    Node(
        "SparseAttention",
        *(GQ1, GK1, GV1, *SPARSE_CACHE, *LAYOUT, i32(12), i32(12, 12), *map(Fixed, TABLES_OF_8)),
        do_rotary=1,
        **SPARSE,
    ),
]
CASES = [*CACHES, *SPARSE_CASES, *FUSED, *NORMS, *ATTENTION, *ROTARY, *GROUP]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_onnx_runtime(case: Node) -> None:
    agrees(case, case.fixed_sizes())


@pytest.mark.parametrize("case", {case.op: case for case in CASES}.values(), ids=str)
def test_equals_onnx_runtime_where_sizes_are_open(case: Node) -> None:
    agrees(case, case.model)


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


DECODER = """g (
    int64[batch,sequence] ids, int64[batch,total] mask, float[batch,2,past,16] keys, float[batch,2,past,16] values)
=> (float[batch,sequence,40] logits, float[batch,2,total,16] next_keys, float[batch,2,total,16] next_values) {
    count = ReduceSum <keepdims = 1> (mask, one)
    less = Sub(count, one)
    lengths = Cast <to = 6> (less)
    shape = Shape(mask)
    longest = Gather <axis = 0> (shape, one)
    total = Cast <to = 6> (longest)
    e = Gather(words, ids)
    n = SimplifiedLayerNormalization <axis = -1, epsilon = 1e-5, stash_type = 1> (e, gamma)
    q = com.microsoft.MatMulNBits <K = 32, N = 64, bits = 4, block_size = 16, accuracy_level = 1> (n, wq, sq)
    k = MatMul(n, wk)
    v = MatMul(n, wv)
    a, next_keys, next_values = com.microsoft.GroupQueryAttention
        <num_heads = 4, kv_num_heads = 2, do_rotary = 1, local_window_size = -1, softcap = 0.0>
        (q, k, v, keys, values, lengths, total, cos, sin)
    o = MatMul(a, wo)
    s, , , r = com.microsoft.SkipSimplifiedLayerNormalization <epsilon = 1e-5> (e, o, gamma)
    logits = MatMul(s, head)
}"""


def test_a_decoder_whose_cache_grows() -> None:
    model = model_of(
        DECODER,
        **{"one": np.array([1]), "words": f32(40, 32), "gamma": f32(32), "wq": u8(64, 2, 8), "sq": f32(64, 2) / 20},
        **{"wk": f32(32, 32) / 5, "wv": f32(32, 32) / 5, "wo": f32(64, 32) / 5, "head": f32(32, 40) / 5},
        **{"cos": np.cos(f32(64, 8)), "sin": np.sin(f32(64, 8))},
    )
    exe = hetnn.compile(model)
    cache = [np.zeros((2, 2, 0, 16), np.float32)] * 2
    for ids, mask in (
        (np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), np.ones((2, 4), np.int64)),
        (np.array([[9], [10]]), np.ones((2, 5), np.int64)),
        (np.array([[9], [10]]), np.array([[1] * 6, [1] * 4 + [0] * 2])),
    ):
        feeds = dict(zip(("ids", "mask", "keys", "values"), (ids, mask, *cache), strict=True))
        found = exe(*feeds.values())
        for mine, theirs in zip(found, of_runtime(model, feeds), strict=True):
            same(mine, theirs, 1e-4, 0)
        cache = list(found[1:])


def test_queries_and_keys_may_be_normalized_by_heads() -> None:
    factors = f32(16), f32(16)
    behind = [*[None] * 7, *map(Fixed, factors)]
    exe = hetnn.compile(Node("GroupQueryAttention", GQ, GK, GV, *FIRST, *behind, qk_norm_epsilon=0.1, **GROUPS).model)

    def normal(x: Array, factor: Array) -> Array:
        heads = x.reshape(*x.shape[:2], -1, 16)
        y: Array = heads / np.sqrt((heads**2).mean(-1, keepdims=True) + 0.1) * factor
        return y.reshape(x.shape)

    plain = Node("GroupQueryAttention", normal(GQ, factors[0]), normal(GK, factors[1]), GV, *FIRST, **GROUPS)
    wanted = of_runtime(plain.model, plain.feeds)
    for mine, theirs in zip(exe(GQ, GK, GV, *FIRST[2:]), wanted, strict=True):
        same(mine, theirs, 1e-5, 0)
