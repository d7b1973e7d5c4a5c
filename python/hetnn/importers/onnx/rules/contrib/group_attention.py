"""Attention of groups of query heads that share a head of keys, with a cache of what was seen before."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size, divide
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.attention import (
    added_where_not,
    bias_of_scores,
    heads_of,
    joined_heads,
    scores,
    weighed,
)
from hetnn.importers.onnx.rules.contrib.cache import CacheRows, Window, cached, coding, put, step_of
from hetnn.importers.onnx.rules.contrib.pieces import part, places, total
from hetnn.importers.onnx.rules.contrib.rotary import of_places, rotated
from hetnn.importers.onnx.rules.declare import FLOAT, INT, SOME_INT, contrib


def _positions(call: Call, given: Any, step: CacheRows, batch: Size, rows: Size) -> Any:
    """The places of rows, [batch, rows]. Where nothing was before, only the first number that is given counts."""
    first = call.reshape(step.before, [step.before.shape[0], 1])
    counted = call.broadcast_to(places(call, rows, 2, 1, first), [batch, rows])
    if given is None:
        return counted
    given = with_sizes(call, call.cast(given, "i64"), [batch, rows])
    start = part(call, part(call, given, 0, 1, 0), 0, 1, 1)
    return call.create("where", [step.is_first, call.create("add", [counted, start]), given])


def repeated(call: Call, x: Any, times: int) -> Any:
    """[batch, heads, rows, size] with each head so many times."""
    batch, heads, rows, size = x.shape
    if times == 1:
        return x
    many = call.broadcast_to(call.reshape(x, [batch, heads, 1, rows, size]), [batch, heads, times, rows, size])
    return call.reshape(many, [batch, heads * times, rows, size])


def queries_keys_values(call: Call, heads: int, groups: int) -> list[Any]:
    """[batch, heads, rows, size] of each; without keys and values all three lie side by side in the first input."""
    batch, _, width = call.shape(0, 3)
    if call.given(1) and call.given(2):
        size = divide(width, heads)
        keys = [with_sizes(call, call[k], [batch, None, size * groups]) for k in (1, 2)]
        return [heads_of(call, x, n) for x, n in zip((call[0], *keys), (heads, groups, groups), strict=True)]
    size = divide(width, heads + 2 * groups)
    ends = [0, *(size * (heads + n * groups) for n in range(3))]
    return [heads_of(call, part(call, call[0], ends[n], ends[n + 1]), (heads, groups, groups)[n]) for n in range(3)]


def turned(call: Call, q: Any, k: Any, cos: int, at: Any) -> list[Any]:
    """Queries and keys, rotated as far as the node says; which input has the cosines, the sines lie behind."""
    if not call.attr("do_rotary"):
        return [q, k]
    tables = [of_places(call, call[index], at) for index in (cos, cos + 1)]
    return [rotated(call, x, *tables) for x in (q, k)]


@contrib(
    "GroupQueryAttention",
    "query key? value? past_key? past_value? seqlens_k total_sequence_length cos_cache? sin_cache? position_ids? "
    "attention_bias? head_sink? k_scale? v_scale? q_norm_weight? k_norm_weight? query_seqlens?",
    unread="k_norm_epsilon q_norm_epsilon qk_norm_epsilon kv_cache_bit_width rotary_interleaved qk_output",
    num_heads=SOME_INT,
    kv_num_heads=SOME_INT,
    causal=1,
    do_rotary=INT,
    k_norm_epsilon=FLOAT,
    k_quant_type="NONE",
    kv_cache_bit_width=INT,
    local_window_size=-1,
    q_norm_epsilon=FLOAT,
    qk_norm_epsilon=1e-6,
    qk_output=0,
    rotary_interleaved=INT,
    scale=FLOAT,
    sliding_window_cache=0,
    smooth_softmax=-1,
    softcap=FLOAT,
    v_quant_type="NONE",
)
def _group_query_attention(call: Call) -> list[Any]:
    heads, groups = int(call.attr("num_heads")), int(call.attr("kv_num_heads"))
    if groups < 1 or heads % groups:
        raise InvalidModel(f"{heads} heads of queries in groups for {groups} heads of keys")
    q, k, v = queries_keys_values(call, heads, groups)
    if call.given(14):
        q, k = (with_sizes(call, x, [None, None, None, call[14 + n].shape[0]]) for n, x in enumerate((q, k)))
        q, k = (call.create("rms_norm", [x, call[14 + n]], eps=_eps(call, n)) for n, x in enumerate((q, k)))
    batch, rows = q.shape[0], q.shape[2]
    ends = with_sizes(call, call.reshape(call[5], [call[5].shape[0]]), [batch])
    ends = call.create("add", [call.cast(ends, "i64"), call.constant(1, "i64")])
    step = step_of(call, ends, call.size(6, "total_sequence_length", 1), rows, call.optional(16))
    q, k = turned(call, q, k, 7, _positions(call, call.optional(9), step, batch, rows))
    past = [call.optional(3 + n) for n in range(2)]
    codings = [
        coding(call, call.attr(f"{kind}_quant_type"), call.optional(12 + n), past[n], groups, q.shape[3])
        for n, kind in enumerate("kv")
    ]
    new = [code.encoded(x) for code, x in zip(codings, (k, v), strict=True)]
    bias = call.optional(10)
    if call.attr("sliding_window_cache"):
        if bias is not None or any(cache is None for cache in past):
            raise Unsupported("a cache that holds a window, with a bias of scores or without what was before")
        window = Window(call, step, past[0].shape[2], int(call.attr("local_window_size")), rows)
        past = [
            with_sizes(call, cache, [batch, groups, window.room, x.shape[3]])
            for cache, x in zip(past, new, strict=True)
        ]
        kept_rows = [call.create("concat", [cache, x], axis=2) for cache, x in zip(past, new, strict=True)]
        present = [window.next(x) for x in kept_rows]
        at, there = window.stands()
    else:
        present = [cached(call, cache, x, step) for cache, x in zip(past, new, strict=True)]
        kept_rows = [part(call, x, 0, step.keys, 2) for x in present]
        if bias is not None:
            kept_rows = [with_sizes(call, x, [None, None, bias.shape[3], None]) for x in kept_rows]
            bias = bias_of_scores(call, 10, q, kept_rows[0].shape[2])
        at = places(call, kept_rows[0].shape[2], 4, 3)
        there = call.create("lt", [at, step.ends])
    k, v = (
        repeated(call, code.decoded(x, q.dtype), heads // groups) for code, x in zip(codings, kept_rows, strict=True)
    )
    kept = _kept(call, step, rows, at, there)
    y, weights = _weighed(call, q, k, v, kept, total(call, bias, added_where_not(call, kept, -math.inf, q)))
    return [joined_heads(call, y), *present, weights]


def _eps(call: Call, index: int) -> float:
    own = call.attr(("q_norm_epsilon", "k_norm_epsilon")[index])
    return float(call.attr("qk_norm_epsilon") if own is None else own)


def _kept(call: Call, step: CacheRows, rows: Size, at: Any, there: Any) -> Any:
    """Which keys each query attends to; where each key stands, and whether it is one."""
    own = places(call, rows, 4, 2, step.before)
    kept = [there]
    if call.attr("causal"):
        kept.append(call.create("le", [at, own]))
    window = int(call.attr("local_window_size"))
    if window > 0:
        kept.append(call.create("gt", [at, call.create("sub", [own, call.constant(window, "i64")])]))
    return call.folded("logical_and", kept)


def _weighed(call: Call, q: Any, k: Any, v: Any, kept: Any, added: Any) -> tuple[Any, Any]:
    """Attention, perhaps with scores below a cap and a weight of each head for nothing; and scores if asked for."""
    sink = call.optional(11)
    if sink is None and int(call.attr("smooth_softmax")) == 1:
        sink = call.like(0, q)
    batch, heads, rows, _ = q.shape
    keys, cap = k.shape[2], float(call.attr("softcap") or 0)
    shown = int(call.attr("qk_output")) if call.outputs_used() > 3 else 0
    if not cap and not shown:
        if sink is not None:  # is a key that is 0, of a value that is 0
            k, v = (call.create("pad", [x], padding=[0, 0, 0, 0, 0, 0, 1, 0], value=0.0) for x in (k, v))
            added = call.create("concat", _with_sink(call, added, sink, [batch, heads, rows], keys), axis=3)
        return weighed(call, q, k, v, added), None
    own = scores(call, q, k, None)
    if cap:
        own = call.create("tanh", [call.create("div", [own, call.like(cap, q)])])
        own = call.create("mul", [own, call.like(cap, q)])
    own = with_sizes(call, own, [None, None, None, keys])
    masked = call.create("add", [own, added])
    whole = [masked] if sink is None else _with_sink(call, masked, sink, [batch, heads, rows], keys)
    whole = call.create("softmax", [call.joined(whole, 3)], axis=3)
    weights = part(call, whole, 0, keys, 3)
    y = call.create("matmul", [weights, v])
    if shown == 1:
        return y, call.create("where", [kept, masked, call.like(0, q)])
    return y, weights if shown else None


def _with_sink(call: Call, values: Any, sink: Any, shape: list[Size], keys: Size) -> list[Any]:
    """Scores, and a column behind them of each head's own weight."""
    own = call.cast(sink, values.dtype)
    own = call.reshape(own, [1, sink.shape[0], 1, 1] if sink.shape else [1, 1, 1, 1])
    return [call.broadcast_to(values, [*shape, keys]), call.broadcast_to(own, [*shape, 1])]


@contrib(
    "SparseAttention",
    "query key? value? past_key past_value block_row_indices block_col_indices total_sequence_length "
    "key_total_sequence_lengths cos_cache? sin_cache?",
    unread="rotary_interleaved",
    num_heads=SOME_INT,
    kv_num_heads=SOME_INT,
    do_rotary=INT,
    rotary_interleaved=INT,
    scale=FLOAT,
    sparse_block_size=SOME_INT,
)
def _sparse_attention(call: Call) -> list[Any]:
    """As GroupQueryAttention, of the blocks of keys that a layout names for a block of queries."""
    heads, groups = int(call.attr("num_heads")), int(call.attr("kv_num_heads"))
    if groups < 1 or heads % groups:
        raise InvalidModel(f"{heads} heads of queries in groups for {groups} heads of keys")
    q, k, v = queries_keys_values(call, heads, groups)
    batch, rows = q.shape[0], q.shape[2]
    step = step_of(call, with_sizes(call, call[8], [batch]), call.size(7, "total_sequence_length", 1), rows)
    q, k = turned(call, q, k, 9, _positions(call, None, step, batch, rows))
    present = [
        put(call, with_sizes(call, call[3 + n], [batch, groups, None, x.shape[3]]), x, step)
        for n, x in enumerate((k, v))
    ]
    k, v = (repeated(call, part(call, x, 0, step.keys, 2), heads // groups) for x in present)
    at = places(call, step.keys, 4, 3)
    own = places(call, rows, 4, 2, step.before)
    there = call.create("logical_and", [call.create("lt", [at, step.ends]), call.create("le", [at, own])])
    kept = call.create("logical_and", [_in_blocks(call, step, batch, rows, heads), there])
    y = weighed(call, q, k, v, added_where_not(call, kept, -math.inf, q))
    return [joined_heads(call, y), *present]


def _in_blocks(call: Call, step: CacheRows, batch: Size, rows: Size, heads: int) -> Any:
    """Whether a head's layout has the block of a query and a key; heads take the layouts in turn."""
    starts, columns = call.known(5), call.known(6)
    if starts is None or columns is None:
        raise Unsupported("blocks that are computed when the model runs")
    layouts, blocks = starts.shape[0], starts.shape[1] - 1
    table = np.zeros((layouts, blocks, blocks), bool)
    for layout, row in np.ndindex(layouts, blocks):
        table[layout, row, columns[layout, starts[layout, row] : starts[layout, row + 1]]] = True
    size = call.constant(int(call.attr("sparse_block_size")), "i64")
    own = call.create("floor_divide", [places(call, rows, 4, 2, step.before), size])
    at = call.create("floor_divide", [places(call, step.keys, 4, 3), size])
    place = call.create("add", [call.create("mul", [own, call.constant(blocks, "i64")]), at])
    place = call.reshape(call.broadcast_to(place, [batch, 1, rows, step.keys]), [batch, rows, step.keys])
    flat = call.constant(table.reshape(layouts, -1), "bool")
    found = call.create("permute", [call.create("gather", [flat, place], axis=1)], perm=[1, 0, 2, 3])
    found = call.reshape(found, [batch, 1, layouts, rows, step.keys])
    many = call.broadcast_to(found, [batch, heads // layouts, layouts, rows, step.keys])
    return call.reshape(many, [batch, heads, rows, step.keys])
