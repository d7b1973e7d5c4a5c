"""ONNX Runtime's LSTM that attends to a memory in each step (Bahdanau, Cho and Bengio 2015)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.declare import LSTM, contrib
from hetnn.importers.onnx.rules.recurrent import Layer, lstm


class _Attending(Layer):
    """A direction whose input is joined with what the last step attended to; that lies behind the cell, [batch,
    hidden + attention]."""

    def __init__(self, call: Call, direction: int, gates: int, preset: list[str]) -> None:
        super().__init__(call, direction, gates, preset)
        self.query, key = (call.entry(call[k], direction) for k in (8, 9))
        self.scores = call.entry(call[10], direction)
        self.output = call.entry(call[13], direction) if call.given(13) else None
        self.memory = with_sizes(call, call[11], [call[0].shape[1], None, key.shape[0]])  # [batch, steps, depth]
        self.inside = None
        if call.given(12):
            lengths = call.reshape(call.cast(call[12], "i64"), [self.memory.shape[0], 1])
            self.inside = call.create("lt", [call.create("arange", [], end=self.memory.shape[1]), lengths])
            shown = call.reshape(self.inside, [*self.inside.shape, 1])
            self.memory = call.create("where", [shown, self.memory, call.like(0, self.memory)])
        self.keys = call.create("matmul", [self.memory, key])
        features = self.features(call)
        self.weight, self.attended = (
            call.create("slice", [self.weight], axis=1, start=a, end=b)
            for a, b in ((0, features), (features, self.weight.shape[1]))
        )

    @classmethod
    def features(cls, call: Call) -> Size:
        width = call.shape(13, 3)[2] if call.given(13) else call.shape(9, 3)[1]
        return call.shape(1, 3)[2] - width

    def begun(self, cell: Any) -> Any:
        width = self.attended.shape[1]
        return self.call.create(
            "concat", [cell, self.call.broadcast_to(self.call.like(0, cell), [cell.shape[0], width])], axis=1
        )

    def entered(self, x: Any, cell: Any) -> tuple[Any, Any]:
        attention = self.call.create("slice", [cell], axis=1, start=self.hidden, end=cell.shape[1])
        return self.add(x, self.call.linear(attention, self.attended, None)), self.ended(cell)

    def left(self, state: Any, cell: Any) -> Any:
        call = self.call
        asked = call.create("matmul", [state, self.query])
        moved = call.create("tanh", [self.add(self.keys, call.reshape(asked, [asked.shape[0], 1, asked.shape[1]]))])
        likely = call.create("sum", [self.mul(moved, self.scores)], axes=[2])
        if self.inside is not None:
            likely = call.create("where", [self.inside, likely, call.like(-np.inf, likely)])
        likely = call.create("softmax", [likely], axis=1)
        row = call.reshape(likely, [likely.shape[0], 1, likely.shape[1]])
        context = call.create("matmul", [row, self.memory])
        context = call.reshape(context, [context.shape[0], context.shape[2]])
        if self.output is not None:
            context = call.create("matmul", [call.create("concat", [state, context], axis=1), self.output])
        return call.create("concat", [cell, context], axis=1)

    def ended(self, cell: Any) -> Any:
        return self.call.create("slice", [cell], axis=1, start=0, end=self.hidden)


@contrib(
    "AttnLSTM",
    "X W R B? sequence_lens? initial_h? initial_c? P? QW? MW? V? M? memory_seq_lens? AW?",
    **LSTM,
)
def _attending(call: Call) -> list[Any]:
    if not all(call.given(k) for k in (8, 9, 10, 11)):
        raise InvalidModel("AttnLSTM without QW, MW, V or M")
    return lstm(call, _Attending)
