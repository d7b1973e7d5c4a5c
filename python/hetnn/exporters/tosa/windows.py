"""Convolutions, linear layers and pools as TOSA has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.exporters.tosa.call import Call, demand_same_scale, exports, rescale_result
from hetnn.exporters.tosa.interleave import blocks
from hetnn.exporters.tosa.schema import number
from hetnn.exporters.tosa.writer import LAST, Factor, Tensor, factor_of, refuse

_MOST_STEP = 3  # that all processors take over an image with padding
_MOST_PADDED = 3  # the longest step at which all processors pad an image


def _window(
    call: Call,
    x: Tensor,
    kernel: list[int],
    fill: int | None,
    ceil: bool = False,
    more: bool = False,
    block: Sequence[int] = (1, 1),
) -> tuple[Tensor, dict[str, Any]]:
    """The image and attributes of a window that ends where the image does: TOSA has no rest behind the last one.

    fill: what the padding counts as; an image that was padded by it is read as it was. None: it does not count.
    more: a rest is padded to one window more, where few pixels pad it, rather than cut off. block: the image has blocks
    of so many pixels where the node's has one.
    """
    stride, dilation = _steps(call, kernel)
    stride = [step * size for step, size in zip(stride, block, strict=True)]
    top, left = (amount * size for amount, size in zip(call.integers("padding"), block, strict=False))
    x, padded = (x, [0] * 4) if fill is None else call.writer.unpadded(x, fill)
    before, sizes = [top + padded[0], left + padded[2]], list(x.shape[1:3])
    behind = [0, 0]
    for k, size in enumerate(sizes):
        behind[k] = (call.shape[2 + k] - 1) * stride[k] + (kernel[k] - 1) * dilation[k] + 1 - size - before[k]
        if behind[k] < 0 and more and stride[k] <= min(kernel[k], _MOST_PADDED):
            behind[k] += stride[k]
        elif behind[k] < 0:
            sizes[k], behind[k] = size + behind[k], 0
    if ceil and any(part >= size for part, size in zip(behind, kernel, strict=True)):
        refuse("a window that lies in the padding as a whole")
    x = call.writer.sliced(x, [0, 0, 0, 0], [x.shape[0], *sizes, x.shape[3]])
    told: dict[str, Any] = {"Pad": [before[0], behind[0], before[1], behind[1]], "Stride": stride}
    return x, {**told, "Dilation": dilation} if "dilation" in call.attrs else told


def _counted(call: Call, kind: str, given: list[Tensor | str], told: dict[str, Any]) -> Tensor:
    """A pool, without the windows that are more than the node's."""
    (x, *_), pad = given, told["Pad"]
    assert isinstance(x, Tensor)
    sizes = [
        (x.shape[1 + k] + sum(pad[2 * k : 2 * k + 2]) - told["Kernel"][k]) // told["Stride"][k] + 1 for k in (0, 1)
    ]
    n, c, height, width = call.shape
    y = call.writer.add(kind, given, x.dtype, [n, *sizes, c], **told)
    return call.writer.sliced(y, [0] * 4, [n, height, width, c])


def _steps(call: Call, kernel: list[int]) -> tuple[list[int], list[int]]:
    return call.integers("stride") or kernel, call.integers("dilation") if "dilation" in call.attrs else [1, 1]


def _factors(call: Call, divisor: int = 1) -> list[Factor]:
    """From sums to the result, for each filter or for all."""
    weights = call.quants[1]
    if weights is None:
        refuse("with weights that are no integers with scales")
    return [factor_of(call.scale() * float(scale) / call.ends[0], divisor) for scale in weights["scales"]]


def _filters(call: Call) -> tuple[Tensor, Tensor, int]:
    """Weights, their zero point, and the bias in the scale of the sums."""
    weight, given = call[1], call.quants[1]
    if weight.array is None:
        refuse("with weights that are computed")
    zeros = set(given["zero_points"])
    if len(zeros) != 1 or (given["scales"][1:] and given["axis"] != 0):
        refuse("with weights of several zero points, or scales of another axis than that of filters")
    wide = "i48" if call[0].dtype == "i16" else "i32"
    bias = call.optional(2)
    values: Any = np.zeros(weight.shape[0], np.int64)
    if bias is not None:
        if bias.array is None or call.quants[2] is None:
            refuse("with a bias that is computed")
        scales = np.array(call.quants[2]["scales"]) / (call.scale() * np.array(given["scales"]))
        values = np.where(np.abs(scales - 1) > 1e-6, np.rint(bias.array * scales), bias.array).astype(np.int64)
    return weight, call.writer.constant(values, wide), int(zeros.pop())


def _sums(
    call: Call, kind: str, x: Tensor, weight: Tensor, shape: list[int], told: dict[str, Any], times: int = 1
) -> Tensor:
    """The convolution's sums, and what they are rescaled to; of filters that follow each other so many times."""
    _, bias, zero = _filters(call)
    acc = bias.dtype
    if times > 1:
        assert bias.array is not None
        bias = call.writer.constant(np.tile(bias.array, times), acc)
    given = [x, weight, bias, call.writer.zero(call.zero(), x.dtype), call.writer.zero(zero, weight.dtype)]
    kinds = {"AccType": number("DType", {"i32": "INT32", "i48": "INT48"}[acc]), "LocalBound": False}
    sums = call.writer.add(kind, given, acc, shape, **told, **kinds)
    divisor = int(call.attrs.get("q_divisor", 1))
    factors = _factors(call, divisor)
    factors = factors * times if len(factors) > 1 else factors
    return call.writer.rescale(sums, factors, (0, call.ends[1]), call.dtype, call.rounding)


_FEW_FILTERS = 8  # that processors of the family compute at once


def _pixels_together(call: Call, x: Tensor, told: dict[str, Any]) -> int:
    """How many pixels of a row are taken as one with their filters side by side, so that few filters are not alone."""
    _, _, *kernel = call[1].shape
    if not call.writer.form.layers or kernel != [1, 1] or told["Stride"] != [1, 1] or any(told["Pad"]):
        return 1
    most = max(1, _FEW_FILTERS // call[1].shape[0])
    return next(count for count in range(most, 0, -1) if x.shape[2] % count == 0)


def _of_pixels_together(call: Call, x: Tensor, told: dict[str, Any], count: int) -> Tensor:
    """A filter sees its own pixel: of the others it has zeros."""
    assert call[1].array is not None
    filters, channels = call[1].shape[:2]
    values = np.full((count, filters, count, channels), _filters(call)[2])
    for k in range(count):
        values[k, :, k] = call[1].array[:, :, 0, 0]
    weight = call.writer.constant(values.reshape(count * filters, 1, 1, count * channels), call[1].dtype)
    n, h, w, _ = x.shape
    rows = call.writer.shaped(x, [n, h, w // count, count * channels])
    y = _sums(call, "CONV2D", rows, weight, [n, h, w // count, count * filters], told, count)
    return call.writer.shaped(y, [n, h, w, filters])


def _of_blocks(call: Call) -> Tensor | None:
    """By the pixels themselves, of an image whose channels are blocks of them: which are not moved then."""
    if not call.writer.form.folds or call.integers("dilation") != [1, 1]:
        return None
    source, movement = call.writer.moved(call.last())
    found = blocks(source, movement, call[1].array)
    if found is None:
        return None
    block, values = found
    kernel = list(values.shape[1:3])
    if max(step * size for step, size in zip(_steps(call, kernel)[0], block, strict=True)) > _MOST_STEP:
        return None
    x, told = _window(call, source, kernel, call.zero(), block=block)
    n, filters, height, width = call.shape
    turned = call.writer.constant(values, call[1].dtype)
    return call.first(_sums(call, "CONV2D", x, turned, [n, height, width, filters], told))


@exports("conv2d")
def _conv2d(call: Call) -> Tensor:
    weight, groups = call[1], int(call.attrs["groups"])
    if weight.array is None:
        refuse("with weights that are computed")
    if groups == 1 and (folded := _of_blocks(call)) is not None:
        return folded
    filters, channels = weight.shape[:2]
    x, told = _window(call, call.last(), list(weight.shape[2:]), call.zero())
    n, _, height, width = call.shape
    if groups == 1 and (count := _pixels_together(call, x, told)) > 1:
        return call.first(_of_pixels_together(call, x, told, count))
    if groups == 1:
        turned = call.writer.transpose(weight, LAST)
        return call.first(_sums(call, "CONV2D", x, turned, [n, height, width, filters], told))
    if channels != 1 or groups != x.shape[3]:
        refuse(f"with {groups} groups of {channels} channels: TOSA has one group, or one for each channel")
    assert weight.array is not None
    by_channel = weight.array.reshape(groups, filters // groups, *weight.shape[2:]).transpose(2, 3, 0, 1)
    turned = call.writer.constant(by_channel, weight.dtype)
    return call.first(_sums(call, "DEPTHWISE_CONV2D", x, turned, [n, height, width, filters], told))


@exports("linear")
def _linear(call: Call) -> Tensor:
    """A convolution of single pixels."""
    weight, rows = call[1], int(np.prod(call.shape[:-1]))
    x = call.writer.reshape(call[0], [rows, 1, 1, weight.shape[1]])
    turned = call.writer.reshape(weight, [weight.shape[0], 1, 1, weight.shape[1]])
    told: dict[str, Any] = {"Pad": [0] * 4, "Stride": [1, 1], "Dilation": [1, 1]}
    y = _sums(call, "CONV2D", x, turned, [rows, 1, 1, weight.shape[0]], told)
    return call.writer.reshape(y, call.shape)


def _low(dtype: str) -> int:
    return int(np.iinfo({"i8": np.int8, "i16": np.int16}[dtype]).min)


@exports("max_pool2d")
def _max_pool2d(call: Call) -> Tensor:
    if any(part != 1 for part in call.integers("dilation")):
        refuse("with gaps in the window")
    kernel = call.integers("kernel")
    x, told = _window(call, call.last(), kernel, _low(call[0].dtype), bool(call.attrs["ceil_mode"]), more=True)
    told.pop("Dilation")
    told.update(Kernel=kernel, NanMode=number("NanPropagationMode", "PROPAGATE"))
    return call.first(rescale_result(call, _counted(call, "MAX_POOL2D", [x], told)))


@exports("avg_pool2d", "adaptive_avg_pool2d")
def _avg_pool2d(call: Call) -> Tensor:
    """Of the integers with their zero point, so that halves round as hetnn's do."""
    demand_same_scale(call)
    x = call.last()
    if call.row["op"] == "adaptive_avg_pool2d":
        kernel = [size // goal for size, goal in zip(x.shape[1:3], call.shape[2:], strict=True)]
        if any(size % goal for size, goal in zip(x.shape[1:3], call.shape[2:], strict=True)):
            refuse("with windows of several sizes")
        told: dict[str, Any] = {"Pad": [0] * 4, "Stride": kernel}
    else:
        kernel = call.integers("kernel")
        if call.attrs["divisor_override"] or (call.attrs["count_include_pad"] and any(call.integers("padding"))):
            refuse("with a divisor that is not the number of pixels")
        x, told = _window(call, x, kernel, None, bool(call.attrs["ceil_mode"]))
    n, c, height, width = call.shape
    given: list[Tensor | str] = [x, *(call.writer.zero(0, x.dtype) for _ in range(2))]
    kinds = {"Kernel": kernel, "AccType": number("DType", "INT32")}
    return call.first(call.writer.add("AVG_POOL2D", given, x.dtype, [n, height, width, c], **told, **kinds))
