"""ONNX normalizations."""

from __future__ import annotations

from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.norms import p_norm, standardized
from hetnn.importers.lowering.sizes import Size, divide, product
from hetnn.importers.onnx.rules.call import Call, rule


@rule("BatchNormalization")
def _batch_norm(call: Call) -> Any:
    x, *of_channels = call.values()
    if call.version < 9 and not call.attr("spatial", 1):
        return _norm_of_places(call, x, *of_channels)
    for value in of_channels:
        x = with_sizes(call, x, [None, *value.shape, *[None] * (len(x.shape) - 2)])
    weight, bias, mean, variance = (with_sizes(call, value, list(x.shape[1:2])) for value in of_channels)
    trains = bool(call.attr("training_mode", 0)) or (call.version < 7 and not call.attr("is_test", 0))
    if trains and call.version >= 14:
        return _trained_batch_norm(call, [x, weight, bias, mean, variance])
    if trains or (call.version >= 14 and call.outputs_used() > 1):
        raise Unsupported("BatchNormalization in training mode; export the model for inference")
    return call.create("batch_norm", [x, weight, bias, mean, variance], eps=float(call.attr("epsilon")))


def _norm_of_places(call: Call, x: Any, weight: Any, bias: Any, mean: Any, variance: Any) -> Any:
    """By statistics of every place of a channel, [C,...]: broadcast over the batch."""
    if call.outputs_used() > 1 or (call.version < 7 and not call.attr("is_test", 0)):
        raise Unsupported("BatchNormalization in training mode; export the model for inference")
    eps = call.like(float(call.attr("epsilon")), x)
    factor = call.create("mul", [weight, call.create("rsqrt", [call.create("add", [variance, eps])])])
    return call.create("add", [call.create("mul", [call.create("sub", [x, mean]), factor]), bias])


def _trained_batch_norm(call: Call, inputs: list[Any]) -> list[Any]:
    """By the batch's own statistics, and the running ones moved towards them."""
    x, weight, bias, *running = inputs
    wide = "f64" if x.dtype == "f64" else "f32"
    values = [call.cast(value, wide) for value in (x, weight, bias)]
    y, *new = call.create_all("batch_norm_training", values, {"eps": float(call.attr("epsilon"))})
    momentum, moved = float(call.attr("momentum")), []
    for old, its in zip(running, new, strict=True):
        parts = (old, momentum), (call.cast(its, old.dtype), 1 - momentum)
        moved.append(call.create("add", [call.create("mul", [part, call.like(by, part)]) for part, by in parts]))
    return [call.cast(y, x.dtype), *moved]


@rule("LayerNormalization")
def _layer_norm(call: Call) -> Any:
    x, weight, bias = call[0], call[1], call.optional(2)
    rank = len(x.shape)
    axis = call.axis(int(call.attr("axis")), rank)
    x = with_sizes(call, x, [*[None] * axis, *weight.shape])
    tail = list(x.shape[axis:])
    weight, bias = with_sizes(call, weight, tail), None if bias is None else with_sizes(call, bias, tail)
    eps = float(call.attr("epsilon"))
    fits = list(weight.shape) == tail and (bias is None or list(bias.shape) == tail)
    if fits and call.outputs_used() == 1:
        return call.create("layer_norm", [x, weight, bias], axes=rank - axis, eps=eps)
    dtype = x.dtype
    normal, mean, factor = standardized(call, call.cast(x, "f32"), list(range(axis, rank)), eps)
    y = call.create("mul", [call.cast(normal, dtype), weight])
    return [y if bias is None else call.create("add", [y, bias]), mean, factor]


def _in_groups(call: Call, groups: Size, eps: float) -> Any:
    """The input, each of its groups of channels standardized by itself."""
    x = call[0]
    n, shape = x.shape[0], list(x.shape)
    flat = call.reshape(x, [n, groups, _rest(call, shape, groups)])
    return call.reshape(call.create("layer_norm", [flat, None, None], axes=1, eps=eps), shape)


def _rest(call: Call, shape: list[Size], groups: Size) -> Size:
    return divide(product(shape[1:]), groups)


def _by_channel(call: Call, y: Any, weight: Any, bias: Any) -> Any:
    shape = [weight.shape[0], *[1] * (len(y.shape) - 2)]
    return call.create("add", [call.create("mul", [y, call.reshape(weight, shape)]), call.reshape(bias, shape)])


@rule("InstanceNormalization")
def _instance_norm(call: Call) -> Any:
    y = _in_groups(call, call.ranked(0, 2).shape[1], float(call.attr("epsilon")))
    return _by_channel(call, y, call.ranked(1, 1, 1), call.ranked(2, 1, 1))


@rule("GroupNormalization")
def _group_norm(call: Call) -> Any:
    groups, x = int(call.attr("num_groups")), call.ranked(0, 2)
    weight, bias = call.ranked(1, 1, 1), call.ranked(2, 1, 1)
    if call.version < 21:  # one a group
        n, shape = x.shape[0], list(x.shape)
        flat = call.reshape(x, [n, groups, _rest(call, shape, groups)])
        y = call.create("layer_norm", [flat, None, None], axes=1, eps=float(call.attr("epsilon")))
        return call.reshape(_by_channel(call, y, weight, bias), shape)
    return _by_channel(call, _in_groups(call, groups, float(call.attr("epsilon"))), weight, bias)


@rule("LRN")
def _local_response(call: Call) -> Any:
    """x / (bias + alpha/size Σ x²)^beta over a window of channels: an average pool over an axis turned outwards."""
    x, size = call.ranked(0, 2), int(call.attr("size"))
    n, c, *image = x.shape
    square = call.reshape(call.create("mul", [x, x]), [n, 1, c, product(image)])
    before, after = (size - 1) // 2, size // 2
    padded = call.create("pad", [square], padding=[0, 0, before, 0, 0, 0, after, 0], value=0.0)
    mean = call.create("avg_pool2d", [padded], kernel=[size, 1], stride=[1, 1])
    scaled = call.create("mul", [mean, call.like(float(call.attr("alpha")), x)])
    base = call.create("add", [call.reshape(scaled, list(x.shape)), call.like(float(call.attr("bias")), x)])
    return call.create("div", [x, call.create("pow", [base, call.like(float(call.attr("beta")), x)])])


@rule("LpNormalization")
def _lp_norm(call: Call) -> Any:
    x, axis = call[0], call.axis(call.attr("axis"), len(call[0].shape))
    order = 1 if call.attr("p") == 1 else 2
    norm = p_norm(call, x, order, lambda op, value: call.create(op, [value], axes=[axis], keepdim=True))
    zero = call.create("eq", [norm, call.like(0, x)])
    return call.create("div", [x, call.create("where", [zero, call.like(1, x), norm])])


@rule("Softmax", "LogSoftmax", before=13)
def _flat_softmax(call: Call) -> Any:
    """Over all axes from `axis` on."""
    x = call[0]
    shape, axis = list(x.shape), call.axis(call.attr("axis"), len(x.shape))
    op = "softmax" if call.node.op_type == "Softmax" else "log_softmax"
    flat = call.reshape(x, [*shape[:axis], product(shape[axis:])])
    return call.reshape(call.create(op, [flat], axis=axis), shape)
