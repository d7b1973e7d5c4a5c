"""Torch overloads of recurrent layers, which torch would take apart step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.lowering.recurrent import by_operator
from hetnn.importers.torch.rules.call import Call, rule


@rule("lstm.input")
def _lstm(call: Call) -> list[Any]:
    """Torch's gates are i, f, g and o, the operator's i, o, f and g."""
    return _layers(call, "lstm", call["hx"], [0, 3, 1, 2])


@rule("gru.input")
def _gru(call: Call) -> list[Any]:
    """Torch's gates are r, z and n, the operator's z, r and n."""
    return _layers(call, "gru", [call["hx"]], [1, 0, 2])


def _layers(call: Call, op: str, states: Sequence[Any], order: Sequence[int]) -> list[Any]:
    """[steps, batch, directions * hidden] of the last layer, and the last state of each layer and direction."""
    x = call["input"]
    if call["batch_first"]:
        x = call.create("permute", [x], perm=[1, 0, 2])
    if call["train"] and call["dropout"]:
        raise Unsupported(f"{op} with dropout")
    directions, each = (2 if call["bidirectional"] else 1), (4 if call["has_biases"] else 2)
    params = [call["params"][k : k + each] for k in range(0, len(call["params"]), each)]
    if len(params) != directions * call["num_layers"] or any(p[0].shape[0] != p[1].shape[0] for p in params):
        raise Unsupported(f"{op} whose states are projected")
    last: list[list[Any]] = [[] for _ in states]
    for layer in range(call["num_layers"]):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            first = [call.entry(state, place) for state in states]
            y, *ended = _one(call, op, order, x, params[place], first, direction == 1)
            outputs.append(y)
            for found, state in zip(last, ended, strict=True):
                found.append(state)
        x = call.joined(outputs, 2)
    if call["batch_first"]:
        x = call.create("permute", [x], perm=[1, 0, 2])
    return [x, *(call.stacked(one, 0) for one in last)]


def _one(
    call: Call, op: str, order: Sequence[int], x: Any, params: Sequence[Any], states: Sequence[Any], reverse: bool
) -> list[Any]:
    """One layer in one direction: all outputs, then the last states."""
    units = params[1].shape[1]

    def ordered(value: Any) -> Any:
        parts = [call.create("slice", [value], axis=0, start=k * units, end=(k + 1) * units) for k in order]
        return call.create("concat", parts, axis=0)

    weight, recurrence, *biases = map(ordered, params)
    return by_operator(call, op, x, weight, recurrence, biases, states, reverse)
