"""TFLite's softmax and its logarithm, of reals and of integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn.importers.tflite.fixed_point import Array, exponential, multiplied, multiplier_of, shifted_right
from hetnn.importers.tflite.integers import plain_type, typed_attributes
from hetnn.importers.tflite.rules import integer_nodes as nodes
from hetnn.importers.tflite.rules.call import Call, are_typed, rule
from hetnn.importers.tflite.rules.integer_nodes import on
from hetnn.importers.tflite.rules.tables import between, interpolated


def _takes_integers(call: Call) -> bool:
    return are_typed(0)(call) and (call.tensor(0).dtype == "i16") == (call.outputs[0].dtype == "i16")


@rule("SOFTMAX", integers=_takes_integers)
def _softmax(call: Call) -> Any:
    """Of beta x along the last axis."""
    beta = float(call.option("Beta"))
    if call.typed:
        return (_of_wide_integers if call.tensor(0).dtype == "i16" else _of_integers)(call, beta)
    x = call[0] if beta == 1 else call.create("mul", [call[0], call.like(beta, call[0])])
    return call.create("softmax", [x], axis=-1)


def _of_integers(call: Call, beta: float) -> Any:
    """One node, which the core computes as LiteRT's reference kernel does; beta is part of what x stands for."""
    x = call[0]
    if beta != 1:
        quant = call.held_quant(0)
        scales = [float(np.float32(beta)) * scale for scale in quant["q_scale"]]
        x = call.create("bitcast", [x], to=plain_type(call.tensor(0)), **{**quant, "q_scale": scales})
    return call.create("softmax", [x], axis=-1, **call.q())


def _of_wide_integers(call: Call, beta: float) -> Any:
    """By tables of e^d for d from -10 to 0 and of 1 / (1 + r), of 15 bits behind the point."""
    x = nodes.steps(call, call[0], 0)
    most = call.create("reduce_max", [x], axes=[-1], keepdim=True)
    factor = float(np.float32(call.held_quant(0)["q_scale"][0]) * np.float32(beta)) / (10.0 / 65535.0)
    away = nodes.scaled(call, call.create("sub", [x, most]), *multiplier_of(factor))
    of_powers = interpolated(np.exp, 10.0 / 65535.0, 32767, 2.0 / 65535.0, np.float64)
    places = on(call, "maximum", on(call, "add", away, 65535), 0)
    powers = _at(call, between(of_powers), places)
    total = call.create("sum", [powers], axes=[-1], keepdim=True)
    spare = _spare(call, total)
    up = _power_of_two(call, on(call, "sub", spare, 1))
    rest = on(call, "shift_right", on(call, "add", call.create("mul", [total, up]), 1 << 13), 14)
    of_inverse = interpolated(lambda r: 1 / (1 + r), 1.0 / 65535.0, -32768, 2.0 / 65535.0, np.float64)
    at = on(call, "minimum", on(call, "maximum", on(call, "sub", rest, 1 << 16), 0), 65535)
    inverse = _at(call, between(of_inverse), at)
    bits = on(call, "add", call.create("neg", [spare]), 31)
    half = _power_of_two(call, on(call, "sub", bits, 1))
    found = call.create("shift_right", [call.create("add", [call.create("mul", [powers, inverse]), half]), bits])
    found = on(call, "minimum", on(call, "maximum", found, 0), 32767)
    return nodes.result_of(call, on(call, "sub", found, int(call.q()["q_zero"])))


def _at(call: Call, numbers: Array, places: Any) -> Any:
    return call.create("gather", [call.constant(numbers, "i64"), places], axis=0, from_end=False)


def _power_of_two(call: Call, exponent: Any) -> Any:
    return _at(call, np.left_shift(1, np.arange(62)), exponent)


def _spare(call: Call, total: Any) -> Any:
    """How many of 32 bits stand before the first that is set."""
    reached = call.create("ge", [total, call.constant(np.left_shift(1, np.arange(32)), "i64")])
    length = call.create("sum", [call.cast(reached, "i64")], axes=[-1], keepdim=True)
    return on(call, "add", call.create("neg", [length]), 32)


# Differences of the logarithm have 26 bits behind the point, sums of powers 19.
_POINT, _SUM_POINT = 26, 19


def _is_of_sixteenths(call: Call) -> bool:
    """Whether the result is in steps of 1 / 16 down from 0, as LiteRT demands, and x's steps have its form."""
    if not are_typed(0)(call) or "i16" in (call.tensor(0).dtype, call.outputs[0].dtype):
        return False
    to = typed_attributes(call.outputs[0].quant, call.outputs[0].dtype)
    return to["q_scale"] == [1 / 16] and to["q_zero"] == 127 and _step(call) >= 1


def _step(call: Call) -> float:
    scale = float(np.float32(call.held_quant(0)["q_scale"][0]))
    return min(scale * (1 << _POINT), 2.0**31 - 1)


@rule("LOG_SOFTMAX", integers=_is_of_sixteenths)
def _log_softmax(call: Call) -> Any:
    """x less the logarithm of the sum of e^x, along the last axis."""
    if not call.typed:
        return call.create("log_softmax", [call[0]], axis=-1)
    multiplier, shift = multiplier_of(_step(call))
    most_below = math.floor(31 * 2.0 ** (_POINT - shift))  # below the largest of a row: as far as 5 bits go
    differences = multiplied(-np.arange(256), multiplier, shift)
    powers = np.where(np.arange(256) <= most_below, shifted_right(exponential(differences), 31 - _SUM_POINT), 0)
    x = nodes.steps(call, call[0], 0)
    most = call.create("reduce_max", [x], axes=[-1], keepdim=True)
    below = call.create("sub", [most, x])
    total = call.create("sum", [_at(call, powers, below)], axes=[-1], keepdim=True)
    logarithm = _logarithm(call, total)
    # So far below that the result would not be in 32 bits.
    bound = nodes.scaled(call, on(call, "sub", logarithm, 1 << 31), *multiplier_of(2.0 ** (31 - shift) / multiplier))
    kept = call.create("lt", [below, call.create("neg", [on(call, "maximum", bound, -most_below - 1)])])
    steps = nodes.shifted_right(call, call.create("sub", [_at(call, differences, below), logarithm]), _POINT - 4)
    return nodes.result_of(call, call.create("where", [kept, steps, call.constant(-255, "i64")]))


def _logarithm(call: Call, total: Any) -> Any:
    """Of sums from 1 on: a quotient of polynomials between roots of 1/2, and the power of two before it."""
    root_of_half, fourth_root_of_half, quarter = 1518500250, 1805811301, 1 << 23
    most = (1 << 31) - 1

    def product(a: Any, b: Any) -> Any:
        return nodes.high_product(call, a, b)

    def power(zeros: Any) -> Any:
        return on(call, "mul", on(call, "add", call.create("neg", [zeros]), 31 - _SUM_POINT), 1 << 25)

    # Once as a whole times the root of 1/2, once without: the lesser lies nearer to its fourth root.
    zeros = _spare(call, total)
    filled = call.create("mul", [total, _power_of_two(call, on(call, "sub", zeros, 1))])
    first = on(call, "minimum", on(call, "mul", product(filled, root_of_half), 2), most)
    free = on(call, "sub", _spare(call, product(total, root_of_half)), 1)
    second = on(call, "minimum", call.create("mul", [total, _power_of_two(call, free)]), most)
    r = call.create("minimum", [first, second])
    twos = call.create("maximum", [on(call, "add", power(zeros), quarter), on(call, "sub", power(free), quarter)])
    p = on(call, "shift_right", on(call, "add", r, fourth_root_of_half + 1), 1)
    q = on(call, "mul", on(call, "sub", r, fourth_root_of_half), 2)
    square = product(q, q)
    above = call.create("add", [product(q, r), product(product(q, square), 117049297)])
    below = on(call, "add", call.create("add", [q, product(square, 127690142)]), 1057819769)
    below = call.create("add", [product(p, below), product(q, 638450708)])
    quotient = product(nodes.shifted_right(call, above, 6), nodes.inverse(call, below))
    return on(call, "minimum", on(call, "mul", call.create("add", [product(twos, 1488522236), quotient]), 2), most)
