"""ONNX pooling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn.errors import Unsupported
from hetnn.importers.building import NUMPY
from hetnn.importers.onnx_rules.call import Call, is_float, rule
from hetnn.importers.onnx_rules.conv import as_image, in_two_dimensions, of_image, window_padding


def _mean_of_inside(call: Call, x: Any) -> Any:
    """The sum of every window over how many of its places lie inside the input."""
    sizes = call.static_shape(x, "averages without so wide a padding")[2:]
    ones = call.constant(np.ones([1, 1, *sizes]), x.dtype)
    sums, counts = (
        _pool(call, part, "avg_pool2d", 0.0, count_include_pad=True, divisor_override=1) for part in (x, ones)
    )
    return call.create("div", [sums, counts])


def _pool(call: Call, x: Any, op: str, outside: float, **attrs: Any) -> Any:
    """A pooling operator; padding of more than half a window is laid around the input first, of value `outside`."""
    kernel = [int(k) for k in call.attr("kernel_shape")]
    if len(kernel) not in (1, 2):
        raise Unsupported(f"pooling over {len(kernel)} axes")
    ones = [1] * len(kernel)
    stride, dilation = call.attr("strides") or ones, call.attr("dilations") or ones
    padding = in_two_dimensions(window_padding(call, x.shape[2:], kernel, stride, dilation), len(kernel))
    if len(kernel) == 1:
        kernel, stride, dilation = [1, *kernel], [1, *stride], [1, *dilation]
    if op == "max_pool2d":
        attrs["dilation"] = dilation
    elif any(d != 1 for d in dilation):
        raise Unsupported("dilated windows of averages")
    image = as_image(call, x)
    if any(2 * p > k for p, k in zip(padding, [*kernel, *kernel], strict=True)):
        if op == "avg_pool2d" and not attrs["count_include_pad"]:
            return _mean_of_inside(call, x)
        if not math.isfinite(outside) and not is_float(x.dtype):
            outside = float(np.iinfo(NUMPY[x.dtype]).min)
        around = [0, 0, *padding[:2], 0, 0, *padding[2:]]
        image = call.create("pad", [image], padding=around, value=outside)
        padding = [0, 0, 0, 0]
    ceil_mode = bool(call.attr("ceil_mode", 0))
    y = call.create(op, [image], kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode, **attrs)
    return of_image(call, y, len(x.shape))


@rule("MaxPool")
def _max_pool(call: Call) -> Any:
    if call.outputs_used() > 1:
        raise Unsupported("the places of the greatest values")
    return _pool(call, call[0], "max_pool2d", -math.inf)


@rule("AveragePool")
def _average_pool(call: Call) -> Any:
    return _pool(call, call[0], "avg_pool2d", 0.0, count_include_pad=bool(call.attr("count_include_pad", 0)))


@rule("LpPool")
def _lp_pool(call: Call) -> Any:
    """(Σ |x|ᵖ)^(1/p) over every window."""
    x, p = call[0], float(call.attr("p", 2))
    powers = call.create("pow", [call.create("abs", [x]), call.like(p, x)])
    sums = _pool(call, powers, "avg_pool2d", 0.0, count_include_pad=True, divisor_override=1)
    return call.create("pow", [sums, call.like(1 / p, x)])


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
    powers = call.create("pow", [call.create("abs", [x]), call.like(p, x)])
    sums = call.create("sum", [powers], axes=list(range(2, len(x.shape))), keepdim=True)
    return call.create("pow", [sums, call.like(1 / p, x)])
