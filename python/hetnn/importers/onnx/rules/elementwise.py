"""ONNX operators of elementwise arithmetic, activations and logic."""

from __future__ import annotations

import math
from typing import Any

from onnx import TensorProto

from hetnn.element_types import is_float
from hetnn.errors import InvalidModel
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.onnx.model import dtype_name
from hetnn.importers.onnx.rules.call import Call, rule


@rule("Cast", before=6)
def _cast_by_name(call: Call) -> Any:
    return call.cast(call[0], dtype_name(TensorProto.DataType.Value(call.attr("to"))))


@rule("CastLike")
def _cast_like(call: Call) -> Any:
    told = {"saturate": bool(call.attr("saturate", 1)), "round_mode": call.attr("round_mode", "up")}
    return call.create("cast", [call[0]], to=call[1].dtype, **told)


@rule("Sign")
def _sign(call: Call) -> Any:
    """NaN stays, where torch has 0."""
    x, y = call[0], call.create("sign", [call[0]])
    return call.create("where", [call.create("ne", [x, x]), x, y]) if is_float(x.dtype) else y


@rule("Celu")
def _celu(call: Call) -> Any:
    """The standard defines it by others for f32 alone; here every float keeps its type."""
    x, alpha = call[0], call.like(call.attr("alpha"), call[0])
    below = call.create("mul", [alpha, call.create("expm1", [call.create("div", [x, alpha])])])
    return call.create("where", [call.create("gt", [x, call.like(0, x)]), x, below])


@rule("Max", "Min", "Sum", "Mean")
def _variadic(call: Call) -> Any:
    op = {"Max": "maximum", "Min": "minimum"}.get(call.node.op_type, "add")
    values = call.values()
    out = call.folded(op, values)
    return call.create("div", [out, call.like(len(values), out)]) if call.node.op_type == "Mean" else out


@rule("Clip", before=11)
def _clip_by_attributes(call: Call) -> Any:
    return call.create("clamp", [call[0]], min=call.attr("min", -math.inf), max=call.attr("max", math.inf))


@rule("Clip")
def _clip(call: Call) -> Any:
    x, low, high = call[0], call.known(1), call.known(2)
    bounds = [b for b in (low, high) if b is not None]
    if any(b.size != 1 for b in bounds):
        raise InvalidModel(f"bounds of {[b.size for b in bounds]} elements; each must be one number")
    fixed = all(call.given(k) == (b is not None) for k, b in ((1, low), (2, high)))
    if is_float(x.dtype) and fixed and all(math.isfinite(float(b.reshape(-1)[0])) for b in bounds):
        first = -math.inf if low is None else float(low.reshape(-1)[0])
        last = math.inf if high is None else float(high.reshape(-1)[0])
        if first <= last:
            return call.create("clamp", [x], min=first, max=last)
    if call.given(1):
        x = call.create("maximum", [x, call[1]])
    return call.create("minimum", [x, call[2]]) if call.given(2) else x


@rule("PRelu")
def _prelu(call: Call) -> Any:
    x, slope = call.values()
    if call.version < 7 and len(slope.shape) == 1:
        slope = call.reshape(slope, [*slope.shape, *[1] * (len(x.shape) - 2)])
    one = all(size == 1 for size in slope.shape)
    channels = len(x.shape) - len(slope.shape) <= 1 and len(slope.shape) >= 1
    by_channel = channels and all(size == 1 for size in slope.shape[1:]) and slope.shape[0] == _channels(x)
    alone = len(slope.shape) == len(x.shape) and all(s == 1 for k, s in enumerate(slope.shape) if k != 1)
    if len(x.shape) >= 2 and (one or alone or (by_channel and len(slope.shape) == len(x.shape) - 1)):
        return call.create("prelu", [x, call.reshape(slope, [1 if one else _channels(x)])])
    negative = call.create("lt", [x, call.like(0, x)])
    return call.create("where", [negative, call.create("mul", [slope, x]), x])


def _channels(x: Any) -> Any:
    return x.shape[1] if len(x.shape) > 1 else None


@rule("Selu")
def _selu(call: Call) -> Any:
    alpha, gamma = float(call.attr("alpha")), float(call.attr("gamma"))
    return call.create("mul", [call.create("elu", [call[0]], alpha=alpha), call.like(gamma, call[0])])


@rule("HardSigmoid")
def _hard_sigmoid(call: Call) -> Any:
    x, alpha, beta = call[0], float(call.attr("alpha")), float(call.attr("beta"))
    if abs(alpha - 1 / 6) < 1e-7 and beta == 0.5:
        return call.create("hardsigmoid", [x])
    line = call.create("add", [call.create("mul", [x, call.like(alpha, x)]), call.like(beta, x)])
    return call.create("clamp", [line], min=0.0, max=1.0)


@rule("Softplus")
def _softplus(call: Call) -> Any:
    """max(x, 0) + log(1 + exp(-|x|)), which no x makes overflow."""
    x = call[0]
    small = call.create("exp", [call.create("neg", [call.create("abs", [x])])])
    return call.create(
        "add", [call.create("relu", [x]), call.create("log", [call.create("add", [small, call.like(1, x)])])]
    )


@rule("ThresholdedRelu")
def _thresholded_relu(call: Call) -> Any:
    x = call[0]
    above = call.create("gt", [x, call.like(call.attr("alpha"), x)])
    return call.create("where", [above, x, call.like(0, x)])


@rule("Swish")
def _swish(call: Call) -> Any:
    return swish(call, call[0], float(call.attr("alpha")))


def swish(call: Call, x: Any, alpha: float) -> Any:
    """x sigmoid(alpha x)"""
    if alpha == 1:
        return call.create("silu", [x])
    return call.create("mul", [x, call.create("sigmoid", [call.create("mul", [x, call.like(alpha, x)])])])


@rule("Mod")
def _mod(call: Call) -> Any:
    """With the sign of the divisor, or of the dividend (fmod)."""
    return call.create("fmod" if call.attr("fmod") else "remainder", call.values())


@rule("IsNaN")
def _is_nan(call: Call) -> Any:
    return call.create("ne", [call[0], call[0]])


@rule("IsInf")
def _is_inf(call: Call) -> Any:
    x = call[0]
    sides = [(math.inf, call.attr("detect_positive")), (-math.inf, call.attr("detect_negative"))]
    found = [call.create("eq", [x, call.like(side, x)]) for side, wanted in sides if wanted]
    if not found:
        return call.broadcast_to(call.constant(False, "bool"), x.shape)
    return call.folded("logical_or", found)


def _depth(call: Call) -> int:
    depth = call.number(1, "depth")
    if not math.isfinite(depth):
        raise InvalidModel(f"OneHot with a depth of {depth}")
    return int(depth)


@rule("OneHot")
def _one_hot(call: Call) -> Any:
    """values[1] where the index, counted from the front, is the place along the new axis."""
    indices, values = call[0], call[2]
    axis = call.axis(call.attr("axis"), len(indices.shape) + 1)
    told = call.known(1)
    depth: Size = call.size(1, "depth") if told is None or told.dtype == object else _depth(call)
    hot = call.hot(call.from_the_front(call.cast(indices, "i64"), depth), depth, axis)
    off, on = (call.create("slice", [values], axis=0, start=k, end=k + 1) for k in (0, 1))
    return call.create("where", [hot, on, off])
