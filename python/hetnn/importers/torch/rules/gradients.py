"""Torch overloads that are gradients of layers: what training graphs, and torch's core set, hold of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.importers.lowering import sizes
from hetnn.importers.lowering.convolution import convolve
from hetnn.importers.torch.rules.call import Call, rule
from hetnn.importers.torch.rules.indexing import fixed
from hetnn.importers.torch.rules.pooling import paired_window

_Windows = list[tuple[int, int]]


def _along(call: Call, x: Any, matrix: np.ndarray[Any, Any], axis: int) -> Any:
    """An axis of x multiplied with a fixed matrix [old size, new size]."""
    rank = len(x.shape)
    order = [*(k for k in range(rank) if k != axis), axis]
    moved = call.permuted(x, order)
    rows = sizes.product(moved.shape[:-1])
    flat = call.create("matmul", [call.reshape(moved, [rows, matrix.shape[0]]), call.constant(matrix, x.dtype)])
    out = call.reshape(flat, [*moved.shape[:-1], matrix.shape[1]])
    return call.permuted(out, [order.index(k) for k in range(rank)])


def _spread_back(call: Call, grad: Any, counts: np.ndarray[Any, Any], windows: list[_Windows], size: list[int]) -> Any:
    """Every gradient, divided by how many elements its mean had, given to each element of its window."""
    first = len(grad.shape) - len(size)
    out = call.create("div", [grad, call.constant(counts, grad.dtype)])
    for axis, (spans, n) in enumerate(zip(windows, size, strict=True)):
        read = np.zeros((len(spans), n), bool)
        for k, (begin, end) in enumerate(spans):
            read[k, begin:end] = True
        out = _along(call, out, read, first + axis)
    return out


def _outer(factors: Sequence[Sequence[int]]) -> np.ndarray[Any, Any]:
    out: np.ndarray[Any, Any] = np.ones((), np.int64)
    for factor in factors:
        out = out[..., None] * np.array(factor, np.int64)
    return out


@rule("_adaptive_avg_pool2d_backward.default", "_adaptive_avg_pool3d_backward.default")
def _adaptive_mean(call: Call) -> Any:
    axes = int(call.target.split("pool")[1][0])
    size = fixed(call["self"].shape[-axes:], "adaptive pooling of an image")
    grid = fixed(call["grad_output"].shape[-axes:], "adaptive pooling to a grid")
    windows = [[(k * s // n, -(-(k + 1) * s // n)) for k in range(n)] for s, n in zip(size, grid, strict=True)]
    counts = _outer([[end - begin for begin, end in spans] for spans in windows])
    return _spread_back(call, call["grad_output"], counts, windows, size)


@rule("avg_pool2d_backward.default", "avg_pool3d_backward.default")
def _mean(call: Call) -> Any:
    axes = int(call.target.split("pool")[1][0])
    size = fixed(call["self"].shape[-axes:], "pooling of an image")
    grid = fixed(call["grad_output"].shape[-axes:], "pooling to a grid")
    kernel, padding = (paired_window(call[name], axes) for name in ("kernel_size", "padding"))
    stride = paired_window(call["stride"] or call["kernel_size"], axes)
    windows: list[_Windows] = []
    taps: list[list[int]] = []
    for s, n, k, step, pad in zip(size, grid, kernel, stride, padding, strict=True):
        begins = [place * step - pad for place in range(n)]
        windows.append([(max(begin, 0), min(begin + k, s)) for begin in begins])
        taps.append([min(begin + k, s + pad) - begin for begin in begins])
    if not call["count_include_pad"]:
        taps = [[end - begin for begin, end in spans] for spans in windows]
    divisor = call["divisor_override"]
    counts = _outer(taps) if not divisor else np.full(grid, divisor)
    return _spread_back(call, call["grad_output"], counts, windows, size)


@rule("max_pool2d_with_indices_backward.default")
def _largest(call: Call) -> Any:
    """Where the places are those of the same pooling they need not be known; else each gradient is added at its own."""
    x, grad, places = call["self"], call["grad_output"], call["indices"]
    planes = list((1, *x.shape)[-4:-2])
    image, pooled = [*planes, *x.shape[-2:]], [*planes, *grad.shape[-2:]]
    if call.made_with("indices", "max_pool2d_with_indices.default", 1):
        window: dict[str, Any] = {name: paired_window(call[name], 2) for name in ("stride", "padding", "dilation")}
        window["kernel"] = paired_window(call["kernel_size"], 2)
        window["stride"] = window["stride"] or window["kernel"]
        window["ceil_mode"] = bool(call["ceil_mode"])
        images = [call.reshape(x, image), call.reshape(grad, pooled)]
        return call.reshape(call.create("max_pool_gradient", images, **window), x.shape)
    plane, taken = sizes.product(x.shape[-2:]), sizes.product(grad.shape[-2:])
    nothing = call.broadcast_to(call.constant(0, x.dtype), [*planes, plane])
    given = [call.reshape(value, [*planes, taken]) for value in (places, grad)]
    out = call.create("scatter_elements", [nothing, *given], axis=2, reduce="add", from_end=False)
    return call.reshape(out, x.shape)


def _groups_in_front(call: Call, x: Any, groups: int) -> Any:
    """[N, G C, ...] as [C, G N, ...]."""
    n, c = x.shape[:2]
    rest = list(x.shape[2:])
    (channels,) = fixed([c], "the channels of a convolution")
    parts = call.reshape(x, [n, groups, channels // groups, *rest])
    parts = call.create("permute", [parts], perm=[2, 1, 0, *range(3, 3 + len(rest))])
    return call.reshape(parts, [channels // groups, n * groups, *rest])


def _of_kernel(call: Call, x: Any, grad: Any, kernel: list[int], window: dict[str, Any]) -> Any:
    """The gradient of the weight of y = conv(x, w): of three axes a convolution of x by grad with stride and dilation
    exchanged."""
    axes = len(kernel)
    if axes == 2:
        return call.create("conv2d_weight_gradient", [x, grad], kernel=kernel, **window)
    if axes == 1:
        line = {name: [0 if name == "padding" else 1, *v] for name, v in window.items() if name != "groups"}
        images = [call.reshape(v, [v.shape[0], v.shape[1], 1, v.shape[2]]) for v in (x, grad)]
        of_weight = call.create("conv2d_weight_gradient", images, kernel=[1, *kernel], **line, groups=window["groups"])
        return call.reshape(of_weight, [of_weight.shape[0], of_weight.shape[1], *kernel])
    groups = window["groups"]
    turned = {
        "stride": window["dilation"],
        "dilation": window["stride"],
        "padding": window["padding"],
        "groups": groups,
    }
    swap = [1, 0, *range(2, 2 + axes)]
    out = convolve(
        call, _groups_in_front(call, x, groups), call.create("permute", [grad], perm=swap), None, turned, False
    )
    for axis, k in enumerate(kernel):  # rows that no window reached add some at the end
        if out.shape[2 + axis] != k:
            out = call.create("slice", [out], axis=2 + axis, start=0, end=k)
    return call.create("permute", [out], perm=swap)


@rule("convolution_backward.default")
def _convolution(call: Call) -> list[Any]:
    """Those of the input, the weight and the bias, as far as they are asked for."""
    grad, x, weight = call["grad_output"], call["input"], call["weight"]
    axes = len(weight.shape) - 2
    kernel = fixed(weight.shape[2:], "the kernel of a convolution")
    window: dict[str, Any] = {name: paired_window(call[name], axes) for name in ("stride", "padding", "dilation")}
    window["groups"] = call["groups"]
    wanted = [bool(asked) and call.reads(k) for k, asked in enumerate(call["output_mask"])]
    of_x = of_weight = of_bias = None
    if wanted[0] and call["transposed"]:
        of_x = convolve(call, grad, weight, None, window, False)
    elif wanted[0]:
        places = fixed([*x.shape[2:], *grad.shape[2:]], "the gradient of a convolution")
        reach = zip(
            places[:axes], places[axes:], kernel, *(window[name] for name in window if name != "groups"), strict=True
        )
        more = [n - ((m - 1) * s - 2 * p + d * (k - 1) + 1) for n, m, k, s, p, d in reach]
        of_x = convolve(call, grad, weight, None, {**window, "output_padding": more}, True)
    if wanted[1]:
        read, by = (grad, x) if call["transposed"] else (x, grad)
        of_weight = _of_kernel(call, read, by, kernel, window)
    if wanted[2]:
        of_bias = call.create("sum", [grad], axes=[0, *range(2, 2 + axes)])
    return [of_x, of_weight, of_bias]
