"""Torch overloads that scan or order elements."""

from __future__ import annotations

from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.lowering import sizes
from hetnn.importers.torch.rules.call import Call, rule


@rule("cumsum.default", "cumprod.default", "logcumsumexp.default")
def _scan(call: Call) -> Any:
    op = call.target.split(".")[1]
    return call.create(op, [call.cast(call["self"], call.dtype())], axis=call["dim"])


def _places(call: Call, op: str, x: Any, dim: int | None, keepdim: bool) -> Any:
    flat = call.reshape(x, [sizes.product(x.shape)]) if dim is None else x
    out = call.create(op, [flat], axis=0 if dim is None else dim, keepdim=keepdim)
    return call.reshape(out, [1] * len(x.shape)) if dim is None and keepdim else out


@rule("argmax.default", "argmin.default")
def _arg_extreme(call: Call) -> Any:
    op = call.target.split(".")[1]
    return _places(call, op, call["self"], call["dim"], bool(call["keepdim"]))


@rule("max.dim", "min.dim")
def _extreme(call: Call) -> list[Any]:
    kind = call.target.split(".")[1]
    x, axis, keepdim = call["self"], call["dim"], bool(call["keepdim"])
    values = call.create(f"reduce_{kind}", [x], axes=[axis], keepdim=keepdim) if call.reads(0) else None
    return [values, call.create(f"arg{kind}", [x], axis=axis, keepdim=keepdim) if call.reads(1) else None]


@rule("max.default", "min.default")
def _extreme_of_all(call: Call) -> Any:
    kind = call.target.split(".")[1]
    return call.create(f"reduce_{kind}", [call["self"]], axes=[])


def _size(x: Any, axis: int) -> Any:
    return x.shape[axis] if x.shape else 1


def _kept(call: Call, values: list[Any], axis: int) -> list[Any]:
    """One element along the axis, which stays or goes as the call says."""
    return [call.reshape(value, call.shape(k)) for k, value in enumerate(values)]


def _refuse_place(call: Call, x: Any, what: str) -> None:
    if call.reads(1) and not x.dtype.startswith(("f", "bf")):
        raise Unsupported(f"the place of {what}: which of equal ones torch names follows no order")


@rule("kthvalue.default")
def _kthvalue(call: Call) -> list[Any]:
    x, axis, k = call["self"], call["dim"], call["k"]
    _refuse_place(call, x, "a kth integer")
    ordered = call.create_all("sort", [x], {"axis": axis})
    if x.shape:
        ordered = [call.create("slice", [value], axis=axis, start=k - 1, end=k) for value in ordered]
    return _kept(call, ordered, axis)


def _middle(call: Call, x: Any, axis: int, skip_nan: bool) -> list[Any]:
    """The lower middle of the elements along an axis, and where it stood, the axis kept as 1."""
    x = call.reshape(x, x.shape or [1])
    values, indices = call.create_all("sort", [x], {"axis": axis})
    size = call.whole(_size(x, axis))
    one, two = call.constant(1, "i64"), call.constant(2, "i64")
    place = call.create("div", [call.create("sub", [size, one]), two])
    if x.dtype.startswith(("f", "bf")):
        nan = call.cast(call.create("ne", [x, x]), "i64")
        numbers = call.create("sub", [size, call.create("sum", [nan], axes=[axis], keepdim=True)])
        if skip_nan:
            least = call.create("maximum", [call.create("sub", [numbers, one]), call.constant(0, "i64")])
            place = call.create("div", [least, two])
        else:
            whole = call.create("eq", [numbers, size])
            place = call.create("where", [whole, place, numbers])
    shape = [1 if k == axis % len(x.shape) else n for k, n in enumerate(x.shape)]
    place = call.create("expand", [call.reshape(place, place.shape or [1])], shape=shape)
    return [call.create("gather_elements", [value, place], axis=axis) for value in (values, indices)]


@rule("median.dim", "nanmedian.dim")
def _median(call: Call) -> list[Any]:
    _refuse_place(call, call["self"], "a median of integers")
    return _kept(call, _middle(call, call["self"], call["dim"], "nan" in call.target), call["dim"])


@rule("median.default", "nanmedian.default")
def _median_of_all(call: Call) -> Any:
    x = call.reshape(call["self"], [sizes.product(call["self"].shape)])
    return call.reshape(_middle(call, x, 0, "nan" in call.target)[0], [])


@rule("mode.default")
def _mode(call: Call) -> list[Any]:
    """The smallest of the most frequent elements, and the last place of it."""
    x = call.reshape(call["self"], call["self"].shape or [1])
    rank = len(x.shape)
    axis = call["dim"] % rank
    if call.reads(1) and not (isinstance(x.shape[axis], int) and x.shape[axis] <= 16):
        raise Unsupported("the place of a mode among more than 16 elements is read, which torch does not fix")
    perm = [*(k for k in range(rank) if k != axis), axis]
    rows = call.create("permute", [x], perm=perm)
    values, indices = call.create_all("sort", [rows], {"axis": -1})
    before = call.create("searchsorted", [values, values], right=False)
    behind = call.create("searchsorted", [values, values], right=True)
    often = call.create("argmax", [call.create("sub", [behind, before])], axis=-1, keepdim=True)
    last = call.create("gather_elements", [behind, often], axis=-1)
    last = call.create("sub", [last, call.constant(1, "i64")])
    out = [call.create("gather_elements", [value, last], axis=-1) for value in (values, indices)]
    return [call.reshape(value, call.shape(k)) for k, value in enumerate(out)]


def _search(call: Call, boundaries: Any, values: Any) -> Any:
    right = bool(call["right"]) or call.args.get("side") == "right"
    if boundaries.dtype != values.dtype:
        wanted = call.common([boundaries, values])
        boundaries, values = call.cast(boundaries, wanted), call.cast(values, wanted)
    out = call.create("searchsorted", [boundaries, values], right=right)
    return call.cast(out, "i32" if call["out_int32"] else "i64")


@rule("searchsorted.Tensor", "searchsorted.Scalar")
def _searchsorted(call: Call) -> Any:
    boundaries, values = call["sorted_sequence"], call["self"]
    if not hasattr(values, "dtype"):
        values = call.constant(values, boundaries.dtype)
    if call["sorter"] is not None:
        boundaries = call.create("gather_elements", [boundaries, call["sorter"]], axis=-1)
    return _search(call, boundaries, values)


@rule("bucketize.Tensor", "bucketize.Scalar")
def _bucketize(call: Call) -> Any:
    values = call["self"]
    return _search(
        call,
        call["boundaries"],
        values if hasattr(values, "dtype") else call.constant(values, call["boundaries"].dtype),
    )


@rule("histc.default")
def _histc(call: Call) -> Any:
    """Counts of equal bins; what is outside falls into one more, which is cut off."""
    x, bins = call["self"], call["bins"]
    count = sizes.product(x.shape)
    flat = call.reshape(x, [count])
    if count == 0:
        return call.filled(0)
    if call["min"] == call["max"]:
        low, high = (call.create(op, [flat], axes=[]) for op in ("reduce_min", "reduce_max"))
        if call["min"] != 0:
            low, high = call.constant(call["min"], x.dtype), call.constant(call["max"], x.dtype)
        one, same = call.constant(1, x.dtype), call.create("eq", [low, high])
        low = call.create("where", [same, call.create("sub", [low, one]), low])
        high = call.create("where", [same, call.create("add", [high, one]), high])
    else:
        low, high = call.constant(call["min"], x.dtype), call.constant(call["max"], x.dtype)
    share = call.create("div", [call.create("sub", [flat, low]), call.create("sub", [high, low])])
    place = call.cast(call.create("mul", [share, call.constant(bins, x.dtype)]), "i64")
    place = call.create("minimum", [place, call.constant(bins - 1, "i64")])
    inside = call.create("logical_and", [call.create("ge", [flat, low]), call.create("le", [flat, high])])
    place = call.create("where", [inside, place, call.constant(bins, "i64")])
    zeros = call.create("expand", [call.constant(0, x.dtype)], shape=[bins + 1])
    ones = call.create("expand", [call.constant(1, x.dtype)], shape=[count])
    counts = call.create("scatter_elements", [zeros, place, ones], axis=0, reduce="add")
    return call.create("slice", [counts], axis=0, start=0, end=bins)
