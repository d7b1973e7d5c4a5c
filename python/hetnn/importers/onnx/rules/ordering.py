"""ONNX operators that order, scan, scatter and pick by values."""

from __future__ import annotations

from typing import Any

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import LONGEST, Size, product
from hetnn.importers.onnx.rules.call import Call, rule
from hetnn.importers.onnx.rules.late import found_shape, is_late, is_late_number, length_of
from hetnn.importers.onnx.rules.movement import indexed_axes, slice_axis


@rule("TopK")
def _top_k(call: Call) -> list[Any]:
    """All in order, equals in the order that they had, and the first of these."""
    x, rank = call[0], len(call[0].shape)
    axis, largest = call.axis(int(call.attr("axis")), rank), bool(call.attr("largest", 1))
    ordered = call.create_all("sort", [x], {"axis": axis, "descending": largest})
    size = call.shape(0, 1, 99)[axis]
    count: Size = (
        int(call.attr("k")) if call.version < 10 else call.size(1, "k", 0, size if isinstance(size, int) else LONGEST)
    )
    if isinstance(count, int) and (count < 0 or (isinstance(size, int) and count > size)):
        raise InvalidModel(f"TopK of {count} of {size}")
    return [slice_axis(call, part, axis, 0, count, 1) for part in ordered]


@rule("CumSum", "CumProd")
def _scan(call: Call) -> Any:
    x, op = call[0], call.node.op_type.lower()
    told = {"exclusive": bool(call.attr("exclusive")), "reverse": bool(call.attr("reverse"))}
    if not is_late_number(call, 1):
        axis = call.axis(int(call.number(1, "the axis")), len(x.shape))
        return call.create(op, [x], axis=axis, **told)
    # Along every axis, of which the one that is named counts.
    rank = len(x.shape)
    wanted = call.from_the_front(call.reshape(call.cast(call[1], "i64"), []), rank)
    out = call.create(op, [x], axis=0, **told)
    for axis in range(1, rank):
        here = call.create("eq", [wanted, call.constant(axis, "i64")])
        out = call.create("where", [here, call.create(op, [x], axis=axis, **told), out])
    return out


@rule("ArgMax", "ArgMin")
def _place(call: Call) -> Any:
    x, op = call[0], call.node.op_type.lower()
    axis, keep = call.axis(call.attr("axis"), len(x.shape)), bool(call.attr("keepdims"))
    if not call.attr("select_last_index", 0) or not x.shape:
        return call.create(op, [x], axis=axis, keepdim=keep)
    from_behind = call.create(op, [call.create("flip", [x], axes=[axis])], axis=axis, keepdim=keep)
    last = call.create("sub", [call.whole(x.shape[axis]), call.constant(1, "i64")])
    return call.create("sub", [last, from_behind])


_JOINED = {"none": "none", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@rule("Scatter", "ScatterElements")
def _scatter_elements(call: Call) -> Any:
    axis = call.axis(int(call.attr("axis")), len(call[0].shape))
    reduce = call.one_of("reduction", _JOINED, "none")
    x, places, updates = call.values()
    return call.create(
        "scatter_elements", [x, places, with_sizes(call, updates, list(places.shape))], axis=axis, reduce=reduce
    )


@rule("ScatterND")
def _scatter_nd(call: Call) -> Any:
    """Slices of the trailing axes as rows, which one flat index picks."""
    x, indices, updates = call.values()
    call.shape(1, 1, 99)
    indices, depth = indexed_axes(call, indices, len(x.shape), len(updates.shape))
    if not 1 <= depth <= len(x.shape):
        raise InvalidModel(f"indices {list(indices.shape)} into {list(x.shape)}")
    updates = with_sizes(call, updates, [*indices.shape[:-1], *x.shape[depth:]])
    last = len(indices.shape) - 1
    parts = [call.create("slice", [indices], axis=last, start=k, end=k + 1) for k in range(depth)]
    flat = call.create("flat_index", parts, sizes=list(x.shape[:depth]))
    rows, width = product(x.shape[:depth]), product(x.shape[depth:])
    count = product(indices.shape[:-1])
    out = call.create(
        "scatter_elements",
        [call.reshape(x, [rows, width]), call.reshape(flat, [count, 1]), call.reshape(updates, [count, width])],
        axis=0,
        reduce=call.one_of("reduction", _JOINED, "none"),
    )
    return call.reshape(out, list(x.shape))


@rule("MaxUnpool")
def _max_unpool(call: Call) -> Any:
    """Every value at its place in a tensor of zeros.

    Where a shape is asked for, places are of that shape where each lies in its value's window there, as those of a
    pooling do; else of the shape that the windows span, which grows behind to the one that is asked for.
    """
    x, places = call[0], call[1]
    kernel = [int(k) for k in call.attr("kernel_shape")]
    stride, pads = call.attr("strides") or [1] * len(kernel), call.attr("pads") or [0] * 2 * len(kernel)
    sizes = call.shape(0, len(kernel) + 2)
    if len(stride) != len(kernel) or len(pads) != 2 * len(kernel):
        raise InvalidModel(f"strides {list(stride)} and pads {list(pads)} of a kernel over {len(kernel)} axes")
    shape = sizes[:2]
    for k, size in enumerate(sizes[2:]):
        spread = (size - 1) * stride[k]
        shape.append(spread + (kernel[k] - pads[k] - pads[len(kernel) + k]))
    wanted = _wanted_shape(call, sizes) if call.given(2) else shape
    if wanted == shape:
        return _at_places(call, x, places, shape)
    windows = list(zip(kernel, stride, pads[: len(kernel)], strict=True))
    own, none = _lie_in_windows(call, places, wanted, windows), call.constant(0, "i64")
    there = _at_places(call, x, call.create("where", [own, places, none]), wanted)
    spanned = _at_places(call, x, call.create("where", [own, none, places]), shape)
    room = [goal - size for goal, size in zip(wanted, shape, strict=True)]
    grown = call.create("pad", [spanned], padding=[*[0] * len(shape), *room])
    return call.create("where", [own, there, grown])


def _wanted_shape(call: Call, sizes: list[Size]) -> list[Size]:
    """The shape that the third input of a MaxUnpool asks for."""
    if not is_late(call, 2):
        wanted = call.sizes(2, "the shape")
    else:
        wanted = found_shape(call, length_of(call, 2, "the shape"))
        call.create("read_size", [call.cast(call[2], "i64")], sizes=wanted)
    if len(wanted) != len(sizes):
        raise InvalidModel(f"MaxUnpool of {sizes} into the shape {wanted}")
    return [*sizes[:2], *wanted[2:]]


def _at_places(call: Call, x: Any, places: Any, shape: list[Size]) -> Any:
    """Zeros of a shape, of all of which together the places are, with values there."""
    zeros = call.broadcast_to(call.like(0, x), [product(shape)])
    flat = [call.reshape(part, [product(x.shape)]) for part in (places, x)]
    return call.reshape(call.create("scatter_elements", [zeros, *flat], axis=0), shape)


def _lie_in_windows(call: Call, places: Any, shape: list[Size], windows: list[tuple[int, int, int]]) -> Any:
    """Whether all places of [N,C,...] lie in the windows of their own values in a tensor of that shape; of each axis
    the windows' size, how far they are apart, and where the first one begins before it."""
    rank, count = len(shape), len(places.shape)

    def along(axis: int, size: Size) -> Any:
        return call.reshape(call.create("arange", [], end=size), [size if k == axis else 1 for k in range(count)])

    def at(op: str, a: Any, b: Any) -> Any:
        return call.create(op, [a, call.constant(b, "i64") if isinstance(b, int) else b])

    rest, hits = places, []
    for axis in reversed(range(2, rank)):
        size, (kernel, stride, before) = call.whole(shape[axis]), windows[axis - 2]
        begin = at("sub", at("mul", along(axis, places.shape[axis]), stride), before)
        inside = at("sub", at("remainder", rest, size), begin)
        hits += [at("ge", inside, 0), at("lt", inside, kernel)]
        rest = at("floor_divide", rest, size)
    plane = at("add", at("mul", along(0, places.shape[0]), call.whole(places.shape[1])), along(1, places.shape[1]))
    hits.append(at("eq", rest, plane))
    return call.create("all", [call.folded("logical_and", hits)], axes=list(range(count)))


@rule("BitShift")
def _shift(call: Call) -> Any:
    return call.create("shift_left" if call.attr("direction") == "LEFT" else "shift_right", call.values())


@rule("ReverseSequence")
def _reverse_sequence(call: Call) -> Any:
    """Along the time axis, the first lengths[b] entries of batch b backwards."""
    x = call[0]
    batch, time = int(call.attr("batch_axis")), int(call.attr("time_axis"))
    shape = call.shape(0, 2, 99)
    if {batch, time} != {0, 1}:
        raise InvalidModel(f"ReverseSequence of batches on axis {batch} and time on axis {time}; these are 0 and 1")
    steps = call.create("arange", [], start=0, end=shape[time])
    lengths = call.reshape(call.cast(call[1], "i64"), [shape[batch], 1])
    backwards = call.create("sub", [call.create("sub", [lengths, call.constant(1, "i64")]), steps])
    place = call.create("where", [call.create("lt", [steps, lengths]), backwards, steps])  # [batch, time]
    if batch > time:
        place = call.create("permute", [place], perm=[1, 0])
    place = call.reshape(place, [size if k in (batch, time) else 1 for k, size in enumerate(shape)])
    return call.create("gather_elements", [x, call.broadcast_to(place, shape)], axis=time)
