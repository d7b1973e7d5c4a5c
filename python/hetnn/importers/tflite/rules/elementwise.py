"""TFLite's operators of elementwise arithmetic, activations and logic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn.element_types import numpy_type
from hetnn.importers.tflite.fixed_point import multiplier_of, quotient, scaled
from hetnn.importers.tflite.integers import graph_form, is_typed, plain_type, quant_only, signed
from hetnn.importers.tflite.rules import integer_nodes as nodes
from hetnn.importers.tflite.rules.call import Call, always, are_typed, rule
from hetnn.importers.tflite.rules.tables import (
    by_table,
    by_wide_table,
    has_table,
    has_wide_table,
    is_by_a_number,
    quotient_by_table,
)

_UNARY = {
    "ABS": "abs",
    "CEIL": "ceil",
    "COS": "cos",
    "EXP": "exp",
    "FLOOR": "floor",
    "HARD_SWISH": "hardswish",
    "LOG": "log",
    "LOGICAL_NOT": "logical_not",
    "LOGISTIC": "sigmoid",
    "NEG": "neg",
    "RELU": "relu",
    "ROUND": "round",
    "RSQRT": "rsqrt",
    "SIGN": "sign",
    "SIN": "sin",
    "SQRT": "sqrt",
    "TANH": "tanh",
}
_BINARY = {
    "ADD": "add",
    "ATAN2": "atan2",
    "BITWISE_XOR": "bitwise_xor",
    "DIV": "div",
    "EQUAL": "eq",
    "FLOOR_DIV": "floor_divide",
    "FLOOR_MOD": "remainder",
    "GREATER": "gt",
    "GREATER_EQUAL": "ge",
    "LESS": "lt",
    "LESS_EQUAL": "le",
    "LOGICAL_AND": "logical_and",
    "LOGICAL_OR": "logical_or",
    "MAXIMUM": "maximum",
    "MINIMUM": "minimum",
    "MUL": "mul",
    "NOT_EQUAL": "ne",
    "POW": "pow",
    "RIGHT_SHIFT": "shift_right",
    "SUB": "sub",
}
_CLAMPS = {"RELU6": (0.0, 6.0), "RELU_0_TO_1": (0.0, 1.0), "RELU_N1_TO_1": (-1.0, 1.0)}


def _is_typed(call: Call) -> bool:
    return has_table(call) or has_wide_table(call) or (call.name in ("ABS", "NEG", "RELU") and are_typed(0)(call))


@rule(*_UNARY, integers=_is_typed)
def _unary(call: Call) -> Any:
    if has_table(call):
        return by_table(call, "relu" if call.name == "RELU" else None)
    if has_wide_table(call):
        return by_wide_table(call)
    x, first = call.in_its_layout(0)
    if call.typed and call.name == "ABS":
        away = call.create("abs", [nodes.centred(call, x, 0)])
        return call.placed(nodes.result_of(call, nodes.scaled(call, away, *multiplier_of(_ratio(call)))), first)
    if call.typed and call.name == "RELU" and not _is_exact(call):
        above = call.create("maximum", [nodes.centred(call, x, 0), call.constant(0, "i64")])
        return call.placed(nodes.result_of(call, nodes.scaled(call, above, *multiplier_of(_ratio(call)))), first)
    if call.typed and call.name == "NEG":  # of the integers as they are in the file
        turned = call.create("neg", [call.plain(x, 0)])
        return call.placed(graph_form(call, turned, call.outputs[0]), first)
    return call.placed(call.create(_UNARY[call.name], [x], **call.q()), first)


def _ratio(call: Call) -> float:
    """The scale of the input over that of the result, in f32."""
    return float(np.float32(call.held_quant(0)["q_scale"][0]) / np.float32(call.q()["q_scale"][0]))


def _is_exact(call: Call) -> bool:
    """Whether the ratio of the scales that is not rounded to f32 makes the same of every integer of 16 bits."""
    every = np.arange(-32768, 32768)
    whole = call.held_quant(0)["q_scale"][0] / call.q()["q_scale"][0]
    return np.array_equal(scaled(every, whole), scaled(every, _ratio(call)))


@rule(*_CLAMPS, integers=are_typed(0))
def _clamp(call: Call) -> Any:
    if has_table(call):
        return by_table(call, "clamp", min=_CLAMPS[call.name][0], max=_CLAMPS[call.name][1])
    x, first = call.in_its_layout(0)
    if call.typed and call.quant(0) != call.result_quant():
        if _is_exact(call):
            x = call.create("quantize", [x], to=plain_type(call.outputs[0]), **call.q())
        else:
            away = nodes.scaled(call, nodes.centred(call, x, 0), *multiplier_of(_ratio(call)))
            x = nodes.result_of(call, away)
    return call.placed(call.bounded(x, *_CLAMPS[call.name]), first)


# Which LiteRT computes on the file's integers, whatever they stand for.
_OF_PLAIN_INTEGERS = ("FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM")
_COMPARISONS = ("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL")


def _have_sums_of_integers(call: Call) -> bool:
    if call.name in _COMPARISONS:
        return all(is_typed(call.tensor(k)) for k in (0, 1))
    if call.name == "DIV" and call.tensor(0).dtype not in ("i8", "u8"):
        return is_by_a_number(call)
    return call.name in ("ADD", "DIV", "SUB", "MUL", *_OF_PLAIN_INTEGERS) and are_typed(0, 1)(call)


def _is_plain(call: Call) -> bool:
    """Whether integers are taken as they are in the file: of extremes where their scales are not alike."""
    if not call.typed:
        return False
    if call.name in _COMPARISONS:  # of 16 bits only those that ask for equality go by what integers stand for
        return call.tensor(0).dtype == "i16" and call.name not in ("EQUAL", "NOT_EQUAL")
    alike = call.quant(0) == call.quant(1) == call.result_quant()
    return call.name in _OF_PLAIN_INTEGERS and not (alike and _BINARY[call.name] in ("maximum", "minimum"))


@rule(*_BINARY, integers=_have_sums_of_integers)
def _binary(call: Call) -> Any:
    if call.typed and call.name == "DIV" and is_by_a_number(call):
        return quotient_by_table(call)
    operands, first = call.meeting([0, 1])
    if _is_plain(call):
        integers = [call.plain(x, k) for k, x in enumerate(operands)]
        saturates = _may_overflow(call)
        plain = _saturated_quotient(call, integers) if saturates else call.create(_BINARY[call.name], integers)
        return call.placed(plain if call.name in _COMPARISONS else graph_form(call, plain, call.outputs[0]), first)
    if call.typed and call.name in _COMPARISONS:  # LiteRT compares 256 times the reals, rounded
        rounded = [_scaled(call, x, k, 8, float(call.held_quant(k)["q_scale"][0])) for k, x in enumerate(operands)]
        return call.placed(call.create(_BINARY[call.name], rounded), first)
    q = call.q()
    if q and call.name == "DIV" and call.tensor(0).dtype == "u8":
        return call.placed(call.activated(_quotient_of_bytes(call, operands, q)), first)
    if q and call.name == "MUL" and call.tensor(0).dtype == "i16":
        return call.placed(call.activated(_wide_product(call, operands, q)), first)
    return call.placed(call.activated(call.create(_BINARY[call.name], operands, **q)), first)


def _may_overflow(call: Call) -> bool:
    """Whether a quotient of integers may be 1 above the greatest: the least by -1."""
    divisor = call.held(1).array
    return call.name == "FLOOR_DIV" and (divisor is None or bool(np.any(divisor == -1)))


def _saturated_quotient(call: Call, integers: list[Any]) -> Any:
    """Cut downwards, and saturated: LiteRT's kernels convert a double that is too large, which C++ leaves undefined."""
    dtype = integers[0].dtype
    whole = call.create("floor_divide", [call.cast(x, "i32") for x in integers])
    return call.cast(nodes.on(call, "minimum", whole, int(np.iinfo(numpy_type(dtype)).max)), dtype)


def _quotient_of_bytes(call: Call, operands: list[Any], q: dict[str, Any]) -> Any:
    """A table of every two bytes."""
    of_a, of_b = call.held_quant(0), call.held_quant(1)
    held = np.arange(-128, 128)
    a, b = np.meshgrid(held - of_a["q_zero"], held - of_b["q_zero"], indexing="ij")
    to_a, to_b, to_y = (np.float32(each["q_scale"][0]) for each in (of_a, of_b, q))
    table = np.clip(quotient(a, b, float(to_a / (to_b * to_y))) + q["q_zero"], -128, 127).astype(np.int8)
    row, column = (nodes.on(call, "add", nodes.steps(call, x, k), 128) for k, x in enumerate(operands))
    place = call.create("add", [nodes.on(call, "mul", row, 256), column])
    found = call.create("gather", [call.constant(table.reshape(-1), "i8"), place], axis=0, from_end=False)
    return call.create("bitcast", [found], to="i8", **quant_only(q))


def _wide_product(call: Call, operands: list[Any], q: dict[str, Any]) -> Any:
    """At the scale at which the factor to the result is what LiteRT has of it in f32, which 16 bits show."""
    a, b, y = (np.float32(each["q_scale"][0]) for each in (call.held_quant(0), call.held_quant(1), q))
    exact = {**q, "q_scale": [float(a) * float(b) / float(a * b / y)]}
    product = call.create("mul", operands, **exact)
    return call.create("bitcast", [product], to=plain_type(call.outputs[0]), **quant_only(q))


def _scaled(call: Call, x: Any, index: int, bits: int, factor: float) -> Any:
    """The integers of an input less their zero point, times 2^bits and a factor, as LiteRT rounds it."""
    wide = nodes.on(call, "mul", nodes.centred(call, x, index), 1 << bits)
    return nodes.scaled(call, wide, *multiplier_of(factor))


def _are_bytes(call: Call) -> bool:
    return are_typed(0, 1)(call) and call.tensor(0).dtype != "i16"


@rule("SQUARED_DIFFERENCE", integers=_are_bytes)
def _squared_difference(call: Call) -> Any:
    operands, first = call.meeting([0, 1])
    if call.typed:
        scales = [float(call.held_quant(k)["q_scale"][0]) for k in (0, 1)]
        common = 2 * max(scales)
        a, b = (
            _scaled(call, x, k, 7, scale / common) for k, (x, scale) in enumerate(zip(operands, scales, strict=True))
        )
        away = call.create("sub", [a, b])
        leave = multiplier_of(common * common / ((1 << 14) * float(call.q()["q_scale"][0])))
        square = nodes.scaled(call, call.create("mul", [away, away]), *leave)
        return call.placed(nodes.result_of(call, square), first)
    away = call.create("sub", operands)
    return call.placed(call.create("mul", [away, away]), first)


@rule("SQUARE")
def _square(call: Call) -> Any:
    x, first = call.in_its_layout(0)
    return call.placed(call.create("mul", [x, x]), first)


@rule("ADD_N")
def _add_n(call: Call) -> Any:
    operands, first = call.meeting(range(len(call.inputs)))
    return call.placed(call.folded("add", operands), first)


@rule("LEAKY_RELU", integers=are_typed(0))
def _leaky_relu(call: Call) -> Any:
    slope = float(call.option("Alpha"))
    if call.typed:  # PReLU by 1 at the scale of the slope, which LiteRT computes in f32
        of_x, of_y = (np.float32(each["q_scale"][0]) for each in (call.held_quant(0), call.q()))
        scale = abs(float(of_x * np.float32(slope) / of_y)) * float(of_y) / float(of_x)
        is_prelu = slope != 0 and math.isfinite(scale) and call.rank(0) > 1
        sign = int(math.copysign(1, slope))
        if has_table(call):
            return by_table(call, "prelu", (sign, scale)) if is_prelu else by_table(call)
        x, first = call.in_its_layout(0)
        if not (is_prelu and _is_exact(call)):
            return call.placed(_sloped(call, x, float(of_x / of_y), float(of_x * np.float32(slope) / of_y)), first)
        one = call.typed_constant(np.array([sign], np.int16), {"q_scale": [scale], "q_zero": 0})
        return call.placed(call.create("prelu", [x, one], **call.q()), first)
    x, first = call.in_its_layout(0)
    return call.placed(call.create("leaky_relu", [x], negative_slope=slope), first)


def _sloped(call: Call, x: Any, up: float, down: float, slopes: Any = None) -> Any:
    """Integers times a factor from zero up, below it times the integers of slopes and another one."""
    away = nodes.centred(call, x, 0)
    above, below = (call.create(op, [away, call.constant(0, "i64")]) for op in ("maximum", "minimum"))
    below = below if slopes is None else call.create("mul", [below, slopes])
    parts = [nodes.scaled(call, part, *multiplier_of(by)) for part, by in ((above, up), (below, down))]
    return nodes.result_of(call, call.create("add", parts))


@rule("ELU", integers=has_table)
def _elu(call: Call) -> Any:
    if call.typed:
        return by_table(call)
    x, first = call.in_its_layout(0)
    return call.placed(call.create("elu", [x]), first)


@rule("GELU", integers=lambda call: has_table(call) or has_wide_table(call))
def _gelu(call: Call) -> Any:
    if call.typed:
        return by_wide_table(call) if has_wide_table(call) else by_table(call)
    x, first = call.in_its_layout(0)
    return call.placed(call.create("gelu", [x], approximate="tanh" if call.option("Approximate") else "none"), first)


def _has_slopes_of_channels(call: Call) -> bool:
    slope = call.known(1)
    if call.rank(0) != 4 or slope is None:
        return False
    return slope.size in (1, call.shape(0)[-1]) and slope.shape[-1:] == (slope.size,)


def _is_integer_prelu(call: Call) -> bool:
    return are_typed(0, 1)(call) and call.tensor(1).dtype != "i16"  # LiteRT has slopes of 8 bits alone


def _prelu_quants(call: Call) -> list[dict[str, Any]]:
    return [call.held_quant(0), call.held_quant(1), call.q()]


def _is_exact_prelu(call: Call) -> bool:
    """Whether the operator, whose factors are not rounded to f32 as LiteRT's are, gives LiteRT's integers for each."""
    if not _has_slopes_of_channels(call) or call.tensor(0).dtype == "i16":
        return False
    slopes = call.known(1)
    assert slopes is not None
    of_x, of_slopes, of_y = _prelu_quants(call)
    x, a, y = (float(each["q_scale"][0]) for each in (of_x, of_slopes, of_y))
    theirs = float(np.float32(x) / np.float32(y)), float(np.float32(x) * np.float32(a) / np.float32(y))
    every = np.arange(-128, 128) - of_x["q_zero"]
    products = np.minimum(every, 0) * (signed(slopes).astype(np.int64).reshape(-1, 1) - of_slopes["q_zero"])
    pairs = ((np.maximum(every, 0), x / y, theirs[0]), (products, x * a / y, theirs[1]))
    return all(np.array_equal(scaled(values, own), scaled(values, other)) for values, own, other in pairs)


@rule("PRELU", integers=_is_integer_prelu)
def _prelu(call: Call) -> Any:
    """Slopes of the channels where there is one for each, else of any shape that broadcasts."""
    if call.typed and not _is_exact_prelu(call):
        of_x, of_slopes, of_y = (np.float32(each["q_scale"][0]) for each in _prelu_quants(call))
        (x, slopes), first = call.meeting([0, 1])
        factors = float(of_x / of_y), float(of_x * of_slopes / of_y)
        return call.placed(_sloped(call, x, *factors, nodes.centred(call, slopes, 1)), first)
    if _has_slopes_of_channels(call):
        slopes = call.flat_constant(1)
        return call.placed(call.create("prelu", [call.first(0), slopes], **call.q()), True)
    (x, slopes), first = call.meeting([0, 1])
    negative = call.create("lt", [x, call.like(0, x)])
    return call.placed(call.create("where", [negative, call.create("mul", [slopes, x]), x]), first)


@rule("SELECT", "SELECT_V2")
def _select(call: Call) -> Any:
    if call.name == "SELECT" and call.rank(0) == 1 and call.rank(1) > 1:  # a truth for each entry of the first axis
        condition = call.reshape(call[0], [call.shape(0)[0], *[1] * (call.rank(1) - 1)])
        return call.create("where", [condition, call[1], call[2]])
    operands, first = call.meeting([0, 1, 2])
    return call.placed(call.create("where", operands), first)


@rule("CAST", integers=always)
def _cast(call: Call) -> Any:
    x, first = call.in_its_layout(0)
    to = call.outputs[0].dtype
    x = call.plain(x, 0)
    if x.dtype.startswith("f") and to in ("i32", "i64", "i16", "i8", "u8"):
        x = call.create("trunc", [x])
    return call.placed(call.cast(x, to), first)


@rule("ZEROS_LIKE")
def _zeros_like(call: Call) -> Any:
    return call.broadcast_to(call.like(0, call[0]), call.shape(0))


@rule("BITCAST", integers=always)
def _bitcast(call: Call) -> Any:
    return call.create("bitcast", [call.plain(call[0], 0)], to=call.outputs[0].dtype)
