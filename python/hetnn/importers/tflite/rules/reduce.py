"""TFLite's sums and extremes along axes, and what is made of them."""

from __future__ import annotations

from typing import Any

from hetnn.errors import InvalidModel
from hetnn.importers.tflite.rules.call import Call, rule
from hetnn.importers.tflite.rules.movement import axis_in

_REDUCTIONS = {
    "MEAN": "mean",
    "REDUCE_ALL": "all",
    "REDUCE_ANY": "any",
    "REDUCE_MAX": "reduce_max",
    "REDUCE_MIN": "reduce_min",
    "REDUCE_PROD": "prod",
    "SUM": "sum",
}


@rule(*_REDUCTIONS)
def _reduction(call: Call) -> Any:
    return reduced(call, _REDUCTIONS[call.name])


def reduced(call: Call, op: str, **told: Any) -> Any:
    """An operator over the axes in input 1; over no axis the input as it is."""
    rank, keeps = call.rank(0), bool(call.option("KeepDims"))
    axes = sorted(set(call.axes(1, rank)))
    x, first = call.in_its_layout(0)
    if not axes:
        return call.placed(x, first)
    if first and not keeps and set(range(rank)) - set(axes) - {0, 3}:
        x, first = call[0], False
    y = call.create(op, [x], axes=[axis_in(axis, first) for axis in axes], keepdim=keeps, **told)
    # Of an image's batches and channels both layouts have one order.
    return call.placed(y, first and keeps)


@rule("ARG_MAX", "ARG_MIN")
def _place_of_extreme(call: Call) -> Any:
    axis = call.axis(call.integer(1, "the axis"), call.rank(0))
    y = call.create({"ARG_MAX": "argmax", "ARG_MIN": "argmin"}[call.name], [call[0]], axis=axis)
    return call.cast(y, call.outputs[0].dtype)


@rule("SOFTMAX")
def _softmax(call: Call) -> Any:
    """Of beta x along the last axis."""
    beta = float(call.option("Beta"))
    x = call[0] if beta == 1 else call.create("mul", [call[0], call.like(beta, call[0])])
    return call.create("softmax", [x], axis=-1)


@rule("LOG_SOFTMAX")
def _log_softmax(call: Call) -> Any:
    return call.create("log_softmax", [call[0]], axis=-1)


@rule("L2_NORMALIZATION")
def _l2_normalization(call: Call) -> Any:
    """Divided by the root of the sum of squares along the last axis, which is at least 1e-6."""
    x, first = call.in_its_layout(0)
    squares = call.create("mul", [x, x])
    total = call.create("sum", [squares], axes=[axis_in(call.rank(0) - 1, first)], keepdim=True)
    length = call.create("maximum", [call.create("sqrt", [total]), call.like(1e-6, x)])
    return call.placed(call.activated(call.create("div", [x, length])), first)


@rule("LOCAL_RESPONSE_NORMALIZATION")
def _local_response(call: Call) -> Any:
    """x (bias + alpha sum of the squares of so many channels on both sides) ^ -beta"""
    x, radius = call.first(0), int(call.option("Radius"))
    bias, alpha, beta = (float(call.option(name)) for name in ("Bias", "Alpha", "Beta"))
    if radius < 0:
        raise InvalidModel(f"a radius of {radius}")
    n, c, h, w = x.shape
    squares = call.reshape(call.create("mul", [x, x]), [n, 1, c, h * w])
    width = 2 * min(radius, c if isinstance(c, int) else radius) + 1
    told = {"kernel": [width, 1], "stride": [1, 1], "padding": [width // 2, 0], "divisor_override": 1}
    sums = call.reshape(call.create("avg_pool2d", [squares], **told), [n, c, h, w])
    scaled = call.create("add", [call.create("mul", [sums, call.like(alpha, x)]), call.like(bias, x)])
    return call.placed(call.create("mul", [x, call.create("pow", [scaled, call.like(-beta, x)])]), True)


@rule("CUMSUM")
def _cumsum(call: Call) -> Any:
    axis = call.axis(call.integer(1, "the axis"), call.rank(0))
    told = {"exclusive": bool(call.option("Exclusive")), "reverse": bool(call.option("Reverse"))}
    return call.create("cumsum", [call[0]], axis=axis, **told)


@rule("TOPK_V2")
def _topk(call: Call) -> Any:
    count = call.integer(1, "how many")
    if not call.rank(0):
        raise InvalidModel("the greatest of a tensor of rank 0")
    values, places = call.create_all("topk", [call[0]], {"k": count})
    return [values, call.cast(places, call.outputs[1].dtype if len(call.outputs) > 1 else "i32")]
