"""The best of several beams of words after each word: ONNX Runtime's BeamSearch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.pieces import part, places
from hetnn.importers.onnx.rules.declare import GRAPH, INT, SOME_GRAPH, SOME_INT, contrib
from hetnn.importers.onnx.rules.generation.decoders import Decoder, PairDecoder, PastDecoder
from hetnn.importers.onnx.rules.generation.scores import Scores
from hetnn.importers.onnx.rules.generation.words import MOST_BEAMS, Words
from hetnn.importers.onnx.rules.looping import late_loop

# The mark where no beam has ended, and the least of one that has: marks are f64, so that it is less than any of f32.
_NONE, _LEAST = float("-inf"), -1e300
# The score with which beams beside the first one of a prompt begin, so that not all choose the same word.
_LATER_BEAM = -1e9


_INPUTS = (
    "input_ids max_length min_length? num_beams num_return_sequences length_penalty? repetition_penalty? vocab_mask? "
    "prefix_vocab_mask? attention_mask? decoder_input_ids? logits_processor?"
)
_TOLD: dict[str, Any] = {
    "decoder": SOME_GRAPH,
    "init_decoder": GRAPH,
    "encoder": GRAPH,
    "eos_token_id": SOME_INT,
    "pad_token_id": SOME_INT,
    "decoder_start_token_id": -1,
    "no_repeat_ngram_size": 0,
    "early_stopping": 0,
    "vocab_size": -1,
}
_PAST, _PAIR, _SOUNDS = 0, 1, 2
# What a node of Whisper's names of its vocabulary.
_NAMED: dict[str, Any] = {
    f"{name}_token_id": INT
    for name in ("beginning_timestamp", "no_speech", "no_timestamps", "start_of_lm", "transcribe", "translate")
}


# Unread is what only some kinds of models have.
@contrib("BeamSearch", _INPUTS, unread="init_decoder encoder decoder_start_token_id", model_type=_PAST, **_TOLD)
def _beam_search(call: Call) -> list[Any]:
    batch, begun = call.shape(0, 2)
    ids, mask, kind = call[0], call.optional(9), int(call.attr("model_type"))
    if call.given(10):
        raise Unsupported("BeamSearch with decoder_input_ids, which ONNX Runtime does not look at")
    if kind == _PAIR:
        begin = _start(call, batch)
        words = _words(call, batch, 1)
        seen = _behind_padding(call, ids, words.pad) if mask is None else with_sizes(call, mask, list(ids.shape))
        return _Search(call, words, PairDecoder(call, words, begin, ids, [seen])).found(words.of_rows(begin))
    if kind != _PAST:
        raise InvalidModel(f"BeamSearch of model_type {kind}; there are {_PAST} and {_PAIR}")
    words = _words(call, batch, begun)
    ids, mask = words.of_rows(ids), None if mask is None else words.of_rows(mask)
    return _Search(call, words, PastDecoder(call, words, ids, mask)).found(ids)


@contrib(
    "WhisperBeamSearch",
    f"{_INPUTS} cross_qk_layer_head? extra_decoding_ids? temperature?",
    unread=" ".join(["init_decoder", "decoder_start_token_id", *_NAMED]),
    model_type=_SOUNDS,
    decoder_output_cross_qk=INT,
    **_NAMED,
    **_TOLD,
)
def _whisper(call: Call) -> list[Any]:
    batch = call.shape(0, 3)[0]
    told = call.known(11) if call.given(11) else np.zeros(1)
    if told is None or told.any():
        raise Unsupported("WhisperBeamSearch with a logits_processor, which keeps timestamps in order")
    if call.outputs_used() > 3 or call.attr("decoder_output_cross_qk"):
        raise Unsupported("WhisperBeamSearch with cross_qk or non_speech_probs")
    if call.attr("model_type") != _SOUNDS:
        raise InvalidModel(f"WhisperBeamSearch of model_type {call.attr('model_type')}, which must be {_SOUNDS}")
    begin = with_sizes(call, call[10], [batch, None]) if call.given(10) else _start(call, batch)
    words = _words(call, batch, begin.shape[1])
    return _Search(call, words, PairDecoder(call, words, begin, call[0], [])).found(words.of_rows(begin))


def _words(call: Call, batch: Size, begun: Size) -> Words:
    beams, wanted = call.size(3, "num_beams", 1, MOST_BEAMS), call.size(4, "num_return_sequences", 1, MOST_BEAMS)
    if isinstance(beams, int) and isinstance(wanted, int) and not 1 <= wanted <= beams <= MOST_BEAMS:
        raise InvalidModel(f"num_return_sequences {wanted} of num_beams {beams}, which may be {MOST_BEAMS}")
    return Words(call, batch, beams, begun, wanted)


def _start(call: Call, batch: Size) -> Any:
    """[batch, 1]: the word with which a decoder begins."""
    start = int(call.attr("decoder_start_token_id"))
    if start < 0:
        raise InvalidModel(
            f"{call.node.op_type} of an encoder and a decoder needs a decoder_start_token_id; got {start}"
        )
    return call.broadcast_to(call.constant([[start]], "i32"), [batch, 1])


def _behind_padding(call: Call, ids: Any, pad: int) -> Any:
    """1 from the first word on that is no padding."""
    is_word = call.cast(call.create("ne", [ids, call.constant(pad, "i32")]), "i32")
    return call.create("minimum", [call.create("cumsum", [is_word], axis=1), call.constant(1, "i32")])


@dataclass
class _State:
    """Rows of words and their scores [rows], the next word of each; and of each prompt the best that have ended.

    `kept` [batch, beams, most] in the order of `marks` [batch, beams], of which the first `count` [batch] are of beams
    that have ended; `done` [batch]: no beam of the prompt can become better.
    """

    ids: Any
    sums: Any
    word: Any
    kept: Any
    marks: Any
    count: Any
    done: Any

    def values(self) -> list[Any]:
        return [self.ids, self.sums, self.word, self.kept, self.marks, self.count, self.done]


class _Search:
    def __init__(self, call: Call, words: Words, decoder: Decoder) -> None:
        self._call, self._words, self._decoder = call, words, decoder
        self._scores = Scores(call, words, least=2, penalty=6, mask=7, first_mask=8, temperature=14)
        self._power = call.reshape(call[5], []) if call.given(5) else call.constant(1.0, "f32")
        self._stops_early = int(call.attr("early_stopping")) == 1

    def found(self, ids: Any) -> list[Any]:
        """The words [batch, wanted, most], their scores, and the scores of all words in each round."""
        call, words = self._call, self._words
        x, kept = self._decoder.first()
        state, sums = self._chosen(x, self._begun(ids), call.reshape(call.whole(words.begun), []), True)
        state, kept = self._moved(state, kept)

        def round_of(given: Sequence[Any]) -> list[Any]:
            number, _, *carried = given
            before = _State(*carried[:7])
            x, kept = self._decoder.next(before.ids, before.word, number, carried[7:])
            after, sums = self._chosen(x, before, words.count_in(number), False)
            after, kept = self._moved(after, kept)
            return [self._is_open(after), *after.values(), *kept, *([sums] if with_sums else [])]

        with_sums = call.outputs_used() > 2
        carried = [*state.values(), *kept]
        grows = [()] * 7 + [(self._decoder.grows,)] * len(kept)
        trips = call.reshape(call.whole(words.rounds), [])
        going = self._is_open(state)
        behind = late_loop(call, trips, going, carried, [{}] * len(carried), round_of, changing=grows)
        out = self._best(_State(*behind[:7]))
        return [*out, self._all_sums(sums, behind[-1])] if with_sums else out

    def _begun(self, ids: Any) -> _State:
        call, words = self._call, self._words
        first = call.create("eq", [places(call, words.beams, 2, 1), call.constant(0, "i64")])
        sums = call.create("where", [first, call.constant(0.0, "f32"), call.constant(_LATER_BEAM, "f32")])
        sums = call.reshape(call.broadcast_to(sums, [words.batch, words.beams]), [words.rows])

        def filled(value: float, dtype: str, *shape: Size) -> Any:
            return call.broadcast_to(call.reshape(call.constant(value, dtype), [1] * len(shape)), list(shape))

        return _State(
            words.continued(ids, words.pad),
            sums,
            None,
            filled(words.pad, "i32", words.batch, words.beams, words.most),
            filled(_NONE, "f64", words.batch, words.beams),
            filled(0, "i64", words.batch),
            filled(False, "bool", words.batch),
        )

    def _chosen(self, logits: Any, state: _State, count: Any, first: bool) -> tuple[_State, Any]:
        """The state behind one word more than `count`, its rows as they lie now; and the scores of all words."""
        call, words = self._call, self._words
        batch, beams = words.batch, words.beams
        x = call.create("log_softmax", [logits], axis=1)
        x = self._scores.changed(x, state.ids, count, first)
        sums = call.create("add", [x, call.reshape(state.sums, [words.rows, 1])])
        width = sums.shape[1]
        best, at = _ordered(call, call.reshape(sums, [batch, beams * width]), 2 * beams)
        size = call.reshape(call.whole(width), [])
        word = call.create("remainder", [at, size])
        row = call.create("add", [call.create("floor_divide", [at, size]), self._first_rows(beams)])
        at_end = call.create("eq", [word, call.constant(words.end, "i64")])
        after = self._with_ended(state, best, row, at_end, count)

        # The first ones that have not ended, of which there are as many as beams.
        rank = call.create("mul", [call.cast(at_end, "i64"), call.reshape(call.whole(2 * beams), [])])
        rank = call.create("add", [rank, places(call, 2 * beams, 2, 1)])
        picks = _ordered(call, rank, beams, largest=False)[1]
        done = call.reshape(state.done, [batch, 1])

        def picked(value: Any, otherwise: float) -> Any:
            chosen = call.create("gather_elements", [value, picks], axis=1)
            return call.reshape(call.create("where", [done, call.like(otherwise, value), chosen]), [words.rows])

        after.sums = picked(best, 0)
        after.word = call.cast(picked(word, words.pad), "i32")
        self._rows = picked(row, 0)  # of a prompt that is done, as in ONNX Runtime
        ids = call.create("gather", [state.ids, self._rows], axis=0)
        after.ids = words.with_next(ids, count, after.word)
        return after, sums

    def _first_rows(self, step: Size) -> Any:
        """[batch, 1]: where the rows of each prompt begin, of which it has so many."""
        call = self._call
        return call.create("mul", [places(call, self._words.batch, 2, 0), call.reshape(call.whole(step), [])])

    def _with_ended(self, state: _State, best: Any, row: Any, at_end: Any, count: Any) -> _State:
        """The beams that end now among those that have ended, and whether that is all."""
        call, words = self._call, self._words
        batch, beams = words.batch, words.beams
        is_open = call.create("logical_not", [call.reshape(state.done, [batch, 1])])
        ends = call.create("logical_and", [part(call, at_end, 0, beams, 1), is_open])
        marks = self._marks(part(call, best, 0, beams, 1), count)
        marks = call.create("where", [ends, marks, call.like(_NONE, marks)])
        ids = call.create("gather", [state.ids, part(call, row, 0, beams, 1)], axis=0)
        after = self._merged(state, ids, marks)
        more = call.create("sum", [call.cast(ends, "i64")], axes=[1])
        most = call.reshape(call.whole(beams), [])
        after.count = call.create("minimum", [call.create("add", [state.count, more]), most])
        full = call.create("eq", [after.count, most])
        if not self._stops_early:
            # ONNX Runtime looks at the scores of the prompt before, where there is one, instead of the better half.
            flat, shift = call.reshape(best, [batch * 2 * beams]), self._first_rows(beams)
            seen = call.create("gather", [flat, call.create("add", [shift, places(call, 2 * beams, 2, 1)])], axis=0)
            bound = self._marks(call.create("reduce_max", [seen], axes=[1]), count)
            worst = call.reshape(part(call, after.marks, beams - 1, beams, 1), [batch])
            full = call.create("logical_and", [full, call.create("ge", [worst, bound])])
        after.done = call.create("logical_or", [state.done, full])
        return after

    def _marks(self, sums: Any, count: Any) -> Any:
        """The sums of words by their number, to the power of the node's penalty."""
        call = self._call
        marks = call.create("div", [sums, call.create("pow", [call.cast(count, "f32"), self._power])])
        return call.create("maximum", [call.cast(marks, "f64"), call.constant(_LEAST, "f64")])

    def _merged(self, state: _State, ids: Any, marks: Any) -> _State:
        """The best of those that have ended and others [batch, beams, most], of equals those that were before."""
        call, words = self._call, self._words
        batch, beams = words.batch, words.beams
        both = call.create("concat", [state.marks, marks], axis=1)
        marks, order = _ordered(call, both, beams)
        every = call.reshape(call.create("concat", [state.kept, ids], axis=1), [batch * 2 * beams, words.most])
        at = call.create("add", [order, self._first_rows(2 * beams)])
        kept = call.create("gather", [every, at], axis=0)
        return _State(state.ids, state.sums, state.word, kept, marks, state.count, state.done)

    def _moved(self, state: _State, kept: Sequence[Any]) -> tuple[_State, list[Any]]:
        """What the decoder keeps, of the rows that go on; with one beam as it is."""
        if self._words.beams == 1:
            return state, list(kept)
        axis = self._decoder.rows_axis
        return state, [self._call.create("gather", [value, self._rows], axis=axis) for value in kept]

    def _is_open(self, state: _State) -> Any:
        call = self._call
        return call.create("logical_not", [call.create("all", [state.done], axes=[0])])

    def _best(self, state: _State) -> list[Any]:
        """The best of each prompt, its beams that have not ended among them."""
        call, words = self._call, self._words
        batch, beams = words.batch, words.beams
        marks = self._marks(state.sums, call.reshape(call.whole(words.most), []))
        marks = call.create(
            "where",
            [call.reshape(state.done, [batch, 1]), call.like(_NONE, marks), call.reshape(marks, [batch, beams])],
        )
        best = self._merged(state, call.reshape(state.ids, [batch, beams, words.most]), marks)
        return [part(call, value, 0, words.wanted, 1) for value in (best.kept, call.cast(best.marks, "f32"))]

    def _all_sums(self, first: Any, others: Any) -> Any:
        """[rounds, batch, beams, vocabulary]: zeros behind the last round."""
        call, words = self._call, self._words
        width, most = first.shape[1], words.most - words.begun
        others = with_sizes(call, others, [None, words.rows, width])
        both = call.create("concat", [call.reshape(first, [1, words.rows, width]), others], axis=0)
        rest = most - both.shape[0]
        both = call.create("pad", [both], padding=[0, 0, 0, rest, 0, 0])
        return call.reshape(both, [most, words.batch, words.beams, width])


def _ordered(call: Call, x: Any, count: Size, largest: bool = True) -> list[Any]:
    """The first so many columns in order, of equals those that stand before others, and where they stood."""
    found = call.create_all("sort", [x], {"axis": 1, "descending": largest})
    return [part(call, value, 0, count, 1) for value in found]
