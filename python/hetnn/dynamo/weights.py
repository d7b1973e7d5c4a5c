"""Weights of a graph that torch may change between calls: constants for as long as they stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

Run = Callable[[Sequence[Any]], Sequence[Any]]
# Calls without a change after which weights are packed again: one that trains changes them before that.
_CALLS_AT_REST = 4


class Weights:
    """A graph twice: with its weights packed, and with weights as inputs for when they have changed.

    compile: makes a function of the remaining arguments; it is given the tensors that are constants, by their places.
    """

    def __init__(self, compile: Callable[[Mapping[int, torch.Tensor]], Run], held: Mapping[int, torch.Tensor]) -> None:
        self._compile = compile
        self._places = [k for k, tensor in held.items() if not tensor.is_inference()]
        self._held = frozenset(self._places)
        self._pack([held[k] for k in self._places])
        self._loose: Run | None = None
        self._at_rest = 0
        self._seen = self._packed_marks

    def run(self, args: Sequence[Any]) -> Sequence[Any]:
        """The outputs for all arguments of the graph, weights among them."""
        weights = [args[k] for k in self._places]
        marks = [_mark(tensor) for tensor in weights]
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
        self._packed_marks = [_mark(tensor) for tensor in weights]


def _mark(tensor: torch.Tensor) -> tuple[int, int]:
    """Changes when the values do: where they lie, and how often they were written."""
    return tensor.data_ptr(), tensor._version
