"""Torch overloads of arithmetic, logic and reductions."""

from __future__ import annotations

import math
from typing import Any

import torch

from hetnn.element_types import is_float
from hetnn.errors import Unsupported
from hetnn.importers.lowering import sizes
from hetnn.importers.torch.rules.call import TORCH, Call, rule


@rule("add.Tensor", "sub.Tensor", "add.Scalar", "sub.Scalar")
def _add(call: Call) -> Any:
    op = "add" if ".add." in call.target or call.target.startswith("aten.add") else "sub"
    a, b = call["self"], call["other"]
    if call["alpha"] != 1:
        b = b * call["alpha"] if isinstance(b, (int, float)) else call.elementwise("mul", [b, call["alpha"]])
    return call.elementwise(op, [a, b])


@rule("rsub.Scalar", "rsub.Tensor")
def _rsub(call: Call) -> Any:
    taken = call["self"] if call["alpha"] == 1 else call.elementwise("mul", [call["self"], call["alpha"]])
    return call.elementwise("sub", [call["other"], taken])


@rule("square.default")
def _square(call: Call) -> Any:
    x = call.cast(call["self"], call.dtype())
    return call.create("mul", [x, x])


@rule("mean.default", "mean.dim", "sum.default", "sum.dim_IntList")
def _mean_or_sum(call: Call) -> Any:
    op = "mean" if "mean" in call.target else "sum"
    axes = call.args.get("dim") or []
    return call.create(
        op, [call.cast(call["self"], call.dtype())], axes=axes, keepdim=bool(call.args.get("keepdim", False))
    )


@rule("any.default", "any.dim", "any.dims", "_is_any_true.default")
@rule("all.default", "all.dim", "all.dims", "_is_all_true.default")
def _any_or_all(call: Call) -> Any:
    op = "any" if "any" in call.target else "all"
    axes = call.args.get("dim")
    axes = [] if axes is None else [axes] if isinstance(axes, int) else axes
    booleans = call.cast(call["self"], "bool")
    found = call.create(op, [booleans], axes=axes, keepdim=bool(call.args.get("keepdim", False)))
    return call.cast(found, call.dtype())  # of u8 torch makes u8


@rule("isnan.default")
def _isnan(call: Call) -> Any:
    x = call["self"]
    return call.create("ne", [x, x]) if is_float(x.dtype) else call.filled(False)


@rule("isinf.default")
def _isinf(call: Call) -> Any:
    x = call["self"]
    if not is_float(x.dtype):
        return call.filled(False)
    return call.create("eq", [call.create("abs", [x]), call.constant(math.inf, x.dtype)])


def _signbit_of(call: Call, x: Any) -> Any:
    zero = call.constant(0, x.dtype)
    negative = call.create("lt", [x, zero])
    if not is_float(x.dtype):
        return negative
    return call.create("logical_or", [negative, call.create("lt", [call.create("reciprocal", [x]), zero])])


@rule("signbit.default")
def _signbit(call: Call) -> Any:
    return call.filled(False) if call["self"].dtype == "bool" else _signbit_of(call, call["self"])


@rule("copysign.Tensor", "copysign.Scalar")
def _copysign(call: Call) -> Any:
    x, sign = call.promote([call["self"], call["other"]])
    size = call.create("abs", [x])
    return call.create("where", [_signbit_of(call, sign), call.create("neg", [size]), size])


@rule("pow.Tensor_Scalar")
def _pow(call: Call) -> Any:
    """Square roots as torch takes them: that of -0 is -0, and of -inf there is none."""
    x, exponent = call.promote([call["self"], call["exponent"]])
    root = {0.5: "sqrt", -0.5: "rsqrt"}.get(call["exponent"])
    return call.create(root, [x]) if root and is_float(x.dtype) else call.create("pow", [x, exponent])


@rule("clamp.Tensor", "clamp_min.Tensor", "clamp_max.Tensor")
def _clamp(call: Call) -> Any:
    x, low, high = call.promote([call["self"], call.args.get("min"), call.args.get("max")])
    x = x if low is None else call.create("maximum", [x, low])
    return x if high is None else call.create("minimum", [x, high])


@rule("fmax.default", "fmin.default")
def _extreme_number(call: Call) -> Any:
    a, b = call.promote([call["self"], call["other"]])
    out = call.create("maximum" if "fmax" in call.target else "minimum", [a, b])
    if not is_float(a.dtype):
        return out
    shape = call.shape()
    a, b = (x if list(x.shape) == shape else call.create("expand", [x], shape=shape) for x in (a, b))
    out = call.create("where", [call.create("ne", [b, b]), a, out])
    return call.create("where", [call.create("ne", [a, a]), b, out])


@TORCH.rule("aten.hypot.default", "prims.hypot.default")
def _hypot(call: Call) -> Any:
    """By the ratio of the two, so that no square overflows."""
    a, b = (call.create("abs", [x]) for x in call.promote(list(call.args.values())))
    high, low = call.create("maximum", [a, b]), call.create("minimum", [a, b])
    ratio = call.create("div", [low, high])
    square = call.create("add", [call.create("mul", [ratio, ratio]), call.constant(1, high.dtype)])
    out = call.create("mul", [high, call.create("sqrt", [square])])
    # 0 and inf have no ratio, and beside inf NaN counts for nothing.
    inf = call.constant(math.inf, high.dtype)
    far = call.create("logical_or", [call.create("eq", [x, inf]) for x in (a, b)])
    out = call.create("where", [call.create("eq", [high, call.constant(0, high.dtype)]), high, out])
    return call.create("where", [far, inf, out])


@rule("div.Tensor_mode", "div.Scalar_mode")
def _div(call: Call) -> Any:
    a, b = call.promote([call["self"], call["other"]])
    if call["rounding_mode"] == "floor":
        return call.create("floor_divide", [a, b])
    quotient = call.create("div", [a, b])
    return call.create("trunc", [quotient]) if call["rounding_mode"] == "trunc" and is_float(a.dtype) else quotient


@rule("round.decimals")
def _round(call: Call) -> Any:
    x, decimals = call["self"], call["decimals"]
    if not is_float(x.dtype):
        raise Unsupported("rounding integers to decimals")
    scale = call.constant(10.0 ** abs(decimals), x.dtype)
    ways = ("div", "mul") if decimals < 0 else ("mul", "div")
    return call.create(ways[1], [call.create("round", [call.create(ways[0], [x, scale])]), scale])


@rule("nan_to_num.default")
def _nan_to_num(call: Call) -> Any:
    x, nan = call["self"], call["nan"]
    if not is_float(x.dtype):
        return x
    most = torch.finfo(call.torch_dtype()).max
    ends = {
        name: preset if call[name] is None else float(call[name])
        for name, preset in (("neginf", -most), ("posinf", most))
    }
    y = call.create("nan_to_num", [x], **ends)
    return call.create("where", [call.create("eq", [x, x]), y, call.constant(nan, x.dtype)]) if nan else y


@rule("polygamma.default")
def _polygamma(call: Call) -> Any:
    x = call.cast(call["self"], call.dtype())
    if call["n"] == 0:
        return call.create("digamma", [x])
    return call.create("polygamma", [call.constant(call["n"], x.dtype), x])


@rule("prod.default", "prod.dim_int")
def _prod(call: Call) -> Any:
    axes = [call["dim"]] if "dim" in call.args else []
    keepdim = bool(call.args.get("keepdim", False))
    return call.create("prod", [call.cast(call["self"], call.dtype())], axes=axes, keepdim=keepdim)


def _moments(call: Call) -> tuple[Any, Any]:
    """Variance and mean, both with the axes reduced as the call says."""
    x, dtype = call["self"], call.dtype()
    rank = len(x.shape)
    axes = call.args.get("dim")
    axes = [axes] if isinstance(axes, int) else list(axes or range(rank))
    count = sizes.product(x.shape[axis] for axis in axes) if rank else 1
    correction = call.args.get("correction", 1)
    if "unbiased" in call.args:
        correction = int(call["unbiased"])
    mean = call.create("mean", [x], axes=axes, keepdim=True)
    away = call.create("sub", [x, mean])
    keepdim = bool(call.args.get("keepdim", False))
    square = call.create("sum", [call.create("mul", [away, away])], axes=axes, keepdim=keepdim)
    divisor = call.cast(call.reshape(call.whole(count), []), dtype)
    spare = call.create("sub", [divisor, call.constant(1 if correction is None else correction, dtype)])
    spare = call.create("relu", [spare])
    return call.create("div", [square, spare]), call.reshape(mean, square.shape)


@rule("var.correction", "var.dim", "var.default")
def _var(call: Call) -> Any:
    return _moments(call)[0]


@rule("var_mean.correction", "var_mean.dim", "var_mean.default")
def _var_mean(call: Call) -> list[Any]:
    return list(_moments(call))


@rule("nextafter.default")
def _nextafter(call: Call) -> Any:
    """One more or one less of the integer that has the same bits."""
    a, b = call.promote([call["self"], call["other"]])
    if a.dtype not in ("f32", "f64"):
        raise Unsupported(f"nextafter of {a.dtype}")
    dtype = "i32" if a.dtype == "f32" else "i64"
    shape = call.shape()
    a, b = (x if list(x.shape) == shape else call.create("expand", [x], shape=shape) for x in (a, b))
    bits, zero = call.create("bitcast", [a], to=dtype), call.constant(0, a.dtype)
    rises = call.create("eq", [call.create("gt", [b, a]), call.create("gt", [a, zero])])
    one, minus = call.constant(1, dtype), call.constant(-1, dtype)
    moved = call.create("bitcast", [call.create("add", [bits, call.create("where", [rises, one, minus])])], to=a.dtype)
    least = call.create("bitcast", [one], to=a.dtype)
    from_zero = call.create("where", [call.create("gt", [b, zero]), least, call.create("neg", [least])])
    out = call.create("where", [call.create("eq", [a, zero]), from_zero, moved])
    out = call.create("where", [call.create("eq", [a, b]), b, out])
    total = call.create("add", [a, b])
    no_number = call.create("logical_or", [call.create("ne", [a, a]), call.create("ne", [b, b])])
    return call.create("where", [no_number, total, out])
