"""Elementwise arithmetic, activations and logic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn.element_types import is_float
from hetnn.exporters.onnx.rules.call import Call, Value, exports


@exports("sign")
def _sign(call: Call) -> Any:
    """Of NaN it is 0 here, NaN in ONNX."""
    x = call[0]
    y = call.typed("Sign", [x])
    if not is_float(x.dtype):
        return y
    return call.create("Where", [call.create("IsNaN", [x]), call.like(0, x), y[0]])


@exports("clamp")
def _clamp(call: Call) -> Any:
    """Reals by their bounds; integers by those within the bounds."""
    x, low, high = call[0], float(call.attrs["min"]), float(call.attrs["max"])
    if not is_float(x.dtype):
        if x.dtype == "bool":
            call.refuse("of bools, which ONNX's Clip does not take")
        ends: Any = np.iinfo(x.dtype.replace("i", "int").replace("u", "uint"))
        low, high = (
            (math.ceil(low) if low > ends.min else -math.inf),
            (math.floor(high) if high < ends.max else math.inf),
        )
    bounds = [None if math.isinf(bound) else bound for bound in (min(low, high), high)]
    x = x if call.takes("Clip", [x]) else call.cast(x, "f32" if is_float(x.dtype) else "i32")
    return call.cast(call.create("Clip", [x, *(None if b is None else call.like(b, x) for b in bounds)]), call.dtype)


@exports("maximum", "minimum")
def _extreme(call: Call) -> Any:
    return call.typed("Max" if call.row["op"] == "maximum" else "Min", call.inputs)


@exports("threshold_gradient")
def _threshold_gradient(call: Call) -> Any:
    gradient, x = call[0], call[1]
    below = call.create("LessOrEqual", [x, call.like(call.attrs["threshold"], x)])
    return call.create("Where", [below, call.like(0, gradient), gradient])


@exports("nan_to_num")
def _nan_to_num(call: Call) -> Any:
    x = call[0]
    zero, low, high = (call.like(number, x) for number in (0, call.attrs["neginf"], call.attrs["posinf"]))
    below = call.create("Where", [call.create("Less", [x, zero]), low, zero])
    infinite = call.create("Where", [call.create("Greater", [x, zero]), high, below])
    return call.create("Where", [call.create("Less", [call.create("Abs", [x]), call.like(math.inf, x)]), x, infinite])


@exports("ne")
def _ne(call: Call) -> Any:
    return call.create("Not", [call.create("Equal", call.inputs)])


@exports("nary")
def _nary(call: Call) -> Any:
    """From the first to the last, each of a sum times its coefficient."""
    coefficients = call.attrs["coefficients"]
    values = [call[k] for k in range(len(call.inputs))]
    if any(factor != 1 for factor in coefficients):
        pairs = list(zip(values, coefficients, strict=True))
        values = [v if c == 1 else call.create("Mul", [v, call.like(c, v)]) for v, c in pairs]
    op_type = {"add": "Add", "mul": "Mul", "maximum": "Max", "minimum": "Min"}[call.attrs["op"]]
    return call.folded(op_type, values)


@exports("logical_not", "logical_and", "logical_or", "logical_xor")
def _logical(call: Call) -> Any:
    """What is not 0 is true."""
    op_type = {"logical_not": "Not", "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}[call.row["op"]]
    return call.create(op_type, [call.cast(call[k], "bool") for k in range(len(call.inputs))])


@exports("bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor")
def _bitwise(call: Call) -> Any:
    word = call.row["op"].removeprefix("bitwise_").capitalize()
    return call.create(word if call.dtype == "bool" else f"Bitwise{word}", call.inputs)


@exports("shift_left", "shift_right")
def _shift(call: Call) -> Any:
    """By as many places as there are bits, or more, nothing is left."""
    a, b = call[0], call[1]
    if not a.dtype.startswith("u"):
        call.refuse(f"of {a.dtype}: ONNX's BitShift takes unsigned integers")
    direction = "LEFT" if call.row["op"] == "shift_left" else "RIGHT"
    far = call.create("GreaterOrEqual", [b, call.like(int(a.dtype[1:]), b)])
    near = call.create("Where", [far, call.like(0, b), b])
    return call.create("Where", [far, call.like(0, a), call.create("BitShift", [a, near], direction=direction)])


# A Chebyshev fit of log(erfc(x) / t) + x x in t = 1 / (1 + x / 2) for x from 0 on: relative error 1.2e-7.
_ERFC = (
    *(-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806),
    *(0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277),
)


@exports("erfc")
def _erfc(call: Call) -> Any:
    """1 - erf(x), which far up has no digits: there, but of f64, by the exponential of a polynomial."""
    x = call[0]
    near = call.create("Sub", [call.like(1, x), call.create("Erf", [x])])
    if x.dtype == "f64":
        return near
    half = call.create("Add", [call.create("Mul", [x, call.like(0.5, x)]), call.like(1, x)])
    t = call.create("Reciprocal", [half])
    power = call.like(_ERFC[-1], x)
    for number in _ERFC[-2::-1]:
        power = call.create("Add", [call.create("Mul", [power, t]), call.like(number, x)])
    power = call.create("Sub", [power, call.create("Mul", [x, x])])
    far = call.create("Mul", [t, call.create("Exp", [power])])
    return call.create("Where", [call.create("Greater", [x, call.like(0.5, x)]), far, near])


@exports("exp2")
def _exp2(call: Call) -> Any:
    return call.create("Pow", [call.like(2, call[0]), call[0]])


@exports("expm1")
def _expm1(call: Call) -> Any:
    """tanh(x/2) (exp(x) + 1), which cancels nowhere; far up, where exp ends in inf, tanh is 1."""
    x = call[0]
    half = call.create("Tanh", [call.create("Mul", [x, call.like(0.5, x)])])
    return call.create("Mul", [half, call.create("Add", [call.create("Exp", [x]), call.like(1, x)])])


@exports("log1p")
def _log1p(call: Call) -> Any:
    """Near 0 times what 1 + x, rounded, is off: x log(u) / (u - 1) for u = 1 + x, and x where u is 1."""
    x, one = call[0], call.like(1, call[0])
    u = call.create("Add", [x, one])
    log = call.create("Log", [u])
    near = call.create("Div", [call.create("Mul", [x, log]), call.create("Sub", [u, one])])
    near = call.create("Where", [call.create("Equal", [u, one]), x, near])
    return call.create("Where", [call.create("Greater", [x, one]), log, near])


@exports("log2", "log10")
def _log(call: Call) -> Any:
    base = 2 if call.row["op"] == "log2" else 10
    return call.create("Mul", [call.create("Log", [call[0]]), call.like(1 / math.log(base), call[0])])


@exports("rsqrt")
def _rsqrt(call: Call) -> Any:
    return call.create("Reciprocal", [call.create("Sqrt", [call[0]])])


@exports("silu")
def _silu(call: Call) -> Any:
    return call.create("Mul", [call[0], call.create("Sigmoid", [call[0]])])


@exports("hardsigmoid")
def _hardsigmoid(call: Call) -> Any:
    return call.create("HardSigmoid", [call[0]], alpha=1 / 6, beta=0.5)


@exports("prelu")
def _prelu(call: Call) -> Any:
    """One slope a channel lies along axis 1."""
    x, slope = call[0], call[1]
    assert slope.shape is not None
    if slope.shape[0] != 1:
        slope = call.reshape(slope, [slope.shape[0], *[1] * (x.rank - 2)])
    return call.create("PRelu", [x, slope])


@exports("trunc")
def _trunc(call: Call) -> Any:
    x = call[0]
    if not is_float(x.dtype):
        return x
    below = call.create("Less", [x, call.like(0, x)])
    return call.create("Where", [below, call.create("Ceil", [x]), call.create("Floor", [x])])


@exports("floor", "ceil", "round")
def _whole(call: Call) -> Any:
    """Of integers nothing changes."""
    return call.by_row() if is_float(call[0].dtype) else call[0]


@exports("fmod")
def _fmod(call: Call) -> Any:
    if call.dtype == "bool":
        call.refuse("of bools, which ONNX's Mod does not take")
    return call.create("Mod", call.inputs, fmod=1)


def _remainder(call: Call, a: Value, b: Value) -> Value:
    """Of the sign of b."""
    if not is_float(a.dtype):
        return call.create("Mod", [a, b])
    left, zero = call.create("Mod", [a, b], fmod=1), call.like(0, a)
    other = call.create("Xor", [call.create("Less", [left, zero]), call.create("Less", [b, zero])])
    some = call.create("Not", [call.create("Equal", [left, zero])])
    turned = call.create("Add", [left, b])
    return call.create("Where", [call.create("And", [other, some]), turned, left])


@exports("remainder")
def _remainder_of(call: Call) -> Any:
    if call.dtype == "bool":
        call.refuse("of bools, which ONNX's Mod does not take")
    return _remainder(call, call[0], call[1])


@exports("floor_divide")
def _floor_divide(call: Call) -> Any:
    """What is left taken away first, so that the quotient is whole, and rounded where it is not quite."""
    a, b = call[0], call[1]
    if call.dtype == "bool":
        call.refuse("of bools, which ONNX's Mod does not take")
    quotient = call.create("Div", [call.create("Sub", [a, _remainder(call, a, b)]), b])
    return call.create("Round", [quotient]) if is_float(a.dtype) else quotient


@exports("atan2")
def _atan2(call: Call) -> Any:
    """The arc tangent of the quotient, turned by half a circle where b is negative."""
    a, b = call[0], call[1]
    zero = call.like(0, a)
    at = call.create("Atan", [call.create("Div", [a, b])])
    half = call.create("Where", [call.create("Less", [a, zero]), call.like(-math.pi, a), call.like(math.pi, a)])
    turned = call.create("Where", [call.create("Less", [b, zero]), call.create("Add", [at, half]), at])
    upright = call.create("Mul", [call.create("Sign", [a]), call.like(math.pi / 2, a)])
    return call.create("Where", [call.create("Equal", [b, zero]), upright, turned])


@exports("identity", "match_shape")
def _same(call: Call) -> Any:
    """A shape that is known; where an axis of one element is repeated, by Expand."""
    if call.row["op"] == "identity":
        return call[0]
    shape = call.attrs["shape"]
    return call.expand(call[0], shape) if call.attrs["repeats"] else call.reshape(call[0], shape)
