"""TFLite's softmax, of reals and of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.importers.tflite.fixed_point import multiplier_of
from hetnn.importers.tflite.integers import plain_type
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
