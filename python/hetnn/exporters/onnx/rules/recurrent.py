"""Recurrent layers: here the input's product is done before, so ONNX's own is one with ones on the diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.exporters.onnx.rules.call import Call, Value, exports


def _weights(call: Call, gates: int) -> tuple[int, Value, Value]:
    """The hidden size, W as ones on the diagonal, and R."""
    width = call.fixed(call[1].shape or (), "the weight's sizes")[0]
    eye = call.constant(np.eye(width)[None], call[0].dtype)
    return width // gates, eye, call.unsqueeze(call[1], [0])


def _layer(call: Call, op_type: str, inputs: list[Value | None], hidden: int, states: int, **attrs: Any) -> list[Value]:
    """y, [T,B,H], and the last states, [B,H]."""
    told: dict[str, Any] = {
        "hidden_size": hidden,
        "direction": "reverse" if call.attrs["reverse"] else "forward",
        **attrs,
    }
    y, *last = call.create_all(op_type, inputs, [None] * (1 + states), **told)
    drop = [call.create("Squeeze", [value, call.integers([0])]) for value in last]
    return [call.create("Squeeze", [y, call.integers([1])]), *drop]


@exports("lstm")
def _lstm(call: Call) -> Any:
    hidden, w, r = _weights(call, 4)
    states = [call.unsqueeze(call[k], [0]) for k in (2, 3)]
    return _layer(call, "LSTM", [call[0], w, r, None, None, *states], hidden, 2)


@exports("gru")
def _gru(call: Call) -> Any:
    hidden, w, r = _weights(call, 3)
    bias = call.optional(3)
    if bias is not None:
        before = call.filled(0, bias.dtype, [5 * hidden])
        bias = call.unsqueeze(call.create("Concat", [before, bias], axis=0), [0])
    given = [call[0], w, r, bias, None, call.unsqueeze(call[2], [0])]
    return _layer(call, "GRU", given, hidden, 1, linear_before_reset=1)
