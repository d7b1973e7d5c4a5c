"""Layers of newer language models that keep a state between runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size, divide, product
from hetnn.importers.lowering.solving import transposed
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.pieces import part
from hetnn.importers.onnx.rules.declare import SOME_INT, contrib


@contrib(
    "LinearAttention",
    "query key value past_state? decay? beta?",
    unread="chunk_size",
    chunk_size=64,
    kv_num_heads=SOME_INT,
    q_num_heads=SOME_INT,
    scale=0.0,
    state_window=0,
    update_rule="gated_delta",
)
def _linear_attention(call: Call) -> list[Any]:
    """The standard's; where there are more heads of keys than of queries, these serve several."""
    if call.attr("state_window"):
        raise Unsupported("states of several steps")
    queries, keys = int(call.attr("q_num_heads")), int(call.attr("kv_num_heads"))
    q, scale = call.ranked(0, 3, 3), float(call.attr("scale"))
    if queries < keys:
        batch, rows, width = q.shape
        size = divide(width, queries)
        apart = call.reshape(q, [batch, rows, queries, 1, size])
        many = call.broadcast_to(apart, [batch, rows, queries, keys // queries, size])
        q, queries = call.reshape(many, [batch, rows, product([keys, size])]), keys
    told = {"q_num_heads": queries, "kv_num_heads": keys, "scale": scale, "update_rule": call.attr("update_rule")}
    return call.standard_all("LinearAttention", [q, *call.inputs[1:]], told, 2)


@contrib(
    "CausalConvWithState",
    "input weight bias? past_state?",
    activation="none",
    channels_last=0,
    dilation=1,
    input_channel_offset=0,
    input_channels=0,
    ndim=1,
    state_channels_last=-1,
    state_length=0,
    state_update_capacity=0,
    state_window=0,
)
def _causal_conv(call: Call) -> list[Any]:
    """The standard's, of taps that may lie apart, along the second axis where channels are last."""
    strange = ("input_channel_offset", "input_channels", "state_length", "state_update_capacity", "state_window")
    if int(call.attr("ndim")) != 1 or any(call.attr(name) for name in strange):
        raise Unsupported("more than one axis, or a state of its own length")
    x, past, last = call[0], call.optional(3), bool(call.attr("channels_last"))
    weight = _spaced(call, call.ranked(1, 3, 3), int(call.attr("dilation")))
    shape = list(x.shape)

    def turned(value: Any) -> Any:
        flat = call.reshape(value, [*value.shape[:2], product(value.shape[2:])]) if len(value.shape) > 3 else value
        return call.create("permute", [flat], perm=[0, 2, 1])

    if last:
        x, past = turned(x), None if past is None else turned(past)
    activation = call.one_of("activation", {"none": "none", "silu": "silu", "swish": "silu"}, "none")
    outputs = call.standard_all(
        "CausalConvWithState", [x, weight, call.optional(2), past], {"activation": activation}, 2
    )
    if not last:
        return outputs
    return [call.reshape(turned(y), [*turned(y).shape[:2], *shape[2:]]) for y in outputs]


def _spaced(call: Call, weight: Any, gap: int) -> Any:
    """Filters with zeros between their taps."""
    if gap == 1:
        return weight
    channels, one, taps = call.static_shape(weight, "filters")
    wide = call.create("pad", [call.reshape(weight, [channels, one, taps, 1])], padding=[0] * 7 + [gap - 1], value=0.0)
    return part(call, call.reshape(wide, [channels, one, taps * gap]), 0, (taps - 1) * gap + 1)


_NORM_EPS = 1e-6


@contrib(
    "GatedDeltaNet",
    "query key? value? cu_seqlens? decay? beta? initial_state? a_log? dt_bias? capture_count? state_update_active?",
    unread="chunk_size gate_lower_bound beta_activation",
    beta_activation="none",
    chunk_size=64,
    gate_activation="none",
    gate_lower_bound=-5.0,
    qk_l2_norm=0,
    scale=0.0,
    state_update_capacity=0,
    update_rule="gated_delta",
)
def _gated_delta(call: Call) -> list[Any]:
    """The standard's LinearAttention; gates and norms may be computed here, and its state lies turned."""
    if call.given(3) or call.attr("state_update_capacity"):
        raise Unsupported("sequences whose lengths are values, or updates of states")
    state = call.optional(6)
    q, k, v = _heads(call, state)
    lead, dtype = list(q.shape[:-2]), call[0].dtype
    (heads, keys), (values, width) = (
        call.static_shape(q, "heads", slice(-2, None)),
        call.static_shape(v, "heads", slice(-2, None)),
    )
    if values % heads or (len(lead) == 1 and state is None):
        raise InvalidModel(f"{values} heads of values for {heads} of queries, or no initial_state that says the batch")
    batch = lead[0] if len(lead) == 2 else state.shape[0]
    rows = lead[1] if len(lead) == 2 else divide(lead[0], batch)

    def flat(x: Any, *more: Size) -> Any:
        return call.reshape(call.cast(x, "f32"), [batch, rows, *more])

    q, k = (flat(x, heads, keys) for x in (q, k))
    if call.attr("qk_l2_norm"):
        q, k = (_unit(call, x) for x in (q, k))
    q, k = (_each(call, x, values // heads) for x in (q, k))
    decay = None
    if call.given(4):
        own = flat(call[4], values, keys) if len(call[4].shape) > len(lead) + 1 else flat(call[4], values)
        decay = _decay(call, own)
        decay = call.reshape(decay, [batch, rows, product(decay.shape[2:])])
    beta = flat(call[5], values) if call.given(5) else None
    if beta is not None and call.one_of("beta_activation", {"none": "", "sigmoid": "sigmoid"}, "none"):
        beta = call.create("sigmoid", [beta])
    turned = (
        None
        if state is None
        else call.create("permute", [with_sizes(call, state, [batch, values, width, keys])], perm=[0, 1, 3, 2])
    )
    told = {
        "q_num_heads": values,
        "kv_num_heads": values,
        "scale": call.attr("scale"),
        "update_rule": call.attr("update_rule"),
    }
    inputs = [q, k, flat(v, values * width), turned, decay, beta]
    y, last = call.standard_all("LinearAttention", inputs, told, 2)
    return [call.cast(call.reshape(y, [*lead, values, width]), dtype), transposed(call, last)]


def _heads(call: Call, state: Any) -> list[Any]:
    """Queries, keys and values, each […, heads, size]; all of them may lie side by side."""
    if call.given(1) and call.given(2):
        return [call[0], call[1], call[2]]
    if state is None:
        raise InvalidModel("GatedDeltaNet of packed inputs needs initial_state, which is absent")
    packed = call[0]
    values, width, keys = call.static_shape(state, "a state", slice(1, 4))
    (whole,) = call.static_shape(packed, "packed inputs", slice(len(packed.shape) - 1, None))
    heads = (whole - values * width) // (2 * keys)
    ends, out = [0, heads * keys, 2 * heads * keys, whole], []
    for n, (count, size) in enumerate(((heads, keys), (heads, keys), (values, width))):
        out.append(call.reshape(part(call, packed, ends[n], ends[n + 1]), [*packed.shape[:-1], count, size]))
    return out


def _unit(call: Call, x: Any) -> Any:
    """Vectors of the last axis, of length 1."""
    square = call.create("sum", [call.create("mul", [x, x])], axes=[len(x.shape) - 1], keepdim=True)
    factor = call.create("rsqrt", [call.create("add", [square, call.like(_NORM_EPS, x)])])
    return call.create("mul", [x, factor])


def _each(call: Call, x: Any, times: int) -> Any:
    """[batch, rows, heads, size] with each head so many times, joined."""
    batch, rows, heads, size = x.shape
    many = call.broadcast_to(call.reshape(x, [batch, rows, heads, 1, size]), [batch, rows, heads, times, size])
    return call.reshape(many, [batch, rows, heads * times * size])


def _decay(call: Call, decay: Any) -> Any:
    """The logarithm of how much of a state stays, [batch, rows, heads] or with one of each key."""
    kinds = {"none": "", "softplus": "Softplus", "qwen": "Softplus", "sigmoid": "Sigmoid", "kda": "Sigmoid"}
    kind = call.one_of("gate_activation", kinds, "none")
    if not kind:
        return decay
    shape = [decay.shape[2], *[1] * (len(decay.shape) - 3)]
    rate = call.create("exp", [call.reshape(call[7], shape)])
    if call.given(8):
        bias = call[8]
        decay = call.create(
            "add", [decay, call.reshape(bias, shape if bias.shape == [decay.shape[2]] else list(decay.shape[2:]))]
        )
    if kind == "Softplus":
        return call.create("neg", [call.create("mul", [rate, call.standard(kind, [decay])])])
    gate = call.standard(kind, [call.create("mul", [rate, decay])])
    return call.create("mul", [gate, call.like(float(call.attr("gate_lower_bound")), gate)])


@dataclass(frozen=True)
class _Packed:
    """Rows of several sequences, one behind the other; in front of them, of each sequence, those that it holds."""

    call: Call
    batch: Size
    held: int
    rows: Size
    bounds: Any  # where sequences begin, and where the last one ends

    def row_of(self, own: Any, start: Any, place: Any) -> Any:
        """Which row a place of a sequence is: the sequence's number, its first row, and the place counted from it."""
        call = self.call
        end = call.create("mul", [call.create("add", [own, call.constant(1, "i64")]), call.constant(self.held, "i64")])
        inside = call.create("ge", [place, call.constant(0, "i64")])
        behind = call.create("add", [start, call.whole(self.batch * self.held)])
        return call.create("add", [place, call.create("where", [inside, behind, end])])

    def starts_and_ends(self) -> tuple[Any, Any]:
        bounds = self.call.cast(with_sizes(self.call, self.bounds, [self.batch + 1]), "i64")
        return part(self.call, bounds, 0, self.batch), part(self.call, bounds, 1, self.batch + 1)

    def before(self, by: int) -> Any:
        """For each row, which lies so many places before it in its sequence."""
        call = self.call
        starts, ends = self.starts_and_ends()
        at = call.create("arange", [], end=self.rows)
        own = call.cast(call.create("searchsorted", [ends, at], right=True), "i64")
        start = call.create("gather", [starts, own], axis=0)
        place = call.create("sub", [at, call.create("add", [start, call.constant(by, "i64")])])
        return self.row_of(own, start, place)

    def last(self) -> Any:
        """[batch, held]: the last rows of each sequence."""
        call = self.call
        starts, ends = (call.reshape(value, [self.batch, 1]) for value in self.starts_and_ends())
        numbers = call.reshape(call.create("arange", [], end=self.batch), [self.batch, 1])
        back = call.constant(np.arange(-self.held, 0).reshape(1, self.held), "i64")
        return self.row_of(numbers, starts, call.create("add", [call.create("sub", [ends, starts]), back]))


@contrib(
    "NGramHashMapping",
    "input_ids multipliers vocab_sizes past_ids? head_offsets? eos_token_id? segment_ids?",
    unread="pad_id reset_on_eos",
    max_ngram_size=SOME_INT,
    n_head_per_ngram=SOME_INT,
    pad_id=SOME_INT,
    reset_on_eos=0,
)
def _run_hashes(call: Call) -> list[Any]:
    """Hashes of the runs of words that end at each, by the lengths of runs and several heads of each."""
    ids, before = call.ranked(0, 2, 2), int(call.attr("max_ngram_size")) - 1
    batch, rows = ids.shape
    none = _no_word(call, 5)
    past = with_sizes(call, call[3], [batch, before]) if call.given(3) else call.broadcast_to(none, [batch, before])
    whole = call.create("concat", [past, ids], axis=1)

    def shifted(x: Any, by: int) -> Any:
        return part(call, x, before - by, before - by + rows, 1)

    starts = None
    if call.given(6):
        segments = with_sizes(call, call[6], [batch, rows])
        parts = [part(call, segments, 0, 1, 1), part(call, segments, 0, rows - 1, 1)]
        begun = call.create("ne", [segments, call.create("concat", parts, axis=1)])
        nowhere = call.broadcast_to(call.constant(False, "bool"), [batch, before])
        starts = call.create("concat", [nowhere, begun], axis=1)
    anew = call.given(5) and bool(call.attr("reset_on_eos"))
    y = _hashes(call, whole, shifted, none, call.optional(4), starts, anew)
    return [y, part(call, whole, rows, rows + before, 1)]


def _no_word(call: Call, index: int) -> Any:
    """What stands where no word is: the input that ends a text, or a number of the node."""
    return call.reshape(call[index], []) if call.given(index) else call.like(int(call.attr("pad_id")), call[0])


def _hashes(
    call: Call,
    whole: Any,
    shifted: Callable[[Any, int], Any],
    none: Any,
    offsets: Any,
    starts: Any = None,
    starts_anew: bool = False,
) -> Any:
    """`shifted`: what lies so many places before each word; no word counts that lies before one of `starts`.

    `starts_anew`: nor what lies before a word that ends a text.
    """
    ends = call.create("eq", [whole, none]) if starts_anew else None
    heads, cut, mix, mixes = int(call.attr("n_head_per_ngram")), None, None, []
    for by in range(int(call.attr("max_ngram_size"))):
        word = shifted(whole, by)
        for at, first in ((ends, by), (starts, by - 1)):
            if at is not None and by:
                found = shifted(at, first)
                cut = found if cut is None else call.create("logical_or", [cut, found])
        word = word if cut is None else call.create("where", [cut, none, word])
        word = call.create("mul", [word, call.reshape(part(call, call[1], by, by + 1), [])])
        mix = word if mix is None else call.create("bitwise_xor", [mix, word])
        if by:
            mixes.append(call.broadcast_to(call.reshape(mix, [*mix.shape, 1]), [*mix.shape, heads]))
    axis = len(mixes[0].shape) - 1
    y = call.joined(mixes, axis)
    y = call.create("remainder", [y, with_sizes(call, call[2], [y.shape[axis]])])
    return y if offsets is None else call.create("add", [y, with_sizes(call, offsets, [y.shape[axis]])])


@contrib(
    "VarlenCausalConvWithState",
    "input weight cumulative_sequence_length bias? initial_state capture_count? kernel_delta? previous_mask?",
    activation="none",
    delta_offset=0,
    dilation=1,
    group_size=1,
    state_update_capacity=0,
)
def _packed_conv(call: Call) -> list[Any]:
    """A causal convolution of rows of several sequences, one behind the other, each with a state of its own."""
    if call.attr("state_update_capacity") or call.given(6) or call.given(7):
        raise Unsupported("updates of states, or filters that change")
    x, state = call.ranked(0, 2, 2), call.ranked(4, 3, 3)
    rows, (channels, _, taps) = x.shape[0], call.static_shape(call.ranked(1, 3, 3), "filters")
    x, gap = with_sizes(call, x, [None, channels]), int(call.attr("dilation"))
    batch, held = state.shape[0], (taps - 1) * gap
    # The state's rows in front of all others: [batch · held + rows, channels].
    before = call.reshape(call.create("permute", [state], perm=[0, 2, 1]), [batch * held, channels])
    whole = call.create("concat", [before, x], axis=0) if held else x
    packed, y = _Packed(call, batch, held, rows, call[2]), None
    for tap in range(taps):
        taken = call.create("gather", [whole, packed.before((taps - 1 - tap) * gap)], axis=0)
        weight = call.reshape(part(call, call[1], tap, tap + 1), [channels])
        term = call.create("mul", [call.cast(taken, "f32"), call.cast(weight, "f32")])
        y = term if y is None else call.create("add", [y, term])
    y = call.create("add", [y, call.cast(call[3], "f32")]) if call.given(3) else y
    if call.one_of("activation", {"none": "", "silu": "silu", "swish": "silu"}, "none"):
        y = call.create("silu", [y])
    kept = call.create("gather", [whole, packed.last()], axis=0)
    return [call.cast(y, x.dtype), call.create("permute", [kept], perm=[0, 2, 1])]


@contrib(
    "VarlenNGramHashMapping",
    "input_ids multipliers vocab_sizes cumulative_sequence_length past_ids? head_offsets? eos_token_id? segment_ids? "
    "past_segment_ids? capture_count?",
    unread="pad_id reset_on_eos",
    max_ngram_size=SOME_INT,
    n_head_per_ngram=SOME_INT,
    pad_id=SOME_INT,
    reset_on_eos=0,
    state_update_capacity=0,
)
def _packed_hashes(call: Call) -> list[Any]:
    """As NGramHashMapping, of several sequences one behind the other."""
    if call.attr("state_update_capacity") or call.given(7):
        raise Unsupported("segments, or updates of states")
    ids, before = call.ranked(0, 1, 1), int(call.attr("max_ngram_size")) - 1
    batch = call[4].shape[0] if call.given(4) else call[3].shape[0] - 1
    none = _no_word(call, 6)
    past = with_sizes(call, call[4], [batch, before]) if call.given(4) else call.broadcast_to(none, [batch, before])
    whole = call.create("concat", [call.reshape(past, [batch * before]), ids], axis=0)
    packed = _Packed(call, batch, before, ids.shape[0], call[3])

    def shifted(x: Any, by: int) -> Any:
        return call.create("gather", [x, packed.before(by)], axis=0)

    anew = call.given(6) and bool(call.attr("reset_on_eos"))
    y = _hashes(call, whole, shifted, none, call.optional(5), starts_anew=anew)
    return [y, call.create("gather", [whole, packed.last()], axis=0)]
