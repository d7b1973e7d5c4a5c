"""Torch overloads that pick or replace elements by indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.errors import Unsupported
from hetnn.importers.lowering import sizes
from hetnn.importers.lowering.sizes import MOST, Size
from hetnn.importers.torch.rules.call import TORCH, Call, rule
from hetnn.importers.torch.rules.sizes import compressed


def fixed(shape: Sequence[Size], what: str) -> list[int]:
    """The sizes as integers. Unsupported when one depends on symbols."""
    out = [size for size in shape if isinstance(size, int)]
    if len(out) != len(shape):
        raise Unsupported(f"{what} of symbolic size")
    return out


def _cut(call: Call, value: Any, shape: Sequence[Size]) -> Any:
    """The part of a value at the start of each axis."""
    for axis, size in enumerate(shape):
        if value.shape[axis] != size:
            value = call.create("slice", [value], axis=axis, start=0, end=size)
    return value


# Slices


def _flat_index(call: Call, indices: Sequence[Any], along: Sequence[Size]) -> tuple[Any, list[Size]]:
    """Indices into axes of sizes `along` as one index into all of them, and its shape."""
    shape: list[Size] = []
    for index in indices:
        shape = sizes.broadcast(shape, index.shape)
    spread = [call.broadcast_to(call.cast(index, "i64"), shape) for index in indices]
    return call.create("flat_index", spread, sizes=list(along)), shape


def _given(call: Call) -> tuple[list[int], list[Any]]:
    """The indexed axes and their indices. A mask is the indices at which it is true, one row for each of its axes."""
    axes: list[int] = []
    indices: list[Any] = []
    axis = 0
    for index in call["indices"]:
        if index is None:
            axis += 1
        elif index.dtype in ("bool", "u8"):
            rank = len(index.shape)
            count = call.found_size() if call.finds_sizes else call.new_size(0, MOST)
            found = call.create("nonzero", [index], count=count)
            columns = [call.create("slice", [found], axis=1, start=k, end=k + 1) for k in range(rank)]
            indices += [call.reshape(column, [found.shape[0]]) for column in columns]
            axes += range(axis, axis + rank)
            axis += rank
        else:
            axes.append(axis)
            indices.append(index)
            axis += 1
    return axes, indices


@rule("index_select.default")
def _index_select(call: Call) -> Any:
    x, index = call["self"], call["index"]
    if not x.shape:
        return x
    index = call.reshape(index, [1]) if not index.shape else index
    return call.create("gather", [x, index], axis=call["dim"], from_end=False)


@rule("one_hot.default")
def _one_hot(call: Call) -> Any:
    """Each number is picked from the classes, which refuses one that is none."""
    if call["num_classes"] == -1:
        raise Unsupported("one_hot without num_classes, whose result's size depends on values")
    classes = call.create("arange", [], end=call["num_classes"])
    number = call.create("gather", [classes, call["self"]], axis=0, from_end=False)
    return call.cast(call.hot(number, call["num_classes"], len(number.shape)), "i64")


@rule("index.Tensor", "_unsafe_index.Tensor")
def _index(call: Call) -> Any:
    if call["indices"][0] is not None and call["indices"][0].dtype == "bool" and not any(call["indices"][1:]):
        return compressed(call, call["self"], call["indices"][0])
    axes, indices = _given(call)
    x = call["self"]
    if not axes:
        return x
    if axes != list(range(axes[0], axes[-1] + 1)):
        # Axes that are not neighbours come to the front, and so does what they become.
        rest = [axis for axis in range(len(x.shape)) if axis not in axes]
        x, axes = call.create("permute", [x], perm=axes + rest), list(range(len(axes)))
    if len(axes) == 1:
        index = indices[0] if indices[0].dtype in ("i64", "i32") else call.cast(indices[0], "i64")
        return call.reshape(call.create("gather", [x, index], axis=axes[0]), call.shape())
    along = list(x.shape)[axes[0] : axes[-1] + 1]
    flat, _ = _flat_index(call, indices, along)
    before, after = list(x.shape)[: axes[0]], list(x.shape)[axes[-1] + 1 :]
    merged = call.reshape(x, [*before, sizes.product(along), *after])
    return call.reshape(call.create("gather", [merged, flat], axis=axes[0]), call.shape())


@rule("index_put.default", "_unsafe_index_put.default")
def _index_put(call: Call) -> Any:
    """Indexed axes in front, as one; what is put there in rows of the other axes."""
    x, values = call["self"], call.cast(call["values"], call["self"].dtype)
    indices = call["indices"]
    if len(indices) == 1 and indices[0].dtype == "bool" and sizes.product(values.shape) == 1:
        mask = call.reshape(indices[0], [*indices[0].shape, *[1] * (len(x.shape) - len(indices[0].shape))])
        scalar = call.reshape(values, [])
        added = call.create("add", [x, scalar]) if call["accumulate"] else scalar
        return call.create("where", [mask, added, x])
    axes, given = _given(call)
    if not axes:
        return call.create("add", [x, values]) if call["accumulate"] else call.broadcast_to(values, x.shape)
    rest = [axis for axis in range(len(x.shape)) if axis not in axes]
    perm = axes + rest
    moved = call.permuted(x, perm)
    along, inner = [x.shape[axis] for axis in axes], [x.shape[axis] for axis in rest]
    flat, shape = _flat_index(call, given, along)
    # As many values as a mask has true elements, whatever that number is called.
    behind = len(inner) - axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else len(inner)
    for k in range(len(shape)):
        at = len(values.shape) - behind - len(shape) + k
        if not isinstance(shape[k], int) and at >= 0 and values.shape[at] != 1:
            shape[k] = values.shape[at]
    flat = call.reshape(flat, shape)
    # Where the indexed axes are neighbours, values have what they become in their place.
    if axes == list(range(axes[0], axes[-1] + 1)):
        first = axes[0]
        values = call.broadcast_to(values, [*inner[:first], *shape, *inner[first:]])
        count = len(shape)
        order = [*range(first, first + count), *range(first), *range(first + count, count + len(inner))]
        values = call.permuted(values, order)
    else:
        values = call.broadcast_to(values, [*shape, *inner])
    rows, width = sizes.product(shape), sizes.product(inner)
    out = call.create(
        "scatter_elements",
        [
            call.reshape(moved, [sizes.product(along), width]),
            call.reshape(flat, [rows, 1]),
            call.reshape(values, [rows, width]),
        ],
        axis=0,
        reduce="add" if call["accumulate"] else "none",
    )
    out = call.reshape(out, [*along, *inner])
    back = [perm.index(axis) for axis in range(len(perm))]
    return call.permuted(out, back)


# Elements along an axis


def _lane_index(call: Call, index: Any, axis: int, rank: int) -> Any:
    """A row of indices along an axis, to be broadcast over the others."""
    return call.reshape(index, [sizes.product(index.shape) if k == axis else 1 for k in range(rank)])


@rule("gather.default")
def _gather(call: Call) -> Any:
    x, index = call["self"], call["index"]
    if 0 in index.shape:
        return call.filled(0)
    x = call.reshape(x, x.shape or [1])
    index = call.reshape(call.cast(index, "i64"), index.shape or [1])
    return call.reshape(call.create("gather_elements", [x, index], axis=call["dim"], from_end=False), call.shape())


@rule("take.default")
def _take(call: Call) -> Any:
    x = call.reshape(call["self"], [sizes.product(call["self"].shape)])
    return call.create("gather", [x, call["index"]], axis=0)


def _scatter(call: Call, updates: Any, reduce: str, include_self: bool = True) -> Any:
    x, index = call["self"], call.cast(call["index"], "i64")
    if 0 in index.shape:
        return x
    shape, lanes = index.shape or [1], x.shape or [1]
    updates = call.cast(updates, x.dtype)
    updates = (
        _cut(call, call.reshape(updates, updates.shape or [1]), shape)
        if len(updates.shape)
        else (call.broadcast_to(updates, shape))
    )
    out = call.create(
        "scatter_elements",
        [call.reshape(x, lanes), call.reshape(index, shape), updates],
        axis=call["dim"],
        reduce=reduce,
        include_self=include_self,
        from_end=False,
    )
    return call.reshape(out, call.shape())


_REDUCTIONS = {
    "add": "add",
    "sum": "add",
    "multiply": "mul",
    "prod": "mul",
    "mean": "mean",
    "amax": "max",
    "amin": "min",
}


@rule("scatter.src", "scatter_add.default", "scatter.reduce")
def _scatter_source(call: Call) -> Any:
    adds = "scatter_add" in call.target
    return _scatter(call, call["src"], "add" if adds else _REDUCTIONS.get(call.args.get("reduce", ""), "none"))


@rule("scatter.value", "scatter.value_reduce")
def _scatter_value(call: Call) -> Any:
    value = call.constant(call["value"], call["self"].dtype)
    return _scatter(call, value, _REDUCTIONS.get(call.args.get("reduce", ""), "none"))


@rule("scatter_reduce.two")
def _scatter_reduce(call: Call) -> Any:
    return _scatter(call, call["src"], _REDUCTIONS[call["reduce"]], bool(call["include_self"]))


def _index_into(call: Call, updates: Any, reduce: str, include_self: bool = True, from_end: bool = False) -> Any:
    """Slices of x along an axis replaced by, or joined with, others."""
    x, index = call["self"], call.cast(call["index"], "i64")
    lanes = x.shape or [1]
    axis = call["dim"] % len(lanes)
    rows = _lane_index(call, index, axis, len(lanes))
    shape = [rows.shape[axis] if k == axis else size for k, size in enumerate(lanes)]
    updates = call.reshape(updates, updates.shape or [1])
    out = call.create(
        "scatter_elements",
        [call.reshape(x, lanes), rows, call.broadcast_to(updates, shape)],
        axis=axis,
        reduce=reduce,
        include_self=include_self,
        from_end=from_end,
    )
    return call.reshape(out, call.shape())


@rule("index_reduce.default")
def _index_reduce(call: Call) -> Any:
    return _index_into(call, call["source"], _REDUCTIONS[call["reduce"]], bool(call["include_self"]))


@rule("index_copy.default")
def _index_copy(call: Call) -> Any:
    return _index_into(call, call["source"], "none")


@rule("index_add.default")
def _index_add(call: Call) -> Any:
    source = call["source"]
    if call["alpha"] != 1:
        source = call.create("mul", [source, call.constant(call["alpha"], source.dtype)])
    return _index_into(call, source, "add")


@rule("index_fill.int_Scalar", "index_fill.int_Tensor")
def _index_fill(call: Call) -> Any:
    value, dtype = call["value"], call["self"].dtype
    value = call.constant(value, dtype)
    return _index_into(call, call.reshape(value, [1] * max(len(call["self"].shape), 1)), "none", from_end=True)


@rule("put.default")
def _put(call: Call) -> Any:
    x, index = call["self"], call.cast(call["index"], "i64")
    count = sizes.product(index.shape)
    out = call.create(
        "scatter_elements",
        [
            call.reshape(x, [sizes.product(x.shape)]),
            call.reshape(index, [count]),
            call.reshape(call["source"], [count]),
        ],
        axis=0,
        reduce="add" if call["accumulate"] else "none",
    )
    return call.reshape(out, call.shape())


@rule("masked_scatter.default")
def _masked_scatter(call: Call) -> Any:
    """The k-th true element takes the k-th of the source."""
    shape = call.shape()
    x, mask = call.broadcast_to(call["self"], shape), call.broadcast_to(call["mask"], shape)
    source = call.reshape(call["source"], [sizes.product(call["source"].shape)])
    if source.shape == [0] or 0 in shape:
        return x
    if not isinstance(source.shape[0], int):  # nothing, where all are false
        source = call.create("concat", [source, call.constant(np.zeros(1), source.dtype)], axis=0)
    flat = call.reshape(call.cast(mask, "i64"), [sizes.product(shape)])
    place = call.create("cumsum", [flat], axis=0, exclusive=True)
    # A false element reads what it does not use.
    place = call.create("mul", [place, flat])
    picked = call.reshape(call.create("gather", [source, place], axis=0), shape)
    return call.create("where", [mask, picked, x])


# Views by constant indices


@rule("diagonal.default", "diagonal_copy.default")
def _diagonal(call: Call) -> Any:
    x = call["self"]
    rank = len(x.shape)
    a, b = call["dim1"] % rank, call["dim2"] % rank
    steps = sizes.dense_strides(x.shape)
    strides = [*(steps[axis] for axis in range(rank) if axis not in (a, b)), steps[a] + steps[b]]
    offset = call["offset"]
    first = abs(offset) * (steps[b] if offset >= 0 else steps[a])
    return call.create("as_strided", [x], shape=call.shape(), strides=strides, offset=first)


@rule("diagonal_scatter.default")
def _diagonal_scatter(call: Call) -> Any:
    x, values = call["self"], call["src"]
    rank = len(x.shape)
    a, b = call["dim1"] % rank, call["dim2"] % rank
    perm = [*(axis for axis in range(rank) if axis not in (a, b)), a, b]
    moved = call.create("permute", [x], perm=perm)
    rows, columns = fixed(moved.shape[-2:], "the diagonal of a matrix")
    (count,) = fixed(values.shape[-1:], "a diagonal")
    if count == 0:
        return x
    offset = call["offset"]
    first = offset if offset >= 0 else -offset * columns
    places = (first + np.arange(count, dtype=np.int64) * (columns + 1)).reshape([1] * (rank - 2) + [count])
    flat = call.reshape(moved, [*moved.shape[:-2], rows * columns])
    out = call.create("scatter_elements", [flat, call.constant(places, "i64"), values], axis=rank - 2)
    back = [perm.index(axis) for axis in range(rank)]
    return call.create("permute", [call.reshape(out, moved.shape)], perm=back)


@rule("slice_scatter.default")
def _slice_scatter(call: Call) -> Any:
    x, values = call["self"], call.cast(call["src"], call["self"].dtype)
    rank = len(x.shape)
    axis = call["dim"] % rank
    size, count, step = x.shape[axis], values.shape[axis], call["step"]
    start = call["start"] or 0
    if not sizes.never_negative(start):
        start = sizes.place_within(start, size)
    if count == 0 or (start == 0 and count == size):
        return values if count == size else x
    end = start + (count - 1) * step + 1
    places = call.create("arange", [], start=start, end=end, step=step)
    places = call.reshape(places, [count if k == axis else 1 for k in range(rank)])
    return call.create("scatter_elements", [x, places, values], axis=axis)


@rule("as_strided.default", "as_strided_copy.default")
def _as_strided(call: Call) -> Any:
    x = call.permuted(call["self"], _memory_order(call))
    offset = call["storage_offset"] or 0
    return call.create("as_strided", [x], shape=call["size"], strides=call["stride"], offset=offset)


def _memory_order(call: Call) -> list[int]:
    """The axes of the first operand as its elements lie in memory, the outermost first."""
    source = call._node.all_input_nodes[0].meta["val"]
    axes = list(range(source.dim()))
    if source.storage_offset() == 0 and source.is_contiguous():
        return axes
    lengths, strides = fixed(source.shape, "as_strided"), fixed(source.stride(), "as_strided")
    axes.sort(key=lambda axis: (lengths[axis] > 1, -strides[axis]))
    dense = sizes.dense_strides([lengths[axis] for axis in axes])
    whole = all(lengths[axis] == 1 or strides[axis] == step for axis, step in zip(axes, dense, strict=True))
    if source.storage_offset() != 0 or not whole:
        raise Unsupported("as_strided of a part of a tensor")
    return axes


def _strided_places(call: Call, count: int) -> np.ndarray[Any, Any]:
    """Where the elements of a view by strides lie among `count`."""
    shape, stride = fixed(call["size"], "as_strided"), fixed(call["stride"], "as_strided")
    places = np.full(shape, call["storage_offset"] or 0, dtype=np.int64)
    for axis, (size, step) in enumerate(zip(shape, stride, strict=True)):
        places += (np.arange(size) * step).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    if places.size and places.max() >= count:
        raise Unsupported("as_strided beyond its input")
    return places


@rule("as_strided_scatter.default")
@TORCH.rule("prims.as_strided_scatter.default")
def _as_strided_scatter(call: Call) -> Any:
    order = _memory_order(call)
    x, source = call.permuted(call[call.names[0]], order), call["src"]
    (count,) = fixed([sizes.product(x.shape)], "as_strided")
    places = _strided_places(call, count)
    put = [call.reshape(x, [count]), call.constant(places.reshape(-1), "i64"), call.reshape(source, [places.size])]
    out = call.reshape(call.create("scatter_elements", put, axis=0), x.shape)
    return call.permuted(out, [order.index(axis) for axis in range(len(order))])


@rule("nonzero_static.default")
def _nonzero_static(call: Call) -> Any:
    """The places of the first `size` elements that are not 0; rows that none is left for hold one number."""
    x, size = call["self"], call["size"]
    count = sizes.product(x.shape)
    if 0 in (count, size, len(x.shape)):
        return call.filled(call["fill_value"])
    flat = call.create("ne", [call.reshape(x, [count]), call.constant(0, x.dtype)])
    number = call.cast(flat, "i64")
    slot = call.create("cumsum", [number], axis=0, exclusive=True)
    taken = call.create("logical_and", [flat, call.create("lt", [slot, call.constant(size, "i64")])])
    slot = call.create("where", [taken, slot, call.constant(size, "i64")])
    start = call.create("expand", [call.constant(-1, "i64")], shape=[size + 1])
    put = [start, slot, call.create("arange", [], start=0, end=count)]
    rows = call.create("scatter_elements", put, axis=0)
    rows = call.reshape(call.create("slice", [rows], axis=0, start=0, end=size), [size, 1])
    columns, width = [], count
    for extent in x.shape:
        width = sizes.divide(width, extent)
        place = call.create("floor_divide", [rows, call.whole(width)])
        columns.append(call.create("remainder", [place, call.whole(extent)]))
    places = call.create("concat", columns, axis=1) if len(columns) > 1 else columns[0]
    there = call.create("ge", [rows, call.constant(0, "i64")])
    return call.create("where", [there, places, call.constant(call["fill_value"], "i64")])


@rule("unfold.default", "unfold_copy.default")
def _unfold(call: Call) -> Any:
    x, step = call["self"], call["step"]
    if not x.shape:
        return call.reshape(x, call.shape())
    axis = call["dimension"] % len(x.shape)
    strides = sizes.dense_strides(x.shape)
    windows = [*strides[:axis], strides[axis] * step, *strides[axis + 1 :], strides[axis]]
    return call.create("as_strided", [x], shape=call.shape(), strides=windows)
