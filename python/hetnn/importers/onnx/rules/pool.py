"""ONNX pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn import _core
from hetnn.element_types import NUMPY, is_float
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.convolution import convolve
from hetnn.importers.lowering.norms import p_norm
from hetnn.importers.lowering.pooling import pool
from hetnn.importers.lowering.sizes import Size, ceil_divide, maximum, minimum, product
from hetnn.importers.onnx.rules.call import MOST_NUMBERS, Call, rule
from hetnn.importers.onnx.rules.conv import fixed, padded, window_padding


def _mean_of_inside(call: Call, x: Any) -> Any:
    """The sum of every window over how many of its places lie inside the input."""
    ones = call.broadcast_to(call.like(1, x), [1, 1, *x.shape[2:]])
    sums, counts = (
        _pool(call, part, "avg_pool2d", 0.0, count_include_pad=True, divisor_override=1) for part in (x, ones)
    )
    return call.create("div", [sums, counts])


def _pool(call: Call, x: Any, op: str, outside: float, **attrs: Any) -> Any:
    """A pooling operator over the axes of a node; `outside` is what padding stands for."""
    if call.attr("kernel_shape") is None:
        raise InvalidModel(f"{call.node.op_type} without its kernel_shape")
    kernel = [int(k) for k in call.attr("kernel_shape")]
    ones = [1] * len(kernel)
    stride, dilation = call.attr("strides") or ones, call.attr("dilations") or ones
    if op == "avg_pool2d" and any(d != 1 for d in dilation):
        return _dilated(call, x, kernel, stride, dilation, **attrs)
    sizes, ceil_mode = list(x.shape[2:]), bool(call.attr("ceil_mode", 0))
    asked = window_padding(call, sizes, kernel, stride, dilation)
    padding = fixed(asked)
    if padding is None or _is_wide(padding, kernel):
        if op == "avg_pool2d" and not attrs["count_include_pad"]:
            return _mean_of_inside(call, x)
        if not math.isfinite(outside) and not is_float(x.dtype):
            outside = float(np.iinfo(NUMPY[x.dtype]).min)
        x, padding = padded(call, x, asked, outside), [0] * len(asked)
    window = {"kernel": kernel, "stride": stride, "padding": padding}
    if op == "max_pool2d":
        window["dilation"] = dilation
    y = pool(call, op, x, window, ceil_mode=ceil_mode, **attrs)
    return _begun_inside(call, y, sizes, asked) if ceil_mode else y


def _is_wide(padding: Sequence[int], kernel: Sequence[int]) -> bool:
    """Whether there is more padding than operators of windows take."""
    return any(2 * p > k for p, k in zip(padding, [*kernel, *kernel], strict=True))


def _begun_inside(call: Call, y: Any, sizes: Sequence[Size], asked: Sequence[Size]) -> Any:
    """Results of windows that begin before the end of the input, not in the padding behind it as over padded values."""
    strides = call.attr("strides") or [1] * len(sizes)
    for axis, (size, before, stride) in enumerate(zip(sizes, asked[: len(sizes)], strides, strict=True), 2):
        count = minimum(y.shape[axis], ceil_divide(size + before, stride))
        y = y if count == y.shape[axis] else call.create("slice", [y], axis=axis, start=0, end=count)
    return y


def _dilated(
    call: Call,
    x: Any,
    kernel: list[int],
    stride: list[int],
    dilation: list[int],
    count_include_pad: bool,
    divisor_override: int = 0,
) -> Any:
    """Means or sums of windows with gaps, by a convolution of every channel with ones."""
    channels, sizes = x.shape[1], list(x.shape[2:])
    if not isinstance(channels, int):  # each by itself
        alone = call.reshape(x, [x.shape[0] * channels, 1, *sizes])
        y = _dilated(call, alone, kernel, stride, dilation, count_include_pad, divisor_override)
        return call.reshape(y, [x.shape[0], channels, *y.shape[2:]])
    asked = list(window_padding(call, sizes, kernel, stride, dilation))
    count = len(kernel)
    before, after = asked[:count], asked[count:]
    behind = list(after)  # as far as the last window reaches
    for k, size in enumerate(sizes if call.attr("ceil_mode", 0) else []):
        first, last = before[k], after[k]
        if isinstance(first, int) and isinstance(last, int):  # else windows end with the padding
            room = size + (first + last - dilation[k] * (kernel[k] - 1) - 1)
            windows: Any = _core.window_count(size, kernel[k], stride[k], dilation[k], first, last, ceil_mode=True)
            behind[k] = last + maximum((windows - 1) * stride[k] - room, 0)

    def summed(value: Any, padding: Sequence[Size]) -> Any:
        if math.prod([channels, *kernel]) > MOST_NUMBERS:
            raise Unsupported(f"averages of {channels} channels over windows {kernel} with gaps")
        ones = call.constant(np.ones([channels, 1, *kernel]), x.dtype)
        around = fixed(padding)
        if around is None:
            value, around = padded(call, value, padding, 0.0), [0] * len(padding)
        window = {"stride": stride, "dilation": dilation, "groups": channels, "padding": around}
        return convolve(call, value, ones, None, window, transposed=False)

    sums = summed(x, [*before, *behind])
    if divisor_override or (count_include_pad and behind == after):
        return call.create("div", [sums, call.like(divisor_override or math.prod(kernel), x)])
    counted, around = sizes, [*before, *behind]
    if count_include_pad:
        counted = [size + (first + last) for size, first, last in zip(sizes, before, after, strict=True)]
        around = [*[0] * count, *(whole - last for whole, last in zip(behind, after, strict=True))]
    counts = summed(call.broadcast_to(call.like(1, x), [1, channels, *counted]), around)
    return call.create("div", [sums, counts])


@rule("MaxPool")
def _max_pool(call: Call) -> Any:
    y = _pool(call, call[0], "max_pool2d", -math.inf)
    return y if call.outputs_used() < 2 else [y, _places(call, call[0])]


def _places(call: Call, x: Any) -> Any:
    """Where in the whole tensor the greatest values stand."""
    kernel = [int(k) for k in call.attr("kernel_shape")]
    ones = [1] * len(kernel)
    stride, dilation = call.attr("strides") or ones, call.attr("dilations") or ones
    sizes, count = x.shape[2:], len(kernel)
    asked = window_padding(call, sizes, kernel, stride, dilation)
    padding = fixed(asked)
    told = {"kernel": kernel, "stride": stride, "dilation": dilation, "ceil_mode": bool(call.attr("ceil_mode", 0))}
    if padding is not None and padding[:count] == padding[count:] and not _is_wide(padding, kernel):
        rest = call.create("max_pool_indices", [x], **told, padding=padding[:count])
        wide, before = sizes, None
    else:
        least = -math.inf if is_float(x.dtype) else float(np.iinfo(NUMPY[x.dtype]).min)
        whole = padded(call, x, asked, least)
        rest = call.create("max_pool_indices", [whole], **told, padding=[0] * count)
        rest = _begun_inside(call, rest, sizes, asked) if told["ceil_mode"] else rest
        wide, before = whole.shape[2:], asked[:count]

    def at(op: str, a: Any, size: Size) -> Any:
        return call.create(op, [a, call.whole(size)])

    columns_first = bool(call.attr("storage_order", 0))
    if before is not None or columns_first:
        along: list[Any] = []  # of each axis the place along it
        for axis in reversed(range(count)):
            place = at("remainder", rest, wide[axis])
            if before is not None:  # the least number of all may be found in the padding
                place = at("minimum", at("maximum", at("sub", place, before[axis]), 0), sizes[axis] - 1)
            along.insert(0, place)
            rest = at("floor_divide", rest, wide[axis])
        order = list(reversed(range(count))) if columns_first else list(range(count))
        rest = along[order[0]]
        for axis in order[1:]:
            rest = call.create("add", [at("mul", rest, sizes[axis]), along[axis]])
    planes = call.reshape(call.create("arange", [], start=0, end=x.shape[0] * x.shape[1]), [*x.shape[:2], *ones])
    return call.create("add", [rest, at("mul", planes, product(sizes))])


@rule("AveragePool")
def _average_pool(call: Call) -> Any:
    return _pool(call, call[0], "avg_pool2d", 0.0, count_include_pad=bool(call.attr("count_include_pad", 0)))


@rule("LpPool")
def _lp_pool(call: Call) -> Any:
    """(Σ |x|ᵖ)^(1/p) over every window."""
    x, p = call[0], float(call.attr("p", 2))
    if p == 0:
        raise InvalidModel("a norm of order 0; p must be another number")
    told = {"count_include_pad": True, "divisor_override": 1}
    return p_norm(call, x, p, lambda _, value: _pool(call, value, "avg_pool2d", 0.0, **told))


@rule("GlobalAveragePool")
def _global_average(call: Call) -> Any:
    x = call[0]
    if len(x.shape) == 4:
        return call.create("adaptive_avg_pool2d", [x], output_size=[1, 1])
    return call.create("mean", [x], axes=list(range(2, len(x.shape))), keepdim=True)


@rule("GlobalMaxPool")
def _global_max(call: Call) -> Any:
    return call.create("reduce_max", [call[0]], axes=list(range(2, len(call[0].shape))), keepdim=True)


@rule("GlobalLpPool")
def _global_lp(call: Call) -> Any:
    x, p = call[0], float(call.attr("p", 2))
    axes = list(range(2, len(x.shape)))
    return p_norm(call, x, p, lambda op, value: call.create(op, [value], axes=axes, keepdim=True))
