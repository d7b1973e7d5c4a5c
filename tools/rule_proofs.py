"""Operators' meanings over the reals, for an SMT solver: numbers are exact, inputs are symbols."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import z3

Value = Any  # an array of fractions, truth values and terms


class NotCovered(Exception):
    """A graph with an operator, a type or a size that has no meaning here."""


def term(x: Any) -> Any:
    """A number as a term of the solver."""
    if isinstance(x, Fraction):
        return z3.RealVal(f"{x.numerator}/{x.denominator}")
    return z3.BoolVal(x) if isinstance(x, bool) else x


def add(a: Any, b: Any) -> Any:
    """The sum of two elements; so too the functions below."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a + b
    if isinstance(a, Fraction) and a == 0:
        return b
    return a if isinstance(b, Fraction) and b == 0 else term(a) + term(b)


def mul(a: Any, b: Any) -> Any:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a * b
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Fraction) and x in (0, 1):
            return x if x == 0 else y
    return term(a) * term(b)


def sub(a: Any, b: Any) -> Any:
    return add(a, mul(Fraction(-1), b))


def div(a: Any, b: Any) -> Any:
    if isinstance(b, Fraction):
        if b == 0:
            raise NotCovered("a division by 0")
        return mul(a, 1 / b)
    return term(a) / term(b)


def at_least(a: Any, b: Any) -> Any:
    """The larger one."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return max(a, b)
    return z3.If(term(a) >= term(b), term(a), term(b))


def at_most(a: Any, b: Any) -> Any:
    return mul(Fraction(-1), at_least(mul(Fraction(-1), a), mul(Fraction(-1), b)))


def compared(by: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compare(a: Any, b: Any) -> Any:
        both = isinstance(a, Fraction) and isinstance(b, Fraction)
        return bool(by(a, b)) if both else by(term(a), term(b))

    return compare


def choose(condition: Any, a: Any, b: Any) -> Any:
    if isinstance(condition, bool):
        return a if condition else b
    return z3.If(condition, term(a), term(b))


def power(x: Any, exponent: Any) -> Any:
    """By a whole number a product."""
    if not isinstance(exponent, Fraction) or exponent.denominator != 1 or not 1 <= exponent <= 4:
        raise NotCovered("a power that is no small whole number")
    out = x
    for _ in range(int(exponent) - 1):
        out = mul(out, x)
    return out


def root(x: Any) -> Any:
    """Of a number the nearest double."""
    if isinstance(x, Fraction):
        return Fraction(math.sqrt(x))
    return z3.Function("sqrt", z3.RealSort(), z3.RealSort())(x)


ZERO, ONE = Fraction(0), Fraction(1)
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
    "neg": lambda x: mul(Fraction(-1), x),
    "abs": lambda x: at_least(x, mul(Fraction(-1), x)),
    "relu": lambda x: at_least(x, ZERO),
    "maximum": at_least,
    "minimum": at_most,
    "where": choose,
    "gt": compared(lambda a, b: a > b),
    "ge": compared(lambda a, b: a >= b),
    "lt": compared(lambda a, b: a < b),
    "le": compared(lambda a, b: a <= b),
    "eq": compared(lambda a, b: a == b),
    "ne": compared(lambda a, b: a != b),
    "logical_and": lambda a, b: z3.And(term(a), term(b)),
    "logical_or": lambda a, b: z3.Or(term(a), term(b)),
    "logical_not": lambda a: z3.Not(term(a)),
    "sign": lambda x: choose(ELEMENTWISE["gt"](x, ZERO), ONE, choose(ELEMENTWISE["lt"](x, ZERO), -ONE, ZERO)),
    "identity": lambda x: x,
    "pow": power,
    "sqrt": root,
    "hardsigmoid": lambda x: at_most(at_least(add(div(x, Fraction(6)), Fraction(1, 2)), ZERO), ONE),
    "hardswish": lambda x: mul(x, ELEMENTWISE["hardsigmoid"](x)),
}


def exact(x: float) -> Fraction:
    """A number of the IR; infinities, which bound nothing, are not covered."""
    if not np.isfinite(x):
        raise NotCovered("an infinity")
    return Fraction(x)


def elementwise(f: Callable[..., Any], *operands: Value) -> Value:
    """The function of each element, broadcast."""
    arrays = np.broadcast_arrays(*operands)
    out = np.empty(arrays[0].shape, object)
    for index in np.ndindex(out.shape):
        out[index] = f(*(array[index] for array in arrays))
    return out


def unknown(name: str, *operands: Value) -> Value:
    """A function of each element of which nothing is known but its name."""

    def apply(*each: Any) -> Any:
        sorts = [z3.BoolSort() if isinstance(x, bool) or z3.is_bool(x) else z3.RealSort() for x in each]
        return z3.Function(name, *sorts, z3.RealSort())(*map(term, each))

    return elementwise(apply, *operands)


def reduced(f: Callable[[Any, Any], Any], x: Value, axes: Sequence[int], keep: bool) -> Value:
    """All elements along axes joined by a function of two; no axes: all."""
    along = sorted(axis % x.ndim for axis in axes) if axes else list(range(x.ndim))
    for axis in reversed(along):
        parts = [np.take(x, k, axis) for k in range(x.shape[axis])]
        x = np.asarray(parts[0], object)
        for part in parts[1:]:
            x = elementwise(f, x, np.asarray(part, object))
    return x.reshape([1 if k in along else n for k, n in enumerate(_kept(x, along))]) if keep else x


def _kept(x: Value, along: list[int]) -> list[int]:
    left = list(x.shape)
    for axis in along:
        left.insert(axis, 1)
    return left


def matmul(a: Value, b: Value) -> Value:
    """Products of matrices, batches broadcast."""
    return reduced(add, elementwise(mul, a[..., :, :, None], b[..., None, :, :]), [-2], False)


def padded(x: Value, before: Sequence[int], behind: Sequence[int], value: Any) -> Value:
    """So many elements of a value ahead of each axis and behind it."""
    out = np.full([a + n + b for a, n, b in zip(before, x.shape, behind, strict=True)], value, object)
    out[tuple(slice(a, a + n) for a, n in zip(before, x.shape, strict=True))] = x
    return out


def windows(x: Value, kernel: Sequence[int], attrs: dict[str, Any], value: Any) -> list[list[Value]]:
    """By place in the window: what lies there for each window."""
    stride, padding = attrs.get("stride") or kernel, attrs.get("padding") or [0, 0]
    top, left, bottom, right = padding if len(padding) == 4 else [*padding, *padding]
    dilation = attrs.get("dilation") or [1, 1]
    x = padded(x, [0, 0, top, left], [0, 0, bottom, right], value)
    rows, cols = ((x.shape[2 + d] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1 for d in range(2))
    return [
        [
            x[
                :,
                :,
                i * dilation[0] : i * dilation[0] + (rows - 1) * stride[0] + 1 : stride[0],
                j * dilation[1] : j * dilation[1] + (cols - 1) * stride[1] + 1 : stride[1],
            ]
            for j in range(kernel[1])
        ]
        for i in range(kernel[0])
    ]


def conv2d(x: Value, weight: Value, bias: Value | None, attrs: dict[str, Any]) -> Value:
    """Of images, with filters [filters, channels of a group, height, width]."""
    if attrs.get("q_divisor", 1) != 1:
        raise NotCovered("a divisor of integers")
    groups, filters = attrs.get("groups", 1), weight.shape[0]
    own, each = weight.shape[1], filters // groups
    seen = windows(x, weight.shape[2:], {"stride": [1, 1], **attrs}, ZERO)
    out = np.full((x.shape[0], filters, *seen[0][0].shape[2:]), ZERO, object)
    for f, c in itertools.product(range(filters), range(own)):
        for i, j in itertools.product(*map(range, weight.shape[2:])):
            part = seen[i][j][:, f // each * own + c]
            out[:, f] = elementwise(add, out[:, f], elementwise(mul, part, np.asarray(weight[f, c, i, j], object)))
    return out if bias is None else elementwise(add, out, bias.reshape(1, -1, 1, 1))


def conv_transpose2d(x: Value, weight: Value, bias: Value | None, attrs: dict[str, Any]) -> Value:
    """Every pixel spreads the filters [channels, filters of a group, height, width]."""
    stride, dilation = (attrs.get(name) or [1, 1] for name in ("stride", "dilation"))
    padding = attrs.get("padding") or [0, 0]
    top, left, bottom, right = padding if len(padding) == 4 else [*padding, *padding]
    more, groups = attrs.get("output_padding") or [0, 0], attrs.get("groups", 1)
    filters = weight.shape[1]
    size = [(x.shape[2 + d] - 1) * stride[d] + dilation[d] * (weight.shape[2 + d] - 1) + 1 + more[d] for d in range(2)]
    out = np.full((x.shape[0], groups * filters, *size), ZERO, object)
    for c, f in itertools.product(range(x.shape[1]), range(filters)):
        place = c // (x.shape[1] // groups) * filters + f
        for i, j in itertools.product(*map(range, weight.shape[2:])):
            rows, cols = (
                slice(k * dilation[d], k * dilation[d] + (x.shape[2 + d] - 1) * stride[d] + 1, stride[d])
                for d, k in enumerate((i, j))
            )
            part = elementwise(mul, x[:, c], np.asarray(weight[c, f, i, j], object))
            out[:, place, rows, cols] = elementwise(add, out[:, place, rows, cols], part)
    out = out[:, :, top : size[0] - bottom, left : size[1] - right]
    return out if bias is None else elementwise(add, out, bias.reshape(1, -1, 1, 1))


def softmax(x: Value, axis: int) -> Value:
    """Of the exponentials, of which nothing is known."""
    powers = unknown("exp", x)
    return elementwise(div, powers, reduced(add, powers, [axis], True))


def scaled(given: list[Value | None], attrs: dict[str, Any]) -> Value:
    """An image scaled, shifted and clipped a channel."""
    x, _, scale, _, shift = (*given, None, None)[:5]
    out = elementwise(mul, x, scale)
    if shift is not None:
        out = elementwise(add, out, shift)
    return elementwise(lambda e: at_least(e, ZERO), out) if attrs.get("relu") else out


def between(given: list[Value | None], attrs: dict[str, Any]) -> Value:
    """What a pointwise convolution and a function behind it make."""
    first = meaning("conv2d", [given[0], given[1], (*given, None)[3]], {"groups": 1})
    function, values = attrs["function"], attrs.get("values") or (-np.inf, np.inf)
    return meaning(function, [first], {"min": values[0], "max": values[1]}) if function else first


def in_bands(given: list[Value | None], attrs: dict[str, Any]) -> Value:
    """A convolution a channel of that."""
    weight, bias = np.asarray(given[2], object), (*given, None, None)[4]
    return meaning("conv2d", [between(given, attrs), weight, bias], {**attrs, "groups": len(weight)})


def layer_norm(x: Value, given: list[Value | None], attrs: dict[str, Any]) -> Value:
    """Over the last axes."""
    axes = list(range(x.ndim - int(attrs.get("axes", 1)), x.ndim))
    away = elementwise(sub, x, mean(x, axes, True))
    spread = elementwise(add, mean(elementwise(mul, away, away), axes, True), np.asarray(exact(attrs["eps"]), object))
    out = elementwise(div, away, elementwise(root, spread))
    for by, operand in zip((mul, add), given[1:], strict=False):
        out = out if operand is None else elementwise(by, out, operand)
    return out


def batch_norm(x: Value, given: list[Value | None], attrs: dict[str, Any]) -> Value:
    """By constants for each channel."""

    def of_channels(one: Value | None) -> Any:
        return None if one is None else one.reshape(1, -1, *[1] * (x.ndim - 2))

    weight, bias, average, variance = map(of_channels, given[1:5])
    spread = elementwise(root, elementwise(add, variance, np.asarray(exact(attrs["eps"]), object)))
    out = elementwise(div, elementwise(sub, x, average), spread)
    out = out if weight is None else elementwise(mul, out, weight)
    return out if bias is None else elementwise(add, out, bias)


def mean(x: Value, axes: Sequence[int], keep: bool) -> Value:
    made = reduced(add, x, axes, keep)
    return elementwise(div, made, np.asarray(Fraction(x.size, made.size), object))


def attention(given: list[Value | None], attrs: dict[str, Any]) -> Value:
    """Of queries, keys and values [N,heads,rows,size], with a mask that is added."""
    q, k, v, *mask = (np.asarray(one, object) for one in given if one is not None)
    scale = attrs.get("scale") or 1 / math.sqrt(q.shape[-1])
    scores = matmul(elementwise(mul, q, np.asarray(exact(scale), object)), np.swapaxes(k, -1, -2))
    if attrs.get("is_causal") or (mask and any(map(z3.is_bool, mask[0].flat))):
        raise NotCovered("a mask of truth values")
    scores = elementwise(add, scores, mask[0]) if mask else scores
    return matmul(softmax(scores, -1), v)


def dequantized_blocks(given: list[Value | None], attrs: dict[str, Any]) -> Value:
    """(codes - zero points) times scales, each for a block along the axis."""
    x, scales, *zeros = (np.asarray(one, object) for one in given if one is not None)
    axis = attrs.get("axis", -1) % x.ndim

    def spread(of: Value) -> Value:
        return np.repeat(of, attrs["block"], axis).take(range(x.shape[axis]), axis)

    away = elementwise(sub, x, spread(zeros[0])) if zeros else x
    return elementwise(mul, away, spread(scales))


def avg_pool2d(x: Value, attrs: dict[str, Any]) -> Value:
    """Means of windows that lie within the image, or count zeros around it."""
    inside = any(attrs.get("padding") or [0]) and not attrs.get("count_include_pad", True)
    if attrs.get("ceil_mode") or attrs.get("divisor_override") or inside:
        raise NotCovered("windows that reach beyond the image")
    seen = [part for row in windows(x, attrs["kernel"], attrs, ZERO) for part in row]
    total = seen[0]
    for part in seen[1:]:
        total = elementwise(add, total, part)
    return elementwise(div, total, np.asarray(Fraction(len(seen)), object))


def averaged(x: Value, size: Sequence[int]) -> Value:
    """Means of equal parts of images."""
    rows, cols = (n // parts for n, parts in zip(x.shape[2:], size, strict=True))
    if [rows * size[0], cols * size[1]] != list(x.shape[2:]):
        raise NotCovered("means of parts that overlap")
    return avg_pool2d(x, {"kernel": [rows, cols]})


def max_pool2d(x: Value, attrs: dict[str, Any]) -> Value:
    """Largest elements of windows; what lies beyond the image is never the largest."""
    if attrs.get("ceil_mode"):
        raise NotCovered("windows that reach beyond the padding")
    seen = [part for row in windows(x, attrs["kernel"], attrs, None) for part in row]
    out = seen[0]
    for part in seen[1:]:
        out = elementwise(lambda a, b: b if a is None else a if b is None else at_least(a, b), out, part)
    return out


def nary(inputs: list[Value], attrs: dict[str, Any]) -> Value:
    """A weighted sum, product or extreme of many values."""
    op, weights = attrs.get("op", "add"), attrs.get("coefficients") or [1.0] * len(inputs)
    parts = [elementwise(mul, x, np.asarray(exact(c), object)) for x, c in zip(inputs, weights, strict=True)]
    join = {"add": add, "mul": mul, "maximum": at_least, "minimum": at_most}[op]
    out = parts[0]
    for part in parts[1:]:
        out = elementwise(join, out, part)
    return out


def meaning(op: str, given: list[Value | None], attrs: dict[str, Any]) -> Value:
    """What an operator computes of arrays. NotCovered for those that are not here."""
    inputs = [x for x in given if x is not None]
    x = inputs[0]
    if op in ELEMENTWISE:
        return elementwise(ELEMENTWISE[op], *inputs)
    if op == "silu":
        return elementwise(mul, x, unknown("sigmoid", x))
    if op == "clamp":
        for bound, by in (("min", at_least), ("max", at_most)):
            if np.isfinite(attrs.get(bound, np.inf)):
                x = elementwise(by, x, np.asarray(exact(attrs[bound]), object))
        return x
    if op in ("leaky_relu", "prelu"):
        own = exact(float(np.float32(attrs.get("negative_slope", 0.01))))
        slope = inputs[1] if op == "prelu" else np.asarray(own, object)
        if op == "prelu" and slope.size > 1:
            slope = slope.reshape([-1 if k == 1 else 1 for k in range(x.ndim)])
        return elementwise(lambda e, s: choose(ELEMENTWISE["ge"](e, ZERO), e, mul(s, e)), x, slope)
    simple: dict[str, Callable[[], Value]] = {
        "reshape": lambda: x.reshape(attrs["shape"]),
        "permute": lambda: np.transpose(x, attrs["perm"]),
        "expand": lambda: np.broadcast_to(x, attrs["shape"]),
        "concat": lambda: np.concatenate(inputs, attrs.get("axis", 0)),
        "matmul": lambda: matmul(inputs[0], inputs[1]),
        "nary": lambda: nary(inputs, attrs),
        "avg_pool2d": lambda: avg_pool2d(x, attrs),
        "max_pool2d": lambda: max_pool2d(x, attrs),
        "adaptive_avg_pool2d": lambda: averaged(x, attrs["output_size"]),
        "conv2d": lambda: conv2d(inputs[0], inputs[1], given[2] if len(given) > 2 else None, attrs),
        "conv_transpose2d": lambda: conv_transpose2d(x, inputs[1], given[2] if len(given) > 2 else None, attrs),
        "scaled_conv2d": lambda: conv2d(scaled(given, attrs), inputs[1], (*given, None)[3], attrs),
        "pointwise_depthwise_conv2d": lambda: in_bands(given, attrs),
        "softmax": lambda: softmax(x, attrs["axis"]),
        "layer_norm": lambda: layer_norm(x, given, attrs),
        "batch_norm": lambda: batch_norm(x, given, attrs),
        "scaled_dot_product_attention": lambda: attention(given, attrs),
        "dequantize_blocks": lambda: dequantized_blocks(given, attrs),
        "gather": lambda: np.take(x, np.asarray(inputs[1], int), attrs.get("axis", 0)),
        "flip": lambda: np.flip(x, attrs["axes"]),
        "bitcast": lambda: x,
    }
    if op in simple:
        return simple[op]()
    if op == "linear":
        made = matmul(x, np.swapaxes(inputs[1], -1, -2))
        return made if len(inputs) < 3 else elementwise(add, made, inputs[2])
    if op == "slice":
        axis, step = attrs.get("axis", 0), attrs.get("step", 1)
        cut = slice(attrs.get("start", 0), min(attrs.get("end", x.shape[axis]), x.shape[axis]), step)
        return x[tuple(cut if k == axis % x.ndim else slice(None) for k in range(x.ndim))]
    if op == "pad" and attrs["mode"] == "constant" and min(attrs["padding"]) >= 0:
        return padded(x, attrs["padding"][: x.ndim], attrs["padding"][x.ndim :], exact(attrs.get("value", 0.0)))
    if op == "mean":
        return mean(x, attrs.get("axes", []), attrs.get("keepdim", False))
    joins = {"sum": add, "reduce_max": at_least, "reduce_min": at_most}
    if op in joins:
        return reduced(joins[op], x, attrs.get("axes", []), attrs.get("keepdim", False))
    raise NotCovered(op)
