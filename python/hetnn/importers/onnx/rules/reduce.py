"""ONNX operators that reduce axes: sums, norms, extremes and where they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hetnn._core import Dim
from hetnn.element_types import NUMPY, is_float
from hetnn.errors import Unsupported
from hetnn.importers.lowering.norms import p_norm
from hetnn.importers.lowering.sizes import product
from hetnn.importers.onnx.rules.call import Call, rule
from hetnn.importers.onnx.rules.late import axes_count, is_late_number, late

_Reduce = Callable[[str, Any], Any]


_EXTREMES = ("reduce_max", "reduce_min")


def _limit(dtype: str, least: bool) -> float:
    """The least number of a type, or the greatest: what the extreme of nothing is."""
    if is_float(dtype):
        return -math.inf if least else math.inf
    limits = np.iinfo(NUMPY[dtype])
    return int(limits.min if least else limits.max)


def _of_nothing(call: Call, op: str, value: Any, shape: list[Any]) -> Any:
    """The extreme of no elements: the least of all numbers, or the greatest."""
    return call.broadcast_to(call.like(_limit(value.dtype, op == "reduce_max"), value), shape)


def _with_limit(call: Call, op: str, value: Any, axes: Iterable[int]) -> Any:
    """The value, and where values say how long an axis is the limit behind it: it may turn out to be empty."""
    for axis in axes:
        size = value.shape[axis]
        if isinstance(size, Dim) and any(not call.is_named(symbol) for symbol in size.symbols):
            shape = [1 if k == axis else n for k, n in enumerate(value.shape)]
            value = call.create("concat", [value, _of_nothing(call, op, value, shape)], axis=axis)
    return value


def _declared(call: Call, rank: int) -> list[int]:
    declared = call.declared() or []
    sizes = [size for size in declared if isinstance(size, int)]
    if len(sizes) != rank or len(declared) != rank:
        raise Unsupported("axes of an empty tensor that are computed when the model runs, to an open shape")
    return sizes


def _reduce(call: Call, meaning: Callable[[_Reduce, Any], Any]) -> Any:
    """`meaning` of a function that reduces a value by an operator over the node's axes."""
    x = call[0]
    keep, noop = bool(call.attr("keepdims", 1)), bool(call.attr("noop_with_empty_axes", 0))
    if is_late_number(call, 1):
        rank = len(x.shape)
        if not keep:  # else any number of axes leaves as many
            count = axes_count(call, 1, rank, -1)
            rank = rank if noop and not count else max(rank - count, 0) if count else 0
        told: dict[str, Any] = {"keepdim": keep, "none_if_empty": noop}

        def over_late(op: str, value: Any) -> Any:
            if op in _EXTREMES and 0 in value.shape:
                return _of_nothing(call, op, value, _declared(call, rank))
            return late(call, "reduce_over", [value, call[1]], rank, reduction=op, **told)

        return meaning(over_late, x)
    axes = call.axes(1, len(x.shape))
    nothing = not axes and noop
    reduced = set(axes or range(len(x.shape)))

    def over(op: str, value: Any) -> Any:
        if nothing or not value.shape:
            return value
        if op in _EXTREMES and any(value.shape[axis] == 0 for axis in reduced):
            sizes = [1 if axis in reduced else size for axis, size in enumerate(value.shape)]
            left = [size for axis, size in enumerate(sizes) if keep or axis not in reduced]
            return _of_nothing(call, op, value, left)
        if op not in _EXTREMES or all(isinstance(value.shape[axis], int) for axis in reduced):
            return call.create(op, [value], axes=axes or [], keepdim=keep)
        if is_float(value.dtype) or value.dtype in ("i64", "u64"):
            return call.create(op, [value], axes=axes or [], keepdim=keep, of_none=True)
        return call.create(op, [_with_limit(call, op, value, reduced)], axes=axes or [], keepdim=keep)

    return meaning(over, x)


@rule("ReduceSum", "ReduceMean", "ReduceProd")
def _plain(call: Call) -> Any:
    op = {"ReduceSum": "sum", "ReduceMean": "mean", "ReduceProd": "prod"}[call.node.op_type]
    return _reduce(call, lambda over, x: over(op, x))


@rule("ReduceMax", "ReduceMin")
def _extreme(call: Call) -> Any:
    greatest = call.node.op_type == "ReduceMax"
    of_bools = "any" if greatest else "all"
    of_numbers = "reduce_max" if greatest else "reduce_min"
    return _reduce(call, lambda over, x: over(of_bools if x.dtype == "bool" else of_numbers, x))


def _of_real(call: Call, x: Any, meaning: Callable[[Any], Any]) -> Any:
    """A function of real numbers, of integers cut towards zero."""
    return meaning(x) if is_float(x.dtype) else call.cast(meaning(call.cast(x, "f64")), x.dtype)


@rule("ReduceL1")
def _sum_of_sizes(call: Call) -> Any:
    return _reduce(call, lambda over, x: p_norm(call, x, 1, over))


@rule("ReduceL2")
def _norm(call: Call) -> Any:
    return _reduce(call, lambda over, x: _of_real(call, x, lambda real: p_norm(call, real, 2, over)))


@rule("ReduceSumSquare")
def _sum_square(call: Call) -> Any:
    return _reduce(call, lambda over, x: over("sum", call.create("mul", [x, x])))


@rule("ReduceLogSum")
def _log_sum(call: Call) -> Any:
    return _reduce(call, lambda over, x: _of_real(call, x, lambda real: call.create("log", [over("sum", real)])))


@rule("ReduceLogSumExp")
def _log_sum_exp(call: Call) -> Any:
    return _reduce(call, lambda over, x: _of_real(call, x, lambda real: _log_of_powers(call, over, real)))


def _log_of_powers(call: Call, over: _Reduce, x: Any) -> Any:
    """log sum e^x = m + log sum e^(x - m), m the greatest of x where it is finite: no power is too large."""
    if is_late_number(call, 1):  # m would need the axes that only the run says
        return call.create("log", [over("sum", call.create("exp", [x]))])
    axes = call.axes(1, len(x.shape)) or list(range(len(x.shape)))
    if 0 in x.shape or not x.shape or (call.attr("noop_with_empty_axes", 0) and not call.axes(1, len(x.shape))):
        return call.create("log", [over("sum", call.create("exp", [x]))])
    greatest = call.create("reduce_max", [x], axes=axes, keepdim=True, of_none=True)
    infinite = call.create("eq", [call.create("abs", [greatest]), call.like(math.inf, x)])
    m = call.create("where", [infinite, call.like(0, x), greatest])
    powers = over("sum", call.create("exp", [call.create("sub", [x, m])]))
    return call.create("add", [call.create("log", [powers]), call.reshape(m, list(powers.shape))])


@rule("Hardmax")
def _hardmax(call: Call) -> Any:
    x = call[0]
    shape = list(x.shape)
    axis = call.axis(call.attr("axis"), len(shape))
    if call.version < 13:  # over all axes from this one on
        x = call.reshape(x, [product(shape[:axis]), product(shape[axis:])])
        axis = 1
    size = x.shape[axis]
    if size == 0:
        return call[0]
    if not isinstance(size, int):  # of no elements there is no greatest one, and none to mark
        behind = [int(k == axis) for k in range(len(x.shape))]
        x = call.create("pad", [x], padding=[0] * len(behind) + behind, value=_limit(x.dtype, least=True))
    place = call.create("argmax", [x], axis=axis)
    return call.reshape(call.cast(call.hot(place, size, axis), x.dtype), shape)
