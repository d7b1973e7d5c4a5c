"""What the rules of every front build with: nodes, constants, casts and reshapes where a model's node stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from hetnn.element_types import numpy_type
from hetnn.importers.lowering.sizes import Size, product
from hetnn.importers.registry import operators

# Whose inputs broadcast with one another.
BROADCASTING = frozenset(
    op["name"] for op in operators() if "elementwise" in op["traits"] and "channelwise" not in op["traits"]
)

# Of a value that an executable holds.
MOST_AXES = 8
# Axes whose pairs, with what lies before them, are no more.
_REPEATED_AT_ONCE = 3


class Building(ABC):
    """A node of a model that becomes nodes of the graph. Values have `dtype` and `shape`."""

    @abstractmethod
    def create_all(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any]) -> list[Any]:
        """A node of the graph; its outputs."""

    @abstractmethod
    def constant(self, value: Any, dtype: str) -> Any:
        """Numbers as a constant of an element type; its shape is that of `array(value, dtype)`."""

    def create(self, op: str, inputs: Sequence[Any], **attrs: Any) -> Any:
        """The first output of a node of the graph."""
        return self.create_all(op, inputs, attrs)[0]

    def array(self, value: Any, dtype: str) -> np.ndarray[Any, Any]:
        """Numbers as an array of an element type; integers that it does not hold wrap."""
        kind = np.dtype(numpy_type(dtype))
        if isinstance(value, int) and kind.kind in "iu":
            return np.asarray(value % (1 << 64), np.uint64).astype(kind)  # a number wraps, as in torch
        return np.asarray(value, dtype=kind)

    def whole(self, size: Size) -> Any:
        """A size as an i64 that nodes can compute with: [] when it is fixed, [1] when it depends on symbols."""
        if isinstance(size, int):
            return self.constant(size, "i64")
        return self.create("arange", [], start=size, end=size + 1)

    def places(self, index: Any, size: Size) -> Any:
        """As from_the_front; a run with an index outside the axis ends."""
        return self.create("flat_index", [index], sizes=[size])

    def from_the_front(self, index: Any, size: Size) -> Any:
        """Indices along an axis of that size, those that count from its end made to count from its start."""
        negative = self.cast(self.create("lt", [index, self.constant(0, "i64")]), "i64")
        return self.create("add", [index, self.create("mul", [negative, self.whole(size)])])

    def cast(self, value: Any, dtype: str) -> Any:
        """The value in an element type; itself where it has that already."""
        return value if value.dtype == dtype else self.create("cast", [value], to=dtype)

    def like(self, number: float, value: Any) -> Any:
        """A number as a constant of a value's element type."""
        return self.constant(number, value.dtype)

    def joined(self, values: Sequence[Any], axis: int) -> Any:
        """Values one behind the other along an axis."""
        return values[0] if len(values) == 1 else self.create("concat", values, axis=axis)

    def folded(self, op: str, values: Iterable[Any]) -> Any:
        """Values joined by an operator of two, from the first to the last."""
        return reduce(lambda a, b: self.create(op, [a, b]), values)

    def stacked(self, values: Sequence[Any], axis: int) -> Any:
        """Values of one shape along a new axis."""
        shape = list(values[0].shape)
        return self.joined([self.reshape(value, [*shape[:axis], 1, *shape[axis:]]) for value in values], axis)

    def entry(self, value: Any, place: int, axis: int = 0) -> Any:
        """What stands at a place of an axis, without that axis."""
        part = self.create("slice", [value], axis=axis, start=place, end=place + 1)
        return self.reshape(part, [size for k, size in enumerate(value.shape) if k != axis])

    def linear(self, x: Any, weight: Any, bias: Any) -> Any:
        """x weightᵀ + bias."""
        return self.create("linear", [x, weight, bias])

    def hot(self, places: Any, count: Size, axis: int) -> Any:
        """A new axis of that size, true at the places [...] and false elsewhere."""
        rank = len(places.shape)
        index = self.reshape(places, [*places.shape[:axis], 1, *places.shape[axis:]])
        counted = self.reshape(self.create("arange", [], end=count), [count, *[1] * (rank - axis)])
        return self.create("eq", [index, counted])

    def broadcast_to(self, value: Any, shape: Sequence[Size]) -> Any:
        """The value repeated to a shape; itself where it has that already."""
        return value if list(value.shape) == list(shape) else self.create("expand", [value], shape=list(shape))

    def repeated(self, value: Any, counts: Sequence[Size]) -> Any:
        """The value so many times along each of its axes, one behind another."""
        many = [axis for axis, count in enumerate(counts) if count != 1]
        if not many:
            return value
        # Each axis stands behind one that is expanded; where there are too many, what follows joins the axis before it.
        steps: list[Sequence[int]] = [range(len(counts))]
        if 2 * len(counts) > MOST_AXES:
            steps = [many[k : k + _REPEATED_AT_ONCE] for k in range(0, len(many), _REPEATED_AT_ONCE)]
        for axes in steps:
            shape = list(value.shape)
            apart, spread = [[product(shape[: axes[0]])] if axes[0] > 0 else [] for _ in range(2)]
            for axis, behind in zip(axes, [*axes[1:], len(shape)], strict=True):
                inner = product(shape[axis:behind])
                apart, spread = [*apart, 1, inner], [*spread, counts[axis], inner]
            whole = [size * counts[k] if k in axes else size for k, size in enumerate(shape)]
            value = self.reshape(self.broadcast_to(self.reshape(value, apart), spread), whole)
        return value

    def permuted(self, value: Any, order: Sequence[int]) -> Any:
        """Axis k of the result is the value's axis order[k]: the value itself where it has that order."""
        return value if list(order) == sorted(order) else self.create("permute", [value], perm=list(order))

    def reshape(self, value: Any, shape: Sequence[Size]) -> Any:
        """The same elements in another shape; the value itself where it has that already."""
        return value if list(value.shape) == list(shape) else self.create("reshape", [value], shape=list(shape))
