"""Norms, gates and mixtures of newer language models, which compute in f32 whatever the type of their inputs."""

from __future__ import annotations

import math
from typing import Any

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.sizes import divide, product
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.declare import SOME_INT, contrib


def _op(call: Call, name: str, *values: Any) -> Any:
    return call.create(name, list(values))


def rms_normal(call: Call, x: Any, eps: float) -> Any:
    """x / sqrt(mean(x²) + eps) over the last axis."""
    mean = call.create("mean", [_op(call, "mul", x, x)], axes=[len(x.shape) - 1], keepdim=True)
    return _op(call, "mul", x, _op(call, "rsqrt", _op(call, "add", mean, call.like(eps, x))))


@contrib("ScaledSiLU", "X scale?", alpha=1.0)
def _scaled_silu(call: Call) -> Any:
    """z sigmoid(z), z the input by a number; each step in the input's type."""
    x = call.in_f32(call[0]) if call[0].dtype == "bf16" else call[0]
    scale = call.cast(call[1], "f32") if call.given(1) else call.constant(call.attr("alpha"), "f32")
    z = call.cast(_op(call, "mul", call.cast(x, "f32"), call.reshape(scale, [])), call[0].dtype)
    gate = call.cast(_op(call, "sigmoid", call.cast(z, "f32")), z.dtype)
    return _op(call, "mul", z, gate)


@contrib("GatedAdd", "X Y gate gate_weight?")
def _gated_add(call: Call) -> Any:
    if call.given(3):
        raise Unsupported("a gate that is projected")
    return _op(call, "add", call[0], _op(call, "mul", call[1], call[2]))


@contrib("GatedRMSNorm", "X scale gate", activation="silu", epsilon=1e-5)
def _gated_norm(call: Call) -> Any:
    """Each head of the last axis normalized, by a factor of each element and by a gate."""
    x, gate = call[0], call.cast(call[2], "f32")
    (width,) = call.static_shape(call.ranked(1, 1, 1), "a norm's factors")
    shape = list(x.shape)
    heads = call.reshape(call.cast(x, "f32"), [*shape[:-1], divide(shape[-1], width), width])
    y = _op(call, "mul", rms_normal(call, heads, float(call.attr("epsilon"))), call.cast(call[1], "f32"))
    op = call.one_of("activation", {"silu": "silu", "swish": "silu", "sigmoid": "sigmoid"}, "silu")
    return call.cast(_op(call, "mul", call.reshape(y, shape), _op(call, op, gate)), x.dtype)


def _branches(call: Call, x: Any, count: int) -> Any:
    """[…, branches, features] of branches that may lie side by side in the last axis."""
    if not count:
        return call.cast(x, "f32")
    return call.reshape(call.cast(x, "f32"), [*x.shape[:-1], count, divide(x.shape[-1], count)])


@contrib("BranchwiseRMSNorm", "X scale?", epsilon=1e-5, num_branches=0)
def _branch_norm(call: Call) -> Any:
    x = call[0]
    branches = _branches(call, x, int(call.attr("num_branches")))
    y = rms_normal(call, branches, float(call.attr("epsilon")))
    if call.given(1):
        scale = call.cast(call[1], "f32")
        if len(scale.shape) == 1 and scale.shape[0] != y.shape[-1]:
            scale = call.reshape(scale, list(y.shape[-2:]))
        y = _op(call, "mul", y, scale)
    return call.cast(call.reshape(y, list(x.shape)), x.dtype)


def _mix(call: Call, index: int, streams: Any) -> Any:
    """Factors of branches, or of their features, shaped to meet […, branches, features]."""
    mix = call.cast(call[index], "f32")
    rank, (count, width) = len(streams.shape), streams.shape[-2:]
    if len(mix.shape) == rank:
        return mix
    one = mix.shape[-1] == count or mix.shape[-1] != product([count, width])
    return call.reshape(mix, [*mix.shape[:-1], count, 1 if one else width])


@contrib("HyperConnectionPreMix", "streams pre_mix", num_branches=0, reduction_scale=1.0)
def _pre_mix(call: Call) -> Any:
    """The sum of branches by their factors."""
    streams = _branches(call, call[0], int(call.attr("num_branches")))
    weighed = _op(call, "mul", streams, _mix(call, 1, streams))
    y = call.create("sum", [weighed], axes=[len(streams.shape) - 2], keepdim=False)
    return call.cast(_op(call, "mul", y, call.like(float(call.attr("reduction_scale")), y)), call[0].dtype)


@contrib("HyperConnectionPostMix", "streams block_output post_mix stream_mix?", num_branches=0)
def _post_mix(call: Call) -> Any:
    """Branches, mixed with one another, and what a block gives by a factor of each branch."""
    streams = _branches(call, call[0], int(call.attr("num_branches")))
    block = call.cast(call[1], "f32")
    block = call.reshape(block, [*block.shape[:-1], 1, block.shape[-1]])
    added = _op(call, "mul", _mix(call, 2, streams), block)
    if call.given(3):
        mix = call.cast(call[3], "f32")
        rank = len(mix.shape)
        turned = call.create("permute", [mix], perm=[*range(rank - 2), rank - 1, rank - 2])
        streams = call.standard("MatMul", [turned, streams])
    return call.cast(call.reshape(_op(call, "add", streams, added), list(call[0].shape)), call[0].dtype)


@contrib("LinearAttentionGate", "a dt_bias decay_scale b?")
def _attention_gate(call: Call) -> list[Any]:
    """decay_scale Softplus(a + dt_bias), and Sigmoid(b)."""
    decay = call.standard("Softplus", [_op(call, "add", call.cast(call[0], "f32"), call[1])])
    decay = call.cast(_op(call, "mul", decay, call[2]), call[0].dtype)
    if not call.given(3):
        return [decay]
    return [decay, call.cast(_op(call, "sigmoid", call.cast(call[3], "f32")), call[3].dtype)]


@contrib("EngramGate", "key query value key_norm_scale query_norm_scale conv_norm_scale?", epsilon=1e-5)
def _engram_gate(call: Call) -> list[Any]:
    """A value by a gate of how alike a key and a query are, for each connection; and that, normalized."""
    eps, dtype = float(call.attr("epsilon")), call[0].dtype
    (width,) = call.static_shape(call.ranked(0, 4, 4), "the features of a gate", slice(3, 4))
    key, query, value = (call.cast(call[k], "f32") for k in range(3))
    key, query = (
        _op(call, "mul", rms_normal(call, x, eps), call.cast(call[3 + k], "f32")) for k, x in enumerate((key, query))
    )
    dot = call.create("sum", [_op(call, "mul", key, query)], axes=[3], keepdim=True)
    dot = _op(call, "mul", dot, call.like(1 / math.sqrt(width), dot))
    size = _op(call, "sqrt", _op(call, "maximum", _op(call, "abs", dot), call.like(1e-6, dot)))
    gate = _op(call, "sigmoid", _op(call, "mul", _op(call, "sign", dot), size))
    batch, rows, _, last = key.shape
    y = _op(call, "mul", gate, call.reshape(value, [batch, rows, 1, last]))
    outputs = [call.cast(y, dtype)]
    if call.given(5):
        normal = rms_normal(call, y, eps)
        outputs.append(call.cast(_op(call, "mul", normal, call.cast(call[5], "f32")), dtype))
    return outputs


def chosen(call: Call, scores: Any, count: int) -> Any:
    """Whether a score is among the greatest of the last axis; of equal ones the first are."""
    axis, size = len(scores.shape) - 1, scores.shape[-1]
    _, picks = call.create_all("topk", [scores], {"k": count, "axis": axis, "largest": True, "sorted": True})
    own = call.reshape(call.cast(call.create("arange", [], end=size), picks.dtype), [size, 1])
    at = call.reshape(picks, [*picks.shape[:-1], 1, count])
    return call.create("any", [_op(call, "eq", own, at)], axes=[axis + 1], keepdim=False)


@contrib(
    "MoEGroupRouter",
    "logits expert_bias projection_weight?",
    unread="group_topk n_group router_sentinel top_k topk_group",
    group_topk=2,
    n_group=1,
    router_sentinel=-10000.0,
    top_k=SOME_INT,
    topk_group=1,
)
def _group_router(call: Call) -> list[Any]:
    """The logarithm of the sigmoid of each expert that is chosen, out of the best groups; else a number of its own."""
    if call.given(2):
        raise Unsupported("a router that projects")
    logits = call[0]
    (experts,) = call.static_shape(logits, "a router's experts", slice(len(logits.shape) - 1, len(logits.shape)))
    rows = product(logits.shape[:-1])
    own = _op(call, "sigmoid", call.reshape(call.cast(logits, "f32"), [rows, experts]))
    biased = _op(call, "add", own, call.cast(call[1], "f32"))
    if call.outputs_used() > 1:
        return [None, biased, own]
    groups, kept = int(call.attr("n_group")), int(call.attr("topk_group"))
    if groups < 1 or experts % groups:
        raise InvalidModel(f"{experts} experts in {groups} groups")
    scores, size = biased, experts // groups
    if groups > 1:
        apart = call.reshape(biased, [rows, groups, size])
        best, _ = call.create_all("topk", [apart], {"k": min(int(call.attr("group_topk")), size), "axis": 2})
        in_best = chosen(call, call.create("sum", [best], axes=[2], keepdim=False), kept)
        apart = _op(call, "where", call.reshape(in_best, [rows, groups, 1]), apart, call.like(-math.inf, apart))
        scores = call.reshape(apart, [rows, experts])
    floor = _op(call, "log", _op(call, "maximum", own, call.like(1e-20, own)))
    y = _op(
        call,
        "where",
        chosen(call, scores, int(call.attr("top_k"))),
        floor,
        call.like(call.attr("router_sentinel"), own),
    )
    return [call.cast(y, logits.dtype)]
