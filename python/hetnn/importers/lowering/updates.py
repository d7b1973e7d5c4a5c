"""What becomes of parameters in a step of training: what an optimizer builds behind a joint graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

FINITE = "a finite loss"


def require_finite(builder: Any, loss: Any) -> None:
    """Has a step end where its loss is no finite number; its states are then those of the step before."""
    (left,) = builder.create("sub", [loss, loss], {}, "loss")  # NaN of an infinite one too
    (holds,) = builder.create("eq", [left, left], {}, "loss")
    builder.create("require", [holds], {"demand": FINITE}, "loss")


class Updates:
    """Builds operators on f32 values, and states that are kept from step to step."""

    def __init__(
        self,
        builder: Any,
        state: Callable[[np.ndarray[Any, Any], str, str], Any],
        keep: Callable[[Any, Any], Any],
    ) -> None:
        self._builder = builder
        self._state = state
        self._keep = keep
        self._due: Any = None

    def keep(self, state: Any, value: Any) -> Any:
        """Makes a value what a state holds in the next step. Returns what it then holds, which is the value in steps
        that change states."""
        return self._keep(state, value if self._due is None else self.choose(self._due, value, state))

    def only_if(self, due: Any) -> Updates:
        """The same of steps for which `due` is true: in others, states that it keeps stay as they are."""
        out = Updates(self._builder, self._state, self._keep)
        out._due = due
        return out

    def choose(self, chosen: Any, value: Any, otherwise: Any) -> Any:
        """One of two values, by a truth value."""
        return self.create("where", chosen, value, otherwise)

    def create(self, op: str, *inputs: Any) -> Any:
        """The first output of an operator; numbers are constants."""
        given = [self._builder.constant(np.array(x, np.float32)) if isinstance(x, (int, float)) else x for x in inputs]
        return self._builder.create(op, given, {}, "update")[0]

    def sum_of_squares(self, value: Any) -> Any:
        """The sum over all elements, a value of rank 0."""
        squares = self.create("mul", value, value)
        axes = {"axes": list(range(len(value.shape)))}
        return self._builder.create("sum", [squares], axes, "update")[0] if value.shape else squares

    def state(self, initial: np.ndarray[Any, Any], name: str) -> Any:
        """A state of f32 and what it begins with."""
        return self._state(initial.astype(np.float32), "f32", name)

    def zeros_like(self, value: Any, name: str) -> Any:
        """A state of a parameter's shape."""
        return self.state(np.zeros(value.shape), name)


# Has states hold other values, given parameters and their gradients by name.
Optimizer = Callable[[Updates, Mapping[str, tuple[Any, Any]]], None]
