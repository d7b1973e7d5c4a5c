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
    """Running statistics that keep nothing of what they were are the batch's own."""
    x, channels = call[0], [call.shape[1]]
    values = [_or_filled(call, k, number, channels) for k, number in ((1, 1), (2, 0), (3, 0), (4, 1))]
    told: dict[str, Any] = {"epsilon": call.attrs["eps"], "training_mode": 1, "momentum": 0.0}
    return call.create_all("BatchNormalization", [x, *values], [None] * 3, **told)


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
