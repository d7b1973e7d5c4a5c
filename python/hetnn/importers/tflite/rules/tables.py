"""Functions of one integer as tables of their values, by the formulas of LiteRT's reference kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hetnn import _core
from hetnn.importers.tflite.c_library import of_c
from hetnn.importers.tflite.fixed_point import (
    Array,
    doubled_high_16,
    high_product_16,
    inverse_root,
    multiplied,
    multiplier_of,
    rounded,
    saturated,
    scaled,
    shifted_right,
)
from hetnn.importers.tflite.integers import quant_only
from hetnn.importers.tflite.rules.call import Call, are_typed

_F32 = np.float32
_HELD = np.arange(-128, 128)
_erfc, _exp, _expm1, _log, _tanh = (of_c(name) for name in ("erfcf", "expf", "expm1f", "logf", "tanhf"))
# Of x less its zero point, the scales of x and y, and the zero point of y.
Formula = Callable[[Call, Array, Any, Any, int], Array]


def _of_reals(function: Callable[[Array], Array]) -> Formula:
    """A function of reals, in f32."""

    def formula(_: Call, x: Array, of_x: Any, of_y: Any, zero: int) -> Array:
        reals = function(x.astype(_F32) * of_x).astype(_F32)
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(rounded(reals * (_F32(1) / of_y)), nan=-(2.0**31)) + zero

    return formula


def _bounded(low: float, high: float) -> Formula:
    def formula(_: Call, x: Array, of_x: Any, of_y: Any, zero: int) -> Array:
        least, most = (zero + float(rounded(np.asarray(_F32(bound) / of_y))) for bound in (low, high))
        return np.asarray(np.minimum(np.maximum(zero + scaled(x, float(of_x / of_y)), least), most))

    return formula


def _negated(call: Call, x: Array, _: Any, __: Any, ___: int) -> Array:
    """The integers of the file, whatever they stand for: the least is its own negative."""
    held_from = 128 if call.tensor(0).dtype == "u8" else 0
    here = x + call.held_quant(0)["q_zero"]
    return np.asarray((-(here + held_from) - held_from + 128) % 256 - 128)


def _leaky_relu(call: Call, x: Array, of_x: Any, of_y: Any, zero: int) -> Array:
    below = scaled(x, float(of_x * _F32(call.option("Alpha")) / of_y))
    return np.asarray(zero + np.where(x >= 0, scaled(x, float(of_x / of_y)), below))


def _abs(_: Call, x: Array, of_x: Any, of_y: Any, zero: int) -> Array:
    return np.asarray(zero + scaled(np.abs(x), float(of_x / of_y)))


def _requantized(_: Call, x: Array, of_x: Any, of_y: Any, zero: int) -> Array:
    return np.asarray(zero + scaled(x, float(of_x) / float(of_y)))


def _hard_swish(_: Call, x: Array, of_x: Any, of_y: Any, zero: int) -> Array:
    """x relu6(x + 3) / 6 in 16 bits: x at 1 / 128 of its scale, the rest of it in [-1, 1) as (x / 3 + 1) / 2."""
    fine, wide = _F32(of_x) / _F32(128), x * 128
    to_y, y_shift = multiplier_of(float(fine / of_y))
    to_gate, gate_shift = multiplier_of(float(fine / (_F32(3) / _F32(32768))))
    to_y, to_gate = (min((m + (1 << 15)) >> 16, 32767) for m in (to_y, to_gate))
    gate = wide
    if gate_shift > 0:
        gate = saturated(gate << (gate_shift - 1), -32768, 32767)
    gate = high_product_16(gate, to_gate)
    if gate_shift > 0:
        gate = saturated(gate << 1, -32768, 32767)
    gate = shifted_right(gate, -gate_shift) if gate_shift < 0 else gate
    product = doubled_high_16((gate + (1 << 15)) >> 1, high_product_16(wide, to_y))
    return zero + (shifted_right(product, -y_shift) if y_shift < 0 else product << y_shift)


def _gelu_of(call: Call) -> Callable[[Array], Array]:
    """In f32, each step rounded."""

    def by_tanh(x: Array) -> Array:
        v = x.astype(_F32)
        inner = _F32(math.sqrt(2 / math.pi)) * (v + _F32(0.044715) * v * v * v)
        return np.asarray(_F32(0.5) * v * (_F32(1) + _tanh(inner)))

    def by_erfc(x: Array) -> Array:
        v = x.astype(_F32)
        return np.asarray(_F32(0.5) * v * _erfc(v * _F32(-math.sqrt(0.5))))

    return by_tanh if call.option("Approximate") else by_erfc


def _gelu(call: Call, x: Array, of_x: Any, of_y: Any, zero: int) -> Array:
    return _of_reals(_gelu_of(call))(call, x, of_x, of_y, zero)


def _root(_: Call, x: Array, of_x: Any, of_y: Any, zero: int) -> Array:
    """Cut to the whole number below, as LiteRT does; it refuses negative numbers when it runs."""
    return np.asarray(np.trunc(np.sqrt(np.maximum(x, 0).astype(_F32) * of_x) / of_y) + zero)


def _inverse_root(_: Call, x: Array, of_x: Any, of_y: Any, zero: int) -> Array:
    """Of whole numbers by Newton's steps, with 20 bits more up to the scales' factor; of 0 the largest integer."""
    fine = multiplied(np.ones_like(x), *(part + bits for part, bits in zip(inverse_root(x), (0, 20), strict=True)))
    to_y, y_shift = multiplier_of(1 / float(np.sqrt(of_x) * of_y))
    return np.where(x > 0, zero + multiplied(fine, to_y, y_shift - 20), 127)


TABLES: Mapping[str, Formula] = {
    "ABS": _abs,
    "ELU": _of_reals(lambda x: np.where(x < 0, _expm1(x), x)),
    "EXP": _of_reals(_exp),
    "GELU": _gelu,
    "HARD_SWISH": _hard_swish,
    "LEAKY_RELU": _leaky_relu,
    "LOG": _of_reals(_log),
    "NEG": _negated,
    "LOGISTIC": _of_reals(lambda x: np.asarray(_F32(1) / (_F32(1) + _exp(-x)))),
    "QUANTIZE": _requantized,
    "RELU": _bounded(0, math.inf),
    "RELU6": _bounded(0, 6),
    "RELU_0_TO_1": _bounded(0, 1),
    "RELU_N1_TO_1": _bounded(-1, 1),
    "RSQRT": _inverse_root,
    "SQRT": _root,
    "TANH": _of_reals(_tanh),
}


def has_table(call: Call) -> bool:
    """Whether the operator is a function of one integer of 8 bits, which gives one."""
    return call.name in TABLES and are_typed(0)(call) and "i16" not in (call.tensor(0).dtype, call.outputs[0].dtype)


def by_table(call: Call, op: str | None = None, beside: tuple[int, float] | None = None, **attrs: Any) -> Any:
    """The operator as a table; as `op` with these attributes where that means the same for every integer.

    `beside`: an integer and its scale, a second operand of `op`.
    """
    of_x, of_y = call.held_quant(0), call.q()
    x_scale, y_scale = (_F32(each["q_scale"][0]) for each in (of_x, of_y))
    values = TABLES[call.name](call, _HELD - of_x["q_zero"], x_scale, y_scale, of_y["q_zero"])
    table = saturated(values).astype(np.int8)
    x, first = call.in_its_layout(0)
    if op is not None and np.array_equal(_meaning(op, beside, {**attrs, **of_y}, of_x), table):
        more = [] if beside is None else [call.typed_constant(*_operand(*beside))]
        return call.placed(call.create(op, [x, *more], **attrs, **of_y), first)
    return call.placed(call.create("lookup", [x], table=table, **quant_only(of_y)), first)


def is_by_a_number(call: Call) -> bool:
    """Whether a quotient of integers of 8 bits, which LiteRT has of reals alone, has one constant below."""
    below = call.held(1).array
    plain = call.tensor(0).dtype == call.outputs[0].dtype == "i8" and not call.option("FusedActivationFunction")
    return plain and are_typed(0, 1)(call) and below is not None and below.size == 1 and call.rank(1) <= call.rank(0)


def quotient_by_table(call: Call) -> Any:
    """What dividing the reals and rounding gives, for every integer above."""
    of_y, number = call.q(), call.held(1).array
    assert number is not None
    builder = _core.GraphBuilder("table")
    told = {"value": _HELD.astype(np.int8), **call.held_quant(0)}
    reals = builder.create("dequantize", builder.create("constant", [], told))
    below = _F32(number.item() - call.held_quant(1)["q_zero"]) * _F32(call.held_quant(1)["q_scale"][0])
    divisor = builder.create("constant", [], {"value": np.array([below], _F32)})
    (y,) = builder.create("quantize", builder.create("div", [*reals, *divisor]), {"to": "i8", **quant_only(of_y)})
    builder.output(y)
    table = np.asarray(_core.interpret(builder.finish(), [])[0]).reshape(-1)
    x, first = call.in_its_layout(0)
    return call.placed(call.create("lookup", [x], table=table, **quant_only(of_y)), first)


# Of 16 bits: as of 8, or between 513 points, or between those of a sigmoid.


def interpolated(function: Callable[[Array], Array], of_x: Any, x_zero: int, of_y: Any, real: Any = _F32) -> Array:
    """Values at every 128th integer of 16 bits, moved by half of what a line misses in the middle, and at the last."""
    ends = [of_x * real(end - x_zero) for end in (-32768, 32767)]
    step = (ends[1] - ends[0]) / real(512)
    places = ends[0] + np.arange(513, dtype=real) * step
    inverse = real(65536) / (of_y * real(32767) - of_y * real(-32768))

    def steps(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(x.astype(np.float64)).astype(real) * inverse)

    left, right = steps(places[:512]), steps(ends[0] + np.arange(1, 513, dtype=real) * step)
    middle = rounded(steps(places[:512] + step / real(2)))
    miss = rounded((right + rounded(left)) / real(2)) - middle
    points = [*(rounded(left) - rounded(miss / real(2))), rounded(steps(ends[1]))]
    return saturated(np.nan_to_num(np.asarray(points), nan=-32768), -32768, 32767).astype(np.int64)


def between(points: Array) -> Array:
    """What lies between the points, for every integer of 16 bits."""
    places = np.arange(65536)
    base, after = points[places >> 7], points[(places >> 7) + 1]
    return np.asarray(base + (((after - base) * (places & 127) + 64) >> 7))


# Where the sigmoid of LiteRT, of 16 bits at every 24th, is a step above the nearest: as measured.
_HIGHER = [
    4,
    8,
    12,
    *range(14, 18),
    *range(19, 23),
    25,
    *range(27, 32),
    *range(33, 36),
    37,
    *range(39, 42),
    *range(43, 47),
]
_HIGHER += [49, 50, 54, *range(62, 65), 66, 82, 86, 93, 100, 103, 112, 116, 135, 255]


def _sigmoid_steps(of_x: Any, most_shift: int) -> tuple[int, int]:
    """The multiplier and the shift to the right that lead to steps of 1 / 12288, where the sigmoid is known."""
    fraction, exponent = math.frexp(float(of_x))
    if fraction == 0.5 and 0 <= exponent - 1 + 12 <= most_shift:
        return 3 << (exponent - 1 + 12), 0
    factor, shift = float(of_x) * 4096 * 3, 0
    while factor <= 32767 / 2 and shift <= 30:
        factor, shift = 2 * factor, shift + 1
    return int(factor), shift


def _by_sigmoid(of_x: Any, bits: int, most_shift: int) -> tuple[Array, Array]:
    """Where integers lie among the steps of the sigmoid, and what it is there, with 16 and so many bits."""
    multiplier, shift = _sigmoid_steps(of_x, most_shift)
    places = (np.arange(-32768, 32768) * multiplier + ((1 << shift) >> 1)) >> shift
    points = np.rint(65536 / (1 + np.exp(-np.arange(256) / 24))).astype(np.int64)
    points[_HIGHER] += 1
    index, part = np.abs(places) >> bits, np.abs(places) & ((1 << bits) - 1)
    at = np.minimum(index, 254)
    return places, np.where(index >= 255, -1, (points[at] << bits) + part * (points[at + 1] - points[at]))


def _wide_logistic(of_x: Any) -> Array:
    places, found = _by_sigmoid(of_x, 9, 0)
    found = np.where(found < 0, 0x7FFF << 10, found)
    return np.where(places >= 0, found + (1 << 9), (1 << 25) - found + (1 << 9) - 1) >> 10


def _wide_tanh(of_x: Any) -> Array:
    places, found = _by_sigmoid(of_x, 8, 1)
    found = np.where(found < 0, 0xFFFF << 8, found)
    return np.where(places >= 0, found - (1 << 23) + (1 << 7), (1 << 23) - found + (1 << 7) - 1) >> 8


_WIDE = ("EXP", "GELU", "LOG", "LOGISTIC", "RSQRT", "SQRT", "TANH")


def has_wide_table(call: Call) -> bool:
    """Whether the operator is a function of one integer of 16 bits, which gives one, without a formula of its own."""
    return call.name in _WIDE and are_typed(0)(call) and {call.tensor(0).dtype, call.outputs[0].dtype} == {"i16"}


def by_wide_table(call: Call) -> Any:
    """The operator as a table of 65,536 integers."""
    of_x, of_y = call.held_quant(0), call.q()
    x_scale, y_scale = (_F32(each["q_scale"][0]) for each in (of_x, of_y))
    if call.name in ("LOGISTIC", "TANH"):
        values = {"LOGISTIC": _wide_logistic, "TANH": _wide_tanh}[call.name](x_scale)
    elif call.name == "SQRT":
        every = np.arange(-32768, 32768) - of_x["q_zero"]
        values = TABLES[call.name](call, every, x_scale, y_scale, of_y["q_zero"])
    else:
        ends = [float(y_scale) * end for end in (-32768, 32767)]
        functions: dict[str, Callable[[Array], Array]] = {
            "EXP": _exp,
            "GELU": _gelu_of(call),
            # Where there is none, an end of what the result's integers stand for.
            "LOG": lambda v: np.where(v > 0, _log(np.maximum(v, 1e-30)), ends[0]),
            "RSQRT": lambda v: np.where(v > 0, _F32(1) / np.sqrt(np.maximum(v, 1e-30).astype(_F32)), ends[1]),
        }
        values = between(interpolated(functions[call.name], x_scale, of_x["q_zero"], y_scale))
    x, first = call.in_its_layout(0)
    places = call.create("add", [call.cast(call.plain(x, 0), "i64"), call.constant(1 << 15, "i64")])
    table = call.constant(saturated(values, -32768, 32767).astype(np.int16), "i16")
    found = call.create("gather", [table, places], axis=0, from_end=False)
    return call.placed(call.create("bitcast", [found], to="i16", **quant_only(of_y)), first)


def _operand(integer: int, scale: float) -> tuple[Array, dict[str, Any]]:
    return np.array([integer], np.int8), {"q_scale": [scale], "q_zero": 0}


def _meaning(op: str, beside: tuple[int, float] | None, attrs: dict[str, Any], of_x: dict[str, Any]) -> Array:
    """What an operator makes of all integers of 8 bits."""
    builder = _core.GraphBuilder("table")
    operands = [(_HELD.astype(np.int8).reshape(1, -1), of_x), *([] if beside is None else [_operand(*beside)])]
    inputs = [builder.create("constant", [], {"value": array, **told})[0] for array, told in operands]
    builder.output(builder.create(op, inputs, attrs)[0])
    return np.asarray(_core.interpret(builder.finish(), [])[0]).reshape(-1)
