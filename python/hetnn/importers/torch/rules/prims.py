"""Torch's primitives, which some of its decompositions end in: operands of one shape and element type."""

from __future__ import annotations

from typing import Any

from hetnn.importers.torch.rules.call import TORCH, Call

_SAME_NAME = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "atan2",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "ceil",
    "cos",
    "cosh",
    "div",
    "eq",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fmod",
    "gcd",
    "ge",
    "gt",
    "le",
    "log",
    "log10",
    "log1p",
    "log2",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "neg",
    "pow",
    "reciprocal",
    "remainder",
    "round",
    "rsqrt",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "sub",
    "add",
    "tan",
    "tanh",
    "trunc",
    "where",
    "shift_left",
]


def _name(call: Call) -> str:
    return call.target.split(".")[1]


@TORCH.rule(*(f"prims.{name}.default" for name in _SAME_NAME))
def _elementwise(call: Call) -> Any:
    return call.create(_name(call), call.tensors())


@TORCH.rule("prims.shift_right_arithmetic.default")
def _shift_right(call: Call) -> Any:
    return call.create("shift_right", call.tensors())


@TORCH.rule("prims.cat.default")
def _cat(call: Call) -> Any:
    return call.create("concat", list(call["tensors"]), axis=call["dim"])


@TORCH.rule("prims.convert_element_type.default")
def _convert(call: Call) -> Any:
    return call.cast(call["a"], call.dtype())


@TORCH.rule("prims.sum.default", "prims.prod.default", "prims.amax.default", "prims.amin.default")
def _reduce(call: Call) -> Any:
    op = {"sum": "sum", "prod": "prod", "amax": "reduce_max", "amin": "reduce_min"}[_name(call)]
    x = call.cast(call["inp"], call.dtype())
    # No axes are none here, not all.
    return call.create(op, [x], axes=list(call["dims"])) if call["dims"] else x


@TORCH.rule("prims.broadcast_in_dim.default")
def _broadcast(call: Call) -> Any:
    x, shape = call["a"], call.shape()
    places = list(call["broadcast_dimensions"])
    spread = [x.shape[places.index(axis)] if axis in places else 1 for axis in range(len(shape))]
    x = call.reshape(x, spread)
    return x if spread == shape else call.create("expand", [x], shape=shape)


@TORCH.rule(
    "prims.collapse_view.default",
    "prims.collapse.default",
    "prims.split_dim.default",
    "prims.squeeze.default",
    "prims.reshape.default",
    "prims.view_of.default",
    "prims.clone.default",
)
def _reshape(call: Call) -> Any:
    return call.reshape(call[call.names[0]], call.shape())


@TORCH.rule("prims.transpose.default")
def _transpose(call: Call) -> Any:
    return call.create("permute", [call["a"]], perm=list(call["permutation"]))


@TORCH.rule("prims.iota.default")
def _iota(call: Call) -> Any:
    start, step = call["start"], call["step"]
    end = start + call["length"] * step
    return call.create("arange", [], start=start, end=end, step=step, dtype=call.dtype())


@TORCH.rule("prims.frexp.default", "aten.frexp.Tensor")
def _frexp(call: Call) -> list[Any]:
    """m and e of x = m 2^e with |m| in [0.5, 1), by the bits of a double; 0, inf and NaN are themselves with e = 0."""
    given = call["self"]
    x = call.cast(given, "f64")
    tiny = call.create("lt", [call.create("abs", [x]), call.constant(2.0**-1022, "f64")])
    scaled = call.create("where", [tiny, call.create("mul", [x, call.constant(2.0**54, "f64")]), x])
    bits = call.create("bitcast", [scaled], to="i64")
    exponents = call.constant(0x7FF << 52, "i64")
    shifted = call.create("shift_right", [call.create("bitwise_and", [bits, exponents]), call.constant(52, "i64")])
    exponent = call.create("sub", [shifted, call.constant(1022, "i64")])
    lower = call.create("sub", [exponent, call.constant(54, "i64")])
    exponent = call.create("where", [tiny, lower, exponent])
    rest = call.create("bitwise_and", [bits, call.create("bitwise_not", [exponents])])
    mantissa = call.create("bitcast", [call.create("bitwise_or", [rest, call.constant(1022 << 52, "i64")])], to="f64")
    plain = call.create("logical_or", [call.create("eq", [x, call.constant(0, "f64")]), _is_no_number(call, x)])
    mantissa = call.create("where", [plain, x, mantissa])
    exponent = call.create("where", [plain, call.constant(0, "i64"), exponent])
    return [call.cast(mantissa, given.dtype), call.cast(exponent, "i32")]


def _is_no_number(call: Call, x: Any) -> Any:
    """Whether x is infinite or NaN."""
    difference = call.create("sub", [x, x])
    return call.create("ne", [difference, difference])
