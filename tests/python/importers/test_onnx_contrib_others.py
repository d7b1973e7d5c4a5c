"""ONNX Runtime's other operators, each beside ONNX Runtime itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

import hetnn
import hetnn.importers.onnx.graph
from hetnn.importers.onnx.rules import load_rare
from hetnn.importers.onnx.rules.declare import ADDED, MICROSOFT, REFUSED
from importers.onnx_runtime_nodes import (
    RNG,
    Fixed,
    Node,
    agrees,
    f32,
    i32,
    restart,
    u8,
)

load_rare()

restart()

MATRIX = f32(3, 4, 4) + 3 * np.eye(4, dtype=np.float32)
REGIONS = np.array([[0.1, 0.2, 0.9, 0.7], [0.5, 0.0, 0.2, 1.3], [-0.2, 0.4, 0.6, 0.4]], np.float32)
WORDS = np.array([[1, 2, 3, 1, 2, 3, 1, 2], [4, 4, 4, 4, 0, 1, 4, 4]])

PLAIN = [
    Node("Trilu", f32(2, 4, 5)),
    Node("Trilu", f32(4, 5), Fixed(np.int64(1)), upper=0),
    Node("SampleOp", f32(3)),
    Node("Pad", f32(3, 4), Fixed(np.array([1, 0, 2, 3])), Fixed(np.float32([2.5]))),
    Node("Pad", f32(3, 4), Fixed(np.array([[1, -1, 2, 3]])), mode="edge"),
    Node("Pad", f32(3, 4), Fixed(np.array([1, 2, 2, 3])), mode="reflect"),
    Node("ExpandDims", f32(3, 4), Fixed(np.int32(-1))),
    Node("ExpandDims", f32(3, 4), Fixed(np.int32([1]))),
    Node("ExpandDims", np.array(["a", "bc"], object), Fixed(np.int32(0))),
    Node("GatherND", np.array(["a", "bc"], object), Fixed(np.array([[1]]))),
    Node("Range", Fixed(np.int64([1])), Fixed(np.int64([9])), Fixed(np.int64([3]))),
    Node("Range", Fixed(np.float32(0.5)), Fixed(np.float32(3))),
    Node("GatherND", f32(3, 4, 5), Fixed(i32([0, 1], [2, 3]))),
    Node("Unique", np.float32([2, 1, 1, 3, 4, 3]), outputs=3),
    *(
        Node("GridSample", f32(2, 3, 4, 5), f32(2, 3, 3, 2), mode=mode, padding_mode=outside, align_corners=corners)
        for mode, outside, corners in (("bilinear", "zeros", 0), ("nearest", "border", 1), ("bicubic", "reflection", 1))
    ),
    Node("UnfoldTensor", f32(3, 9), size=4, step=2),
    Node("UnfoldTensor", f32(3, 9, 2), dim=1, size=3),
    Node("Inverse", MATRIX).within(1e-4),
    Node("Inverse", MATRIX[0].astype(np.float64)),
    Node("CDist", f32(3, 4), f32(5, 4)).within(1e-4),
    Node("CDist", f32(3, 4), f32(5, 4), metric="euclidean").within(1e-4),
    Node("CropAndResize", f32(2, 3, 6, 7), REGIONS, i32(0, 1, 1), Fixed(i32(3, 4))),
    Node("CropAndResize", f32(2, 3, 6, 7), REGIONS, i32(0, 1, 1), Fixed(i32(1, 5)), extrapolation_value=2.0),
    Node("CropAndResize", f32(2, 3, 6, 7), REGIONS, i32(0, 1, 1), Fixed(i32(4, 3)), mode="nearest"),
    Node(
        "ConvTransposeWithDynamicPads",
        f32(2, 4, 5, 5),
        Fixed(f32(4, 3, 3, 3)),
        Fixed(np.array([1, 0, 1, 2])),
        strides=[2, 1],
    ),
    Node("NGramRepeatBlock", WORDS, f32(2, 6), ngram_size=3),
    Node("NGramRepeatBlock", WORDS, f32(2, 6), ngram_size=1),
    *(
        Node("MurmurHash3", (f32(7) * 100).astype(dtype), positive=positive, seed=seed)
        for dtype, positive, seed in ((np.int32, 1, 0), (np.int64, 0, 7), (np.float32, 1, 9), (np.float64, 0, 0))
    ),
    Node("WordConvEmbedding", i32([1, 2, 3, 0], [4, 0, 0, 0]), Fixed(f32(6, 1, 2, 4)), Fixed(f32(6)), Fixed(f32(9, 4))),
    Node("WordConvEmbedding", i32([1, 2, 3], [4, 5, 6]), Fixed(f32(6, 1, 2, 4)), Fixed(f32(6)), Fixed(f32(9, 4))),
]

STREAMS, MIX = f32(2, 3, 4, 5), f32(2, 3, 4)
TOKENS, LOGITS = f32(2, 3, 6), f32(6, 4)
LINEAR = [f32(2, 3, 4 * 8), f32(2, 3, 2 * 8) / 3, f32(2, 3, 2 * 5)]
DECAY, RATE = -np.abs(f32(2, 3, 2)), np.abs(f32(2, 3, 2))
FOUR: dict[str, Any] = {"q_num_heads": 4, "kv_num_heads": 2, "outputs": 2}
FC1, FC2, FC3 = Fixed(f32(4, 8, 6)), Fixed(f32(4, 6, 8)), Fixed(f32(4, 8, 6))
WIDE = Fixed(f32(4, 16, 6))
QUANTIZED_EXPERTS = [
    *(f32(6, 32), LOGITS),
    *(Fixed(u8(4, 32, 16)), Fixed(f32(4, 32) / 50), None, Fixed(u8(4, 32, 16)), Fixed(f32(4, 32) / 50), None),
]

GATES = [
    Node("ScaledSiLU", f32(3, 4), alpha=0.5),
    Node("ScaledSiLU", f32(3, 4), f32()),
    Node("ScaledSiLU", f32(3, 4).astype(np.float16), f32()).within(1e-3),
    Node("GatedAdd", f32(2, 3, 4), f32(2, 3, 4), f32(2, 3, 1)),
    Node("GatedRMSNorm", f32(2, 3, 8), Fixed(f32(4)), f32(2, 3, 8)),
    Node("GatedRMSNorm", f32(2, 3, 8), Fixed(f32(8)), f32(2, 3, 8), activation="sigmoid", epsilon=0.1),
    Node("BranchwiseRMSNorm", STREAMS, f32(4, 5)),
    Node("BranchwiseRMSNorm", STREAMS, f32(5)),
    Node("BranchwiseRMSNorm", f32(2, 3, 20), Fixed(f32(20)), num_branches=4, epsilon=0.1),
    Node("HyperConnectionPreMix", STREAMS, MIX, reduction_scale=0.5),
    Node("HyperConnectionPreMix", STREAMS, f32(2, 3, 4, 5)),
    Node("HyperConnectionPreMix", f32(2, 3, 20), f32(2, 3, 20), num_branches=4),
    Node("HyperConnectionPreMix", f32(2, 3, 20), f32(2, 3, 4), num_branches=4),
    Node("HyperConnectionPostMix", STREAMS, f32(2, 3, 5), f32(2, 3, 4, 5)),
    Node("HyperConnectionPostMix", STREAMS, f32(2, 3, 5), MIX, f32(2, 3, 4, 4)),
    Node("HyperConnectionPostMix", f32(2, 3, 20), f32(2, 3, 5), MIX, num_branches=4),
    Node("LinearAttentionGate", f32(2, 3, 4), f32(4), f32(4)),
    Node("LinearAttentionGate", f32(2, 3, 4), f32(4), f32(4), f32(2, 3, 4), outputs=2),
    Node("EngramGate", f32(2, 3, 4, 8), f32(2, 3, 4, 8), f32(2, 3, 8), f32(4, 8), f32(4, 8)),
    Node(
        "EngramGate", Fixed(f32(2, 3, 4, 8)), f32(2, 3, 4, 8), f32(2, 3, 8), f32(4, 8), f32(4, 8), f32(4, 8), outputs=2
    ),
    Node("MoEGroupRouter", f32(2, 3, 12), f32(12), top_k=4),
    Node("MoEGroupRouter", f32(6, 12), Fixed(f32(12)), top_k=4, n_group=4, topk_group=2),
    Node("MoEGroupRouter", f32(6, 12), Fixed(f32(12)), top_k=4, outputs=[1, 2]),
    Node(
        "MoEGroupRouter",
        Fixed(f32(6, 12)),
        f32(12),
        top_k=3,
        n_group=3,
        topk_group=2,
        group_topk=9,
        router_sentinel=-7.0,
    ),
    Node("LinearAttention", *LINEAR, None, DECAY, RATE, **FOUR),
    Node("LinearAttention", *LINEAR, f32(2, 2, 8, 5), None, RATE, update_rule="delta", scale=0.5, **FOUR),
    Node("LinearAttention", *LINEAR, f32(2, 2, 8, 5), -np.abs(f32(2, 3, 16)), None, update_rule="gated", **FOUR),
    Node("LinearAttention", f32(2, 3, 8), *LINEAR[1:], update_rule="linear", **{**FOUR, "q_num_heads": 1}),
    Node(
        "CausalConvWithState",
        f32(2, 4, 5),
        Fixed(f32(4, 1, 3)),
        Fixed(f32(4)),
        f32(2, 4, 2),
        activation="silu",
        outputs=2,
    ),
    Node("CausalConvWithState", f32(2, 4, 5), Fixed(f32(4, 1, 3)), outputs=2, dilation=2),
    Node(
        "CausalConvWithState", f32(2, 5, 2, 2), Fixed(f32(4, 1, 3)), None, f32(2, 2, 2, 2), channels_last=1, outputs=2
    ),
    Node("CausalConvWithState", f32(2, 5, 4), Fixed(f32(4, 1, 3)), Fixed(f32(4)), channels_last=1, outputs=2),
    Node("MoE", TOKENS, LOGITS, FC1, Fixed(f32(4, 8)), FC2, Fixed(f32(4, 6)), k=2),
    Node("MoE", TOKENS, LOGITS, FC1, None, FC2, None, k=2, normalize_routing_weights=1, activation_type="gelu"),
    Node("MoE", f32(6, 6), LOGITS, FC1, None, FC2, None, k=1, activation_type="silu"),
    Node(
        "MoE", TOKENS, LOGITS, WIDE, None, FC2, None, k=2, activation_type="swiglu", swiglu_fusion=1, swiglu_limit=1.0
    ),
    Node(
        "MoE",
        TOKENS,
        LOGITS,
        WIDE,
        Fixed(f32(4, 16)),
        FC2,
        None,
        k=2,
        activation_type="swiglu",
        swiglu_fusion=1,
        activation_alpha=1.5,
        activation_beta=1.0,
    ),
    Node("MoE", TOKENS, LOGITS, FC1, None, FC2, Fixed(f32(4, 6)), k=3, activation_type="identity"),
    *(
        Node(
            "QMoE",
            f32(6, 32),
            LOGITS,
            Fixed(u8(4, 64, 32 * bits // 8)),
            Fixed(scale(4, 64)),
            None,
            Fixed(u8(4, 32, 32 * bits // 8)),
            Fixed(scale(4, 32)),
            Fixed(f32(4, 32)),
            k=2,
            expert_weight_bits=bits,
            activation_type="swiglu",
            swiglu_fusion=1,
            **more,
        ).within(1e-3)
        for bits, scale, more in (
            (4, lambda *shape: f32(*shape) / 50, {"normalize_routing_weights": 1}),
            (8, lambda *shape: f32(*shape) / 500, {}),
            (4, lambda *shape: f32(*shape, 2) / 50, {"block_size": 16}),
        )
    ),
    *(
        Node("QMoE", *QUANTIZED_EXPERTS, *[None] * 6, f32(6, 4) ** 2, normalize_routing_weights=normal, k=2).within(
            1e-3
        )
        for normal in (0, 1)
    ),
    Node(
        "QMoE",
        *(f32(6, 32), LOGITS),
        *(Fixed(u8(4, 32, 16)), Fixed(f32(4, 32, 2) / 50), None, Fixed(u8(4, 32, 16)), Fixed(f32(4, 32, 2) / 50)),
        *(*[None] * 4, Fixed(u8(4, 32, 1)), Fixed(u8(4, 32, 1))),
        k=2,
        block_size=16,
    ).within(1e-3),
]


OLD: dict[str, Any] = {"domain": "", "opset_of_model": 9}
BORDER: dict[str, Any] = {**OLD, "border": [1, 2, 1, 0]}
EARLY = [
    Node("Affine", f32(3, 4), alpha=2.0, beta=0.5, **OLD),
    Node("ScaledTanh", f32(3, 4), alpha=2.0, beta=0.5, **OLD),
    Node("ParametricSoftplus", f32(3, 4), alpha=2.0, beta=0.5, **OLD),
    Node("Scale", f32(3, 4), scale=2.0, **OLD),
    Node("ImageScaler", f32(2, 3, 4, 5), scale=2.0, bias=[1.0, 2.0, 3.0], **OLD),
    Node("Crop", f32(2, 3, 6, 7), **BORDER),
    Node("Crop", f32(2, 3, 6, 7), scale=[2, 3], **BORDER),
    Node("DynamicSlice", f32(3, 4), Fixed(np.array([1, 0])), Fixed(np.array([3, 2])), **OLD),
]
DELTA = [f32(2, 3, 2, 8), f32(2, 3, 2, 8) / 3, f32(2, 3, 4, 5)]
DELTA_STATE = f32(2, 4, 5, 8)
SLOW, SHARE = -np.abs(f32(2, 3, 4)), np.abs(f32(2, 3, 4))
WORD_IDS, PRIMES = RNG.integers(0, 50, (2, 6)), np.array([11, 13, 17, 19])
HASHES: dict[str, Any] = {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 7, "outputs": 2}
FACTORS, BEFORE = np.array([3, 5, 2**61 + 9]), RNG.integers(0, 9, (2, 2))

PACKED = [f32(7, 4), f32(4, 1, 3), i32(0, 1, 5, 7)]

STATES = [
    Node("VarlenNGramHashMapping", np.array([1, 2, 3, 4, 5, 6, 7]), FACTORS, PRIMES, PACKED[2], **HASHES),
    Node(
        "VarlenNGramHashMapping",
        *(np.array([1, 9, 3, 9, 5, 6, 7]), FACTORS, PRIMES, PACKED[2], RNG.integers(0, 9, (3, 2))),
        *(np.array([0, 11, 24, 41]), np.array(9)),
        reset_on_eos=1,
        **HASHES,
    ),
    Node("VarlenCausalConvWithState", *PACKED, None, f32(3, 4, 2), outputs=2),
    Node("VarlenCausalConvWithState", *PACKED, f32(4), f32(3, 4, 4), activation="silu", dilation=2, outputs=2),
    Node("VarlenCausalConvWithState", PACKED[0], Fixed(PACKED[1]), PACKED[2], f32(4), f32(3, 4, 2), outputs=2),
    Node("GatedDeltaNet", *DELTA, None, SLOW, SHARE, outputs=2),
    Node("GatedDeltaNet", *DELTA, None, SLOW, SHARE, DELTA_STATE, outputs=2, qk_l2_norm=1, scale=0.5),
    Node("GatedDeltaNet", *DELTA, None, -np.abs(f32(2, 3, 4, 8)), None, DELTA_STATE, outputs=2, update_rule="gated"),
    Node("GatedDeltaNet", *DELTA, None, None, SHARE, DELTA_STATE, outputs=2, update_rule="delta"),
    Node(
        "GatedDeltaNet",
        *(x.reshape(6, *x.shape[2:]) for x in DELTA),
        *(None, SLOW.reshape(6, 4), SHARE.reshape(6, 4), DELTA_STATE, f32(4), f32(4)),
        outputs=2,
        gate_activation="softplus",
        beta_activation="sigmoid",
    ),
    Node(
        "GatedDeltaNet",
        *(f32(6, 2 * 2 * 8 + 4 * 5) / 3, None, None, None, SLOW.reshape(6, 4), SHARE.reshape(6, 4)),
        *(DELTA_STATE, f32(4), f32(4)),
        outputs=2,
        gate_activation="sigmoid",
        gate_lower_bound=-3.0,
    ),
    Node(
        "GatedDeltaNet",
        *(*map(Fixed, DELTA), None, f32(2, 3, 4, 8), SHARE, Fixed(DELTA_STATE), f32(4), f32(32)),
        outputs=2,
        gate_activation="kda",
    ),
    Node("NGramHashMapping", WORD_IDS, FACTORS, PRIMES, **HASHES),
    Node("NGramHashMapping", WORD_IDS, FACTORS, PRIMES, BEFORE, np.array([0, 11, 24, 41]), **HASHES),
    Node(
        "NGramHashMapping",
        *(np.array([[1, 7, 2, 3, 7, 7], [7, 1, 2, 7, 3, 4]]), FACTORS, PRIMES, BEFORE, None, np.array(7)),
        reset_on_eos=1,
        **HASHES,
    ),
    Node(
        "NGramHashMapping",
        *(WORD_IDS.astype(np.int32), i32(3, 5, 2**30), PRIMES.astype(np.int32), None, None, None),
        i32([0, 0, 1, 1, 1, 2], [0, 1, 2, 2, 2, 2]),
        **HASHES,
    ),
]
CASES = [*STATES, *EARLY, *PLAIN, *GATES]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_onnx_runtime(case: Node) -> None:
    agrees(case, case.fixed_sizes())


@pytest.mark.parametrize("case", {case.op: case for case in CASES}.values(), ids=str)
def test_equals_onnx_runtime_where_sizes_are_open(case: Node) -> None:
    agrees(case, case.model)


def of_cpu() -> set[tuple[str, str]]:
    """What ONNX Runtime's CPU provider has and the standard has not, by domain and name."""
    kernels = {(kernel.domain, kernel.op_name) for kernel in runtime.get_all_opkernel_def()}
    standard = {(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas_with_history()}
    return {name for name in kernels - standard if name != ("ai.onnx", "MemcpyFromHost")}


def test_each_operator_of_onnx_runtime_is_imported_or_refused_with_a_reason() -> None:
    assert of_cpu() <= ADDED.keys() | REFUSED.keys()
    assert not ADDED.keys() & REFUSED.keys()
    everything = {(schema.domain, schema.name) for schema in runtime.get_all_operator_schema()}
    assert {name for name in everything if name[0] == MICROSOFT} <= ADDED.keys() | REFUSED.keys()


def test_what_a_node_holds_is_as_onnx_runtime_has_it() -> None:
    newest = {(s.domain, s.name): s for s in sorted(runtime.get_all_operator_schema(), key=lambda s: s.since_version)}
    for name, ours in ADDED.items():
        theirs = newest[name]
        assert [each.option.name for each in ours.inputs] == [
            str(each.option)[-8:].split(".")[-1] for each in theirs.inputs
        ], name
        for key, attr in theirs.attributes.items():
            assert key in ours.attributes, (name, key)
            preset = onnx.AttributeProto.FromString(attr._default_value)
            if preset.name:
                mine = onnx.helper.get_attribute_value(ours.attributes[key].default_value)
                assert mine == pytest.approx(onnx.helper.get_attribute_value(preset)), (name, key)


def test_a_refused_operator_is_named_with_the_reason() -> None:
    case = Node("Snpe", f32(3, 4))
    with pytest.raises(hetnn.Unsupported, match=r"com\.microsoft\.Snpe: ONNX Runtime has it on accelerators only"):
        hetnn.compile(case.model)


def test_an_attribute_of_a_newer_release_is_refused() -> None:
    case = Node("QuickGelu", f32(3, 4), beta=1.0)
    with pytest.raises(
        hetnn.Unsupported, match=r"com\.microsoft\.QuickGelu: the attribute beta, which hetnn does not know"
    ):
        hetnn.compile(case.model)


def test_a_node_without_an_input_that_it_needs_is_refused() -> None:
    case = Node("BiasGelu", f32(3, 4))
    with pytest.raises(hetnn.InvalidModel, match="BiasGelu needs the input B, which is absent"):
        hetnn.compile(case.model)


def test_inputs_that_do_not_fit_are_named() -> None:
    case = Node("RotaryEmbedding", f32(2, 3, 8), np.array([[1]]), f32(8), f32(8))
    with pytest.raises(hetnn.InvalidModel, match=r"com\.microsoft\.RotaryEmbedding"):
        hetnn.compile(case.fixed_sizes())
