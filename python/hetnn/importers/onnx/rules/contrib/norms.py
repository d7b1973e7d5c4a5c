"""Normalizations of a sum, as ONNX Runtime's optimizer joins them, and embeddings that are normalized."""

from __future__ import annotations

from typing import Any

from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.onnx.rules.by_row import wider
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.declare import INT, contrib


def _rms_norm(call: Call, x: Any, scale: Any, axis: int) -> list[Any]:
    """x scale / sqrt(mean(x²) + epsilon) over the axes from `axis` on, and that factor where it is asked for."""
    dtype = wider(x.dtype, scale.dtype)  # the result is of the factor's
    first = call.axis(axis, len(x.shape))
    x = with_sizes(call, x, [*[None] * first, *scale.shape])
    scale = with_sizes(call, scale, list(x.shape[first:]))
    eps, axes = float(call.attr("epsilon")), list(range(first, len(x.shape)))
    y = call.create("rms_norm", [call.cast(x, dtype), call.cast(scale, dtype)], axes=len(axes), eps=eps)
    y = call.cast(y, scale.dtype)
    if call.outputs_used() < 2:
        return [y]
    wide = call.cast(x, "f32") if x.dtype in ("f16", "bf16") else x
    mean = call.create("mean", [call.create("mul", [wide, wide])], axes=axes, keepdim=True)
    return [y, call.create("rsqrt", [call.create("add", [mean, call.like(eps, wide)])])]


@contrib("SimplifiedLayerNormalization", "X scale", domain="", axis=-1, epsilon=1e-5, stash_type=1)
def _simplified_layer_norm(call: Call) -> list[Any]:
    return _rms_norm(call, call[0], call[1], int(call.attr("axis")))


def _joined(call: Call, bias: Any) -> Any:
    """The input, what was skipped and a bias."""
    both = call.create("add", [call[0], call[1]])
    return both if bias is None else call.create("add", [both, bias])


@contrib("SkipLayerNormalization", "input skip gamma beta? bias?", epsilon=1e-12)
def _skip_layer_norm(call: Call) -> list[Any]:
    x = _joined(call, call.optional(4))
    found = call.standard_all(
        "LayerNormalization",
        [x, call[2], call.optional(3)],
        {"axis": -1, "epsilon": call.attr("epsilon")},
        min(call.outputs_used(), 3),
    )
    return [*found, *[None] * (3 - len(found)), x]


@contrib("SkipSimplifiedLayerNormalization", "input skip gamma bias?", epsilon=1e-12)
def _skip_rms_norm(call: Call) -> list[Any]:
    x = _joined(call, call.optional(3))
    y, *factor = _rms_norm(call, x, call[2], -1)
    return [y, None, *(factor or [None]), x]


@contrib(
    "EmbedLayerNormalization",
    "input_ids segment_ids? word_embedding position_embedding segment_embedding? gamma beta mask? position_ids?",
    unread="mask_index_type",
    epsilon=1e-12,
    mask_index_type=INT,
)
def _embed_layer_norm(call: Call) -> list[Any]:
    tables = [call.optional(2 + k) for k in range(5)]
    return embedded(call, tables, call.optional(7), call.optional(8))


def embedded(call: Call, tables: list[Any], mask: Any, positions: Any) -> list[Any]:
    """LayerNormalization of the sum of a word's, its place's and its segment's embeddings; and how many words count.

    `tables` are those of words, places and segments, then the factors and the biases.
    """
    batch, length = call.shape(0, 2)
    x = call.create("gather", [tables[0], call[0]], axis=0)
    if positions is not None:
        placed = call.create("gather", [tables[1], positions], axis=0)
    else:
        placed = call.create("slice", [tables[1]], axis=0, start=0, end=length, inside=True)
    x = call.create("add", [x, placed])
    if call.given(1):
        x = call.create("add", [x, call.create("gather", [tables[2], call[1]], axis=0)])
    y = call.standard("LayerNormalization", [x, *tables[3:]], axis=-1, epsilon=call.attr("epsilon"))
    if mask is not None:
        is_word = call.create("eq", [mask, call.constant(1, mask.dtype)])
        count = call.cast(call.create("sum", [call.cast(is_word, "i32")], axes=[1], keepdim=False), "i32")
    else:
        count = call.broadcast_to(call.constant([0], "i32"), [batch])
    return [y, count, x]
