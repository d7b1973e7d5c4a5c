"""Torch overloads of recurrent layers, which torch would take apart step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.errors import Unsupported
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
            first = [_part(call, state, place) for state in states]
            y, *ended = _one(call, op, order, x, params[place], first, direction == 1)
            outputs.append(y)
            for found, state in zip(last, ended, strict=True):
                found.append(call.reshape(state, [1, *state.shape]))
        x = outputs[0] if len(outputs) == 1 else call.create("concat", outputs, axis=2)
    if call["batch_first"]:
        x = call.create("permute", [x], perm=[1, 0, 2])
    return [x, *(one[0] if len(one) == 1 else call.create("concat", one, axis=0) for one in last)]


def _part(call: Call, state: Any, place: int) -> Any:
    part = call.create("slice", [state], axis=0, start=place, end=place + 1)
    return call.reshape(part, list(state.shape[1:]))


def _one(
    call: Call, op: str, order: Sequence[int], x: Any, params: Sequence[Any], states: Sequence[Any], reverse: bool
) -> list[Any]:
    """One layer in one direction: all outputs, then the last states."""
    units = params[1].shape[1]

    def gates(value: Any, chosen: Sequence[int]) -> Any:
        parts = [call.create("slice", [value], axis=0, start=k * units, end=(k + 1) * units) for k in chosen]
        return parts[0] if len(parts) == 1 else call.create("concat", parts, axis=0)

    bias, last = None, []
    if len(params) == 4:
        of_state = params[3]
        if op == "gru":  # that of n stands beside the product with the state
            last = [gates(of_state, [2])]
            zero = call.constant(np.zeros(units), of_state.dtype)
            of_state = call.create("concat", [gates(of_state, [0, 1]), zero], axis=0)
        bias = gates(call.create("add", [params[2], of_state]), order)
    elif op == "gru":
        last = [None]
    given = call.create("linear", [x, gates(params[0], order), bias])
    return call.create_all(op, [given, gates(params[1], order), *states, *last], {"reverse": reverse})
