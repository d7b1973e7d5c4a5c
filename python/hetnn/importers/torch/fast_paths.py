"""Formulas of torch's fused layers of transformers, which its modules call in inference and torch has no formula of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

_KEY_PADDING = 1  # a mask of [batch, keys]; others broadcast against [batch, heads, queries, keys]


def _scores_mask(mask: Tensor | None, mask_type: int | None) -> Tensor | None:
    """What is added to scores: masks are true where nothing is attended to."""
    if mask is None:
        return None
    if mask_type == _KEY_PADDING:
        mask = mask[:, None, None, :]
    return mask if mask.is_floating_point() else torch.zeros(mask.shape).masked_fill(mask, float("-inf"))


def _heads(x: Tensor, count: int) -> Tensor:
    return x.reshape(*x.shape[:2], count, -1).transpose(1, 2)


def _projected(
    query: Tensor, key: Tensor, value: Tensor, heads: int, weight: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value by their thirds of one weight, [batch, heads, tokens, features of a head]."""
    thirds = zip((query, key, value), weight.chunk(3), bias.chunk(3), strict=True)
    q, k, v = (_heads(F.linear(x, w, b), heads) for x, w, b in thirds)
    return q, k, v


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor]:
    q, k, v = _projected(query, key, value, num_head, qkv_weight, qkv_bias)
    bias = _scores_mask(mask, mask_type)
    if not need_weights:
        mixed = F.scaled_dot_product_attention(q, k, v, bias)
        weights = query.new_empty(0)
    else:
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        weights = (scores if bias is None else scores + bias).softmax(-1)
        mixed = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
    return F.linear(mixed.transpose(1, 2).flatten(2), proj_weight, proj_bias), weights


def _encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    def attend(x: Tensor) -> Tensor:
        projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return _attention(x, x, x, embed_dim, num_heads, *projections, mask, False, True, mask_type)[0]

    def feed(x: Tensor) -> Tensor:
        inner = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(inner) if use_gelu else F.relu(inner), ffn_weight_2, ffn_bias_2)

    x = src
    for part, weight, bias in ((attend, norm_weight_1, norm_bias_1), (feed, norm_weight_2, norm_bias_2)):
        if norm_first:
            x = x + part(F.layer_norm(x, (embed_dim,), weight, bias, eps))
        else:
            x = F.layer_norm(x + part(x), (embed_dim,), weight, bias, eps)
    return x


# By the overload, as torch's own tables of decompositions are.
FAST_PATHS: dict[Any, Callable[..., Any]] = {
    torch.ops.aten._native_multi_head_attention.default: _attention,
    torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer,
}
