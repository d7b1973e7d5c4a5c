"""What a TFLite model keeps from one run to the next: variables, and the variable tensors of recurrent layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetnn.element_types import numpy_type
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.tflite.held import Held
from hetnn.importers.tflite.model import Array, Tensor


@dataclass
class _State:
    name: str  # of the input that holds it
    tensor: Tensor
    initial: Array
    value: Held


class States:
    """Inputs with an initial value, and the values that follow them.

    `lift` adds an input of a tensor's type and gives it as it is held.
    """

    def __init__(self, lift: Callable[[Tensor, str], tuple[str, Held]]) -> None:
        self._lift = lift
        self._initial: dict[Any, Array] = {}
        self._states: dict[Any, _State] = {}
        self._written: dict[Any, Held] = {}  # of what was written before it was read
        self.is_first = False  # whether what is written now is what the first run begins with
        self.one_sided = 0  # in how many branches, of which one may not be taken

    def read(self, key: Any, tensor: Tensor, name: str) -> Held:
        """The value now. InvalidModel where nothing was written before."""
        if key in self._states:
            return self._states[key].value
        if key in self._written:
            return self._written[key]
        if key not in self._initial and tensor.is_variable:
            self._initial[key] = _resting(tensor)
        if key not in self._initial:
            raise InvalidModel(f"the variable '{name}' is read, but nothing gives it a value first")
        initial = self._initial[key]
        lifted, value = self._lift(tensor, name)
        if list(initial.shape) != list(tensor.shape) or initial.dtype != numpy_type(tensor.dtype):
            raise InvalidModel(f"the variable '{name}' begins as {initial.dtype}{list(initial.shape)}")
        self._states[key] = _State(lifted, tensor, initial, value)
        return value

    def write(self, key: Any, held: Held, name: str) -> None:
        """Unsupported in a branch, and for a first value that is not known."""
        if self.one_sided:
            raise Unsupported(f"the variable '{name}' is written in a branch")
        if self.is_first:
            if held.array is None:
                raise Unsupported(f"the variable '{name}' begins with a value that is computed")
            self._initial[key] = held.array
        elif key in self._states:
            self._states[key].value = held
        else:
            self._written[key] = held

    def each(self) -> list[tuple[str, Tensor, Array, Held]]:
        """The input of every state, its tensor, its initial value, and its value behind a run."""
        return [(state.name, state.tensor, state.initial, state.value) for state in self._states.values()]


def _resting(tensor: Tensor) -> Array:
    """Zeros, as the integers that stand for them."""
    dtype, rest = numpy_type(tensor.dtype), 0
    if tensor.quant is not None and dtype.itemsize == 1:
        rest = tensor.quant.zero_points[0]
    return np.full(tensor.shape, rest, dtype)
