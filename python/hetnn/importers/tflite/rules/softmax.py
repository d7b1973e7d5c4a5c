"""TFLite's softmax, of reals and of integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn.importers.tflite.fixed_point import Array, high_product, multiplier_of, shifted_right
from hetnn.importers.tflite.rules import integer_nodes as nodes
from hetnn.importers.tflite.rules.call import Call, are_typed, rule
from hetnn.importers.tflite.rules.integer_nodes import on
from hetnn.importers.tflite.rules.tables import between, interpolated

_ONE = (1 << 31) - 1
# Of e^-(2^k), k from -2 on, as fractions of 31 bits.
_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
# Integer bits of the differences and of the sums.
_OF_DIFFERENCE, _OF_SUM = 5, 12
# 48 / 17 and -32 / 17 with 29 bits behind the point: where the search for a reciprocal begins.
_FIRST, _SLOPE = 1515870810, -1010580540


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


def exponentials(beta: float, scale: float) -> Array:
    """e^(beta scale d) for d from -255 to 0 as fractions of 31 bits, as gemmlowp has it; 0 where d is too small."""
    factor, shift = multiplier_of(min(float(np.float32(beta)) * scale * (1 << (31 - _OF_DIFFERENCE)), 2.0**31 - 1))
    differences = np.arange(-255, 1, dtype=np.int64)
    least = -math.floor(((1 << _OF_DIFFERENCE) - 1) * (1 << (31 - _OF_DIFFERENCE)) / 2.0**shift)
    # With 26 bits behind the point: a quarter's rest by a series around -1/8, the quarters by powers.
    a = high_product(differences << max(shift, 0), factor)
    rest = (a & ((1 << 24) - 1)) - (1 << 24)
    x = (rest << _OF_DIFFERENCE) + (1 << 28)
    x2 = high_product(x, x)
    cubes = high_product(shifted_right(high_product(x2, x2), 2) + high_product(x2, x), 715827883)
    start = 1895147668
    found = start + high_product(x + shifted_right(cubes + x2, 1), start)
    for k, power in enumerate(_POWERS):
        found = np.where((rest - a) >> (24 + k) & 1, high_product(found, power), found)
    return np.where(differences >= least, np.where(a == 0, _ONE, found), 0)


def _of_integers(call: Call, beta: float) -> Any:
    """By a table of exponentials; their sum's reciprocal is searched in four steps, as gemmlowp does."""
    x, quant = nodes.steps(call, call[0], 0), call.held_quant(0)
    most = call.create("reduce_max", [x], axes=[-1], keepdim=True)
    table = call.constant(exponentials(beta, quant["q_scale"][0]), "i64")
    places = on(call, "add", call.create("sub", [x, most]), 255)
    powers = call.create("gather", [table, places], axis=0, from_end=False)
    total = call.create("sum", [nodes.shifted_right(call, powers, _OF_SUM)], axes=[-1], keepdim=True)
    inverse, spare = _reciprocal(call, total)
    # 31 bits behind the point and those of the sum, of which 8 stay.
    bits = on(call, "add", call.create("neg", [spare]), _OF_SUM + 31 - 8)
    halves = call.create("gather", [_twos(call), on(call, "sub", bits, 1)], axis=0, from_end=False)
    scaled = call.create("add", [nodes.high_product(call, powers, inverse), halves])
    return nodes.result_of(call, call.create("shift_right", [scaled, bits]))


def _of_wide_integers(call: Call, beta: float) -> Any:
    """By tables of e^d for d from -10 to 0 and of 1 / (1 + r), of 15 bits behind the point."""
    x = nodes.steps(call, call[0], 0)
    most = call.create("reduce_max", [x], axes=[-1], keepdim=True)
    factor = float(call.held_quant(0)["q_scale"][0]) * float(np.float32(beta)) / (10.0 / 65535.0)
    away = nodes.scaled(call, call.create("sub", [x, most]), *multiplier_of(factor))
    of_powers = interpolated(np.exp, 10.0 / 65535.0, 32767, 2.0 / 65535.0, np.float64)
    places = on(call, "maximum", on(call, "add", away, 65535), 0)
    powers = call.create("gather", [call.constant(between(of_powers), "i64"), places], axis=0, from_end=False)
    total = call.create("sum", [powers], axes=[-1], keepdim=True)
    spare = _spare(call, total)
    up = call.create("gather", [_twos(call), on(call, "sub", spare, 1)], axis=0, from_end=False)
    rest = on(call, "shift_right", on(call, "add", call.create("mul", [total, up]), 1 << 13), 14)
    of_inverse = interpolated(lambda r: 1 / (1 + r), 1.0 / 65535.0, -32768, 2.0 / 65535.0, np.float64)
    at = on(call, "minimum", on(call, "maximum", on(call, "sub", rest, 1 << 16), 0), 65535)
    inverse = call.create("gather", [call.constant(between(of_inverse), "i64"), at], axis=0, from_end=False)
    bits = on(call, "add", call.create("neg", [spare]), 31)
    half = call.create("gather", [_twos(call), on(call, "sub", bits, 1)], axis=0, from_end=False)
    found = call.create("shift_right", [call.create("add", [call.create("mul", [powers, inverse]), half]), bits])
    found = on(call, "minimum", on(call, "maximum", found, 0), 32767)
    return nodes.result_of(call, on(call, "sub", found, int(call.q()["q_zero"])))


def _twos(call: Call) -> Any:
    return call.constant(np.left_shift(1, np.arange(62)), "i64")


def _spare(call: Call, total: Any) -> Any:
    """How many of 32 bits stand before the first that is set."""
    reached = call.create("ge", [total, call.constant(np.left_shift(1, np.arange(32)), "i64")])
    length = call.create("sum", [call.cast(reached, "i64")], axes=[-1], keepdim=True)
    return on(call, "add", call.create("neg", [length]), 32)


def _reciprocal(call: Call, total: Any) -> tuple[Any, Any]:
    """1 / (1 + a) in fractions of 31 bits, 1 + a being the sum moved up to bit 31, and by how many bits it was."""
    spare = _spare(call, total)
    up = call.create("gather", [_twos(call), spare], axis=0, from_end=False)
    moved = on(call, "sub", call.create("mul", [total, up]), 1 << 31)
    half = on(call, "shift_right", on(call, "add", moved, _ONE + 1), 1)
    x = on(call, "add", nodes.high_product(call, half, _SLOPE), _FIRST)
    for _ in range(3):
        error = on(call, "add", call.create("neg", [nodes.high_product(call, half, x)]), 1 << 29)
        x = call.create("add", [x, on(call, "mul", nodes.high_product(call, x, error), 4)])
    return on(call, "mul", x, 2), spare
