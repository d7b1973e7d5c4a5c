"""ONNX operators that draw random numbers, from generators whose states the executable keeps from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.lowering.random_numbers import normal, on
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.onnx.rules.call import Call, rule


def drawn(call: Call, shape: Sequence[Size], dtype: str = "f64") -> Any:
    """Reals of [0, 1). A node without a seed has one by its place among such nodes, so that runs can be repeated."""
    seed = call.attr("seed")
    return call.cast(call.random(shape, None if seed is None else float(seed)), dtype)


def _shape(call: Call) -> list[Size]:
    return list(call[0].shape) if call.inputs else list(call.attr("shape") or [])


def _dtype(call: Call) -> str:
    if call.attr("dtype"):
        return call.dtype_attr("dtype")
    return str(call[0].dtype) if call.inputs else "f32"


@rule("RandomUniform", "RandomUniformLike")
def _uniform(call: Call) -> Any:
    low, high = float(call.attr("low", 0.0)), float(call.attr("high", 1.0))
    y = on(call, "mul", drawn(call, _shape(call)), high - low)
    return call.cast(on(call, "add", y, low), _dtype(call))


@rule("RandomNormal", "RandomNormalLike")
def _normal(call: Call) -> Any:
    shape = _shape(call)
    y = normal(call, drawn(call, [2, *shape]), shape)
    y = on(call, "add", on(call, "mul", y, float(call.attr("scale", 1.0))), float(call.attr("mean", 0.0)))
    return call.cast(y, _dtype(call))


@rule("Bernoulli")
def _bernoulli(call: Call) -> Any:
    x = call[0]
    return call.cast(call.create("lt", [drawn(call, x.shape), call.cast(x, "f64")]), _dtype(call))


@rule("Multinomial")
def _multinomial(call: Call) -> Any:
    """Of each row as many places as asked for: how many of the sums of probabilities lie at or below a number drawn."""
    x, count = call.cast(call[0], "f64"), int(call.attr("sample_size", 1))
    rows, classes = x.shape
    sums = call.create("cumsum", [call.create("softmax", [x], axis=1)], axis=1)
    if not isinstance(classes, int) or classes < 1:
        raise Unsupported(f"Multinomial of {classes} classes")
    inner = call.create("slice", [sums], axis=1, start=0, end=classes - 1)
    below = call.create(
        "le", [call.reshape(inner, [rows, 1, classes - 1]), call.reshape(drawn(call, [rows, count]), [rows, count, 1])]
    )
    places = call.create("sum", [call.cast(below, "i64")], axes=[2], keepdim=False)
    return call.cast(places, call.dtype_attr("dtype") if call.attr("dtype") else "i32")


@rule("Dropout")
def _dropout(call: Call) -> Any:
    """In training, what a number drawn is below the ratio of is 0, and the rest is scaled; else, and with a ratio of 0,
    the input."""
    x = call[0]
    drops_none = call.given(1) and call.known(1) is not None and not call.number(1, "ratio")
    if drops_none or not call.given(2) or (call.known(2) is not None and not call.number(2, "training_mode")):
        return _kept(call, x, call.constant(True, "bool"))
    ratio = call.cast(call[1], "f64") if call.given(1) else call.constant(0.5, "f64")
    kept = call.create("ge", [drawn(call, x.shape), call.reshape(ratio, [])])
    rest = on(call, "add", on(call, "mul", call.reshape(ratio, []), -1.0), 1.0)
    scale = call.create("reciprocal", [call.create("where", [on(call, "gt", rest, 0.0), rest, call.like(1.0, rest)])])
    training = call.reshape(call[2], [])
    scaled = call.create("mul", [call.create("mul", [x, call.cast(scale, x.dtype)]), call.cast(kept, x.dtype)])
    y = call.create("where", [training, scaled, x])
    mask = call.create("logical_or", [kept, call.create("logical_not", [training])])
    return _kept(call, y, mask)


def _kept(call: Call, y: Any, mask: Any) -> Any:
    if call.outputs_used() < 2:
        return y
    return [y, call.broadcast_to(call.cast(mask, "bool" if call.version >= 10 else y.dtype), y.shape)]
