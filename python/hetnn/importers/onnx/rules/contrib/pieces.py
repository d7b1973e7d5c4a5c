"""What rules of several families take apart and put together."""

from __future__ import annotations

from typing import Any

from hetnn.importers.lowering.sizes import Size
from hetnn.importers.onnx.rules.call import Call


def part(call: Call, x: Any, start: Size, end: Size, axis: int = -1) -> Any:
    """Elements of an axis."""
    return call.create("slice", [x], axis=call.axis(axis, len(x.shape)), start=start, end=end, inside=True)


def places(call: Call, size: Size, rank: int, axis: int, first: Any = None) -> Any:
    """0, 1, … along an axis of so many axes, each more by `first`."""
    row = call.reshape(call.create("arange", [], end=size), [size if k == axis else 1 for k in range(rank)])
    return row if first is None else call.create("add", [row, first])


def total(call: Call, *parts: Any) -> Any:
    """The sum of those that there are; None of none."""
    there = [value for value in parts if value is not None]
    return call.folded("add", there) if there else None


def channels_first(call: Call, x: Any) -> Any:
    """[batch, …, channels] as [batch, channels, …]."""
    rank = len(x.shape)
    return call.create("permute", [x], perm=[0, rank - 1, *range(1, rank - 1)])


def channels_last(call: Call, y: Any) -> Any:
    """The way back."""
    return call.create("permute", [y], perm=[0, *range(2, len(y.shape)), 1])
