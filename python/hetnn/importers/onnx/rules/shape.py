"""ONNX operators that make constants and compute shapes; what shapes of symbols become without running a node."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from hetnn.element_types import NUMPY
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering import sizes
from hetnn.importers.onnx.model import dtype_name
from hetnn.importers.onnx.rules.call import LONGEST, MOST_NUMBERS, Array, Call, Sizes, is_float, rule
from hetnn.importers.onnx.rules.late import is_late, late, length_of
from hetnn.importers.onnx.rules.movement import filled, split_sizes


@rule("Constant")
def _constant(call: Call) -> Any:
    for name, dtype in (("value_float", "f32"), ("value_floats", "f32"), ("value_int", "i64"), ("value_ints", "i64")):
        if call.attr(name) is not None:
            return call.constant(call.attr(name), dtype)
    if call.attr("value_string") is not None:
        return [call.texts([call.attr("value_string")], [])]
    if call.attr("value_strings") is not None:
        return [call.texts(call.attr("value_strings"))]
    if call.attr("value") is None:
        raise Unsupported("a sparse Constant")
    return [call.tensor(call.attr("value"))]


@rule("ConstantOfShape")
def _constant_of_shape(call: Call) -> Any:
    value = call.attr("value")
    one = call.constant(0, "f32") if value is None else call.reshape(call.tensor(value), [])
    if is_late(call, 0) and call.read(0) is None:
        return late(call, "expand_to", [one, call[0]], length_of(call, 0, "the shape"))
    return call.broadcast_to(one, call.sizes(0, "the shape"))


@rule("EyeLike")
def _eye_like(call: Call) -> Any:
    dtype = call.dtype_attr("dtype") if call.attr("dtype") else call[0].dtype
    rows, columns = call.shape(0, 2)
    first = max(-LONGEST - 1, min(int(call.attr("k", 0)), LONGEST + 1))  # beyond these no matrix has a diagonal
    ones = call.create("arange", [], start=first, end=sizes.add(rows, first))
    places = call.create("arange", [], end=columns)
    return call.cast(call.create("eq", [call.reshape(ones, [rows, 1]), places]), dtype)


@rule("Range")
def _range(call: Call) -> Any:
    start, step = call.known(0), call.known(2)
    limit = call.known(1) if start is None or step is None else call.read(1)
    if start is None or limit is None or step is None:
        return late(call, "range_over", call.values(), 1)
    if any(x.size != 1 for x in (start, limit, step)):
        raise InvalidModel("a Range whose start, limit and step are not a number each")
    if object in (start.dtype, limit.dtype, step.dtype):
        first, pace = start.item(), step.item()
        if not isinstance(pace, int) or pace == 0:
            raise Unsupported(f"a Range between sizes with a step of {pace}")
        end = limit.item()
        if first != 0 or pace < 0 or not str(end).isidentifier():  # no symbol is negative
            end = (sizes.maximum if pace > 0 else sizes.minimum)(end, first)
        return call.create("arange", [], start=first, end=end, step=pace, dtype=call[0].dtype)
    if step.item() == 0:
        raise InvalidModel("a Range with a step of 0")
    count = (limit.item() - start.item()) / step.item()
    if not count <= MOST_NUMBERS:  # NaN, too
        raise Unsupported(f"a Range of {count:.0f} numbers; the most is {MOST_NUMBERS}")
    numbers = np.arange(start.item(), limit.item(), step.item()) if count > 0 else np.zeros(0)
    return call.constant(numbers, call[0].dtype)


@rule("Shape")
def _shape(call: Call) -> Any:
    shape = list(call[0].shape)
    start, end = call.attr("start", 0), call.attr("end")
    return as_sizes(call, np.array(shape, dtype=object)[slice(start, end)], "i64")


@rule("Size")
def _size(call: Call) -> Any:
    return as_sizes(call, np.array(sizes.product(call[0].shape), dtype=object), "i64")


def as_sizes(call: Call, array: Array, dtype: str) -> Any:
    """A constant where no symbol is left."""
    if any(isinstance(size, str) for size in array.reshape(-1)):
        return Sizes(array, dtype)
    try:
        return call.constant(array.astype(NUMPY[dtype]), dtype)
    except OverflowError:
        raise InvalidModel(
            f"{call.node.op_type} of sizes gives {list(array.reshape(-1))!s:.100}, beyond 64 bits"
        ) from None


# What operators do with arrays of sizes; None: it cannot be said, so a node does it.
_OnSizes = Callable[[Call, "list[Array]"], "Array | list[Array] | None"]


def _each(function: Callable[[Any, Any], Any]) -> _OnSizes:
    """Of two arrays, or of as many as there are one after another (Max, Min)."""
    ufunc = np.frompyfunc(function, 2, 1)
    return lambda call, arrays: np.asarray(reduce(ufunc, arrays), dtype=object)


def _equal(a: Any, b: Any) -> Any:
    """Sizes are not negative; whether two that differ in form are equal is not known."""
    if a == b:
        return True
    number = a if isinstance(a, int) else b
    return False if isinstance(number, int) and (number < 0 or isinstance(a, int) == isinstance(b, int)) else None


def _cut(call: Call, arrays: list[Array]) -> Array | None:
    starts, ends = (
        (call.attr("starts"), call.attr("ends"))
        if call.version < 10
        else (call.integers(1, "starts"), call.integers(2, "ends"))
    )
    axes = call.axes(3 if call.version >= 10 else None, arrays[0].ndim) or list(range(len(starts)))
    steps = call.integers(4, "steps") if call.given(4) else [1] * len(starts)
    if not len(axes) == len(starts) == len(ends) == len(steps):
        raise InvalidModel(
            f"a Slice of {len(axes)} axes with {len(starts)} starts, {len(ends)} ends and {len(steps)} steps"
        )
    cuts = [slice(None)] * arrays[0].ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        cuts[axis] = slice(start, end if step > 0 or end >= -arrays[0].shape[axis] else None, step)
    return arrays[0][tuple(cuts)]


def _reduced(function: Callable[[list[Any]], Any]) -> _OnSizes:
    def reduce(call: Call, arrays: list[Array]) -> Array | None:
        if arrays[0].ndim != 1:
            return None
        return np.array([function(list(arrays[0]))] if call.attr("keepdims", 1) else function(list(arrays[0])), object)

    return reduce


def _taken(call: Call, arrays: list[Array]) -> Array:
    size = arrays[0].shape[call.axis(call.attr("axis", 0), arrays[0].ndim)] if arrays[0].ndim else 1
    if any(not -size <= place < size for place in arrays[1].reshape(-1).tolist()):
        raise InvalidModel(f"a Gather of {arrays[1].tolist()} from {size}")
    return np.asarray(np.take(arrays[0], arrays[1].astype(np.int64), axis=call.attr("axis", 0)), dtype=object)


def _without_ones(call: Call, arrays: list[Array]) -> Array:
    axes = call.axes(1, arrays[0].ndim)
    return arrays[0].squeeze(None if axes is None else tuple(axes))


def _with_ones(call: Call, arrays: list[Array]) -> Array:
    axes = call.integers(1, "axes") if call.given(1) else call.attr("axes")
    return np.expand_dims(arrays[0], tuple(axes))


def _cast(call: Call, arrays: list[Array]) -> Array | None:
    return None if is_float(dtype_name(int(call.attr("to")))) else arrays[0]


def _chosen(call: Call, arrays: list[Array]) -> Array:
    return np.where(arrays[0].astype(bool), arrays[1], arrays[2])


def _expanded(call: Call, arrays: list[Array]) -> Array:
    wanted = np.broadcast_shapes(arrays[0].shape, tuple(call.integers(1, "the shape")))
    return np.broadcast_to(arrays[0], wanted)


def _parts(call: Call, arrays: list[Array]) -> list[Array] | None:
    if arrays[0].ndim != 1 or call.attr("axis", 0) not in (0, -1):
        return None
    parts = split_sizes(call, len(arrays[0]))
    return np.split(arrays[0], np.cumsum(parts)[:-1]) if all(isinstance(part, int) for part in parts) else None


_ON_SIZES: dict[str, _OnSizes] = {
    "Add": _each(sizes.add),
    "Sub": _each(sizes.subtract),
    "Mul": _each(sizes.multiply),
    "Div": _each(sizes.divide),
    "Mod": _each(sizes.modulo),
    "Max": _each(sizes.maximum),
    "Min": _each(sizes.minimum),
    "Equal": _each(_equal),
    "Identity": lambda call, arrays: arrays[0],
    "Cast": _cast,
    "Neg": lambda call, arrays: np.asarray(np.frompyfunc(lambda a: sizes.subtract(0, a), 1, 1)(arrays[0]), object),
    "Concat": lambda call, arrays: np.concatenate(arrays, axis=call.attr("axis", 1)),
    "Gather": _taken,
    "Slice": _cut,
    "Squeeze": _without_ones,
    "Unsqueeze": _with_ones,
    "Reshape": lambda call, arrays: arrays[0].reshape(filled(call.integers(1, "the shape"), arrays[0].shape)),
    "Expand": _expanded,
    "Split": _parts,
    "Where": _chosen,
    "ReduceProd": _reduced(sizes.product),
    "ReduceSum": _reduced(sizes.total),
    "Transpose": lambda call, arrays: arrays[0].transpose(call.attr("perm")),
    "Shape": lambda call, arrays: np.array(arrays[0].shape, dtype=object),
    "Size": lambda call, arrays: np.array(arrays[0].size, dtype=object),
}


# Of these the inputs behind the first one say which of its numbers go where.
_PLACING = ("Expand", "Gather", "Reshape", "Slice", "Split", "Squeeze", "Unsqueeze")


def computes_sizes(call: Call) -> bool:
    """Whether the operator can be computed on sizes."""
    return call.node.domain in ("", "ai.onnx") and call.node.op_type in _ON_SIZES


def of_sizes(call: Call, given: list[Array]) -> list[Array] | None:
    """What the node gives for inputs of sizes and numbers; None where nodes of the graph compute it."""
    arrays = [np.asarray(array.tolist(), dtype=object) for array in given]
    placing = arrays[1:] if call.node.op_type in _PLACING else []
    if any(isinstance(size, str) for array in placing for size in array.reshape(-1)):
        return None
    try:
        found = _ON_SIZES[call.node.op_type](call, arrays)
    except (IndexError, ValueError, OverflowError):  # numpy's, of shapes and axes: the operator says what is wrong
        return None
    if found is None:
        return None
    outputs = found if isinstance(found, list) else [found]
    return None if any(size is None for output in outputs for size in output.reshape(-1)) else outputs


def on_sizes(call: Call) -> list[Any] | None:
    """The node's values where its inputs are sizes and known numbers; None where nodes of the graph compute them."""
    if not computes_sizes(call) or not any(isinstance(value, Sizes) for value in call.inputs):
        return None
    known = [call.known(k) for k, value in enumerate(call.inputs) if value is not None]
    arrays = [array for array in known if array is not None]
    outputs = of_sizes(call, arrays) if len(arrays) == len(known) else None
    if outputs is None:
        return None
    if call.node.op_type == "Equal":
        return [call.constant(outputs[0], "bool")]
    return [as_sizes(call, output, _integer_type(call)) for output in outputs]


def _integer_type(call: Call) -> str:
    if call.node.op_type == "Cast":
        return dtype_name(int(call.attr("to")))
    return next(value.dtype for value in call.inputs if isinstance(value, Sizes))
