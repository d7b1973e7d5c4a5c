"""Pooling over one, two or three axes, of any front, by that of images."""

from __future__ import annotations

from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.lowering.building import Building

_NEUTRAL = {"kernel": 1, "stride": 1, "padding": 0, "dilation": 1}


def pool(call: Building, op: str, x: Any, window: dict[str, list[int]], **attrs: Any) -> Any:
    """Over the axes of [N,C,...] behind the channels; of three, the last two and then the one before them.

    `window` has a number for each axis, of padding perhaps those before all axes and then those behind them.
    """
    count = len(window["kernel"])
    if count == 2:
        return call.create(op, [x], **window, **attrs)
    if count == 1:
        image = call.reshape(x, [*x.shape[:2], 1, x.shape[2]])
        y = call.create(op, [image], **_with_neutral(window, slice(None), before=True), **attrs)
        return call.reshape(y, [*y.shape[:2], y.shape[3]])
    if count != 3:
        raise Unsupported(f"pooling over {count} axes")
    n, c, depth, height, width = x.shape
    planes = call.reshape(x, [n, c * depth, height, width])
    last = {name: [k for at, k in enumerate(values) if at % 3] for name, values in window.items()}
    planes = call.create(op, [planes], **last, **attrs)
    height, width = planes.shape[2:]
    columns = call.reshape(planes, [n, c, depth, height * width])
    columns = call.create(op, [columns], **_with_neutral(window, slice(None, None, 3), before=False), **attrs)
    return call.reshape(columns, [n, c, columns.shape[2], height, width])


def _with_neutral(window: dict[str, list[int]], axes: slice, before: bool) -> dict[str, list[int]]:
    """A window over one axis as over two, of which the other one, before or behind it, has the size 1."""

    def pair(name: str, value: int) -> list[int]:
        return [_NEUTRAL[name], value] if before else [value, _NEUTRAL[name]]

    return {name: [k for value in values[axes] for k in pair(name, value)] for name, values in window.items()}
