"""Searches that run a decoder for each word, beside ONNX Runtime: random decoders, options and prompts by seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hetnn
from importers.onnx_decoders import Array, pair, past_decoder, search
from importers.onnx_runtime_nodes import i32, of_runtime

PAD = 1


class Drawn:
    """The options and prompts of a search, drawn by a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.seed = seed
        self.vocabulary, self.batch, self.given = self.whole(5, 20), self.whole(1, 4), self.whole(1, 6)
        self.most = self.given + self.whole(2, 12)
        self.beams = self.whole(1, 5)
        self.scale = float(self.rng.choice([0.05, 0.2, 0.5]))
        self.attrs: dict[str, Any] = {
            "eos_token_id": self.whole(0, self.vocabulary),
            "pad_token_id": self.whole(0, self.vocabulary),
            "no_repeat_ngram_size": int(self.rng.choice([0, 0, 1, 2, 3])),
        }

    def whole(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def maybe(self, make: Callable[[], Any]) -> Any:
        return make() if self.rng.random() < 0.4 else None

    def booleans(self, *shape: int) -> Array:
        return (self.rng.random(shape) < 0.8).astype(np.int32)

    def real(self, low: float, high: float) -> Array:
        return np.array([self.rng.uniform(low, high)], np.float32)

    def inputs(self) -> dict[str, Array | None]:
        """Of GreedySearch, in its order."""
        return {
            "input_ids": self.rng.integers(0, self.vocabulary, (self.batch, self.given)).astype(np.int32),
            "max_length": i32(self.most),
            "min_length": i32(self.whole(0, self.most)),
            "repetition_penalty": self.maybe(lambda: self.real(0.5, 2)),
            "vocab_mask": self.maybe(lambda: self.booleans(self.vocabulary)),
            "prefix_vocab_mask": self.maybe(lambda: self.booleans(self.batch, self.vocabulary)),
            "attention_mask": self.maybe(lambda: self.booleans(self.batch, self.given)),
        }

    def beam_inputs(self) -> dict[str, Array | None]:
        """Of BeamSearch, in its order."""
        given = self.inputs()
        first = {name: given.pop(name) for name in ("input_ids", "max_length", "min_length")}
        wanted = self.whole(1, self.beams + 1)
        own = {"num_beams": i32(self.beams), "num_return_sequences": i32(wanted), "length_penalty": self.real(-1, 2)}
        self.attrs["early_stopping"] = self.whole(0, 2)
        return {**first, **own, **given}

    def known(self) -> tuple[str, ...]:
        """Sizes that are constants of the model, or computed when it runs."""
        return ("max_length", "num_beams") if self.seed % 2 else ()


def results(op: str, inputs: dict[str, Array | None], **told: Any) -> list[tuple[Array, Array]]:
    """What hetnn and ONNX Runtime give."""
    model, feeds = search(op, inputs, **told)
    mine = hetnn.compile(model)(*feeds.values())
    return list(zip(mine if isinstance(mine, tuple) else [mine], of_runtime(model, feeds), strict=True))


def same_words(mine: Array, theirs: Array, pad: int) -> None:
    """Up to the round in which all have ended: ONNX Runtime leaves what its memory held behind that."""
    count = mine.shape[1]
    while (mine[:, count - 1] == pad).all():
        count -= 1
    np.testing.assert_array_equal(mine[:, :count], theirs[:, :count])


def same(pairs: list[tuple[Array, Array]]) -> None:
    for mine, theirs in pairs:
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(8))
def test_greedy_search_equals_onnx_runtime(seed: int) -> None:
    drawn = Drawn(seed)
    decoder = past_decoder(drawn.vocabulary, seed=seed, scale=drawn.scale)
    [both] = results("GreedySearch", drawn.inputs(), known=drawn.known(), decoder=decoder, **drawn.attrs)
    same_words(*both, drawn.attrs["pad_token_id"])


@pytest.mark.parametrize("seed", range(10))
def test_beam_search_equals_onnx_runtime(seed: int) -> None:
    drawn = Drawn(seed)
    decoder = past_decoder(drawn.vocabulary, seed=seed, scale=drawn.scale)
    inputs = drawn.beam_inputs()
    same(results("BeamSearch", inputs, known=drawn.known(), outputs=2, decoder=decoder, **drawn.attrs))


def test_beam_search_gives_the_scores_of_all_words() -> None:
    # No beam ends: of rounds that do not run, ONNX Runtime leaves what its memory held.
    inputs = Drawn(3).beam_inputs() | {"max_length": i32(9), "min_length": i32(8)}
    decoder = past_decoder(Drawn(3).vocabulary)
    same(results("BeamSearch", inputs, outputs=3, decoder=decoder, eos_token_id=2, pad_token_id=PAD))


@pytest.mark.parametrize("takes_all", [False, True])
@pytest.mark.parametrize(("begins", "sees_encoded"), [(True, True), (True, False), (False, False)])
def test_beam_search_behind_an_encoder_equals_onnx_runtime(begins: bool, sees_encoded: bool, takes_all: bool) -> None:
    for seed in range(2):
        drawn = Drawn(seed)
        graphs = pair(
            drawn.vocabulary,
            seed=seed,
            scale=drawn.scale,
            begins=begins,
            sees_encoded=sees_encoded,
            takes_all=takes_all,
        )
        told = drawn.attrs | graphs | {"decoder_start_token_id": 3}
        same(results("BeamSearch", drawn.beam_inputs(), known=drawn.known(), outputs=2, **told))


@pytest.mark.parametrize("seed", range(6))
def test_whisper_beam_search_equals_onnx_runtime(seed: int) -> None:
    drawn = Drawn(seed)
    inputs = drawn.beam_inputs() | {"attention_mask": None}
    inputs["input_ids"] = drawn.rng.standard_normal((drawn.batch, 8, 5)).astype(np.float32)
    begin = drawn.rng.integers(0, drawn.vocabulary, (drawn.batch, drawn.given)).astype(np.int32)
    inputs |= {"decoder_input_ids": begin if seed % 3 else None, "logits_processor": i32(0)}
    inputs |= {"cross_qk_layer_head": None, "extra_decoding_ids": None, "temperature": drawn.real(0.5, 2)}
    graphs = pair(drawn.vocabulary, seed=seed, scale=drawn.scale, hears=True, sees_encoded=seed % 2 == 0)
    told = drawn.attrs | graphs | {"decoder_start_token_id": 3}
    same(results("WhisperBeamSearch", inputs, known=("logits_processor", *drawn.known()), outputs=2, **told))


@pytest.mark.parametrize("seed", range(10))
def test_sampling_draws_the_words_that_onnx_runtime_draws_by_a_seed(seed: int) -> None:
    drawn = Drawn(seed)
    inputs = drawn.inputs() | {"presence_mask": None, "seed": i32(drawn.whole(0, 100000))}
    told = {
        "temperature": float(drawn.rng.uniform(0.5, 2)),
        "top_p": float(drawn.rng.choice([0.3, 0.6, 0.9, 1])),
        "min_tokens_to_keep": drawn.whole(0, 3),
        "custom": seed % 2,
    }
    decoder = past_decoder(drawn.vocabulary, seed=seed, scale=drawn.scale)
    [both] = results("Sampling", inputs, known=drawn.known(), decoder=decoder, **told, **drawn.attrs)
    same_words(*both, drawn.attrs["pad_token_id"])


PROMPT = {"input_ids": i32([3, 4, 5], [6, 7, 8]), "max_length": i32(12), "min_length": i32(11)}
ENDS = {"eos_token_id": 2, "pad_token_id": PAD}


def test_sampling_without_a_seed_draws_other_words_each_time() -> None:
    model, feeds = search("Sampling", PROMPT, decoder=past_decoder(scale=0.05), top_p=1.0, **ENDS)
    executable = hetnn.compile(model)
    assert not np.array_equal(executable(*feeds.values()), executable(*feeds.values()))


def test_more_words_than_may_be_are_refused() -> None:
    told = {"known": ["max_length"], "decoder": past_decoder(), **ENDS}
    model, feeds = search("GreedySearch", PROMPT | {"max_length": i32(2)}, **told)
    with pytest.raises(hetnn.InvalidModel, match=r"size|shape"):
        hetnn.compile(model)(*feeds.values())


def refusal(op: str, inputs: dict[str, Array | None], **told: Any) -> str:
    with pytest.raises(hetnn.Error) as refused:
        hetnn.compile(search(op, inputs, **ENDS, **told)[0])
    return str(refused.value)


def test_what_is_not_searched_is_refused_by_name() -> None:
    decoder = past_decoder()
    given: dict[str, Array | None] = {**PROMPT, "repetition_penalty": None, "vocab_mask": None}
    given |= {"prefix_vocab_mask": None, "attention_mask": None, "presence_mask": i32([0] * 17, [0] * 17)}
    assert "presence_penalty" in refusal("Sampling", given, decoder=decoder, presence_penalty=1.0)
    assert "filtered_logits" in refusal("Sampling", PROMPT, decoder=decoder, outputs=2)
    assert "model_type" in refusal("GreedySearch", PROMPT, decoder=decoder, model_type=1)
    assert "the attribute best" in refusal("GreedySearch", PROMPT, decoder=decoder, best=1)
    beams = {**PROMPT, "num_beams": i32(2), "num_return_sequences": i32(3)}
    known = ["num_beams", "num_return_sequences"]
    assert "num_return_sequences 3 of num_beams 2" in refusal("BeamSearch", beams, known=known, decoder=decoder)
    assert "decoder_start_token_id" in refusal("BeamSearch", beams | {"num_beams": i32(4)}, **pair())
    decoder.input[0].name = "ids"
    assert "a decoder of the inputs ids" in refusal("GreedySearch", PROMPT, decoder=decoder)
