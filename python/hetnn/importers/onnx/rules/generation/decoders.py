"""Decoders that a search runs for each word: what they are given, and what of it goes on to the next round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.onnx.fixed import read_size
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.pieces import part
from hetnn.importers.onnx.rules.generation.words import MOST_WORDS, Words


class Decoder(Protocol):
    """Gives the scores of the next word [rows, vocabulary], and what it keeps of the words so far."""

    grows: int  # the axis of what it keeps that is longer after each round
    rows_axis: int  # the axis of rows of what it keeps

    def first(self) -> tuple[Any, list[Any]]:
        """Behind the words that are given."""

    def next(self, ids: Any, word: Any, number: Any, kept: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Behind one word more [rows] in a round of the loop; `ids` are all, as Words has them."""


def last_scores(call: Call, words: Words, logits: Any, rows: Size) -> Any:
    """Of the last word, without columns beyond the vocabulary. Unsupported where that has no known size."""
    if logits.dtype != "f32" or len(logits.shape) != 3:
        raise Unsupported(f"logits {logits.dtype}{list(logits.shape)} of a decoder; they must be f32[rows, words, ids]")
    count = logits.shape[1]
    x = logits if count == 1 else part(call, logits, count - 1, count, 1)
    told = int(call.attr("vocab_size", -1))
    width: Size = logits.shape[2] if told <= 0 else told
    x = with_sizes(call, call.reshape(x, [x.shape[0], x.shape[2]]), [rows, None])
    return x if width == x.shape[1] else part(call, x, 0, width, 1)


class PastDecoder:
    """Of GPT-2's kind: ids, positions, a mask and a past [2, rows, heads, words, width] for each layer."""

    grows, rows_axis = 3, 1

    def __init__(self, call: Call, words: Words, ids: Any, mask: Any) -> None:
        """`ids` and `mask` [rows, begun]; a mask of None lets what is no padding be seen."""
        self._call, self._words, self._ids = call, words, ids
        self._graph = call.attr("decoder")
        names = [given.name for given in self._graph.input]
        if names[:4] != ["input_ids", "position_ids", "attention_mask", "past_0"]:
            raise InvalidModel(f"a decoder of the inputs {', '.join(names[:4])}, not of ids, positions, mask and pasts")
        if len(names) != len(self._graph.output) + 2:
            raise Unsupported(f"a decoder that is given {names[-1]!r}: its pasts share memory with what it gives")
        sizes = [read_size(dim) for dim in self._graph.input[3].type.tensor_type.shape.dim]
        if len(sizes) != 5 or not (isinstance(sizes[2], int) and isinstance(sizes[4], int)):
            raise InvalidModel(f"pasts of the shape {sizes}, which must be [2, rows, heads, words, width]")
        self._heads, self._width = sizes[2], sizes[4]
        is_word = call.create("ne", [ids, call.constant(words.pad, "i32")])
        counted = call.cast(is_word, "i32")
        before = call.create("cumsum", [counted], axis=1, exclusive=True)
        self._positions = call.create("where", [is_word, before, call.constant(0, "i32")])
        self._lengths = call.create("sum", [call.cast(counted, "i64")], axes=[1], keepdim=True)
        self._mask = words.continued(counted if mask is None else with_sizes(call, mask, list(ids.shape)), 1)

    def first(self) -> tuple[Any, list[Any]]:
        """As Decoder has it."""
        call, words = self._call, self._words
        none = call.constant([], "f32")
        past = call.reshape(none, [2, words.rows, self._heads, 0, self._width])
        graph = call.attr("init_decoder") or self._graph
        pasts = [past] * (len(graph.input) - 3)
        return self._run(graph, "first", self._ids, self._positions, words.begun, pasts)

    def next(self, ids: Any, word: Any, number: Any, kept: Sequence[Any]) -> tuple[Any, list[Any]]:
        """As Decoder has it."""
        call, rows = self._call, self._words.rows
        shape = [2, rows, self._heads, kept[0].shape[3], self._width]
        kept = [with_sizes(call, past, shape) for past in kept]
        positions = call.cast(call.create("add", [self._lengths, number]), "i32")
        return self._run(self._graph, "next", call.reshape(word, [rows, 1]), positions, shape[3] + 1, kept)

    def _run(
        self, graph: Any, called: str, ids: Any, positions: Any, seen: Size, pasts: Sequence[Any]
    ) -> tuple[Any, list[Any]]:
        call = self._call
        mask = part(call, self._mask, 0, seen, 1)
        logits, *presents = _run(call, graph, called, [ids, positions, mask, *pasts])
        return last_scores(call, self._words, logits, self._words.rows), presents


class PairDecoder:
    """Behind an encoder of words, as T5's, or of sounds, as Whisper's. It is given a word, the mask of the encoder's
    words, and keys and values [rows, heads, words, width] of the words so far and of the encoder's, for each layer.

    The encoder gives those of its own; older ones, and such of sounds, are given the words with which the decoder
    begins too, and give before them the scores of the next one, what they encoded and what the decoder keeps.
    """

    grows, rows_axis = 2, 0

    def __init__(self, call: Call, words: Words, begin: Any, heard: Any, mask: Sequence[Any]) -> None:
        """`begin` [batch, begun], what the encoder is given [batch, …], and its mask [batch, words] if it has one."""
        self._call, self._words = call, words
        self._begin, self._mask = words.of_rows(begin), [words.of_rows(value) for value in mask]
        self._decoder, self._kept = call.attr("decoder"), len(call.attr("decoder").output) - 1
        others = ["input_ids", *(["encoder_attention_mask"] if mask else [])]
        names = [given.name for given in self._decoder.input]
        sees_encoded = names[len(others) : len(others) + 1] == ["encoder_hidden_states"]
        first = len(others) + sees_encoded
        if names[: len(others)] != others or len(names) <= first:
            raise InvalidModel(f"a decoder of the inputs {', '.join(names[:3])}; they must begin with {others}")
        if len(names) != first + 2 * self._kept:
            raise Unsupported(f"a decoder that is given {names[-1]!r}: its pasts share memory with what it gives")
        sizes = [read_size(dim) for dim in self._decoder.input[first].type.tensor_type.shape.dim]
        if len(sizes) != 4 or not (isinstance(sizes[1], int) and isinstance(sizes[3], int)):
            raise InvalidModel(f"pasts of the shape {sizes}, which must be [rows, heads, words, width]")
        self._heads, self._width = sizes[1], sizes[3]
        ids = [read_size(dim) for dim in self._decoder.input[0].type.tensor_type.shape.dim]
        self._takes_all = len(ids) == 2 and ids[1] != 1
        self._encode([heard, *mask], begin, sees_encoded)

    def _encode(self, given: list[Any], begin: Any, sees_encoded: bool) -> None:
        call, words, encoder = self._call, self._words, self._call.attr("encoder")
        if encoder is None or len(encoder.input) - len(given) not in (0, 1):
            raise InvalidModel(f"{call.node.op_type} needs an encoder of {len(given)} inputs, or of one more for words")
        begins = len(encoder.input) > len(given)
        if sees_encoded and not begins:
            raise InvalidModel("a decoder that is given encoder_hidden_states, which its encoder does not give")
        found = _run(call, encoder, "encoder", [*given, begin] if begins else given)
        first = 2 if begins else 0
        if len(found) != first + (2 if begins else 1) * self._kept:
            raise InvalidModel(f"an encoder that gives {len(found)} values to a decoder that keeps {self._kept}")
        self._first = words.of_rows(last_scores(call, words, found[0], words.batch)) if begins else None
        self._encoded = [words.of_rows(found[1])] if sees_encoded else []
        each = [words.of_rows(value) for value in found[first:]]
        self._begun, self._cross = each[: -self._kept], each[-self._kept :]

    def first(self) -> tuple[Any, list[Any]]:
        """As Decoder has it."""
        if self._first is not None:
            return self._first, self._begun
        past = self._call.reshape(self._call.constant([], "f32"), [self._words.rows, self._heads, 0, self._width])
        return self._run("first", self._begin, [past] * self._kept)

    def next(self, ids: Any, word: Any, number: Any, kept: Sequence[Any]) -> tuple[Any, list[Any]]:
        """As Decoder has it."""
        call, rows = self._call, self._words.rows
        shape = [rows, self._heads, kept[0].shape[2], self._width]
        kept = [with_sizes(call, past, shape) for past in kept]
        if self._takes_all:
            count = call.found_size(1, MOST_WORDS)
            call.create("read_size", [self._words.count_in(number)], sizes=[count])
            return self._run("next", part(call, ids, 0, count, 1), kept)
        return self._run("next", call.reshape(word, [rows, 1]), kept)

    def _run(self, called: str, ids: Any, kept: Sequence[Any]) -> tuple[Any, list[Any]]:
        call, words = self._call, self._words
        given = [ids, *self._mask, *self._encoded, *kept, *self._cross]
        logits, *presents = _run(call, self._decoder, called, given)
        return last_scores(call, words, logits, words.rows), presents


def _run(call: Call, graph: Any, called: str, given: Sequence[Any]) -> list[Any]:
    """What a graph of the node gives."""
    found = call.inline(graph, f"{call.node.name or call.node.op_type}/{called}/", given)
    return [call.value(value) for value in found]
