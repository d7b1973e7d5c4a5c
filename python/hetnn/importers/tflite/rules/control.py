"""TFLite's branches, loops and variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.tflite.held import Held
from hetnn.importers.tflite.integers import file_form, graph_form
from hetnn.importers.tflite.rules.call import Call, always, rule

# More rounds than that are a graph too large to plan.
_MOST_ROUNDS = 4096


@rule("VAR_HANDLE", integers=always)
def _handle(call: Call) -> Held:
    parts = [call.option("Container"), call.option("SharedName")]
    name = "/".join(part for part in parts if part)
    return Held(None, None, {}, variable=name or "variable")


@rule("READ_VARIABLE", integers=always)
def _read(call: Call) -> Held:
    return call.importer.read_variable(_variable(call), call.outputs[0])


@rule("ASSIGN_VARIABLE", integers=always)
def _assign(call: Call) -> list[Held]:
    call.importer.assign_variable(_variable(call), call.held(1), call.tensor(1))
    return []


def _variable(call: Call) -> str:
    name = call.held(0, handle=True).variable
    if not name:
        raise InvalidModel("input 0 is no variable")
    return name


@rule("CALL_ONCE", integers=always)
def _once(call: Call) -> list[Held]:
    call.importer.initialize(int(call.option("InitSubgraphIndex")))
    return []


@rule("CALL", integers=always)
def _call(call: Call) -> list[Held]:
    return _given(call, int(call.option("Subgraph")), [call.held(k, handle=True) for k in range(len(call.inputs))])


def _given(call: Call, subgraph: int, inputs: list[Held]) -> list[Held]:
    """What a subgraph makes of inputs."""
    return call.importer.inline(subgraph, inputs)


def _truth(held: Held) -> bool | None:
    """A condition where it is known."""
    if held.array is None:
        return None
    if held.array.size != 1:
        raise InvalidModel(f"a condition of the shape {list(held.array.shape)}")
    return bool(held.array.reshape(-1)[0])


@rule("IF", integers=always)
def _if(call: Call) -> list[Any]:
    """The branch that is taken; where that is not known, both, and a choice between what they give."""
    sides = [int(call.option(f"{side}SubgraphIndex")) for side in ("Then", "Else")]
    inputs = [call.held(k, handle=True) for k in range(1, len(call.inputs))]
    known = _truth(call.held(0))
    if known is not None:
        return _given(call, sides[0 if known else 1], inputs)
    condition = call.reshape(call[0], [])
    with call.importer.on_one_side():
        taken, other = (_given(call, side, inputs) for side in sides)
    if not len(taken) == len(other) >= len(call.outputs):
        raise InvalidModel(f"branches of {len(taken)} and {len(other)} results for {len(call.outputs)}")
    return [_chosen(call, condition, a, b, k) for k, (a, b) in enumerate(zip(taken, other, strict=True))]


def _chosen(call: Call, condition: Any, a: Held, b: Held, output: int) -> Any:
    if a is b:
        return a
    tensor = call.outputs[output]
    values = [file_form(call, call.importer.laid(held, False, call.label), tensor, plain=True) for held in (a, b)]
    if list(values[0].shape) != list(values[1].shape):
        raise Unsupported(f"branches that give {list(values[0].shape)} and {list(values[1].shape)}")
    return graph_form(call, call.create("where", [condition, *values]), tensor)


def _late_loop(call: Call, condition: int, body: int, state: list[Held], going: Held) -> list[Held]:
    """As long as values say."""

    def truth(held: Held) -> Any:
        return call.reshape(call.importer.laid(held, False, call.label), [])

    def step(carried: list[Held]) -> tuple[Any, list[Held]]:
        found = _given(call, body, carried)
        if len(found) != len(state):
            raise InvalidModel(f"a body of {len(found)} results for {len(state)}")
        return truth(_given(call, condition, found)[0]), found

    return call.importer.loop(state, call.outputs, truth(going), step)


@rule("WHILE", integers=always)
def _while(call: Call) -> list[Held]:
    """Unrolled where the condition is known, from the round on in which it is not a node with a body."""
    condition, body = (int(call.option(f"{part}SubgraphIndex")) for part in ("Cond", "Body"))
    state = [call.held(k) for k in range(len(call.inputs))]
    for _ in range(_MOST_ROUNDS):
        (going, *_rest) = _given(call, condition, state) or [Held(None, np.array(False), {})]
        known = _truth(going)
        if known is None:
            return _late_loop(call, condition, body, state, going)
        if not known:
            return state
        state = _given(call, body, state)
        if len(state) != len(call.inputs):
            raise InvalidModel(f"a body of {len(state)} results for {len(call.inputs)}")
    raise Unsupported(f"a loop of more than {_MOST_ROUNDS} rounds")
