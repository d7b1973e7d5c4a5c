"""Pixels that become channels, and channels that become pixels, without a transposition.

Two axes that change places, of which one is short, are so many parts side by side: a copy goes over elements once,
where compilers turn four axes by several transpositions. Channels of a convolution that become pixels, as a transposed
convolution has them, are convolutions of each row: filters in another order give [n, h, w, (j, c)], which is
[n, h, (w, j), c] as it lies; rows that stand in turn are convolutions by themselves, side by side in
[n, h, (i, w), (j, c)]. Nothing is moved. Filters of blocks of pixels that became channels see the pixels themselves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hetnn.exporters.tosa.file import Op
    from hetnn.exporters.tosa.movement import Movement
    from hetnn.exporters.tosa.writer import Tensor, Writer


def interleaved(writer: Writer, source: Tensor, movement: Movement) -> Tensor | None:
    """The movement of a convolution's result, an image of channels last; None where it is no such one."""
    found, order = convolution(writer, source), _filters(source, movement)
    if found is None or order is None:
        return None
    reader, writer.node = writer.node, found[0].node  # whose filters they are
    rows = [_chosen(writer, *found, places) for places in order]
    writer.node = reader
    n, h, w, c = rows[0].shape
    y = rows[0] if len(rows) == 1 else writer.add("CONCAT", rows, source.dtype, [n, h, w * len(rows), c], Axis=2)
    return writer.add("RESHAPE", [y, writer.sizes(movement.shape)], source.dtype, movement.shape)


_MOST_PARTS = 8


def side_by_side(writer: Writer, source: Tensor, shape: list[int], order: list[int]) -> Tensor | None:
    """The elements of a shape [a, b, c, d] as a, c, b, d; None of other orders, and where b and c are long."""
    if order != [0, 2, 1, 3] or min(shape[1:3]) > _MOST_PARTS:
        return None
    a, b, c, d = shape
    if b <= c:  # parts of rows, which become channels
        rows = writer.shaped(source, [1, a, b * c, d])
        parts = [writer.sliced(rows, [0, 0, k * c, 0], [1, a, c, d]) for k in range(b)]
        return writer.add("CONCAT", parts, source.dtype, [1, a, c, b * d], Axis=3)
    rows = writer.shaped(source, [1, a, b, c * d])
    parts = [writer.sliced(rows, [0, 0, 0, k * d], [1, a, b, d]) for k in range(c)]
    return writer.add("CONCAT", parts, source.dtype, [1, a, b * c, d], Axis=2)


def blocks(source: Tensor, movement: Movement, weight: Any) -> tuple[list[int], Any] | None:
    """Of an image whose channels are blocks of the source's pixels: their height and width, and filters [f, c, h, w] of
    it as those of the source, [f, h, w, c], which step from block to block. None of other movements."""
    if len(source.shape) != 4 or len(movement.axes) != 4:
        return None
    owners = movement.owners(source.shape)
    own = [[part for part, owner in enumerate(owners) if owner == k and movement.sizes[part] > 1] for k in range(4)]
    *places, channels = ([part for part in axis if movement.sizes[part] > 1] for axis in movement.axes)
    inner = [own[k][len(places[k]) :] for k in range(3)]
    if inner[0] or any(own[k][: len(place)] != place for k, place in enumerate(places)):
        return None
    block = [math.prod(movement.sizes[part] for part in parts) for parts in inner[1:]]
    if block == [1, 1]:
        return None
    filters, _, height, width = weight.shape
    split = weight.reshape(filters, *(movement.sizes[part] for part in channels), height, width)
    at = [[1 + channels.index(part) for part in parts] for parts in (inner[1], inner[2], own[3])]
    order = [0, split.ndim - 2, *at[0], split.ndim - 1, *at[1], *at[2]]
    return block, split.transpose(order).reshape(filters, height * block[0], width * block[1], source.shape[3])


def convolution(writer: Writer, source: Tensor) -> tuple[Op, Op] | None:
    """The convolution and the rescaling of its sums that made a tensor; None of others."""
    rescale = writer.made_by(source.name)
    conv = writer.made_by(rescale.inputs[0]) if rescale is not None and rescale.kind == "RESCALE" else None
    return None if rescale is None or conv is None or conv.kind != "CONV2D" else (conv, rescale)


def columns_anew(writer: Writer, source: Tensor, places: list[int]) -> list[Tensor] | None:
    """Single columns of a convolution's result, an image of channels last, each a convolution of what it sees: nothing
    reads the whole besides what it is joined to, so that it is written there. None where it is no such one."""
    from hetnn.exporters.tosa.writer import Tensor

    found = convolution(writer, source)
    if found is None:
        return None
    conv, rescale = found
    (name, *given), (_, *factors), pads = conv.inputs, rescale.inputs, conv.attrs["Pad"]
    sizes, dtype, _ = writer.block.tensors[name]
    filters = writer.block.tensors[given[0]][0]
    width, filter_width = sizes[2], filters[2]
    if math.prod(filters) > writer.form.folds:
        return None
    acc, result = (writer.block.tensors[op.outputs[0]][1] for op in found)
    shape, parts = [*source.shape[:2], 1, source.shape[3]], dict[int, Tensor]()
    reader = writer.node
    for place in set(places):
        begin = place * conv.attrs["Stride"][1] - pads[2]
        end = begin + (filter_width - 1) * conv.attrs["Dilation"][1] + 1
        low, high = max(begin, 0), min(end, width)
        if low >= high:  # it sees nothing but padding
            return None
        seen = writer.sliced(Tensor(name, dtype, tuple(sizes)), [0, 0, low, 0], [*sizes[:2], high - low, sizes[3]])
        writer.node = conv.node  # whose work it is
        how = {**conv.attrs, "Pad": [*pads[:2], low - begin, end - high]}
        sums = writer.add(conv.kind, [seen, *given], acc, shape, **how)
        parts[place] = writer.add("RESCALE", [sums, *factors], result, shape, **rescale.attrs)
        writer.node = reader
    return [parts[place] for place in places]


def _filters(source: Tensor, movement: Movement) -> list[list[int]] | None:
    """The places of filters for each row that stands in turn."""
    if len(movement.axes) != 4 or len(source.shape) != 4:
        return None
    owners = movement.owners(source.shape)
    parts = [[part for part in each if movement.sizes[part] > 1] for each in movement.axes]
    of_pixels: list[int] = []  # parts of channels that become rows and columns
    rows = 1
    for k, each in enumerate(parts[:3]):
        own = [part for part, owner in enumerate(owners) if owner == k and movement.sizes[part] > 1]
        more = each[len(own) :]
        if each[: len(own)] != own or any(owners[part] != 3 for part in more) or (k == 0 and more):
            return None
        of_pixels += more
        rows = int(np.prod([movement.sizes[part] for part in more])) if k == 1 else rows
    if not of_pixels:
        return None
    channels = [part for part, owner in enumerate(owners) if owner == 3 and movement.sizes[part] > 1]
    places = np.arange(source.shape[3]).reshape([movement.sizes[part] for part in channels])
    order = [channels.index(part) for part in (*of_pixels, *parts[3])]
    return [[int(place) for place in row] for row in places.transpose(order).reshape(rows, -1)]


def _chosen(writer: Writer, conv: Op, rescale: Op, places: list[int]) -> Tensor:
    """Some filters of a convolution, and how their sums are rescaled."""
    tensors = writer.block.tensors

    def some(name: str) -> Tensor:
        shape, dtype, values = tensors[name]
        assert values is not None
        one = shape == [1]  # for all filters
        return writer.constant(values.reshape(shape) if one else values.reshape(shape)[places], dtype)

    x, weight, bias, *zeros = conv.inputs
    acc, dtype = tensors[conv.outputs[0]], tensors[rescale.outputs[0]][1]
    shape = [*acc[0][:3], len(places)]
    sums = writer.add(conv.kind, [x, some(weight), some(bias), *zeros], acc[1], shape, **conv.attrs)
    _, *factors, x_zero, y_zero = rescale.inputs
    how = {**rescale.attrs, "PerChannel": rescale.attrs["PerChannel"] and len(places) > 1}
    return writer.add("RESCALE", [sums, *map(some, factors), x_zero, y_zero], dtype, shape, **how)
