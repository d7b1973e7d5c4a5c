"""What a search makes of the scores of words before it chooses: penalties, masks, runs that must not repeat."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size, maximum
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.pieces import part, places
from hetnn.importers.onnx.rules.generation.words import Words

# What ONNX Runtime puts in the place of the score of a word that must not come.
_NEVER = float(np.finfo(np.float32).min)


class Scores:
    """Changes scores [rows, vocabulary] in ONNX Runtime's order; inputs of the node by their numbers."""

    def __init__(
        self, call: Call, words: Words, *, least: int, penalty: int, mask: int, first_mask: int, temperature: int = -1
    ) -> None:
        self._call, self._words = call, words
        known = call.known(penalty)
        is_none = not call.given(penalty) or (known is not None and bool((known == 1).all()))
        self._penalty = None if is_none else call.reshape(call[penalty], [])
        self._run = int(call.attr("no_repeat_ngram_size") or 0)
        self._least = call.cast(call.reshape(call[least], []), "i64") if call.given(least) else None
        self._mask, self._first_mask = call.optional(mask), call.optional(first_mask)
        self._temperature = self._divisor(temperature)

    def changed(self, x: Any, ids: Any, count: Any, first: bool) -> Any:
        """The scores behind the first `count` words of the rows of ids."""
        call, words = self._call, self._words
        vocabulary = x.shape[1]
        if self._penalty is not None:
            is_used = self._marked(ids, call.create("lt", [places(call, words.most, 2, 1), count]), vocabulary)
            small = call.create("lt", [x, call.like(0, x)])
            less = (call.create(op, [x, self._penalty]) for op in ("mul", "div"))
            x = call.create("where", [is_used, call.create("where", [small, *less]), x])
        if self._run > 0 and not (isinstance(words.most, int) and words.most < self._run):
            x = self._without(x, self._repeating(ids, count, vocabulary))
        if self._mask is not None:
            x = self._without(x, self._zeros(with_sizes(call, self._mask, [vocabulary])))
        if self._first_mask is not None and first:
            x = self._without(
                x, self._zeros(words.of_rows(with_sizes(call, self._first_mask, [words.batch, vocabulary])))
            )
        if self._least is not None:
            is_end = call.create("eq", [places(call, vocabulary, 2, 1), call.constant(words.end, "i64")])
            x = self._without(x, call.create("logical_and", [is_end, call.create("lt", [count, self._least])]))
        return x if self._temperature is None else call.create("div", [x, self._temperature])

    def _divisor(self, index: int) -> Any:
        """The temperature, an input of the node or an attribute; None where it changes nothing."""
        call = self._call
        if index >= 0 and call.given(index):
            given = call.reshape(call[index], [])
            return call.create("where", [call.create("gt", [given, call.like(0, given)]), given, call.like(1, given)])
        number = float(call.attr("temperature", 1.0))
        return call.constant(number, "f32") if number > 0 and number != 1 else None

    def _zeros(self, mask: Any) -> Any:
        return self._call.create("eq", [mask, self._call.like(0, mask)])

    def _without(self, x: Any, where: Any) -> Any:
        return self._call.create("where", [where, self._call.like(_NEVER, x), x])

    def _marked(self, ids: Any, where: Any, vocabulary: Size) -> Any:
        """Which words stand in rows of ids where `where` holds."""
        call = self._call
        held = call.cast(call.broadcast_to(where, ids.shape), "i32")
        none = call.broadcast_to(call.constant([[0]], "i32"), [ids.shape[0], vocabulary])
        marks = call.create("scatter_elements", [none, ids, held], axis=1, reduce="max", from_end=False)
        return call.create("ne", [marks, call.constant(0, "i32")])

    def _repeating(self, ids: Any, count: Any, vocabulary: Size) -> Any:
        """The words that would end a run of `no_repeat_ngram_size` words that has been already."""
        call, most, run = self._call, self._words.most, self._run
        windows = maximum(most - run + 1, 0)
        ends = call.create("add", [places(call, windows, 2, 1), call.constant(run, "i64")])
        where = call.create("le", [ends, count])
        for k in range(run - 1):
            # The last words; there are so many where there is any window.
            at = call.create("sub", [count, call.constant(run - 1 - k, "i64")])
            at = call.reshape(call.create("maximum", [at, call.constant(0, "i64")]), [1])
            same = call.create("eq", [part(call, ids, k, windows + k), call.create("gather", [ids, at], axis=1)])
            where = call.create("logical_and", [where, same])
        return self._marked(part(call, ids, most - windows, most), where, vocabulary)
