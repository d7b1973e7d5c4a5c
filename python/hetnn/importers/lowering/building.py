"""What the rules of every front build with: nodes, constants, casts and reshapes where a model's node stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn import _core
from hetnn.element_types import numpy_type
from hetnn.importers.lowering.sizes import Size

# Whose inputs broadcast with one another.
BROADCASTING = frozenset(
    op["name"] for op in _core.operators() if "elementwise" in op["traits"] and "channelwise" not in op["traits"]
)


class Building(ABC):
    """A node of a model that becomes nodes of the graph. Values have `dtype` and `shape`."""

    @abstractmethod
    def create_all(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any]) -> list[Any]:
        """A node of the graph; its outputs."""

    @abstractmethod
    def constant(self, value: Any, dtype: str) -> Any: ...

    def create(self, op: str, inputs: Sequence[Any], **attrs: Any) -> Any:
        return self.create_all(op, inputs, attrs)[0]

    def array(self, value: Any, dtype: str) -> np.ndarray[Any, Any]:
        kind = np.dtype(numpy_type(dtype))
        if isinstance(value, int) and kind.kind in "iu":
            return np.asarray(value, np.int64).astype(kind)  # a number wraps, as in torch
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
        return value if value.dtype == dtype else self.create("cast", [value], to=dtype)

    def reshape(self, value: Any, shape: Sequence[Size]) -> Any:
        return value if list(value.shape) == list(shape) else self.create("reshape", [value], shape=list(shape))
