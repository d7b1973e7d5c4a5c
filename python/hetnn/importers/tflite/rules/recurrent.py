"""TFLite's recurrent layers: their states are variable tensors, which a run writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.recurrent import by_operator
from hetnn.importers.tflite.rules.call import Call, rule, static

# More steps than that are a graph too large to plan.
_MOST_STEPS = 4096
_TANH = 4
# Where inputs of an LSTM lie, of its gates i, f, g and o.
_WEIGHTS, _RECURRENT, _BIASES, _NORMS = (1, 2, 3, 4), (5, 6, 7, 8), (12, 13, 14, 15), (20, 21, 22, 23)
_PEEPHOLES = {"i": 9, "f": 10, "o": 11}
_PROJECTION, _PROJECTION_BIAS, _OUTPUT_STATE, _CELL_STATE = 16, 17, 18, 19
_GATES = "ifgo"


def _steps(call: Call, x: Any) -> int:
    (count,) = static([x.shape[0]], "a sequence")
    if not 1 <= count <= _MOST_STEPS:
        raise Unsupported(f"a sequence of {count} steps, of which there may be 1 to {_MOST_STEPS}")
    return count


def _time_first(call: Call, x: Any) -> Any:
    """[T,B,F] of [B,T,F], unless it is so already; and back."""
    return x if call.option("TimeMajor") else call.permuted(x, (1, 0, 2))


@rule("UNIDIRECTIONAL_SEQUENCE_LSTM")
def _lstm(call: Call) -> Any:
    """By the operator where it is a plain one, else step by step."""
    call.ranked(0, 3)
    x = _time_first(call, call[0])
    h, c = call[_OUTPUT_STATE], call[_CELL_STATE]
    clips = [float(call.option(name)) for name in ("CellClip", "ProjClip")]
    extras = (1, *_PEEPHOLES.values(), _PROJECTION, *_NORMS)
    plain = call.given(1) and not any(map(call.given, extras[1:])) and not any(clips)
    if plain and call.option("FusedActivationFunction") == _TANH:
        order = [_GATES.index(gate) for gate in "iofg"]
        weight, recurrent, bias = (
            call.joined([call[places[k]] for k in order], 0) for places in (_WEIGHTS, _RECURRENT, _BIASES)
        )
        y, h, c = by_operator(
            call, "lstm", x, weight, recurrent, [bias, call.create("sub", [bias, bias])], [h, c], False
        )
    else:
        rows = []
        for step in range(_steps(call, x)):
            h, c = _lstm_step(call, call.entry(x, step), h, c, clips)
            rows.append(h)
        y = call.stacked(rows, 0)
    call.write(_OUTPUT_STATE, h)
    call.write(_CELL_STATE, c)
    return _time_first(call, y)


def _lstm_step(call: Call, x: Any, h: Any, c: Any, clips: list[float]) -> tuple[Any, Any]:
    """h and c behind a step. Without an input gate, i = 1 - f."""

    def gate(name: str, cell: Any) -> Any:
        k = _GATES.index(name)
        total = call.create("add", [_product(call, x, _WEIGHTS[k]), _product(call, h, _RECURRENT[k])])
        place = _PEEPHOLES.get(name, -1)
        if place >= 0 and call.given(place):
            total = call.create("add", [total, call.create("mul", [cell, call[place]])])
        if call.given(_NORMS[k]):
            total = call.create("mul", [call.create("layer_norm", [total], eps=1e-8), call[_NORMS[k]]])
        total = call.create("add", [total, call[_BIASES[k]]]) if call.given(_BIASES[k]) else total
        return call.activated(total) if name == "g" else call.create("sigmoid", [total])

    forget, news = gate("f", c), gate("g", c)
    given = gate("i", c) if call.given(_WEIGHTS[0]) else call.create("sub", [call.like(1, forget), forget])
    c = call.create("add", [call.create("mul", [forget, c]), call.create("mul", [given, news])])
    c = _clipped(call, c, clips[0])
    h = call.create("mul", [gate("o", c), call.activated(c)])
    if call.given(_PROJECTION):
        bias = call[_PROJECTION_BIAS] if call.given(_PROJECTION_BIAS) else None
        h = _clipped(call, call.linear(h, call[_PROJECTION], bias), clips[1])
    return h, c


def _product(call: Call, x: Any, place: int) -> Any:
    return call.linear(x, call[place], None)


def _clipped(call: Call, x: Any, most: float) -> Any:
    return call.create("clamp", [x], min=-most, max=most) if most > 0 else x


def _layer(call: Call, step: Callable[[Any, Any], Any], x: Any) -> Any:
    """A layer of one state, input 4, which is what it gives."""
    h, rows = call[4], []
    for k in range(_steps(call, x)):
        h = step(call.entry(x, k), h)
        rows.append(h)
    call.write(4, h)
    return call.stacked(rows, 0)


def _simple_step(call: Call) -> Callable[[Any, Any], Any]:
    """act(W x + R h + b)"""

    def step(x: Any, h: Any) -> Any:
        given = call.linear(x, call[1], call[3] if call.given(3) else None)
        return call.activated(call.create("add", [given, _product(call, h, 2)]))

    return step


@rule("UNIDIRECTIONAL_SEQUENCE_RNN")
def _simple(call: Call) -> Any:
    call.ranked(0, 3)
    return _time_first(call, _layer(call, _simple_step(call), _time_first(call, call[0])))


@rule("RNN")
def _simple_once(call: Call) -> Any:
    y = _simple_step(call)(call[0], call[4])
    call.write(4, y)
    return y


@rule("SVDF")
def _svdf(call: Call) -> Any:
    """Features of the input, of which each has a memory that a filter over time reads; `rank` of them make a unit."""
    x, of_features, of_time, state = call[0], call[1], call[2], call[4]
    rank = int(call.option("Rank"))
    features, memory = static(of_time.shape, "a filter over time")
    if rank < 1 or features % rank:
        raise InvalidModel(f"{features} features of the rank {rank}")
    batch = x.shape[0]
    now = call.reshape(call.linear(x, of_features, None), [batch, features, 1])
    past = call.reshape(state, [batch, features, memory])
    past = call.joined([call.create("slice", [past], axis=2, start=1, end=memory), now], 2)
    call.write(4, call.reshape(past, [batch, features * memory]))
    read = call.create("sum", [call.create("mul", [past, of_time])], axes=[2])
    units = call.create("sum", [call.reshape(read, [batch, features // rank, rank])], axes=[2])
    units = call.create("add", [units, call[3]]) if call.given(3) else units
    return call.activated(units)
