"""ONNX operators that make constants and compute shapes; what shapes of symbols become without running a node."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from hetnn._core import Dim
from hetnn.element_types import NUMPY
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering import sizes
from hetnn.importers.lowering.sizes import LONGEST
from hetnn.importers.onnx.model import dtype_name
from hetnn.importers.onnx.rules.call import FOLDED_BYTES, MOST_NUMBERS, Call, rule
from hetnn.importers.onnx.rules.late import is_late, late, shape_length
from hetnn.importers.onnx.rules.movement import filled, split_sizes
from hetnn.importers.onnx.values import Array, Sizes


@rule("Constant")
def _constant(call: Call) -> Any:
    for name, dtype in (("value_float", "f32"), ("value_floats", "f32"), ("value_int", "i64"), ("value_ints", "i64")):
        if call.attr(name) is not None:
            return call.constant(call.attr(name), dtype)
    if call.attr("value_string") is not None:
        return [call.texts([call.attr("value_string")], [])]
    if call.attr("value_strings") is not None:
        return [call.texts(call.attr("value_strings"))]
    if call.attr("sparse_value") is not None:
        return [call.tensor(call.attr("sparse_value"))]
    if call.attr("value") is None:
        raise InvalidModel("a Constant without a value")
    return [call.tensor(call.attr("value"))]


@rule("ConstantOfShape")
def _constant_of_shape(call: Call) -> Any:
    value = call.attr("value")
    one = call.constant(0, "f32") if value is None else call.reshape(call.tensor(value), [])
    if is_late(call, 0) and call.read(0) is None:
        rank = shape_length(call, 0)
        return late(call, "expand_to", [one, call[0]], rank)
    shape = call.sizes(0, "the shape")
    known = call.known_of(one)
    fixed = [size for size in shape if isinstance(size, int) and size >= 0]
    if known is not None and len(fixed) == len(shape) and math.prod(fixed) * known.itemsize <= FOLDED_BYTES:
        return call.constant(np.broadcast_to(known, fixed), one.dtype)
    return call.broadcast_to(one, shape)


@rule("EyeLike")
def _eye_like(call: Call) -> Any:
    dtype = call.dtype_attr("dtype") if call.attr("dtype") else call[0].dtype
    rows, columns = call.shape(0, 2)
    first = max(-LONGEST - 1, min(int(call.attr("k", 0)), LONGEST + 1))  # beyond these no matrix has a diagonal
    ones = call.create("arange", [], start=first, end=rows + first)
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
        if not isinstance(pace, int):
            return late(call, "range_over", call.values(), 1)
        if pace == 0:
            raise InvalidModel("a Range with a step of 0")
        end = limit.item()
        if first != 0 or pace < 0 or not isinstance(end, Dim) or not end.name:  # no symbol is negative
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
    return as_sizes(call, np.array(shape_between(call, call[0].shape), dtype=object), "i64")


def shape_between(call: Call, shape: Sequence[Any]) -> list[Any]:
    """The sizes that a Shape's start and end leave."""
    return list(shape)[slice(call.attr("start", 0), call.attr("end"))]


@rule("Size")
def _size(call: Call) -> Any:
    return as_sizes(call, np.array(sizes.product(call[0].shape), dtype=object), "i64")


def as_sizes(call: Call, array: Array, dtype: str) -> Any:
    """A constant where no symbol is left."""
    if any(isinstance(size, Dim) for size in array.reshape(-1)):
        return Sizes(array, dtype)
    try:
        return call.constant(array.astype(NUMPY[dtype]), dtype)
    except OverflowError:
        raise InvalidModel(
            f"{call.node.op_type} of sizes gives {list(array.reshape(-1))!s:.100}, beyond 64 bits"
        ) from None


# What operators do with arrays of sizes, in the places of their inputs; None: it cannot be said, so a node does it.
_OnSizes = Callable[[Call, "list[Any]"], "Array | list[Array] | None"]


def _each(function: Callable[..., Any], operands: int = 2) -> _OnSizes:
    """Of arrays that broadcast; of as many as there are one after another (Max, Min) where two are operands."""

    def said(*given: Any) -> Any:
        try:
            return None if None in given else function(*given)
        except InvalidModel:  # longer than a size may be, or what the operator says of its operands
            return None

    ufunc = np.frompyfunc(said, operands, 1)

    def over(call: Call, arrays: list[Any]) -> Array:
        return np.asarray(reduce(ufunc, arrays) if operands == 2 else ufunc(*arrays), dtype=object)

    return over


def _remainder(call: Call, arrays: list[Any]) -> Any:
    return _each(sizes.truncated_modulo if call.attr("fmod", 0) else sizes.modulo)(call, arrays)


def _power(base: Any, exponent: Any) -> Any:
    few = isinstance(exponent, int) and 0 <= exponent <= 8
    return sizes.product([base] * exponent) if few else None


def _clipped(call: Call, arrays: list[Any]) -> Any:
    x, low, high = [*arrays, None, None][:3]
    x = x if low is None else _each(sizes.maximum)(call, [x, low])
    return x if high is None else _each(sizes.minimum)(call, [x, high])


def _picked(condition: Any, a: Any, b: Any) -> Any:
    """Sizes that are less than 0 mean something else where they are read, so a node picks those."""
    if isinstance(condition, int):
        return a if condition else b
    if a == b:
        return a
    if not (sizes.never_negative(a) and sizes.never_negative(b)):
        return None
    return b + condition * (a - b)


def _summed(call: Call, arrays: list[Any]) -> Array | None:
    """CumSum."""
    if arrays[1].size != 1 or not isinstance(arrays[1].reshape(-1)[0], int):
        return None
    axis = call.axis(arrays[1].reshape(-1)[0], arrays[0].ndim)
    x = np.moveaxis(arrays[0], axis, 0)
    x = x[::-1] if call.attr("reverse") else x
    rows: list[Any] = []
    whole: Any = np.zeros(x.shape[1:], dtype=object)
    for row in x:
        after = _each(operator.add)(call, [whole, row])
        rows.append(whole if call.attr("exclusive") else after)
        whole = after
    if not rows:
        return None
    y = np.stack(rows)
    return np.asarray(np.moveaxis(y[::-1] if call.attr("reverse") else y, 0, axis))


def _cut(call: Call, arrays: list[Any]) -> Array | None:
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
    y = arrays[0]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        y = y.take(np.array(sizes.places_of_slice(y.shape[axis], start, end, step), np.int64), axis)
    return np.asarray(y)


def _reduced(function: Callable[[Any, Any], Any], of_none: int | None = None) -> _OnSizes:
    """Over the node's axes; `of_none` is what it makes of no elements."""

    def reduce_axes(call: Call, arrays: list[Any]) -> Array | None:
        x = arrays[0]
        axes = call.axes(1, x.ndim)
        if not axes and call.attr("noop_with_empty_axes", 0):
            return np.asarray(x)
        axes = sorted(axes or range(x.ndim))
        kept = [k for k in range(x.ndim) if k not in axes]
        rows = x.transpose(kept + axes).reshape([*(x.shape[k] for k in kept), -1])
        if rows.size == 0 and of_none is None:
            return None
        empty = np.full(rows.shape[:-1], of_none, dtype=object)
        parts = [rows[..., k] for k in range(rows.shape[-1])] if x.size else []
        y = np.asarray(_each(function)(call, parts) if len(parts) > 1 else parts[0] if parts else empty, dtype=object)
        return y.reshape([1 if k in axes else n for k, n in enumerate(x.shape)]) if call.attr("keepdims", 1) else y

    return reduce_axes


def _taken(call: Call, arrays: list[Any]) -> Array:
    size = arrays[0].shape[call.axis(call.attr("axis", 0), arrays[0].ndim)] if arrays[0].ndim else 1
    if any(not -size <= place < size for place in arrays[1].reshape(-1).tolist()):
        raise InvalidModel(f"a Gather of {arrays[1].tolist()} from {size}")
    return np.asarray(np.take(arrays[0], arrays[1].astype(np.int64), axis=call.attr("axis", 0)), dtype=object)


def _without_ones(call: Call, arrays: list[Any]) -> Array:
    axes = call.axes(1, arrays[0].ndim)
    return np.asarray(arrays[0].squeeze(None if axes is None else tuple(axes)))


def _with_ones(call: Call, arrays: list[Any]) -> Array:
    axes = call.integers(1, "axes") if call.given(1) else call.attr("axes")
    return np.expand_dims(arrays[0], tuple(axes))


def _cast(call: Call, arrays: list[Any]) -> Array | None:
    """To integers sizes are wrapped as all that is computed; see of_sizes."""
    to = dtype_name(int(call.attr("to")))
    if to == "bool":
        return np.asarray(_each(sizes.truth, 1)(call, arrays[:1]))
    return arrays[0] if to in NUMPY and NUMPY[to] in _INTEGERS else None


def _measure(call: Call, arrays: list[Any]) -> Array:
    return np.array(shape_between(call, arrays[0].shape), dtype=object)


def _repeated(call: Call, arrays: list[Any]) -> Array:
    return np.tile(arrays[0], call.integers(1, "the repeats"))


def _flat(call: Call, arrays: list[Any]) -> Array:
    shape, axis = arrays[0].shape, int(call.attr("axis"))
    axis = axis + len(shape) if axis < 0 else axis
    return np.asarray(arrays[0].reshape(int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))))


def _expanded(call: Call, arrays: list[Any]) -> Array:
    wanted = np.broadcast_shapes(arrays[0].shape, tuple(call.integers(1, "the shape")))
    return np.broadcast_to(arrays[0], wanted)


def _parts(call: Call, arrays: list[Any]) -> list[Array] | None:
    if arrays[0].ndim != 1 or call.attr("axis", 0) not in (0, -1):
        return None
    parts = [part for part in split_sizes(call, len(arrays[0])) if isinstance(part, int)]
    return np.split(arrays[0], np.cumsum(parts)[:-1]) if len(parts) == len(call.node.output) else None


_INTEGERS = tuple(np.dtype(f"{kind}{width}") for kind in "iu" for width in (1, 2, 4, 8))

_ON_SIZES: dict[str, _OnSizes] = {
    "Add": _each(operator.add),
    "Sub": _each(operator.sub),
    "Mul": _each(operator.mul),
    "Div": _each(sizes.truncated_divide),
    "Mod": _remainder,
    "Pow": _each(_power),
    "Max": _each(sizes.maximum),
    "Min": _each(sizes.minimum),
    "Clip": _clipped,
    "Neg": _each(operator.neg, 1),
    "Abs": _each(sizes.magnitude, 1),
    "Sign": _each(sizes.sign, 1),
    "Equal": _each(sizes.equal),
    "Less": _each(sizes.less),
    "Greater": _each(lambda a, b: sizes.less(b, a)),
    "LessOrEqual": _each(lambda a, b: sizes.denied(sizes.less(b, a))),
    "GreaterOrEqual": _each(lambda a, b: sizes.denied(sizes.less(a, b))),
    "Not": _each(sizes.denied, 1),
    "And": _each(sizes.minimum),
    "Or": _each(sizes.maximum),
    "Xor": _each(lambda a, b: sizes.magnitude(a - b)),
    "Where": _each(_picked, 3),
    "Identity": lambda call, arrays: arrays[0],
    "Cast": _cast,
    "Concat": lambda call, arrays: np.concatenate(arrays, axis=call.attr("axis", 1)),
    "Gather": _taken,
    "Slice": _cut,
    "Squeeze": _without_ones,
    "Unsqueeze": _with_ones,
    "Reshape": lambda call, arrays: arrays[0].reshape(filled(call.integers(1, "the shape"), arrays[0].shape)),
    "Flatten": _flat,
    "Expand": _expanded,
    "Tile": _repeated,
    "Split": _parts,
    "CumSum": _summed,
    "ReduceProd": _reduced(operator.mul, 1),
    "ReduceSum": _reduced(operator.add, 0),
    "ReduceMax": _reduced(sizes.maximum),
    "ReduceMin": _reduced(sizes.minimum),
    "Transpose": lambda call, arrays: arrays[0].transpose(call.attr("perm")),
    "Shape": _measure,
    "Size": lambda call, arrays: np.array(arrays[0].size, dtype=object),
}


# Whoever uses one of these reckons with numbers below 0.
SIGNED = frozenset({"Abs", "Clip", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Neg", "Sign"})
# Of these the inputs behind the first one say which of its numbers go where.
_PLACING = ("CumSum", "Expand", "Gather", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Unsqueeze")
# Whose results are booleans.
_TRUTHS = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Not", "And", "Or", "Xor")


def computes_sizes(call: Call) -> bool:
    """Whether the operator can be computed on sizes."""
    return call.node.domain in ("", "ai.onnx") and call.node.op_type in _ON_SIZES


def of_sizes(call: Call, given: list[Array]) -> list[Array] | None:
    """What the node gives for those inputs that are there, sizes and numbers; None where nodes compute it."""
    if any(array.dtype.kind not in "iubO" for array in given):
        return None
    filling = iter(given)
    arrays = [None if x is None else np.asarray(_integers(next(filling)), dtype=object) for x in call.inputs]
    placing = arrays[1:] if call.node.op_type in _PLACING else []
    if any(isinstance(size, Dim) for array in placing if array is not None for size in array.reshape(-1)):
        return None
    try:
        found = _ON_SIZES[call.node.op_type](call, arrays)
    except (IndexError, ValueError, OverflowError):  # numpy's, of shapes and axes: the operator says what is wrong
        return None
    if found is None:
        return None
    dtype = _result_type(call)
    outputs = [_wrapped(output, dtype) for output in (found if isinstance(found, list) else [found])]
    return None if any(size is None for output in outputs for size in output.reshape(-1)) else outputs


def _integers(array: Array) -> Array:
    flat = [x if isinstance(x, Dim) else int(x) for x in array.reshape(-1).tolist()]
    return np.asarray(np.array(flat, dtype=object).reshape(array.shape))


def _wrapped(array: Array, dtype: str) -> Array:
    """Integers of a narrow type wrap; no run has sizes beyond 32 bits, so there only numbers do."""
    if dtype in ("bool", "i64"):
        return array
    kind = NUMPY[dtype]
    bits, signed = 8 * np.dtype(kind).itemsize, np.dtype(kind).kind == "i"

    def wrap(size: Any) -> Any:
        if size is None or (
            isinstance(size, Dim) and ((bits == 32 and signed) or (bits >= 32 and sizes.never_negative(size)))
        ):
            return size
        return None if isinstance(size, Dim) and bits > 32 else sizes.wrapped(size, bits, signed)

    return np.asarray(np.frompyfunc(wrap, 1, 1)(array), dtype=object)


def on_sizes(call: Call) -> list[Any] | None:
    """The node's values where its inputs are sizes and known numbers; None where nodes of the graph compute them."""
    if not computes_sizes(call) or not any(isinstance(value, Sizes) for value in call.inputs):
        return None
    known = [call.known(k) for k, value in enumerate(call.inputs) if value is not None]
    arrays = [array for array in known if array is not None]
    outputs = of_sizes(call, arrays) if len(arrays) == len(known) else None
    if outputs is None:
        return None
    return [as_sizes(call, output, _result_type(call)) for output in outputs]


def _result_type(call: Call) -> str:
    op = call.node.op_type
    if op == "Cast":
        return dtype_name(int(call.attr("to")))
    if op in ("Shape", "Size"):
        return "i64"
    dtype: str = call.inputs[1 if op == "Where" else 0].dtype
    return "bool" if op in _TRUTHS else dtype
