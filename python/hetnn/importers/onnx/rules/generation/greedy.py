"""The word of the highest score after each word: ONNX Runtime's GreedySearch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from hetnn.errors import Unsupported
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.declare import GRAPH, SOME_GRAPH, SOME_INT, contrib
from hetnn.importers.onnx.rules.generation.decoders import PastDecoder
from hetnn.importers.onnx.rules.generation.scores import Scores
from hetnn.importers.onnx.rules.generation.words import Words
from hetnn.importers.onnx.rules.looping import late_loop

# What a node of a search without beams tells.
TOLD: dict[str, Any] = {
    "decoder": SOME_GRAPH,
    "init_decoder": GRAPH,
    "encoder": GRAPH,
    "model_type": 0,
    "eos_token_id": SOME_INT,
    "pad_token_id": SOME_INT,
    "decoder_start_token_id": -1,
    "no_repeat_ngram_size": 0,
    "vocab_size": -1,
}


@contrib(
    "GreedySearch",
    "input_ids max_length min_length? repetition_penalty? vocab_mask? prefix_vocab_mask? attention_mask?",
    unread="encoder decoder_start_token_id",  # of an encoder and a decoder
    **TOLD,
)
def _greedy(call: Call) -> Any:
    return searched(call, _Best(call))


class Choice(Protocol):
    """How the next word is chosen, and the state of that."""

    def begun(self) -> Any:
        """The state before the first word."""

    def chosen(self, x: Any, state: Any) -> tuple[Any, Any]:
        """A word [rows] in i64 for each row of scores [rows, vocabulary], and the next state."""


class _Best:
    """The word of the highest score."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def begun(self) -> Any:
        """None is needed."""
        return self._call.constant(0, "i64")

    def chosen(self, x: Any, state: Any) -> tuple[Any, Any]:
        """Of equals the first one."""
        return self._call.create("argmax", [x], axis=1), state


def searched(call: Call, choice: Choice) -> Any:
    """The words [batch, max_length] of a node that goes on with one word after another."""
    if call.attr("model_type"):
        raise Unsupported(f"{call.node.op_type} of an encoder and a decoder (model_type {call.attr('model_type')})")
    batch, begun = call.shape(0, 2)
    words = Words(call, batch, 1, begun)
    decoder = PastDecoder(call, words, call[0], call.optional(6))
    scores = Scores(call, words, least=2, penalty=3, mask=4, first_mask=5)

    def chosen(x: Any, ids: Any, ended: Any, state: Any, count: Any, first: bool) -> list[Any]:
        """The rows with one word more, that word, whether they have ended, and the state of the choice."""
        best, state = choice.chosen(scores.changed(x, ids, count, first), state)
        best = call.cast(best, "i32")
        at_end = call.create("eq", [best, call.constant(words.end, "i32")])
        ended = at_end if ended is None else call.create("logical_or", [ended, at_end])
        word = call.create("where", [ended, call.constant(words.pad, "i32"), best])
        return [words.with_next(ids, count, word), word, ended, state]

    def is_open(ended: Any) -> Any:
        return call.create("logical_not", [call.create("all", [ended], axes=[0])])

    def round_of(given: Sequence[Any]) -> list[Any]:
        number, _, ids, word, ended, state, *kept = given
        x, kept = decoder.next(ids, word, number, kept)
        after = chosen(x, ids, ended, state, words.count_in(number), False)
        return [is_open(after[2]), *after, *kept]

    x, kept = decoder.first()
    count = call.reshape(call.whole(begun), [])
    state = chosen(x, words.continued(call[0], words.pad), None, choice.begun(), count, True)
    trips = call.reshape(call.whole(words.rounds), [])
    carried = [*state, *kept]
    grows = [*[()] * len(state), *[(decoder.grows,)] * len(kept)]
    return late_loop(call, trips, is_open(state[2]), carried, [{}] * len(carried), round_of, changing=grows)[0]
