"""Attention as ONNX Runtime has it: projections, heads, masks and what was seen before in one node."""

from __future__ import annotations

import math
from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size, divide
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.pieces import part, places, total
from hetnn.importers.onnx.rules.declare import FLOAT, INT, INTS, SOME_INT, contrib

_MASKED = -10000.0


def heads_of(call: Call, x: Any, heads: int) -> Any:
    """[batch, rows, heads · size] as [batch, heads, rows, size]."""
    batch, rows, width = x.shape
    apart = call.reshape(x, [batch, rows, heads, divide(width, heads)])
    return call.create("permute", [apart], perm=[0, 2, 1, 3])


def joined_heads(call: Call, y: Any) -> Any:
    """The way back."""
    batch, heads, rows, size = y.shape
    return call.reshape(call.create("permute", [y], perm=[0, 2, 1, 3]), [batch, rows, heads * size])


def added_where_not(call: Call, kept: Any, number: float, like: Any) -> Any:
    """What to add to scores so that only those that are kept count."""
    return call.create("where", [kept, call.like(0, like), call.like(number, like)])


def attended(call: Call, q: Any, k: Any, v: Any, added: Any) -> Any:
    """softmax(q kᵀ scale + added) v of all heads, joined."""
    return joined_heads(call, weighed(call, q, k, v, added))


def weighed(call: Call, q: Any, k: Any, v: Any, added: Any) -> Any:
    """Attention of q [batch,heads,queries,size] to k and v [batch,heads,keys,size]; `added` to the scores, or None."""
    k = with_sizes(call, k, [q.shape[0], None, None, q.shape[3]])
    v = with_sizes(call, v, [q.shape[0], None, k.shape[2], None])
    inputs = [q, k, v] if added is None else [q, k, v, added]
    return call.create("scaled_dot_product_attention", inputs, scale=float(call.attr("scale") or 0))


def causal(call: Call, q: Any, k: Any, first: Any, number: float) -> Any:
    """What to add to the scores of keys behind a query, the first of which is the key `first`."""
    rows, keys = q.shape[2], k.shape[2]
    kept = call.create("le", [places(call, keys, 4, 3), places(call, rows, 4, 2, first)])
    return added_where_not(call, kept, number, q)


def _masked(call: Call, index: int, q: Any, keys: Size) -> Any:
    """What a mask, or the ends and perhaps the starts of sequences, add to scores."""
    if not call.given(index):
        return None
    mask, batch = call[index], q.shape[0]
    if len(mask.shape) == 1:
        kept = _within(call, mask, batch, keys)
    elif len(mask.shape) in (2, 3):
        mask = with_sizes(call, mask, [batch, keys] if len(mask.shape) == 2 else [batch, q.shape[2], keys])
        shape = [batch, 1, *([1] if len(mask.shape) == 2 else []), *mask.shape[1:]]
        kept = call.create("gt", [call.reshape(mask, shape), call.constant(0, mask.dtype)])
    else:
        raise Unsupported(f"a mask of rank {len(mask.shape)}")
    return added_where_not(call, kept, float(call.attr("mask_filter_value", _MASKED)), q)


def _within(call: Call, mask: Any, batch: Size, keys: Size) -> Any:
    """Whether a key lies before the end of its sequence, and behind its start where that is told."""
    at = call.cast(places(call, keys, 4, 3), mask.dtype)
    if mask.shape[0] == 2 * batch:
        starts = call.reshape(part(call, mask, batch, 2 * batch), [batch, 1, 1, 1])
        begun = call.create("ge", [at, starts])
        mask = part(call, mask, 0, batch)
    elif isinstance(batch, int) and mask.shape[0] == 3 * batch + 2:
        mask, begun = part(call, mask, 0, batch), None
    else:
        mask, begun = with_sizes(call, mask, [batch]), None
    inside = call.create("lt", [at, call.reshape(mask, [batch, 1, 1, 1])])
    return inside if begun is None else call.create("logical_and", [inside, begun])


def bias_of_scores(call: Call, index: int, q: Any, keys: Size) -> Any:
    """An input that is added to scores, of the sizes that these have, or of ones."""
    if not call.given(index):
        return None
    bias = call[index]
    batch, heads, rows, _ = q.shape
    wanted = [batch, heads, rows, keys]
    return with_sizes(call, bias, [None if own == 1 else size for own, size in zip(bias.shape, wanted, strict=True)])


def _no(call: Call, *names: str) -> None:
    for name in names:
        if call.attr(name):
            raise Unsupported(f"{name} = {call.attr(name)}")


@contrib(
    "Attention",
    "input weights bias? mask_index? past? attention_bias? past_sequence_length?",
    unread="mask_filter_value",
    num_heads=SOME_INT,
    do_rotary=INT,
    mask_filter_value=FLOAT,
    past_present_share_buffer=INT,
    qkv_hidden_sizes=INTS,
    rotary_embedding_dim=INT,
    scale=FLOAT,
    unidirectional=0,
)
def _attention(call: Call) -> list[Any]:
    """Queries, keys and values by one product, what was seen before in front of them, then attention."""
    y = call.standard("MatMul", [call[0], call[1]])
    return attention_of(call, y if not call.given(2) else call.create("add", [y, call[2]]), mask=3, past=4, bias=5)


def attention_of(call: Call, y: Any, mask: int, past: int, bias: int = 0) -> list[Any]:
    """Attention of queries, keys and values that lie side by side; which inputs are the others."""
    _no(call, "do_rotary", "past_present_share_buffer")
    width, heads = y.shape[2], int(call.attr("num_heads"))
    third = divide(width, 3)
    sizes = call.attr("qkv_hidden_sizes") or [third] * 3
    ends = [0, sizes[0], sizes[0] + sizes[1], width]
    q, k, v = (heads_of(call, part(call, y, ends[n], ends[n + 1]), heads) for n in range(3))
    first: Size = 0
    if call.given(past):
        seen = with_sizes(call, call[past], [2, q.shape[0], heads, None, q.shape[3]])
        first = seen.shape[3]
        k, v = (
            _behind(call, call.reshape(part(call, seen, n, n + 1, 0), list(seen.shape[1:])), x)
            for n, x in enumerate((k, v))
        )
    added = total(
        call,
        _masked(call, mask, q, k.shape[2]),
        causal(call, q, k, call.whole(first), -math.inf) if call.attr("unidirectional") else None,
        bias_of_scores(call, bias, q, k.shape[2]) if bias else None,
    )
    present = call.stacked([k, v], 0) if call.outputs_used() > 1 else None
    return [attended(call, q, k, v, added), present]


def _behind(call: Call, past: Any, new: Any) -> Any:
    """[batch, heads, rows, size] behind rows that were there before."""
    past = with_sizes(call, past, [new.shape[0], new.shape[1], None, new.shape[3]])
    return call.create("concat", [past, new], axis=2)


def _written(call: Call, cache: Any, new: Any, first: Size) -> tuple[Any, Any]:
    """A cache with new rows from the row `first` on, and its rows up to their end."""
    batch, heads, rows, size = new.shape
    cache = with_sizes(call, cache, [batch, heads, None, size])
    at = call.broadcast_to(call.reshape(call.whole(first), [1]), [batch])
    cache = call.create("tensor_scatter", [cache, new, at], axis=2)
    return cache, part(call, cache, 0, first + rows, 2)


def _with_past(call: Call, k: Any, v: Any, past: int, length: int) -> tuple[Any, Any, Size, list[Any]]:
    """Keys and values with those before, how many these are, and what is kept for the next run."""
    if not call.given(past):
        return k, v, 0, [k, v]
    if not call.given(length):
        k, v = _behind(call, call[past], k), _behind(call, call[past + 1], v)
        return k, v, call[past].shape[2], [k, v]
    first = call.size(length, "past_sequence_length")
    (keys, k), (values, v) = (_written(call, call[past + n], x, first) for n, x in enumerate((k, v)))
    return k, v, first, [keys, values]


@contrib(
    "MultiHeadAttention",
    "query key? value? bias? key_padding_mask? attention_bias? past_key? past_value? past_sequence_length? "
    "cache_indirection?",
    unread="mask_filter_value",
    num_heads=SOME_INT,
    mask_filter_value=FLOAT,
    scale=FLOAT,
    unidirectional=0,
)
def _multi_head_attention(call: Call) -> list[Any]:
    """Attention of queries, keys and values that were computed before."""
    return _of_heads(call, bias=3, mask=4, added=5, past=6, length=8, beams=9)


@contrib(
    "DecoderMaskedMultiHeadAttention",
    "query key? value? mask_index? attention_bias? past_key? past_value? past_sequence_length? beam_width? "
    "cache_indirection? bias?",
    unread="mask_filter_value output_qk",
    num_heads=SOME_INT,
    mask_filter_value=FLOAT,
    output_qk=INT,
    past_present_share_buffer=INT,
    scale=FLOAT,
)
def _decoder_attention(call: Call) -> list[Any]:
    """The same of one query a sequence."""
    return _of_heads(call, bias=10, mask=3, added=4, past=5, length=7, beams=9)


def _of_heads(call: Call, bias: int, mask: int, added: int, past: int, length: int, beams: int) -> list[Any]:
    """Attention of heads; which inputs are what."""
    if call.given(beams):
        raise Unsupported("cache_indirection: beams that share a cache")
    q, k, v = _apart(call, int(call.attr("num_heads")), bias)
    k, v, first, kept = _with_past(call, k, v, past, length)
    for index in (mask, added):
        if call.given(index) and len(call[index].shape) > 1:
            k, v = (with_sizes(call, x, [None, None, call[index].shape[-1], None]) for x in (k, v))
    added_scores = total(
        call,
        _masked(call, mask, q, k.shape[2]),
        causal(call, q, k, call.whole(first), -math.inf) if call.attr("unidirectional") else None,
        bias_of_scores(call, added, q, k.shape[2]),
    )
    outputs = [attended(call, q, k, v, added_scores), *kept]
    return [*outputs, scores(call, q, k, added_scores)] if call.outputs_used() > 3 else outputs


def scores(call: Call, q: Any, k: Any, added: Any) -> Any:
    """q kᵀ scale + added"""
    scale = call.attr("scale") or 0
    if not scale:
        (size,) = call.static_shape(q, "the scores of heads", slice(3, 4))
        scale = 1 / math.sqrt(size)
    product = call.create("matmul", [q, call.create("permute", [k], perm=[0, 1, 3, 2])])
    return total(call, call.create("mul", [product, call.like(float(scale), q)]), added)


def _apart(call: Call, heads: int, index: int) -> list[Any]:
    """Queries, keys and values, each [batch, heads, rows, size], with their biases."""
    batch, _, width = call.shape(0, 3)
    if not call.given(1) or not call.given(2):
        raise Unsupported("queries, keys and values packed into one input")
    bias, size, ends = call.optional(index), divide(width, heads), [0, width, 2 * width]
    out = []
    for n in range(3):
        x = call[n]
        if len(x.shape) == 4:  # as it is kept between runs
            out.append(with_sizes(call, x, [batch, heads, None, size if n == 1 else None]))
            continue
        x = with_sizes(call, x, [batch, None, width if n == 1 else None])
        if bias is not None:
            x = call.create("add", [x, part(call, bias, ends[n], ends[n] + x.shape[2])])
        out.append(heads_of(call, x, heads))
    return out
