"""TFLite's operators that move, join and pick values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.sizes import Size, divide, product
from hetnn.importers.tflite.held import TO_FIRST, TO_LAST
from hetnn.importers.tflite.rules.call import Call, always, rule, static


def axis_in(axis: int, first: bool) -> int:
    """Where an axis of the file lies in a layout."""
    return TO_FIRST.index(axis) if first else axis


@rule("CONCATENATION", integers=always)
def _concatenation(call: Call) -> Any:
    indices = [k for k in range(len(call.inputs)) if call.given(k)]
    if not indices:
        raise InvalidModel("nothing to join")
    rank = call.rank(indices[0])
    axis = call.axis(int(call.option("Axis")), rank)
    first = rank == 4 and any(call.is_first(k) for k in indices)
    values = [call.first(k) if first else call[k] for k in indices]
    values = [call.of_scale(value, call.quant(k)) for value, k in zip(values, indices, strict=True)]
    return call.placed(call.activated(call.joined(values, axis_in(axis, first))), first)


def _parts(call: Call, index: int, axis: int, sizes: list[int]) -> list[Any]:
    x, first = call.in_its_layout(index)
    ends = np.cumsum([0, *sizes]).tolist()
    return [
        call.placed(call.create("slice", [x], axis=axis_in(axis, first), start=start, end=start + size), first)
        for start, size in zip(ends[:-1], sizes, strict=True)
    ]


@rule("SPLIT", integers=always)
def _split(call: Call) -> Any:
    axis, count = call.axis(call.integer(0, "the axis"), call.rank(1)), len(call.outputs)
    (size,) = static([call.shape(1)[axis]], "a split")
    if not count or size % count:
        raise InvalidModel(f"an axis of {size} in {count} parts")
    return _parts(call, 1, axis, [size // count] * count)


@rule("SPLIT_V", integers=always)
def _split_by_sizes(call: Call) -> Any:
    axis, sizes = call.axis(call.integer(2, "the axis"), call.rank(0)), call.integers(1, "the sizes of the parts")
    (whole,) = static([call.shape(0)[axis]], "a split")
    open_places = [k for k, size in enumerate(sizes) if size == -1]
    if len(open_places) == 1:
        sizes[open_places[0]] = whole - (sum(sizes) + 1)
    if min(sizes, default=0) < 0 or sum(sizes) != whole:
        raise InvalidModel(f"an axis of {whole} in parts of {sizes}")
    return _parts(call, 0, axis, sizes)


@rule("PACK", integers=always)
def _pack(call: Call) -> Any:
    values = [call.of_scale(call[k], call.quant(k)) for k in range(len(call.inputs))]
    if not values:
        raise InvalidModel("nothing to stack")
    return call.stacked(values, call.axis(int(call.option("Axis")), call.rank(0) + 1))


@rule("UNPACK", integers=always)
def _unpack(call: Call) -> Any:
    axis = call.axis(int(call.option("Axis")), call.rank(0))
    if static([call.shape(0)[axis]], "an axis to unpack") != [len(call.outputs)]:
        raise InvalidModel(f"an axis of {call.shape(0)[axis]} for {len(call.outputs)} results")
    return [call.entry(call[0], k, axis) for k in range(len(call.outputs))]


@rule("RESHAPE", integers=always)
def _reshape(call: Call) -> Any:
    wanted: list[Size] = [int(n) for n in call.option("NewShape", [])]
    wanted = call.sizes(1, "the new shape") if call.given(1) else wanted
    return call.reshape(call[0], _filled(call, wanted))


def _filled(call: Call, wanted: list[Size]) -> list[Size]:
    """A shape in which one size may be -1, for what is left."""
    numbers = [size for size in wanted if isinstance(size, int)]
    if min(numbers, default=0) < -1 or numbers.count(-1) > 1:
        raise InvalidModel(f"the new shape {wanted}")
    known = product(size for size in wanted if size != -1)
    if -1 in numbers and known == 0:
        raise InvalidModel(f"the new shape {wanted}, in which -1 may be any size")
    rest = divide(product(call.shape(0)), known) if -1 in numbers else 0
    return [rest if size == -1 else size for size in wanted]


@rule("SQUEEZE", integers=always)
def _squeeze(call: Call) -> Any:
    shape = call.shape(0)
    told = [call.axis(int(axis), len(shape)) for axis in call.option("SqueezeDims", [])]
    if any(shape[axis] != 1 for axis in told):
        raise InvalidModel(f"the axes {told} of {shape} without one of them, which are no ones")
    axes = told or [k for k, size in enumerate(shape) if size == 1]
    return call.reshape(call[0], [size for k, size in enumerate(shape) if k not in axes])


@rule("EXPAND_DIMS", integers=always)
def _expand_dims(call: Call) -> Any:
    shape = call.shape(0)
    axis = call.axis(call.integer(1, "the axis"), len(shape) + 1)
    return call.reshape(call[0], [*shape[:axis], 1, *shape[axis:]])


@rule("TRANSPOSE", integers=always)
def _transpose(call: Call) -> Any:
    rank = call.rank(0)
    perm = [call.axis(axis, rank) for axis in call.integers(1, "the order of axes")]
    if sorted(perm) != list(range(rank)):
        raise InvalidModel(f"the order {perm} of {rank} axes")
    if rank != 4 or not call.is_first(0):
        return call.permuted(call[0], perm)
    return call.permuted(call.first(0), [TO_FIRST.index(axis) for axis in perm])


@rule("SLICE", integers=always)
def _slice(call: Call) -> Any:
    shape = call.shape(0)
    begins, sizes = call.integers(1, "where a slice begins"), call.integers(2, "the size of a slice")
    if not len(begins) == len(sizes) == len(shape):
        raise InvalidModel(f"a slice of {len(begins)} begins and {len(sizes)} sizes of {len(shape)} axes")
    x, first = call.in_its_layout(0)
    for axis, (begin, size) in enumerate(zip(begins, sizes, strict=True)):
        whole = shape[axis]
        end = whole if size == -1 else begin + size
        if (
            begin < 0
            or size < -1
            or (isinstance(whole, int) and isinstance(end, int) and (begin > whole or end > whole))
        ):
            raise InvalidModel(f"a slice from {begin} of the size {size} of an axis of {whole}")
        if begin or end != whole:
            x = call.create("slice", [x], axis=axis_in(axis, first), start=begin, end=end)
    return call.placed(x, first)


@rule("STRIDED_SLICE", integers=always)
def _strided_slice(call: Call) -> Any:
    """As numpy's x[begin:end:step, ..., index, newaxis]: bits of five masks say which entry is which."""
    begins, ends, steps = (call.integers(k, what) for k, what in ((1, "begins"), (2, "ends"), (3, "steps")))
    if not len(begins) == len(ends) == len(steps):
        raise InvalidModel(f"a slice of {len(begins)} begins, {len(ends)} ends and {len(steps)} steps")
    masks = {name: int(call.option(f"{name}Mask")) for name in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")}

    def says(name: str, entry: int) -> bool:
        return bool(masks[name] >> entry & 1)

    taken = sum(not says("NewAxis", k) and not says("Ellipsis", k) for k in range(len(begins)))
    shape = call.shape(0)
    if taken > len(shape):
        raise InvalidModel(f"a slice of {taken} axes of {shape}")
    x, first = call.in_its_layout(0)
    axis, result, kept = 0, list[Size](), list[int]()
    for k, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        if says("Ellipsis", k):
            many = len(shape) - taken
            result += shape[axis : axis + many]
            kept += range(axis, axis + many)
            axis += many
            continue
        if says("NewAxis", k):
            result.append(1)
            continue
        size = shape[axis]
        if says("ShrinkAxis", k):
            if isinstance(size, int) and not -size <= begin < size:
                raise InvalidModel(f"the index {begin} of an axis of {size}")
            place = begin + size if begin < 0 else begin
            x = call.create("slice", [x], axis=axis_in(axis, first), start=place, end=place + 1)
            axis += 1
            continue
        x, size = _ranged(call, x, axis_in(axis, first), size, begin, end, step, says("Begin", k), says("End", k))
        if call.option("Offset") and not says("End", k):
            raise Unsupported("ends that count from the begin")
        result.append(size)
        kept.append(axis)
        axis += 1
    result += shape[axis:]
    kept += range(axis, len(shape))
    if len(result) == len(shape) and kept == list(range(len(shape))):
        return call.placed(x, first)
    return call.reshape(call.permuted(x, TO_LAST) if first else x, result)


def _ranged(
    call: Call, x: Any, axis: int, size: Size, begin: int, end: int, step: int, from_start: bool, to_end: bool
) -> tuple[Any, Size]:
    """x[begin:end:step] along an axis, and the size that is left."""
    if step == 0:
        raise InvalidModel("a slice with the step 0")
    if from_start and to_end and step == 1:
        return x, size
    if not isinstance(size, int):
        raise Unsupported(f"a slice of an axis of the symbolic size {size}")
    start, stop, step = slice(None if from_start else begin, None if to_end else end, step).indices(size)
    count = len(range(start, stop, step))
    if step < 0:
        x = call.create("flip", [x], axes=[axis])
        start, stop, step = size - 1 - start, size - 1 - stop, -step
    if not count:
        return call.create("slice", [x], axis=axis, start=0, end=0), 0
    if count == size and step == 1:
        return x, size
    return call.create("slice", [x], axis=axis, start=start, end=start + (count - 1) * step + 1, step=step), count


def _pairs(call: Call, index: int, rank: int) -> list[list[int]]:
    """Elements before and behind each axis."""
    padding = call.integers(index, "padding")
    if len(padding) != 2 * rank:
        raise InvalidModel(f"padding {padding} of {rank} axes")
    return [padding[2 * k : 2 * k + 2] for k in range(rank)]


@rule("PAD", "PADV2", integers=always)
def _pad(call: Call) -> Any:
    pairs = _pairs(call, 1, call.rank(0))
    if any(number < 0 for pair in pairs for number in pair):
        raise InvalidModel(f"padding {pairs}, which is not negative")
    x, first = call.in_its_layout(0)
    value = 0.0
    if call.name == "PADV2" and call.given(2):
        value = call.real_number(2)
    return call.placed(_padded(call, x, pairs, first, value=value), first)


def _padded(call: Call, x: Any, pairs: list[list[int]], first: bool, **told: Any) -> Any:
    order = [pairs[axis] for axis in TO_FIRST] if first else pairs
    return call.create("pad", [x], padding=[before for before, _ in order] + [after for _, after in order], **told)


@rule("MIRROR_PAD", integers=always)
def _mirror_pad(call: Call) -> Any:
    """REFLECT leaves out the edge, SYMMETRIC has it twice."""
    pairs, mode = _pairs(call, 1, call.rank(0)), call.option("Mode")
    x, first = call.in_its_layout(0)
    if mode == 0:
        return call.placed(_padded(call, x, pairs, first, mode="reflect"), first)
    for axis, (before, after) in reversed(list(enumerate(pairs))):  # columns before rows, which lie together
        if before == after == 0:
            continue
        (size,) = static([call.shape(0)[axis]], "a mirrored edge")
        if max(before, after) > size or min(before, after) < 0:
            raise InvalidModel(f"{before} and {after} mirrored elements of an axis of {size}")
        at = axis_in(axis, first)
        left, right = _mirrored(call, x, at, 0, before), _mirrored(call, x, at, size - after, size)
        x = call.joined([*left, x, *right], at)
    return call.placed(x, first)


def _mirrored(call: Call, x: Any, axis: int, start: int, end: int) -> list[Any]:
    if start == end:
        return []
    return [call.create("flip", [call.create("slice", [x], axis=axis, start=start, end=end)], axes=[axis])]


@rule("TILE", integers=always)
def _tile(call: Call) -> Any:
    counts = call.integers(1, "how often to repeat")
    x, shape = call[0], call.shape(0)
    if len(counts) != len(shape) or min(counts, default=0) < 0:
        raise InvalidModel(f"{counts} repeats of {len(shape)} axes")
    return call.repeated(x, counts)


@rule("BROADCAST_TO", integers=always)
def _broadcast_to(call: Call) -> Any:
    return call.broadcast_to(call[0], call.sizes(1, "the new shape"))


@rule("GATHER", integers=always)
def _gather(call: Call) -> Any:
    x, index, batch = call[0], call.plain(call[1], 1), int(call.option("BatchDims"))
    rank = call.rank(1)
    batch = batch + rank if batch < 0 else batch
    axis = call.axis(int(call.option("Axis")), call.rank(0))
    if not 0 <= batch <= min(axis, rank):
        raise InvalidModel(f"{batch} axes of batches before the axis {axis} of indices of rank {rank}")
    if not batch:
        return call.create("gather", [x, index], axis=axis, from_end=False)
    # All batches behind one another: each index moves by what lies before its batch.
    shape, places = static(x.shape, "a gather of batches"), static(index.shape, "a gather of batches")
    if shape[:batch] != places[:batch]:
        raise InvalidModel(f"indices {places} for {batch} axes of batches of {shape}")
    count, size = math.prod(shape[:batch]), shape[axis]
    rows = call.permuted(x, [*range(batch), axis, *range(batch, axis), *range(axis + 1, len(shape))])
    rows = call.reshape(rows, [count * size, *shape[batch:axis], *shape[axis + 1 :]])
    moved = call.reshape(call.cast(index, "i64"), [count, product(places[batch:])])
    moved = call.create("add", [moved, call.constant(np.arange(count).reshape(-1, 1) * size, "i64")])
    found = call.create("gather", [rows, call.reshape(moved, places)], axis=0, from_end=False)
    inner, between = len(places), axis - batch
    perm = [*range(batch), *range(inner, inner + between), *range(batch, inner)]
    return call.permuted(found, [*perm, *range(inner + between, len(found.shape))])


@rule("GATHER_ND", integers=always)
def _gather_nd(call: Call) -> Any:
    """What stands at the places in the last axis of the indices."""
    x, index = call[0], call[1]
    shape = static(x.shape, "a gather by several indices")
    depth = static(index.shape, "indices")[-1] if index.shape else 0
    if not 1 <= depth <= len(shape):
        raise InvalidModel(f"places of {depth} indices in a tensor of rank {len(shape)}")
    parts = [call.entry(call.cast(index, "i64"), k, len(index.shape) - 1) for k in range(depth)]
    flat = call.create("flat_index", parts, sizes=shape[:depth])
    rows = call.reshape(x, [product(shape[:depth]), *shape[depth:]])
    return call.create("gather", [rows, flat], axis=0, from_end=False)


@rule("SCATTER_ND", integers=always)
def _scatter_nd(call: Call) -> Any:
    """Zeros, to which every update is added at its place."""
    index, updates, shape = call[0], call[1], call.integers(2, "the shape of the result")
    depth = static(index.shape, "indices")[-1] if index.shape else 0
    if not 1 <= depth <= len(shape):
        raise InvalidModel(f"places of {depth} indices in a tensor of rank {len(shape)}")
    parts = [call.entry(call.cast(index, "i64"), k, len(index.shape) - 1) for k in range(depth)]
    count, rest = product(static(index.shape[:-1], "indices")), product(shape[depth:])
    flat = call.reshape(call.create("flat_index", parts, sizes=shape[:depth]), [count, 1])
    values = call.reshape(updates, [count, rest])
    zeros = call.broadcast_to(call.like(0, updates), [product(shape[:depth]), rest])
    places = call.broadcast_to(flat, [count, rest])
    return call.reshape(call.create("scatter_elements", [zeros, places, values], axis=0, reduce="add"), shape)


@rule("REVERSE_V2", integers=always)
def _reverse(call: Call) -> Any:
    axes = call.axes(1, call.rank(0))
    x, first = call.in_its_layout(0)
    return call.placed(call.create("flip", [x], axes=[axis_in(axis, first) for axis in axes]), first)


@rule("SPACE_TO_DEPTH", integers=always)
def _space_to_depth(call: Call) -> Any:
    """Blocks of pixels as channels: [n, h/b, w/b, (row, column, channel)]."""
    call.ranked(0, 4)
    (n, h, w, c), block = call.shape(0), _block(call)
    x = call.reshape(call.first(0), [n, c, divide(h, block), block, divide(w, block), block])
    x = call.create("permute", [x], perm=[0, 3, 5, 1, 2, 4])
    return call.placed(call.reshape(x, [n, c * (block * block), divide(h, block), divide(w, block)]), True)


@rule("DEPTH_TO_SPACE", integers=always)
def _depth_to_space(call: Call) -> Any:
    call.ranked(0, 4)
    (n, h, w, c), block = call.shape(0), _block(call)
    kept = divide(c, block * block)
    x = call.reshape(call.first(0), [n, block, block, kept, h, w])
    x = call.create("permute", [x], perm=[0, 3, 4, 1, 5, 2])
    return call.placed(call.reshape(x, [n, kept, h * block, w * block]), True)


def _block(call: Call) -> int:
    block = int(call.option("BlockSize"))
    if block < 1:
        raise InvalidModel(f"blocks of {block} pixels")
    return block


@rule("SPACE_TO_BATCH_ND", integers=always)
def _space_to_batch(call: Call) -> Any:
    """Pixels of a grid as images of their own: batches lie (row, column, image)."""
    blocks, pairs = _blocks(call)
    x = call[0]
    zeros = [[0, 0]]
    x = _padded(call, x, [*zeros, *pairs, *zeros * (len(x.shape) - 1 - len(pairs))], False)
    n, *rest = x.shape
    inner = len(blocks)
    split = [part for size, block in zip(rest[:inner], blocks, strict=True) for part in (divide(size, block), block)]
    x = call.reshape(x, [n, *split, *rest[inner:]])
    rows, places = [2 * k + 2 for k in range(inner)], [2 * k + 1 for k in range(inner)]
    x = call.create("permute", [x], perm=[*rows, 0, *places, *range(2 * inner + 1, len(x.shape))])
    return call.reshape(x, [n * product(blocks), *split[::2], *rest[inner:]])


@rule("BATCH_TO_SPACE_ND", integers=always)
def _batch_to_space(call: Call) -> Any:
    blocks, pairs = _blocks(call)
    x = call[0]
    n, *rest = x.shape
    inner = len(blocks)
    count = divide(n, product(blocks))
    x = call.reshape(x, [*blocks, count, *rest])
    order = [part for k in range(inner) for part in (inner + 1 + k, k)]
    x = call.create("permute", [x], perm=[inner, *order, *range(2 * inner + 1, len(x.shape))])
    whole = [size * block for size, block in zip(rest[:inner], blocks, strict=True)]
    x = call.reshape(x, [count, *whole, *rest[inner:]])
    for axis, ((before, after), size) in enumerate(zip(pairs, whole, strict=True), start=1):
        if before or after:
            x = call.create("slice", [x], axis=axis, start=before, end=size - after)
    return x


def _blocks(call: Call) -> tuple[list[int], list[list[int]]]:
    """The size of blocks along each axis, and what is padded, or cut, around each."""
    blocks = call.integers(1, "the blocks")
    if min(blocks, default=1) < 1 or not 1 <= len(blocks) < call.rank(0):
        raise InvalidModel(f"blocks {blocks} of {call.rank(0)} axes")
    return blocks, _pairs(call, 2, len(blocks))
