"""Stands for values of an ONNX model that are no tensors of numbers: sizes, sequences, texts, sides of conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.sizes import Size

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Sizes:
    """Integers that depend on the model's symbols, as shapes do: an array of sizes."""

    array: Array
    dtype: str = "i64"

    @property
    def shape(self) -> list[int]:
        """That of the array."""
        return list(self.array.shape)


@dataclass(frozen=True)
class Items:
    """A sequence of values whose length is known; `dtype` is that of an empty one."""

    values: tuple[Any, ...]
    dtype: str = "f32"


@dataclass(frozen=True)
class Tensors:
    """A sequence whose length may be known only when the model runs, as two values (ops/sequence/sequence.h).

    `sizes` is what is known of every tensor's shape: None where its rank is not, in it None where a size is not; a text
    is what the model calls a size. `begun`: a loop begins with it and no tensor is in it, so that it says nothing of
    those that rounds put there.
    """

    values: Any
    shapes: Any
    sizes: tuple[int | str | None, ...] | None
    begun: bool = False


@dataclass(frozen=True)
class AnyRank:
    """A tensor that leaves the model and whose rank only a run says: its elements, and a row of its rank and sizes."""

    values: Any
    shapes: Any


@dataclass(frozen=True)
class Maybe:
    """An optional value of which a bool says whether it is there; where it is not, what `value` holds means nothing."""

    there: Any
    value: Any


@dataclass(frozen=True)
class Nothing:
    """An optional value that is absent."""


@dataclass(frozen=True)
class Records:
    """Of each row of a matrix its numbers by a key for each column, as what classifiers give ends."""

    keys: tuple[int | str, ...]
    rows: Any


@dataclass(frozen=True)
class Text:
    """A tensor of texts, as two values (ops/text/text.h)."""

    bytes: Any
    spans: Any

    @property
    def shape(self) -> list[Size]:
        """The shape of the tensor of texts."""
        return list(self.spans.shape)


@dataclass(frozen=True)
class Fork:
    """One of two values that are unlike in rank: the first where the condition holds. Each may be a Fork in turn."""

    condition: Any
    sides: tuple[Any, Any]


@dataclass(frozen=True)
class Rows:
    """A value that is computed only where the conditions of `path` hold, or do not: of one row there, else of none.

    `sizes` are those of a row, None where only `rows` says them.
    """

    rows: Any
    sizes: Sequence[Size | None]
    path: tuple[tuple[Any, bool], ...]


@dataclass(frozen=True)
class Refused:
    """What a node gives on a side of a Fork where the standard has no such node, and why."""

    reason: str


# What one side of a condition has.
ONE_SIDED = (Fork, Rows, Refused)
# What is no tensor of real numbers.
NESTED = (AnyRank, Items, Tensors, Maybe, Nothing, Records, Text, Complex)
