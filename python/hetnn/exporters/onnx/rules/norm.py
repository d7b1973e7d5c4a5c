"""Normalizations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hetnn.exporters.onnx.rules.call import Call, Size, Value, exports


def _or_filled(call: Call, k: int, number: float, shape: Sequence[Size]) -> Value:
    """Input k, or one number everywhere."""
    value = call.optional(k)
    return call.filled(number, call[0].dtype, shape) if value is None else value


@exports("batch_norm")
def _batch_norm(call: Call) -> Any:
    x, channels = call[0], [call.shape[1]]
    weight, bias = _or_filled(call, 1, 1, channels), _or_filled(call, 2, 0, channels)
    return call.create("BatchNormalization", [x, weight, bias, call[3], call[4]], epsilon=call.attrs["eps"])


@exports("batch_norm_training")
def _batch_norm_training(call: Call) -> Any:
    """As its formula, in f32 at least: ONNX Runtime 1.32 computes some BatchNormalizations in training mode wrongly, of
    one image of few channels for example."""
    dtype, channels = call[0].dtype, call.shape[1]
    wide = dtype if dtype == "f64" else "f32"
    x, weight, bias = (None if value is None else call.cast(value, wide) for value in map(call.optional, range(3)))
    axes = call.integers([k for k in range(call[0].rank) if k != 1])
    along = [1, channels, *[1] * (call[0].rank - 2)]
    mean = call.create("ReduceMean", [x, axes], keepdims=1)
    centred = call.create("Sub", [x, mean])
    variance = call.create("ReduceMean", [call.create("Mul", [centred, centred]), axes], keepdims=1)
    root = call.create("Sqrt", [call.create("Add", [variance, call.constant(call.attrs["eps"], wide)])])
    y = call.create("Div", [centred, root])
    for op_type, parameter in (("Mul", weight), ("Add", bias)):
        y = y if parameter is None else call.create(op_type, [y, call.reshape(parameter, along)])
    return [call.cast(y, dtype), *(call.cast(call.reshape(each, [channels]), dtype) for each in (mean, variance))]


@exports("layer_norm")
def _layer_norm(call: Call) -> Any:
    x, axes = call[0], int(call.attrs["axes"])
    weight = _or_filled(call, 1, 1, list(x.shape or ())[x.rank - axes :])
    told: dict[str, Any] = {"axis": -axes, "epsilon": call.attrs["eps"]}
    return call.create("LayerNormalization", [x, weight, call.optional(2)], **told)


@exports("rms_norm")
def _rms_norm(call: Call) -> Any:
    """As its formula: RMSNormalization is as new as operator set 23, and engines know the formula."""
    x, axes = call[0], int(call.attrs["axes"])
    squares = call.create("Mul", [x, x])
    mean = call.create("ReduceMean", [squares, call.integers(range(-axes, 0))], keepdims=1)
    root = call.create("Sqrt", [call.create("Add", [mean, call.like(call.attrs["eps"], x)])])
    y, weight = call.create("Div", [x, root]), call.optional(1)
    return y if weight is None else call.create("Mul", [y, weight])


@exports("group_norm")
def _group_norm(call: Call) -> Any:
    """Each group as a channel of InstanceNormalization."""
    x, groups = call[0], int(call.attrs["groups"])
    shape, eps = list(x.shape or ()), call.attrs["eps"]
    weight, bias = call.optional(1), call.optional(2)
    if groups == shape[1] and x.rank > 2 and None not in (weight, bias):
        return call.create("InstanceNormalization", [x, weight, bias], epsilon=eps)
    members: Size = math.prod(shape[1:]) // groups
    flat = call.reshape(x, [shape[0], groups, members])
    plain = [call.filled(number, x.dtype, [groups]) for number in (1, 0)]
    y = call.reshape(call.create("InstanceNormalization", [flat, *plain], epsilon=eps), shape)
    of_channel = [shape[1], *[1] * (x.rank - 2)]
    y = y if weight is None else call.create("Mul", [y, call.reshape(weight, of_channel)])
    return y if bias is None else call.create("Add", [y, call.reshape(bias, of_channel)])


@exports("softmax", "log_softmax")
def _softmax(call: Call) -> Any:
    return call.create("Softmax" if call.row["op"] == "softmax" else "LogSoftmax", [call[0]], axis=call.axis(call[0]))
