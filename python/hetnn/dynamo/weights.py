"""Weights of a graph that torch may change between calls: constants for as long as they stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any
from weakref import finalize, ref

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from hetnn._runtime import Watch

Run = Callable[[Sequence[Any]], Sequence[Any]]
# Calls without a change after which weights are packed again: one that trains changes them before that.
_CALLS_AT_REST = 4
# Of a tensor, numbers of 4 bytes that are looked at in every call.
_LOOKED_AT = 16
_version_of = attrgetter("_version")
# What tells whether weights are as they were: where they lie, how often they were written, and some of their numbers.
_Marks = tuple[list[int], list[int], bytes]


class Weights:
    """A graph with its weights packed, for every model that shares it, and with weights as inputs for when they have
    changed.

    compile: makes a function of the remaining arguments; it is given the tensors that are constants, by their places.
    """

    def __init__(self, compile: Callable[[Mapping[int, torch.Tensor]], Run], held: Mapping[int, torch.Tensor]) -> None:
        self._compile = compile
        self._places = [k for k, tensor in held.items() if not tensor.is_inference()]
        self._weights_of = _several(self._places)
        self._others: list[int] | None = None
        # Layers of one class are one graph for torch: a model of each, by its tensors, for as long as these live.
        self._models: dict[tuple[int, ...], _Model] = {}
        self._loose: Run | None = None
        weights = [held[k] for k in self._places]
        model = self._new_model(tuple(map(id, weights)), weights)
        self._pack(model, weights, model.marks(weights))

    def run(self, args: Sequence[Any]) -> Sequence[Any]:
        """The outputs for all arguments of the graph, weights among them."""
        weights = self._weights_of(args)
        known = tuple(map(id, weights))
        model = self._models.get(known) or self._new_model(known, weights)
        marks = model.marks(weights)
        if marks != model.packed_marks:
            if model.has_rested(marks):
                self._pack(model, weights, marks)
            else:
                if self._loose is None:
                    self._loose = self._compile({})
                return self._loose(args)
        assert model.packed is not None
        if self._others is None:
            self._others = sorted({*range(len(args))} - {*self._places})
        return model.packed([args[k] for k in self._others])

    def _new_model(self, known: tuple[int, ...], weights: Sequence[torch.Tensor]) -> _Model:
        made = self._models[known] = _Model()
        for tensor in weights:
            finalize(tensor, _forget, ref(self), known)
        return made

    def _pack(self, model: _Model, weights: Sequence[torch.Tensor], marks: _Marks) -> None:
        model.packed = self._compile(dict(zip(self._places, weights, strict=True)))
        model.packed_marks = marks


def _forget(weights: ref[Weights], known: tuple[int, ...]) -> None:
    held = weights()
    if held is not None:
        held._models.pop(known, None)


class _Model:
    """The weights of one model."""

    def __init__(self) -> None:
        self.packed: Run | None = None
        self.packed_marks: _Marks | None = None
        self._seen: _Marks | None = None
        self._at_rest = 0
        self._watched: tuple[list[int], Watch] = [], Watch([], _LOOKED_AT)

    def has_rested(self, marks: _Marks) -> bool:
        """Whether weights that are not those that were packed have stayed for some calls, this one among them."""
        if marks != self._seen:
            self._seen, self._at_rest = marks, 0
        self._at_rest += 1
        return self._at_rest > _CALLS_AT_REST

    def marks(self, weights: Sequence[torch.Tensor]) -> _Marks:
        """Changes when the values do. What is written through `.data` or numpy moves no counter."""
        places = list(map(torch.Tensor.data_ptr, weights))
        if places != self._watched[0]:
            self._watched = places, Watch([_memory(tensor) for tensor in weights], _LOOKED_AT)
        return places, list(map(_version_of, weights)), self._watched[1].look()


def _several(places: list[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda args: [args[k] for k in places]


def _memory(tensor: torch.Tensor) -> Any:
    """A view of all that a tensor's storage holds."""
    with unset_fake_temporarily():
        return torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).numpy()
