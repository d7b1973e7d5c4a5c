"""Random numbers of any front: states of generators, and distributions from numbers that are even in [0, 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.importers.lowering.building import Building
from hetnn.importers.lowering.sizes import Size

# Bits of the fractions that each type takes without rounding up to 1.
_BITS = {"f16": 11, "bf16": 8, "f32": 24}


def initial_state(seed: int) -> np.ndarray[Any, Any]:
    """What the operator `draw` starts from: the words of a Mersenne Twister with that seed, and how many are used."""
    state = np.random.RandomState(seed).get_state(legacy=False)["state"]
    return np.array([*state["key"], state["pos"]], np.uint32)


class Generators:
    """Those of a graph, which keeps the state of each from run to run."""

    def __init__(self) -> None:
        self._each: list[tuple[str, np.ndarray[Any, Any], Any]] = []  # the input, the first state, the next one

    def __len__(self) -> int:
        return len(self._each)

    def draw(self, builder: Any, name: str, seed: int, shape: Sequence[Size], *place: Any) -> Any:
        """Numbers of [0, 1) in f32 from one more, whose state is an input of that name; `place` is the node's."""
        initial = initial_state(seed)
        before = builder.add_input(name, "u32", list(initial.shape))
        drawn, after = builder.create("draw", [before], {"shape": list(shape)}, *place)
        self._each.append((name, initial, after))
        return drawn

    def keep(self, builder: Any) -> None:
        """Makes the states behind a run those that the next one begins with."""
        for name, initial, after in self._each:
            builder.output(after, f"{name}.next")
            builder.mutation(name, f"{name}.next", initial)


def on(call: Building, op: str, a: Any, b: Any) -> Any:
    """An operator on a value and a value or number of its type."""
    return call.create(op, [a, call.constant(b, a.dtype) if isinstance(b, (int, float)) else b])


def fraction(call: Building, u: Any, dtype: str) -> Any:
    """Numbers of [0, 1) in a type of fewer digits, in which none becomes 1."""
    if dtype in _BITS:
        scale = 2.0 ** _BITS[dtype]
        u = on(call, "div", call.create("floor", [on(call, "mul", u, scale)]), scale)
    return call.cast(u, dtype)


def normal(call: Building, pairs: Any, shape: Sequence[Size]) -> Any:
    """Of mean 0 and variance 1 from even numbers [2, *shape], by the method of Box and Muller:
    sqrt(-2 ln(1 - u)) cos(2 pi v)."""
    u, v = (call.reshape(call.entry(pairs, k), shape) for k in range(2))
    inner = call.create("log", [on(call, "add", on(call, "mul", u, -1.0), 1.0)])
    size = call.create("sqrt", [on(call, "mul", inner, -2.0)])
    return call.create("mul", [size, call.create("cos", [on(call, "mul", v, 2 * math.pi)])])
