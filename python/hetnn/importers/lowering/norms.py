"""Norms of any front: of order p, and values brought to mean 0 and variance 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from hetnn.importers.lowering.building import Building


def p_norm(call: Building, x: Any, order: float, over: Callable[[str, Any], Any]) -> Any:
    """(sum |x|^order)^(1/order); `over` reduces a value by an operator."""
    if order == 2:
        return call.create("sqrt", [over("sum", call.create("mul", [x, x]))])
    size = call.create("abs", [x])
    if math.isinf(order):
        return over("reduce_max" if order > 0 else "reduce_min", size)
    if order == 0:
        return over("sum", call.cast(call.create("ne", [x, call.like(0, x)]), x.dtype))
    if order == 1:
        return over("sum", size)
    total = over("sum", call.create("pow", [size, call.like(order, x)]))
    return call.create("pow", [total, call.like(1 / order, x)])


def moments(call: Building, x: Any, axes: Sequence[int]) -> tuple[Any, Any, Any]:
    """The mean over the axes, which stay with size 1, what x is away from it, and the variance."""
    mean = call.create("mean", [x], axes=list(axes), keepdim=True)
    away = call.create("sub", [x, mean])
    return mean, away, call.create("mean", [call.create("mul", [away, away])], axes=list(axes), keepdim=True)


def standardized(call: Building, x: Any, axes: Sequence[int], eps: float) -> tuple[Any, Any, Any]:
    """(x - mean) / sqrt(variance + eps) over the axes; the mean and the factor 1 / sqrt(…) with it."""
    mean, away, variance = moments(call, x, axes)
    factor = call.create("rsqrt", [call.create("add", [variance, call.like(eps, x)])])
    return call.create("mul", [away, factor]), mean, factor
