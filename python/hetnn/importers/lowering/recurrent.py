"""Layers of recurrent units of any front, by the operators lstm and gru."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.importers.lowering.building import Building


def by_operator(
    call: Building,
    op: str,
    x: Any,
    weight: Any,
    recurrence: Any,
    biases: Sequence[Any],
    states: Sequence[Any],
    reverse: bool,
) -> list[Any]:
    """A layer in one direction over [steps, batch, features]: all its outputs, then its last states.

    Weights are [gates · hidden, …], and biases, of the input and of the state or none, [gates · hidden]: all with their
    gates in the operator's order.
    """
    units, beside = recurrence.shape[1], [None] if op == "gru" else []
    if biases and op == "gru":  # that of the last product with the state is scaled with it
        of_state = biases[1]
        beside = [call.create("slice", [of_state], axis=0, start=2 * units, end=3 * units)]
        rest = call.create("slice", [of_state], axis=0, start=0, end=2 * units)
        biases = [biases[0], call.joined([rest, call.constant(np.zeros(units), of_state.dtype)], 0)]
    given = call.linear(x, weight, call.create("add", list(biases)) if biases else None)
    return call.create_all(op, [given, recurrence, *states, *beside], {"reverse": reverse})
