"""Elements in another order, shape or number as TOSA has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.exporters.tosa.call import Call, demand_same_scale, exports, rescale_result
from hetnn.exporters.tosa.interleave import columns_anew
from hetnn.exporters.tosa.pixels import copied
from hetnn.exporters.tosa.schema import number
from hetnn.exporters.tosa.writer import FIRST, Tensor, refuse


@exports("upsample_nearest2d")
def _upsample(call: Call) -> Tensor:
    """Each pixel so many times: places of the image's middle, so that all processors have the form."""
    demand_same_scale(call)
    x = call.last()
    times = [goal // size for goal, size in zip(call.shape[2:], x.shape[1:3], strict=True)]
    if any(goal % size for goal, size in zip(call.shape[2:], x.shape[1:3], strict=True)):
        refuse("to sizes that are no multiples")
    n, c, height, width = call.shape
    scale = [part for each in times for part in (2 * each, 2)]
    ends = scale, [1 - each for each in times], [each - 1 for each in times]
    given: list[Tensor | str] = [x, *(call.writer.sizes(sizes) for sizes in ends)]
    mode = number("ResizeMode", "NEAREST")
    return call.first(call.writer.add("RESIZE", given, x.dtype, [n, height, width, c], Mode=mode))


@exports("reshape")
def _reshape(call: Call) -> Tensor:
    return rescale_result(call, call.writer.reshape(call[0], call.shape))


@exports("permute")
def _permute(call: Call) -> Tensor:
    perm = [part % len(call.shape) for part in call.integers("perm")]
    return rescale_result(call, call.writer.transpose(call[0], perm))


@exports("concat")
def _concat(call: Call) -> Tensor:
    if any(quant != call.result for quant in call.quants):
        refuse("of several scales")
    axis = int(call.attrs["axis"]) % len(call.shape)

    def write(*operands: Tensor, order: Sequence[int]) -> Tensor:
        parts: list[Tensor] = []
        columns = _columns_beside(call, operands) if tuple(order) == FIRST and order[axis] == 2 else None
        if columns is not None:
            return call.writer.joined(columns, 2)
        for k, x in enumerate(operands):
            x = _copied(call, k, x) if tuple(order) == FIRST else x
            parts += [x] if call.shared(k) else call.writer.pieces(x, order[axis])
        return call.writer.joined(parts, order[axis])

    return call.of_elements(write, *(call[k] for k in range(len(call.inputs))))


def _columns_beside(call: Call, operands: Sequence[Tensor]) -> list[Tensor] | None:
    """Of a convolution's result between columns of its own, these computed once more; None of others."""
    pieces = [piece for x in operands for piece in call.writer.pieces(x, 2)]
    wholes = [piece for piece in pieces if piece.shape[2] != 1]
    origins = [call.writer.part_of(piece) for piece in pieces if piece.shape[2] == 1]
    if len(wholes) != 1 or any(whole.name != wholes[0].name for whole, _ in origins):
        return None
    anew = columns_anew(call.writer, wholes[0], [begins[2] for _, begins in origins])
    if anew is None:
        return None
    columns = iter(anew)
    return [piece if piece is wholes[0] else next(columns) for piece in pieces]


def _copied(call: Call, k: int, x: Tensor) -> Tensor:
    """Operand k of a concatenation, an image, copied here where compilers would: others read it, or it is reshaped."""
    made = call.writer.made_by(x.name)
    lies_there = made is not None and made.kind != "RESHAPE" and not call.shared(k)
    stays = lies_there or not call.writer.form.layers or x.dtype != "i8" or x.array is not None
    return x if stays else copied(call.writer, x)


@exports("pad")
def _pad(call: Call) -> Tensor:
    amounts, rank = call.integers("padding"), len(call.shape)
    if min(amounts, default=0) < 0 or call.attrs["mode"] not in ("constant", "reflect"):
        refuse("that cuts, or repeats other elements than those at an edge")
    if call.attrs["mode"] == "reflect":
        return rescale_result(call, _reflected(call, amounts[:rank], amounts[rank:]))
    ends: Any = np.iinfo({"i8": np.int8, "i16": np.int16}[call.dtype])
    value = int(np.clip(np.rint(call.attrs["value"] / call.scale()) + call.zero(), ends.min, ends.max))

    def write(x: Tensor, order: Sequence[int]) -> Tensor:
        axes = np.argsort(order).tolist()
        pairs = [amounts[k + side * rank] for k in axes for side in (0, 1)]
        return call.writer.pad(x, pairs, value)

    return rescale_result(call, call.of_elements(write, call[0]))


def _reflected(call: Call, before: list[int], behind: list[int]) -> Tensor:
    """The image between its own columns, and then its rows, in reverse; each is a part of it, side by side."""

    def write(x: Tensor, order: Sequence[int]) -> Tensor:
        anew = tuple(order) == FIRST and not call.shared(0)
        for at, axis in reversed(list(enumerate(np.argsort(order).tolist()))):
            if before[axis] or behind[axis]:
                size = x.shape[at]
                places = [*range(before[axis], 0, -1), *range(size - 2, size - 2 - behind[axis], -1)]
                parts = columns_anew(call.writer, x, places) if anew and at == 2 else None
                whole = copied(call.writer, x) if parts is None and _is_copied(call, x, order) else x
                parts = parts or _each(call, x, at, places)
                x = call.writer.joined([*parts[: before[axis]], whole, *parts[before[axis] :]], at)
        return x

    return call.of_elements(write, call[0])


def _is_copied(call: Call, x: Tensor, order: Sequence[int]) -> bool:
    """Whether an image between its own parts, which compilers copy there, is rather copied by filters."""
    return call.writer.form.layers and x.dtype == "i8" and tuple(order) == FIRST


_MOST_PARTS = 64


def _each(call: Call, x: Tensor, axis: int, places: Sequence[int]) -> list[Tensor]:
    """The parts of one element along an axis."""
    if len(places) > _MOST_PARTS:
        refuse(f"in reverse along {len(places)} places, of at most {_MOST_PARTS}")
    shape = [1 if k == axis else size for k, size in enumerate(x.shape)]
    return [call.writer.sliced(x, [place if k == axis else 0 for k in range(len(shape))], shape) for place in places]


@exports("flip")
def _flip(call: Call) -> Tensor:
    demand_same_scale(call)
    axes = {axis % len(call.shape) for axis in call.integers("axes")}

    def write(x: Tensor, order: Sequence[int]) -> Tensor:
        for at, axis in enumerate(np.argsort(order).tolist()):
            if axis in axes:
                x = call.writer.joined(_each(call, x, at, range(x.shape[at] - 1, -1, -1)), at)
        return x

    return call.of_elements(write, call[0])


@exports("slice")
def _slice(call: Call) -> Tensor:
    if call.attrs["step"] != 1:
        refuse("with a step")
    axis, size = int(call.attrs["axis"]) % len(call.shape), call[0].shape
    start = int(call.attrs["start"])
    start = max(0, min(start + size[axis] if start < 0 else start, size[axis]))

    def write(x: Tensor, order: Sequence[int]) -> Tensor:
        axes = np.argsort(order).tolist()
        return call.writer.sliced(x, [start if k == axis else 0 for k in axes], [call.shape[k] for k in axes])

    return rescale_result(call, call.of_elements(write, call[0]))
