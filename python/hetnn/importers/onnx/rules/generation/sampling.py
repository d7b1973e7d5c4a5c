"""A word drawn from the likely ones after each word: ONNX Runtime's Sampling, by its generator."""

from __future__ import annotations

from typing import Any

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.pieces import part, places
from hetnn.importers.onnx.rules.declare import contrib
from hetnn.importers.onnx.rules.generation.greedy import TOLD, searched

# The generator of C++'s standard library that ONNX Runtime takes (minstd_rand0): x ← 16807 x mod 2³¹-1.
_FACTOR, _MODULUS = 16807, 2**31 - 1
# The numbers of [1, 2³¹-1), of which two make a real of [0, 1).
_RANGE = float(_MODULUS - 1)
# Of prompts that are drawn for at once.
_MOST_ROWS = 4096
_SEED = 8


@contrib(
    "Sampling",
    "input_ids max_length min_length? repetition_penalty? vocab_mask? prefix_vocab_mask? attention_mask? "
    "presence_mask? seed?",
    unread="encoder decoder_start_token_id",  # of an encoder and a decoder
    **TOLD,
    temperature=1.0,
    top_p=0.0,
    filter_value=-1e20,
    min_tokens_to_keep=0,
    presence_penalty=0.0,
    custom=0,
)
def _sampling(call: Call) -> Any:
    if call.outputs_used() > 1:
        raise Unsupported("Sampling with the output filtered_logits")
    if call.given(7) and float(call.attr("presence_penalty")):
        raise Unsupported(f"Sampling with a presence_penalty {call.attr('presence_penalty')}, and a presence_mask")
    return searched(call, _Drawing(call, call.shape(0, 2)[0]))


class _Drawing:
    """Draws a word for each row of scores; `begun` is the state of the generator before."""

    def __init__(self, call: Call, rows: Size) -> None:
        self._call, self._rows = call, rows
        self._share, self._filtered = float(call.attr("top_p")), float(call.attr("filter_value"))
        self._least, self._from_the_top = int(call.attr("min_tokens_to_keep")), int(call.attr("custom")) == 1
        powers = [_FACTOR]
        while len(powers) < 2 * (rows if isinstance(rows, int) else _MOST_ROWS):
            powers.append(powers[-1] * _FACTOR % _MODULUS)
        self._powers = part(call, call.constant(powers, "i64"), 0, 2 * rows)
        if self._least < 0:
            raise InvalidModel(f"min_tokens_to_keep {self._least}, which must not be negative")

    def begun(self) -> Any:
        """The state [] in i64 of the seed; where there is none, any."""
        call = self._call
        if not call.given(_SEED):
            any_seed = call.create("mul", [call.cast(call.random([], None), "f64"), call.constant(_RANGE, "f64")])
            return call.create("add", [call.cast(any_seed, "i64"), call.constant(1, "i64")])
        seed = call.cast(call.cast(call.reshape(call[_SEED], []), "u32"), "i64")
        seed = call.create("remainder", [seed, call.constant(_MODULUS, "i64")])
        return call.create("maximum", [seed, call.constant(1, "i64")])

    def chosen(self, x: Any, state: Any) -> tuple[Any, Any]:
        """A word [rows] in i64 for each row of scores, and the next state."""
        call, rows = self._call, self._rows
        x = self._likely(x)
        numbers = call.create("remainder", [call.create("mul", [self._powers, state]), call.constant(_MODULUS, "i64")])
        pairs = call.reshape(call.create("sub", [numbers, call.constant(1, "i64")]), [rows, 2])
        low, high = (call.cast(part(call, pairs, k, k + 1, 1), "f64") for k in (0, 1))
        range_of = call.constant(_RANGE, "f64")
        high = call.create("add", [low, call.create("mul", [high, range_of])])
        drawn = call.create("div", [high, call.constant(_RANGE * _RANGE, "f64")])
        wide = call.cast(x, "f64")
        top = call.create("reduce_max", [wide], axes=[1], keepdim=True)
        summed = call.create("cumsum", [call.create("exp", [call.create("sub", [wide, top])])], axis=1)
        wanted = call.create("mul", [drawn, part(call, summed, x.shape[1] - 1, x.shape[1], 1)])
        below = call.cast(call.create("le", [summed, wanted]), "i64")
        return call.create("sum", [below], axes=[1]), call.reshape(part(call, numbers, 2 * rows - 1, 2 * rows), [])

    def _likely(self, x: Any) -> Any:
        """The scores, those filtered that are beyond the share of the likely ones."""
        call, count = self._call, x.shape[1]
        ordered, at = call.create_all("sort", [x], {"axis": 1, "descending": self._from_the_top})
        summed = call.create("cumsum", [call.create("softmax", [ordered], axis=1)], axis=1)
        if self._from_the_top:
            # All behind the first one with which the share is full.
            full = call.create("gt", [part(call, summed, 0, count - 1, 1), call.like(self._share, x)])
            first = call.broadcast_to(call.constant([[False]], "bool"), [self._rows, 1])
            away = call.create("concat", [first, full], axis=1)
        else:
            away = call.create("le", [summed, call.like(1 - self._share, x)])
            place = places(call, count, 2, 1)
            kept = call.create("ge", [place, call.reshape(call.whole(count - self._least), [])])
            # The least likely one is never kept for the sake of a number.
            kept = call.create("logical_and", [kept, call.create("gt", [place, call.constant(0, "i64")])])
            away = call.create("logical_and", [away, call.create("logical_not", [kept])])
        filtered = call.create("where", [away, call.like(self._filtered, x), ordered])
        return call.create("scatter_elements", [x, at, filtered], axis=1, from_end=False)
