"""Mixtures of experts: each is computed of all rows, and counts where a row has chosen it."""

from __future__ import annotations

from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import divide, product
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.blocks import known_weight
from hetnn.importers.onnx.rules.contrib.gates import chosen
from hetnn.importers.onnx.rules.contrib.pieces import part
from hetnn.importers.onnx.rules.declare import FLOAT, INT, contrib

_EXPERTS: dict[str, Any] = {
    "activation_alpha": 1.0,
    "activation_beta": 0.0,
    "activation_type": "relu",
    "k": 1,
    "normalize_routing_weights": 0,
    "swiglu_fusion": 0,
    "swiglu_limit": FLOAT,
    "swiglu_limit_after_activation": 0,
    "use_sparse_mixer": 0,
}


def _shares(call: Call, logits: Any, shares: Any) -> Any:
    """[rows, experts]: how much each counts, 0 of those that a row has not chosen."""
    picked = chosen(call, logits, int(call.attr("k")))
    if shares is not None:
        shares = call.create("where", [picked, shares, call.like(0, shares)])
        if not call.attr("normalize_routing_weights"):
            return shares
        return call.create("div", [shares, call.create("sum", [shares], axes=[1], keepdim=True)])
    # Among those that are chosen; of quantized experts always.
    if call.attr("normalize_routing_weights") or call.node.op_type == "QMoE":
        logits = call.create("where", [picked, logits, call.like(float("-inf"), logits)])
    shares = call.create("softmax", [logits], axis=1)
    return call.create("where", [picked, shares, call.like(0, shares)])


def _layer(call: Call, x: Any, weight: Any, bias: Any) -> Any:
    """[experts, rows, features] by [experts, out, features], and a bias of each expert."""
    y = call.create("matmul", [x, call.create("permute", [weight], perm=[0, 2, 1])])
    return y if bias is None else call.create("add", [y, call.reshape(bias, [bias.shape[0], 1, bias.shape[1]])])


def gated(call: Call, gate: Any, linear: Any, limit: float | None) -> Any:
    """G sigmoid(alpha G) (L + beta), both perhaps kept below a limit."""
    if limit is not None:
        gate = call.create("minimum", [gate, call.like(limit, gate)])
        linear = call.create("clamp", [linear], min=-float(limit), max=float(limit))
    alpha, beta = (call.like(float(call.attr(f"activation_{name}")), gate) for name in ("alpha", "beta"))
    gate = call.create("mul", [gate, call.create("sigmoid", [call.create("mul", [gate, alpha])])])
    return call.create("mul", [gate, call.create("add", [linear, beta])])


def _halves(call: Call, y: Any) -> list[Any]:
    """What lies in one product alternately."""
    experts, rows, width = y.shape
    half = divide(width, 2)
    pairs = call.reshape(y, [experts, rows, half, 2])
    return [call.reshape(part(call, pairs, k, k + 1), [experts, rows, half]) for k in range(2)]


def _mixed(call: Call, first: tuple[Any, Any], second: tuple[Any, Any], shares: Any = None) -> Any:
    """Two layers of each expert, weights and biases, by how much it counts: as the logits or `shares` say."""
    if call.attr("use_sparse_mixer") or call.attr("swiglu_limit_after_activation"):
        raise Unsupported("a sparse mixer, or a limit behind the activation")
    x = call[0]
    rows, (experts, _, width) = product(x.shape[:-1]), call.static_shape(first[0], "the weights of experts")
    flat = with_sizes(call, call.reshape(x, [1, rows, x.shape[-1]]), [None, None, width])
    y = _layer(call, flat, *first)
    if call.attr("activation_type") == "swiglu":
        if int(call.attr("swiglu_fusion")) != 1:
            raise Unsupported("gates that do not lie alternately with what they gate: swiglu_fusion must be 1")
        gate, up = _halves(call, y)
        y = gated(call, gate, up, call.attr("swiglu_limit"))
    elif call.attr("activation_type") == "gelu":
        y = call.create("gelu", [y], approximate="tanh")
    else:
        y = call.create(call.one_of("activation_type", {n: n for n in ("relu", "silu", "identity")}, "relu"), [y])
    y = _layer(call, y, *second)  # [experts, rows, features]
    picked = _shares(call, with_sizes(call, call[1], [rows, experts]), shares)
    picked = call.reshape(call.create("permute", [picked], perm=[1, 0]), [experts, rows, 1])
    y = call.create("sum", [call.create("mul", [y, picked])], axes=[0], keepdim=False)
    return call.reshape(y, [*x.shape[:-1], y.shape[-1]])


@contrib(
    "MoE",
    "input router_probs fc1_experts_weights fc1_experts_bias? fc2_experts_weights fc2_experts_bias? "
    "fc3_experts_weights? fc3_experts_bias?",
    unread="activation_alpha activation_beta swiglu_limit swiglu_fusion",
    **_EXPERTS,
)
def _experts(call: Call) -> Any:
    if call.given(6):
        raise Unsupported("a third layer of experts")
    return _mixed(call, (call[2], call.optional(3)), (call[4], call.optional(5)))


@contrib(
    "QMoE",
    "input router_probs fc1_experts_weights fc1_scales? fc1_experts_bias? fc2_experts_weights fc2_scales? "
    "fc2_experts_bias? fc3_experts_weights? fc3_scales? fc3_experts_bias? fc1_zero_points? fc2_zero_points? "
    "fc3_zero_points? router_weights? fc1_global_scale? fc2_global_scale? fc1_act_scale? fc2_act_scale? "
    "fc1_act_block_scale? fc2_act_block_scale?",
    unread="activation_alpha activation_beta swiglu_limit swiglu_fusion accuracy_level fc3_expert_weight_bits",
    **_EXPERTS,
    accuracy_level=0,
    block_size=INT,
    expert_weight_bits=4,
    fc1_expert_weight_bits=INT,
    fc2_expert_weight_bits=INT,
    fc3_expert_weight_bits=INT,
    quant_type="int",
    weights_prepacked=-1,
)
def _quantized_experts(call: Call) -> Any:
    """The same of weights of few bits."""
    if call.given(8) or any(call.given(k) for k in range(15, 21)) or call.attr("quant_type") != "int":
        raise Unsupported("a third layer of experts, or weights that are no integers")
    first, second = _weights(call, 2, 11, "fc1"), _weights(call, 5, 12, "fc2")
    return _mixed(call, (first, call.optional(4)), (second, call.optional(7)), call.optional(14))


def _weights(call: Call, packed: int, zeros: int, layer: str) -> Any:
    bits = int(call.attr(f"{layer}_expert_weight_bits") or call.attr("expert_weight_bits"))
    experts, rows, wide = call.static_shape(call.ranked(packed, 3, 3), "the weights of experts")
    columns = wide * 8 // bits
    block = int(call.attr("block_size") or columns)
    if call.given(zeros) and block == columns:
        raise Unsupported("what stands for 0 in a whole row")
    weight = known_weight(call, packed, packed + 1, zeros, [experts * rows, columns], bits, block)
    if weight is None:
        raise Unsupported("weights of experts that are computed when the model runs")
    return call.reshape(weight, [experts, rows, columns])
