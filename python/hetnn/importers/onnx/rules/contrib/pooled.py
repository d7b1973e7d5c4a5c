"""Pooling of which a mask says how far."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.sizes import divide, product
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.pieces import places
from hetnn.importers.onnx.rules.conv import padded, window_padding
from hetnn.importers.onnx.rules.declare import INTS, contrib


@contrib(
    "MaxpoolWithMask",
    "X M",
    unread="storage_order",
    auto_pad="NOTSET",
    kernel_shape=INTS,
    pads=INTS,
    storage_order=0,
    strides=INTS,
)
def _masked_pool(call: Call) -> Any:
    """The greatest of each window; a row of it ends before an element whose mask is 0.

    As onnxruntime has it, the mask of a plane begins at its number times its size modulo the number of the mask's
    planes, and the first element of a plane of several axes counts always.
    """
    kernel = [int(k) for k in call.attr("kernel_shape") or []]
    rank = len(kernel)
    if rank not in (1, 2, 3):
        raise InvalidModel(f"MaxpoolWithMask of the kernel {kernel}, which has 1 to 3 axes")
    batch, channels, *sizes = call.shape(0, rank + 2)
    mask, x = call.ranked(1, rank + 2, rank + 2), call[0]
    stride = [int(s) for s in call.attr("strides") or [1] * rank]
    whole, planes = product(sizes), product(mask.shape[:2])
    numbers = call.create("arange", [], end=product([batch, channels]))
    begin = call.create("remainder", [call.create("mul", [numbers, call.whole(whole)]), call.whole(planes)])
    at = places(call, whole, 2, 1, call.reshape(begin, [*numbers.shape, 1]))
    shown = call.create("gather", [call.reshape(mask, [product(mask.shape)]), at], axis=0)
    shown = call.create("ne", [shown, call.constant(0, "i32")])
    if rank > 1:
        shown = call.create(
            "logical_or", [shown, call.create("eq", [places(call, whole, 2, 1), call.constant(0, "i64")])]
        )
    shown = call.reshape(call.cast(shown, "i32"), [batch, channels, *sizes])
    least = float(np.finfo(np.float32).min)
    padding = window_padding(call, sizes, kernel, stride, [1] * rank)
    x, shown = padded(call, x, padding, least), padded(call, shown, padding, 1)
    counts = [divide(size - k, s) + 1 for size, k, s in zip(x.shape[2:], kernel, stride, strict=True)]
    steps = [product(x.shape[axis + 1 :]) for axis in range(rank + 2)]
    walk = {
        "shape": [batch, channels, *counts, *kernel],
        "strides": [*steps[:2], *(step * s for step, s in zip(steps[2:], stride, strict=True)), *steps[2:]],
    }
    x, shown = (call.create("as_strided", [value], **walk) for value in (x, shown))
    shown = call.create("cumprod", [shown], axis=1 + 2 * rank)
    x = call.create("where", [call.cast(shown, "bool"), x, call.like(least, x)])
    return call.create("reduce_max", [x], axes=list(range(rank + 2, 2 * rank + 2)), keepdim=False)
