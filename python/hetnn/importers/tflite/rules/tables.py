"""Functions of one integer of 8 bits as tables of their values, by the formulas of LiteRT's reference kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hetnn import _core
from hetnn.importers.tflite.fixed_point import (
    Array,
    doubled_high_16,
    high_product_16,
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
# Of x less its zero point, the scales of x and y, and the zero point of y.
Formula = Callable[[Call, Array, Any, Any, int], Array]


def _of_reals(function: Callable[[Array], Array]) -> Formula:
    """A function of reals, in f32."""

    def formula(_: Call, x: Array, of_x: Any, of_y: Any, zero: int) -> Array:
        reals = function(x.astype(_F32) * of_x).astype(_F32)
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(rounded(reals * (_F32(1) / of_y)), nan=0.0) + zero

    return formula


def _bounded(low: float, high: float) -> Formula:
    def formula(_: Call, x: Array, of_x: Any, of_y: Any, zero: int) -> Array:
        least, most = (zero + float(rounded(np.asarray(_F32(bound) / of_y))) for bound in (low, high))
        return np.asarray(np.minimum(np.maximum(zero + scaled(x, float(of_x / of_y)), least), most))

    return formula


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


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _gelu(call: Call, x: Array, of_x: Any, of_y: Any, zero: int) -> Array:
    def by_tanh(v: Array) -> Array:
        return np.asarray(0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v * v * v))))

    def by_erf(v: Array) -> Array:
        return np.asarray(0.5 * v * (1 + _erf(v * math.sqrt(0.5))))

    return _of_reals(by_tanh if call.option("Approximate") else by_erf)(call, x, of_x, of_y, zero)


def _quietly(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def quiet(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return function(x)

    return quiet


TABLES: Mapping[str, Formula] = {
    "ABS": _abs,
    "ELU": _of_reals(lambda x: np.where(x < 0, np.expm1(x), x)),
    "EXP": _of_reals(_quietly(np.exp)),
    "GELU": _gelu,
    "HARD_SWISH": _hard_swish,
    "LEAKY_RELU": _leaky_relu,
    "LOG": _of_reals(_quietly(np.log)),
    "LOGISTIC": _of_reals(_quietly(lambda x: np.asarray(_F32(1) / (_F32(1) + np.exp(-x))))),
    "QUANTIZE": _requantized,
    "RELU": _bounded(0, math.inf),
    "RELU6": _bounded(0, 6),
    "RELU_0_TO_1": _bounded(0, 1),
    "RELU_N1_TO_1": _bounded(-1, 1),
    "RSQRT": _of_reals(_quietly(lambda x: np.asarray(_F32(1) / np.sqrt(x)))),
    "TANH": _of_reals(np.tanh),
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


def _operand(integer: int, scale: float) -> tuple[Array, dict[str, Any]]:
    return np.array([integer], np.int8), {"q_scale": [scale], "q_zero": 0}


def _meaning(op: str, beside: tuple[int, float] | None, attrs: dict[str, Any], of_x: dict[str, Any]) -> Array:
    """What an operator makes of all integers of 8 bits."""
    builder = _core.GraphBuilder("table")
    operands = [(_HELD.astype(np.int8).reshape(1, -1), of_x), *([] if beside is None else [_operand(*beside)])]
    inputs = [builder.create("constant", [], {"value": array, **told})[0] for array, told in operands]
    builder.output(builder.create(op, inputs, attrs)[0])
    return np.asarray(_core.interpret(builder.finish(), [])[0]).reshape(-1)
