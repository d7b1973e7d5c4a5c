"""ONNX operators that move, pick and repeat elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from hetnn._core import Dim
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.equal_sizes import unified_with_shape, with_sizes
from hetnn.importers.lowering.sizes import (
    LONGEST,
    WHOLE_END,
    Size,
    broadcast,
    denied,
    divide,
    equal,
    maximum,
    minimum,
    never_negative,
    place_within,
    places_of_slice,
    product,
)
from hetnn.importers.onnx.rules.call import MOST_NUMBERS, Call, rule
from hetnn.importers.onnx.rules.late import (
    axes_count,
    found_shape,
    is_late,
    is_late_number,
    late,
    length_of,
    open_rank,
    shape_length,
)
from hetnn.importers.onnx.values import Refused


@rule("Transpose")
def _transpose(call: Call) -> Any:
    x = call[0]
    perm = call.attr("perm") or list(range(len(x.shape)))[::-1]
    return call.create("permute", [x], perm=perm)


@rule("Concat", before=4)
def _concat(call: Call) -> Any:
    return call.create("concat", call.values(), axis=int(call.attr("axis", 1)))


@rule("Reshape")
def _reshape(call: Call) -> Any:
    x = call[0]
    if is_late(call, 1) and call.read(1) is None:
        rank = shape_length(call, 1)
        return late(call, "reshape_to", [x, call[1]], rank, allow_zero=bool(call.attr("allowzero", 0)))
    given: list[Size] = call.sizes(1, "the shape") if call.given(1) else list(call.attr("shape") or [])
    shape = given
    if not call.attr("allowzero", 0):
        shape = [x.shape[k] if size == 0 and k < len(x.shape) else size for k, size in enumerate(given)]
        _require_as_said(call, shape, x.shape)
    return call.reshape(x, filled(shape, x.shape))


def _require_as_said(call: Call, shape: Sequence[Size], old: Sequence[Size]) -> None:
    """Has a run end in which an open size of a shape is 0 and another one is meant by that: the old shape's there.

    Only where that makes a shape at all: of a tensor without elements, with an axis that is inferred or copied, too.
    """
    pairs = list(zip(shape, old, strict=False))
    others = -1 in shape or sum(_may_be_none(size) and _may_be_none(own) for size, own in pairs) > 1
    asked = {}
    for k, (size, own) in enumerate(pairs):
        may_be_empty = any(_may_be_none(size) for j, size in enumerate(old) if j != k)
        if isinstance(size, Dim) and others and may_be_empty and _may_be_none(size) and not _is_multiple(size, own):
            own_is_none = 0 if isinstance(own, int) else equal(own, 0)
            asked[f"{size} > 0 or {own} = 0"] = maximum(denied(equal(size, 0)), own_is_none)
    if asked:
        call.create("require_sizes", [], holds=list(asked.values()), demand="; ".join(asked))


def _may_be_none(size: Size) -> bool:
    return size == 0 if isinstance(size, int) else not never_negative(size - 1)


def _is_multiple(size: Dim, own: Size) -> bool:
    """Whether a size is none only where the other one is."""
    if own == 0 or size == own:
        return True
    factor = size // own
    return factor * own == size and never_negative(factor - 1)


def filled(shape: Sequence[Size], old: Sequence[Size]) -> list[Size]:
    """The shape with -1 replaced by what is left of the elements of the old shape."""
    if -1 not in shape:
        return list(shape)
    given, left = [size for size in shape if size != -1], list(old)
    # What stands in both is cancelled as it is: quotients of products of sums are long.
    for size in [size for size in given if size != 0]:
        if size in left:
            given.remove(size)
            left.remove(size)
    rest = product(given)
    return [divide(product(left), rest) if size == -1 and rest != 0 else 0 if size == -1 else size for size in shape]


@rule("Flatten")
def _flatten(call: Call) -> Any:
    shape, axis = call[0].shape, call.attr("axis")
    axis = axis + len(shape) if axis < 0 else axis
    return call.reshape(call[0], [product(shape[:axis]), product(shape[axis:])])


@rule("Squeeze")
def _squeeze(call: Call) -> Any:
    shape = call[0].shape
    if is_late_number(call, 1):
        rank = len(shape) - axes_count(call, 1, len(shape), -1)
        return late(call, "unit_axes", call.values(), rank, add=False)
    axes = call.axes(1, len(shape))
    if axes is None:
        return _without_all_ones(call, call[0])
    if any(shape[axis] != 1 and isinstance(shape[axis], int) for axis in axes):
        raise InvalidModel(f"Squeeze of axes {axes} of {list(shape)}, which are not all 1")
    return call.reshape(call[0], [size for k, size in enumerate(shape) if k not in axes])


def _without_all_ones(call: Call, x: Any) -> Any:
    """Without each axis that is 1 when it runs: of open sizes each run decides, so the rank is forked."""
    x = call.reshape(x, [size for size in x.shape if size != 1])
    axis = next((k for k, size in enumerate(x.shape) if isinstance(size, Dim) and equal(size, 1) != 0), None)
    return x if axis is None else _without_ones_from(call, x, axis)


def _without_ones_from(call: Call, x: Any, axis: int) -> Any:
    """As _without_all_ones, of the axes from this one on."""
    axis = next((k for k in range(axis, len(x.shape)) if equal(x.shape[k], 1) != 0), len(x.shape))
    if axis == len(x.shape):
        declared = call.declared()
        if declared is not None and len(declared) != len(x.shape):
            return Refused(
                f"Squeeze without axes leaves {len(x.shape)} axes of {list(x.shape)}, not {len(declared)} as declared"
            )
        return x
    size = x.shape[axis]
    is_one = call.reshape(call.create("eq", [call.whole(size), call.constant(1, "i64")]), [])
    call.forks.explain(is_one, f"Squeeze without axes drops an axis of {size} where it is 1")

    def dropped() -> Any:
        one = call.create("match_shape", [x], shape=[1 if k == axis else own for k, own in enumerate(x.shape)])
        return call.reshape(one, [own for k, own in enumerate(x.shape) if k != axis])

    a = call.forks.side(call, is_one, True, lambda: [_without_ones_from(call, dropped(), axis)])[0]
    b = call.forks.side(call, is_one, False, lambda: [_without_ones_from(call, x, axis + 1)])[0]
    return call.forks.joined(call, is_one, a, b)


@rule("Unsqueeze")
def _unsqueeze(call: Call) -> Any:
    shape = list(call[0].shape)
    if is_late_number(call, 1):
        return late(call, "unit_axes", call.values(), len(shape) + axes_count(call, 1, len(shape), 1))
    given = call.integers(1, "axes") if call.given(1) else call.attr("axes")
    for axis in sorted(call.axis(axis, len(shape) + len(given)) for axis in given):
        shape.insert(axis, 1)
    return call.reshape(call[0], shape)


@rule("Expand")
def _expand(call: Call) -> Any:
    if is_late(call, 1) and call.read(1) is None:
        return late(call, "expand_to", call.values(), max(len(call[0].shape), shape_length(call, 1)))
    x, shape = unified_with_shape(call, call[0], call.sizes(1, "the shape"))
    return call.broadcast_to(x, broadcast(x.shape, shape))


@rule("Slice")
def _slice(call: Call) -> Any:
    x = call[0]
    rank = len(x.shape)
    is_open = any(is_late(call, k) for k in (1, 2)) or any(is_late_number(call, k) for k in (3, 4))
    if call.version >= 10 and is_open:
        axes = None if is_late_number(call, 3) else call.axes(3, rank) or list(range(length_of(call, 1, "starts")))
        kept = {} if axes is None else {axis: size for axis, size in enumerate(x.shape) if axis not in axes}
        return late(call, "slice_over", [x, *(call.optional(k) for k in range(1, 5))], rank, kept=kept)
    if call.version < 10:
        starts, ends = call.attr("starts"), call.attr("ends")
        axes, steps = call.axes(None, rank), None
    else:
        starts, ends = call.sizes(1, "starts"), call.sizes(2, "ends")
        axes = call.axes(3, rank)
        steps = call.integers(4, "steps") if call.given(4) else None
    cuts = list(zip(axes or range(len(starts)), starts, ends, steps or [1] * len(starts), strict=False))
    if any(step < 0 and (isinstance(start, Dim) or isinstance(end, Dim)) for _, start, end, step in cuts):
        kept = {
            axis: size for axis, size in enumerate(x.shape) if axis not in [call.axis(cut[0], rank) for cut in cuts]
        }
        return late(call, "slice_over", [x, *(call.optional(k) for k in range(1, 5))], rank, kept=kept)
    for axis, start, end, step in cuts:
        x = slice_axis(call, x, call.axis(axis, rank), start, end, step)
    return x


def slice_axis(call: Call, x: Any, axis: int, start: Size, end: Size, step: int) -> Any:
    """Every step-th element of an axis from `start` to before `end`, as Python's slices count. InvalidModel for a step
    of 0."""
    if not x.shape:
        raise InvalidModel(f"{call.node.op_type} of a tensor of rank 0, which has no axis")
    size = x.shape[axis]
    if step == 0:
        raise InvalidModel("Slice with a step of 0")
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
        places = places_of_slice(size, start, end, step)
        if step < 0 and places:
            return call.create("flip", [slice_axis(call, x, axis, places[-1], places[0] + 1, -step)], axes=[axis])
        if len(places) == size:
            return x
        start, end, step = (places.start, places.stop, step) if places else (0, 0, 1)
    elif step < 0:
        if isinstance(start, Dim) or isinstance(end, Dim):
            raise Unsupported(f"Slice backwards along {size} elements from {start} to {end}, which are symbolic sizes")
        x = call.create("flip", [x], axes=[axis])
        # Counted from the other side, the last element is the first; none lies behind that one.
        first = -1 - start if start >= -1 else minimum(-1 - start, maximum(size - 1, 0))
        return slice_axis(call, x, axis, first, -1 - end, -step)
    elif isinstance(start, Dim) or isinstance(end, Dim):
        start = 0 if isinstance(start, int) and start < -LONGEST else place_within(start, size)
        end = size if isinstance(end, int) and end > LONGEST else place_within(end, size)
        end = end if never_negative(end - start) else maximum(start, end)
        if start == 0 and step == 1 and end == size:
            return x
        return call.create("slice", [x], axis=axis, start=start, end=end, step=step, inside=True)
    start = max(start, -WHOLE_END) if isinstance(start, int) else start
    if isinstance(end, int):
        end = WHOLE_END if end > LONGEST and isinstance(size, Dim) and size.name else min(end, WHOLE_END)
    if (start == 0 and step == 1) and end in (size, WHOLE_END):
        return x
    return call.create("slice", [x], axis=axis, start=start, end=end, step=step)


@rule("Split")
def _split(call: Call) -> list[Any]:
    x = call[0]
    axis = call.axis(call.attr("axis", 0), len(x.shape))
    if is_late(call, 1):
        count = len(call.node.output)
        return [late_part(call, axis, k, found_shape(call, len(x.shape), k)[axis]) for k in range(count)]
    parts = split_sizes(call, x.shape[axis])
    ends = list(accumulate(parts))
    if ends[-1] != x.shape[axis]:
        x = call.create("match_shape", [x], shape=[ends[-1] if k == axis else own for k, own in enumerate(x.shape)])
    return [slice_axis(call, x, axis, start, end, 1) for start, end in pairwise([0, *ends])]


def split_sizes(call: Call, size: Size) -> list[Size]:
    """The sizes of a Split's parts of an axis of that size, one for each output; known ones add up to a known size."""
    count, told = len(call.node.output), call.attr("num_outputs")
    if told not in (None, count):
        raise InvalidModel(f"Split with num_outputs = {told} and {count} outputs; they must be the same")
    parts: list[Size] = call.sizes(1, "the parts' sizes") if call.given(1) else list(call.attr("split") or [])
    if not parts and not call.given(1):
        part = divide(size + (count - 1), count)
        parts = [*[part] * (count - 1), size + part * (1 - count)]
    if len(parts) != count:
        raise InvalidModel(f"Split into parts of {parts} with {count} outputs; each part is an output")
    whole = list(accumulate(parts))[-1]
    if isinstance(whole, int) and isinstance(size, int) and whole != size:
        raise InvalidModel(f"Split of an axis of {size} into parts of {parts}, which are {whole} in all")
    if any(isinstance(part, int) and part < 0 for part in parts):
        raise InvalidModel(f"Split of an axis of {size} into parts of {parts}; no part is smaller than 0")
    return parts


def late_part(call: Call, axis: int, index: int, size: Size) -> Any:
    """A part of that size, where the parts' sizes are values of the model."""
    return call.create("split_over", [call[0], call[1]], axis=axis, index=index, size=size)


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


@rule("Pad")
def _pad(call: Call) -> Any:
    x = call[0]
    rank = len(x.shape)
    if call.version < 11:
        amounts, value = call.attr("pads") or call.attr("paddings"), float(call.attr("value", 0.0))
        axes = None
    elif is_late(call, 1) or is_late_number(call, 2) or is_late_number(call, 3):
        fill = call.reshape(call[2], []) if call.given(2) else None
        mode = call.one_of("mode", _MODES, "constant")
        return late(call, "pad_over", [x, call[1], fill, call.optional(3)], rank, mode=mode)
    else:
        amounts = call.sizes(1, "the padding")
        value = float(call.number(2, "the padding's value")) if call.given(2) else 0.0
        axes = call.axes(3, rank)
    axes = list(range(rank)) if axes is None else axes
    if len(amounts) != 2 * len(axes):
        raise InvalidModel(f"{len(amounts)} amounts of padding for {len(axes)} axes; there must be two for each")
    padding = [0] * 2 * rank
    for k, axis in enumerate(axes):
        padding[axis], padding[rank + axis] = amounts[k], amounts[len(axes) + k]
    told = {"padding": padding, "mode": call.one_of("mode", _MODES, "constant"), "value": value}
    if x.dtype == "bool":
        return call.cast(call.create("pad", [call.cast(x, "u8")], **told), "bool")
    return call.create("pad", [x], **told)


@rule("Tile<6")
def _tile_along(call: Call) -> Any:
    """An axis so many times; both are numbers of the input's type."""
    rank = len(call[0].shape)
    count, axis = (call.reshape(call.cast(call[k], "i64"), [1]) for k in (1, 2))
    if call.is_known(call[2]):
        axis = call.constant([call.axis(int(call.number(2, "the axis")), rank)], "i64")
    if call.is_known(call[1]):
        count = call.constant([int(call.number(1, "the repeats"))], "i64")
    own = call.create("eq", [call.from_the_front(axis, rank), call.constant(np.arange(rank), "i64")])
    return call.standard("Tile", [call[0], call.create("where", [own, count, call.constant(1, "i64")])])


@rule("Tile")
def _tile(call: Call) -> Any:
    x = call[0]
    if is_late(call, 1):
        return late(call, "tile_over", call.values(), len(x.shape))
    repeats = call.sizes(1, "the repeats")
    if len(repeats) != len(x.shape):
        raise InvalidModel(f"Tile with {len(repeats)} repeats of an input of {len(x.shape)} axes")
    return call.repeated(x, repeats)


def _own_places(call: Call, shape: Sequence[Size], axis: int) -> Any:
    """Its own index along one axis, at every place of the shape."""
    places = call.create("arange", [], start=0, end=shape[axis])
    row = call.reshape(places, [shape[axis] if k == axis else 1 for k in range(len(shape))])
    return call.create("expand", [row], shape=list(shape))


def indexed_axes(call: Call, indices: Any, axes: int, result: int | None) -> tuple[Any, int]:
    """Indices whose rows point into `axes` axes at most, and into how many they do.

    Where that is open, it follows from the axes of what is picked, `result` (None: not known).
    """
    if result is not None:
        indices = with_sizes(
            call, indices, [*[None] * (len(indices.shape) - 1), len(indices.shape) - 1 + axes - result]
        )
    depth = (indices.shape or [0])[-1]
    if isinstance(depth, Dim):
        raise open_rank(call, f"indices into {depth} axes", depth)
    return indices, depth


@rule("GatherND")
def _gather_nd(call: Call) -> Any:
    x, indices = call[0], call[1]
    shape, sizes, shared = list(indices.shape), list(x.shape), int(call.attr("batch_dims", 0))
    declared = call.declared()
    rank = None if declared is None else len(declared)
    indices, depth = indexed_axes(call, indices, len(sizes) - shared, rank)
    if not 0 <= shared < len(shape) or not 1 <= depth <= len(sizes) - shared:
        raise InvalidModel(f"indices {shape} into {sizes} behind {shared} shared axes")
    places = [_own_places(call, shape[:-1], k) for k in range(shared)]
    for k in range(depth):
        places.append(call.cast(call.entry(indices, k, len(shape) - 1), "i64"))
    leading = sizes[: len(places)]
    flat = call.create("flat_index", places, sizes=leading)
    return call.create("gather", [call.reshape(x, [product(leading), *sizes[len(leading) :]]), flat], axis=0)


@rule("DepthToSpace")
def _depth_to_space(call: Call) -> Any:
    n, c, h, w = call[0].shape
    block = int(call.attr("blocksize"))
    depth = divide(c, block * block)
    rows, columns = h * block, w * block
    split, perm = call.one_of(
        "mode",
        {
            "DCR": ([n, block, block, depth, h, w], [0, 3, 4, 1, 5, 2]),
            "CRD": ([n, depth, block, block, h, w], [0, 1, 4, 2, 5, 3]),
        },
        "DCR",
    )
    return call.reshape(call.create("permute", [call.reshape(call[0], split)], perm=perm), [n, depth, rows, columns])


@rule("SpaceToDepth")
def _space_to_depth(call: Call) -> Any:
    n, c, h, w = call.shape(0, 4)
    block = int(call.attr("blocksize"))
    rows, columns = divide(h, block), divide(w, block)
    perm = call.one_of("mode", {"DCR": [0, 3, 5, 1, 2, 4], "CRD": [0, 1, 3, 5, 2, 4]}, "DCR")
    turned = call.create("permute", [call.reshape(call[0], [n, c, rows, block, columns, block])], perm=perm)
    return call.reshape(turned, [n, c * (block * block), rows, columns])


@rule("Trilu")
def _triangle(call: Call) -> Any:
    x = call[0]
    call.shape(0, 2, 99)
    height, width = x.shape[-2:]
    if all(isinstance(n, int) for n in (height, width)) and max(height, 1) * max(width, 1) <= MOST_NUMBERS:
        apart = call.constant(np.arange(width) - np.arange(height)[:, None], "i64")
    else:
        rows, columns = (call.create("arange", [], start=0, end=size) for size in (height, width))
        apart = call.create("sub", [columns, call.reshape(rows, [height, 1])])
    k = call.reshape(call.cast(call[1], "i64"), []) if call.given(1) else call.constant(0, "i64")
    kept = call.create("ge" if call.attr("upper", 1) else "le", [apart, k])
    return call.create("where", [kept, x, call.like(0, x)])
