"""Weights of a graph that torch may change between calls: constants for as long as they stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch._subclasses.fake_tensor import unset_fake_temporarily

Run = Callable[[Sequence[Any]], Sequence[Any]]
# Calls without a change after which weights are packed again: one that trains changes them before that.
_CALLS_AT_REST = 4
# Of a tensor, numbers of 4 bytes that are looked at in every call: some 0.2 ms for the 320 tensors of ResNet-50.
_LOOKED_AT = 16


class Weights:
    """A graph twice: with its weights packed, and with weights as inputs for when they have changed.

    compile: makes a function of the remaining arguments; it is given the tensors that are constants, by their places.
    """

    def __init__(self, compile: Callable[[Mapping[int, torch.Tensor]], Run], held: Mapping[int, torch.Tensor]) -> None:
        self._compile = compile
        self._places = [k for k, tensor in held.items() if not tensor.is_inference()]
        self._held = frozenset(self._places)
        self._looked_at: tuple[list[tuple[int, int]], list[NDArray[np.int32]]] = [], []
        self._pack([held[k] for k in self._places])
        self._loose: Run | None = None
        self._at_rest = 0
        self._seen = self._packed_marks

    def run(self, args: Sequence[Any]) -> Sequence[Any]:
        """The outputs for all arguments of the graph, weights among them."""
        weights = [args[k] for k in self._places]
        marks = self._marks(weights)
        if marks != self._packed_marks:
            if marks != self._seen:
                self._seen, self._at_rest = marks, 0
            self._at_rest += 1
            if self._at_rest <= _CALLS_AT_REST:
                if self._loose is None:
                    self._loose = self._compile({})
                return self._loose(args)
            self._pack(weights)
        return self._packed([value for k, value in enumerate(args) if k not in self._held])

    def _pack(self, weights: Sequence[torch.Tensor]) -> None:
        self._packed = self._compile(dict(zip(self._places, weights, strict=True)))
        self._packed_marks = self._marks(weights)

    def _marks(self, weights: Sequence[torch.Tensor]) -> tuple[list[tuple[int, int]], bytes]:
        """Changes when the values do: where they lie, how often they were written, and some of them.

        What is written through `.data` or numpy moves no counter.
        """
        places = [(tensor.data_ptr(), tensor._version) for tensor in weights]
        if places != self._looked_at[0]:
            self._looked_at = places, [_some_numbers(tensor) for tensor in weights]
        return places, np.concatenate(self._looked_at[1]).tobytes() if weights else b""


def _some_numbers(tensor: torch.Tensor) -> NDArray[np.int32]:
    """A view of some of a tensor's memory, evenly spread."""
    with unset_fake_temporarily():
        memory = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).numpy()
    words: NDArray[np.int32] = memory[: len(memory) // 4 * 4].view(np.int32)
    return words[:: max(1, len(words) // _LOOKED_AT)]
