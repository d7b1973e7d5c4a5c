"""Words so far, in rows as long as they may become: a row for each of the beams of each prompt."""

from __future__ import annotations

from typing import Any

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size, maximum
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.pieces import places

# Of words and of beams, in ONNX Runtime.
MOST_WORDS, MOST_BEAMS = 4096, 128


class Words:
    """The sizes of a search, and its rows of words [rows, most]: behind the words of each row stands `pad`."""

    def __init__(self, call: Call, batch: Size, beams: Size, begun: Size, wanted: Size = 1) -> None:
        self.call, self.batch, self.beams, self.begun, self.wanted = call, batch, beams, begun, wanted
        self.rows = batch * beams
        self.most = call.size(1, "max_length", 1, MOST_WORDS)
        self.pad, self.end = int(call.attr("pad_token_id")), int(call.attr("eos_token_id"))
        if isinstance(self.most, int) and isinstance(begun, int) and not begun < self.most <= MOST_WORDS:
            raise InvalidModel(
                f"max_length {self.most}; it must be greater than the {begun} words given, {MOST_WORDS} at most"
            )
        if self.pad < 0 or self.end < 0:
            raise InvalidModel(f"pad_token_id {self.pad} and eos_token_id {self.end}, which must not be negative")

    @property
    def rounds(self) -> Size:
        """After the first one, at most."""
        return self.most - self.begun - 1

    def of_rows(self, value: Any) -> Any:
        """What there is of each prompt [batch, …] for each of its beams [rows, …]."""
        if self.beams == 1:
            return value
        call, rest = self.call, list(value.shape)[1:]
        each = call.reshape(value, [self.batch, 1, *rest])
        return call.reshape(call.broadcast_to(each, [self.batch, self.beams, *rest]), [self.rows, *rest])

    def continued(self, given: Any, rest: int) -> Any:
        """[rows, most] of [rows, begun] in i32, and of `rest` behind that. A run with more words given ends."""
        call = self.call
        behind = call.broadcast_to(call.constant([[rest]], "i32"), [self.rows, maximum(self.most - self.begun, 0)])
        return with_sizes(call, call.create("concat", [given, behind], axis=1), [self.rows, self.most])

    def with_next(self, ids: Any, count: Any, words: Any) -> Any:
        """The rows with one word more [rows] behind the first `count`."""
        call = self.call
        here = call.create("eq", [places(call, self.most, 2, 1), count])
        return call.create("where", [here, call.reshape(words, [self.rows, 1]), ids])

    def count_in(self, number: Any) -> Any:
        """How many words there are before a round of the loop, which begins behind the first round."""
        call = self.call
        return call.create("add", [number, call.reshape(call.whole(self.begun + 1), [])])
