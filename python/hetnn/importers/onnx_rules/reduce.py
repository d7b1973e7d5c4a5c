"""ONNX operators that reduce axes: sums, norms, extremes and where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hetnn.importers.onnx_rules.call import Call, rule
from hetnn.importers.onnx_rules.late import is_late, late, length_of

_Reduce = Callable[[str, Any], Any]


def _reduce(call: Call, meaning: Callable[[_Reduce, Any], Any]) -> Any:
    """`meaning` of a function that reduces a value by an operator over the node's axes."""
    x = call[0]
    keep, noop = bool(call.attr("keepdims", 1)), bool(call.attr("noop_with_empty_axes", 0))
    if is_late(call, 1):
        rank = len(x.shape) if keep or noop else max(len(x.shape) - length_of(call, 1, "axes"), 0)
        told = {"keepdim": keep, "none_if_empty": noop}
        return meaning(lambda op, value: late(call, "reduce_over", [value, call[1]], rank, reduction=op, **told), x)
    axes = call.axes(1, len(x.shape))
    nothing = not axes and noop

    def over(op: str, value: Any) -> Any:
        return value if nothing or not value.shape else call.create(op, [value], axes=axes or [], keepdim=keep)

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


@rule("ReduceL1")
def _l1(call: Call) -> Any:
    return _reduce(call, lambda over, x: over("sum", call.create("abs", [x])))


@rule("ReduceL2")
def _l2(call: Call) -> Any:
    return _reduce(call, lambda over, x: call.create("sqrt", [over("sum", call.create("mul", [x, x]))]))


@rule("ReduceSumSquare")
def _sum_square(call: Call) -> Any:
    return _reduce(call, lambda over, x: over("sum", call.create("mul", [x, x])))


@rule("ReduceLogSum")
def _log_sum(call: Call) -> Any:
    return _reduce(call, lambda over, x: call.create("log", [over("sum", x)]))


@rule("ReduceLogSumExp")
def _log_sum_exp(call: Call) -> Any:
    return _reduce(call, lambda over, x: call.create("log", [over("sum", call.create("exp", [x]))]))


def place_of_extreme(call: Call, x: Any, axis: int, op: str, last: bool) -> Any:
    """Where the greatest or least value along an axis stands, [.., 1, ..] of i64: the first such place, or the last."""
    size = call.static_shape(x, "the place of an extreme value along an axis")[axis]
    extreme = call.create(op, [x], axes=[axis], keepdim=True)
    places = np.arange(size).reshape([size, *[1] * (len(x.shape) - axis - 1)])
    none = call.constant(-1 if last else size, "i64")
    there = call.create("where", [call.create("eq", [x, extreme]), call.constant(places, "i64"), none])
    return call.create("reduce_max" if last else "reduce_min", [there], axes=[axis], keepdim=True)


@rule("ArgMax", "ArgMin")
def _place(call: Call) -> Any:
    x = call[0]
    axis = call.axis(call.attr("axis"), len(x.shape))
    op = "reduce_max" if call.node.op_type == "ArgMax" else "reduce_min"
    place = place_of_extreme(call, x, axis, op, bool(call.attr("select_last_index", 0)))
    if call.attr("keepdims"):
        return place
    return call.reshape(place, [size for k, size in enumerate(place.shape) if k != axis])


@rule("Hardmax")
def _hardmax(call: Call) -> Any:
    x = call[0]
    shape = list(x.shape)
    axis = call.axis(call.attr("axis"), len(shape))
    if call.version < 13:  # over all axes from this one on
        static = call.static_shape(x, "Hardmax")
        x = call.reshape(x, [int(np.prod(static[:axis])), int(np.prod(static[axis:]))])
        axis = 1
    size = x.shape[axis]
    place = place_of_extreme(call, x, axis, "reduce_max", last=False)
    places = np.arange(size).reshape([size, *[1] * (len(x.shape) - axis - 1)])
    hot = call.cast(call.create("eq", [call.constant(places, "i64"), place]), x.dtype)
    return call.reshape(hot, shape)


@rule("CumSum")
def _cumulative_sum(call: Call) -> Any:
    x = call[0]
    rank = len(x.shape)
    if not is_late(call, 1):
        return _summed(call, x, call.axis(int(call.number(1, "axis")), rank))
    # Along every axis, of which the one that is named counts.
    wanted = call.from_the_front(call.reshape(call.cast(call[1], "i64"), []), rank)
    out = _summed(call, x, 0)
    for axis in range(1, rank):
        here = call.create("eq", [wanted, call.constant(axis, "i64")])
        out = call.create("where", [here, _summed(call, x, axis), out])
    return out


def _summed(call: Call, x: Any, axis: int) -> Any:
    """A product with a triangle of ones, along the axis moved to the end."""
    rank = len(x.shape)
    size = call.static_shape(x, "CumSum")[axis]
    rows, columns = np.indices((size, size))
    if call.attr("reverse"):
        rows, columns = columns, rows
    triangle = rows < columns if call.attr("exclusive") else rows <= columns
    perm = [k for k in range(rank) if k != axis] + [axis]
    turned = call.reshape(call.create("permute", [x], perm=perm), [_others(x, axis), size])
    summed = call.create("matmul", [turned, call.constant(triangle, x.dtype)])
    back = call.reshape(summed, [x.shape[k] for k in perm])
    return call.create("permute", [back], perm=[perm.index(k) for k in range(rank)])


def _others(x: Any, axis: int) -> int:
    return int(np.prod([size for k, size in enumerate(x.shape) if k != axis], dtype=np.int64))
