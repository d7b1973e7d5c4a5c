"""Convolutions over one, two or three axes, of any front, by those of images."""

from __future__ import annotations

import math
from typing import Any

from hetnn import _core
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering import sizes
from hetnn.importers.lowering.building import Building
from hetnn.importers.lowering.sizes import Size


def convolve(call: Building, x: Any, weight: Any, bias: Any, window: dict[str, Any], transposed: bool) -> Any:
    """A convolution of [N,C,...] over one, two or three axes."""
    op = "conv_transpose2d" if transposed else "conv2d"
    axes = len(weight.shape) - 2
    if len(x.shape) != len(weight.shape):
        raise InvalidModel(f"an input {list(x.shape)} and weights {list(weight.shape)} of different ranks")
    if not all(isinstance(size, int) for size in weight.shape):
        return (_spread_by_open_filters if transposed else _of_open_filters)(call, x, weight, bias, window)
    if axes == 2:
        return call.create(op, [x, weight, bias], **window)
    if axes == 1:
        first = {"stride": 1, "dilation": 1, "padding": 0, "output_padding": 0}
        flat = {k: [first[k], *v] if k in first else v for k, v in window.items()}
        if len(flat["padding"]) == 3:  # before and behind the one axis
            flat["padding"] = [0, window["padding"][0], 0, window["padding"][1]]
        image = call.reshape(x, [x.shape[0], x.shape[1], 1, x.shape[2]])
        kernel = call.reshape(weight, [weight.shape[0], weight.shape[1], 1, weight.shape[2]])
        out = call.create(op, [image, kernel, bias], **flat)
        return call.reshape(out, [out.shape[0], out.shape[1], out.shape[3]])
    if axes == 3:
        return (_spread_deep if transposed else _gather_deep)(call, x, weight, bias, window)
    raise Unsupported(f"a convolution over {axes} axes")


def _of_open_filters(call: Building, x: Any, weight: Any, bias: Any, window: dict[str, Any]) -> Any:
    """By filters of symbolic sizes: windows are a walk through the images, [N, groups, C/groups · taps, places]."""
    rank, groups = len(weight.shape) - 2, window["groups"]
    filters, channels, *kernel = weight.shape
    stride, dilation, around = (list(window[name]) for name in ("stride", "dilation", "padding"))
    around = around if len(around) == 2 * rank else [*around, *around]
    if any(around):
        x = call.create("pad", [x], padding=[0, 0, *around[:rank], 0, 0, *around[rank:]])
    taps = zip(x.shape[2:], kernel, stride, dilation, strict=True)
    places = [sizes.maximum(sizes.divide(size - ((k - 1) * d + 1), s) + 1, 0) for size, k, s, d in taps]
    steps = [sizes.product(x.shape[axis + 1 :]) for axis in range(rank + 2)]
    walk = [*steps[:2], *(step * d for step, d in zip(steps[2:], dilation, strict=True))]
    walk += [step * s for step, s in zip(steps[2:], stride, strict=True)]
    columns = call.create("as_strided", [x], shape=[*x.shape[:2], *kernel, *places], strides=walk)
    depth = channels * sizes.product(kernel)
    columns = call.reshape(columns, [x.shape[0], groups, depth, sizes.product(places)])
    y = call.create("matmul", [call.reshape(weight, [groups, sizes.divide(filters, groups), depth]), columns])
    y = call.reshape(y, [x.shape[0], filters, *places])
    return y if bias is None else call.create("add", [y, call.reshape(bias, [filters, *[1] * rank])])


def _spread_by_open_filters(call: Building, x: Any, weight: Any, bias: Any, window: dict[str, Any]) -> Any:
    """Transposed: the convolution of the images with zeros between their elements by the filters turned around."""
    rank, groups = len(weight.shape) - 2, window["groups"]
    channels, filters, *kernel = weight.shape
    around = list(window["padding"])
    around = around if len(around) == 2 * rank else [*around, *around]
    for axis, stride in enumerate(window["stride"], 2):
        if stride > 1:
            size, shape = x.shape[axis], list(x.shape)
            apart = call.reshape(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
            padding = [0] * (len(shape) + 1)
            padding[axis + 1] = stride - 1
            apart = call.create("pad", [apart], padding=[*[0] * len(padding), *padding])
            x = call.reshape(apart, [*shape[:axis], size * stride, *shape[axis + 1 :]])
            x = call.create("slice", [x], axis=axis, start=0, end=(size - 1) * stride + 1, inside=True)
    reach = [(k - 1) * d for k, d in zip(kernel, window["dilation"], strict=True)]
    before = [far - pad for far, pad in zip(reach, around[:rank], strict=True)]
    after = [far - pad + more for far, pad, more in zip(reach, around[rank:], window["output_padding"], strict=True)]
    x = call.create("pad", [x], padding=[0, 0, *before, 0, 0, *after])
    weight = call.create("flip", [weight], axes=list(range(2, rank + 2)))
    weight = call.reshape(weight, [groups, sizes.divide(channels, groups), filters, *kernel])
    weight = call.create("permute", [weight], perm=[0, 2, 1, *range(3, rank + 3)])
    weight = call.reshape(weight, [filters * groups, sizes.divide(channels, groups), *kernel])
    plain = {"stride": [1] * rank, "padding": [0] * rank, "dilation": window["dilation"], "groups": groups}
    return _of_open_filters(call, x, weight, bias, plain)


def _gather_deep(call: Building, x: Any, weight: Any, bias: Any, window: dict[str, Any]) -> Any:
    """Depth as more channels: every tap of the kernel along it reads a shifted copy of the input.

    y[n,m,d] = sum over r of conv2d(x[n,:,d s + r t - p], w[m,:,r]); images d of n are the batch of one convolution of
    C kd channels.
    """
    n, c, depth, h, w = x.shape
    taps = weight.shape[2]
    half = len(window["padding"]) // 2 if len(window["padding"]) == 6 else 0
    before, after = window["padding"][0], window["padding"][half]
    flat = {k: v if k == "groups" else list(v)[1:] for k, v in window.items()}
    if half:
        flat["padding"] = [*window["padding"][1:half], *window["padding"][half + 1 :]]
    stride, dilation = window["stride"][0], window["dilation"][0]
    if before or after:
        x = call.create("pad", [x], padding=[0, 0, before, 0, 0, 0, 0, after, 0, 0])
    count = _core.window_count(depth + (before + after), taps, stride, dilation)
    copies = []
    for r in range(taps):
        start = r * dilation
        end = (count - 1) * stride + (start + 1)
        part = call.create("slice", [x], axis=2, start=start, end=end, step=stride, inside=True)
        copies.append(call.reshape(part, [n, c, 1, count, h, w]))
    stacked = copies[0] if taps == 1 else call.create("concat", copies, axis=2)
    images = call.create("permute", [stacked], perm=[0, 3, 1, 2, 4, 5])
    images = call.reshape(images, [n * count, c * taps, h, w])
    kernel = call.reshape(weight, [weight.shape[0], weight.shape[1] * taps, *weight.shape[3:]])
    out = call.create("conv2d", [images, kernel, bias], **flat)
    out = call.reshape(out, [n, count, out.shape[1], out.shape[2], out.shape[3]])
    return call.create("permute", [out], perm=[0, 2, 1, 3, 4])


def _spread_deep(call: Building, x: Any, weight: Any, bias: Any, window: dict[str, Any]) -> Any:
    """Transposed: what every tap of the kernel makes of every element, as more channels; then those sums that fall on
    each other, in the order of torch."""
    n, c, depth, h, w = x.shape
    groups, kernel = window["groups"], weight.shape[2:]
    axes, pad = range(3), window["padding"] if len(window["padding"]) == 6 else [*window["padding"]] * 2
    rows = weight.shape[1] * math.prod(kernel)
    products = call.reshape(weight, [groups, sizes.divide(c, groups), rows])
    products = call.create("permute", [products], perm=[0, 2, 1])
    pixels = call.reshape(x, [n, groups, sizes.divide(c, groups), sizes.product([depth, h, w])])
    patches = call.create("matmul", [products, pixels])
    patches = call.reshape(patches, [n, groups * rows, pixels.shape[-1]])

    def reach(k: int) -> Size:
        moved = (x.shape[2 + k] - 1) * window["stride"][k]
        reached: Size = moved + (window["dilation"][k] * (kernel[k] - 1) + 1 - pad[k] - pad[3 + k])
        return reached

    # Rows and columns more at the end see no patch: they are padding that is less, or even negative.
    extra = window["output_padding"]
    out = call.create(
        "fold",
        [patches],
        image=[reach(k) + extra[k] for k in axes],
        block=list(kernel),
        stride=list(window["stride"]),
        dilation=list(window["dilation"]),
        padding=[*pad[:3], *(pad[3 + k] - extra[k] for k in axes)],
    )
    return out if bias is None else call.create("add", [out, call.reshape(bias, [bias.shape[0], 1, 1, 1])])
