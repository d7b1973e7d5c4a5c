"""Torch overloads of activations and softmax."""

from __future__ import annotations

import math
from typing import Any

from hetnn.importers.torch.rules.call import Call, rule


@rule("clamp.default", "clip.default", "clamp_min.default", "clamp_max.default")
def _clamp(call: Call) -> Any:
    return _between(call, _held(call, call.args.get("min")), _held(call, call.args.get("max")))


def _held(call: Call, bound: Any) -> Any:
    """A bound as torch holds it in bytes: one below 0 wraps."""
    return bound % 256 if call.dtype() == "u8" and isinstance(bound, int) and bound < 0 else bound


def _between(call: Call, low: Any, high: Any) -> Any:
    if not all(bound is None or _is_real(bound) for bound in (low, high)):
        x, low, high = call.promote([call["self"], low, high])
        x = x if low is None else call.create("maximum", [x, low])
        return x if high is None else call.create("minimum", [x, high])
    return _limits(call, -math.inf if low is None else float(low), math.inf if high is None else float(high))


def _is_real(bound: Any) -> bool:
    """Whether a bound is a number, and has no more digits than a real."""
    return isinstance(bound, float) or (isinstance(bound, int) and int(float(bound)) == bound)


def _limits(call: Call, low: float, high: float) -> Any:
    if math.isnan(low) or math.isnan(high):
        return call.filled(math.nan)
    return call.create("clamp", [call.cast(call["self"], call.dtype())], min=low, max=high)


@rule("hardtanh.default")
def _hardtanh(call: Call) -> Any:
    return _between(call, call["min_val"], call["max_val"])


@rule("relu6.default")
def _relu6(call: Call) -> Any:
    return _limits(call, 0.0, 6.0)


@rule("elu.default")
def _elu(call: Call) -> Any:
    if call["scale"] != 1 or call["input_scale"] != 1:
        inner = call["self"]
        if call["input_scale"] != 1:
            inner = call.create("mul", [inner, call.constant(call["input_scale"], call.dtype())])
        out = call.create("elu", [inner], alpha=float(call["alpha"]))
        return call.create("mul", [out, call.constant(call["scale"], call.dtype())])
    return call.create("elu", [call["self"]], alpha=float(call["alpha"]))


@rule("_prelu_kernel.default")
def _prelu_kernel(call: Call) -> Any:
    """As prelu, where slopes broadcast against x; torch gives those of channels as [1, channels, 1, 1]."""
    x, slope = call["self"], call["weight"]
    of_channels = len(slope.shape) == len(x.shape) and all(size == 1 for k, size in enumerate(slope.shape) if k != 1)
    if of_channels:
        return call.create("prelu", [x, call.reshape(slope, [slope.shape[1] if len(slope.shape) > 1 else 1])])
    positive = call.create("gt", [x, call.constant(0, call.dtype())])
    return call.create("where", [positive, x, call.create("mul", [slope, x])])


@rule("threshold.default")
def _threshold(call: Call) -> Any:
    x, dtype = call["self"], call.dtype()
    if call["threshold"] == 0 and call["value"] == 0:
        return call.create("relu", [x])
    below = call.create("le", [x, call.constant(call["threshold"], dtype)])  # NaN stays
    return call.create("where", [below, call.constant(call["value"], dtype), x])


@rule("_safe_softmax.default")
def _safe_softmax(call: Call) -> Any:
    """0 where all of a row is -inf."""
    x, axis = call.cast(call["self"], call.dtype()), call["dim"]
    most = call.create("reduce_max", [x], axes=[axis], keepdim=True)
    nothing = call.create("eq", [most, call.constant(-math.inf, x.dtype)])
    return call.create("where", [nothing, call.constant(0, x.dtype), call.create("softmax", [x], axis=axis)])


@rule("softmax.int", "_softmax.default")
def _softmax(call: Call) -> Any:
    return call.create("softmax", [call.cast(call["self"], call.dtype())], axis=call["dim"])


@rule("log_softmax.int", "_log_softmax.default")
def _log_softmax(call: Call) -> Any:
    return call.create("log_softmax", [call.cast(call["self"], call.dtype())], axis=call["dim"])
