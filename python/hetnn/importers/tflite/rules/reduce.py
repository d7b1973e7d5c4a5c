"""TFLite's sums and extremes along axes, and what is made of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel
from hetnn.importers.tflite.fixed_point import multiplier_of
from hetnn.importers.tflite.held import TO_LAST
from hetnn.importers.tflite.integers import plain_type, quant_only, typed_attributes
from hetnn.importers.tflite.rules import integer_nodes as nodes
from hetnn.importers.tflite.rules.call import Call, are_typed, rule, static
from hetnn.importers.tflite.rules.integer_nodes import on
from hetnn.importers.tflite.rules.movement import axis_in

_REDUCTIONS = {
    "MEAN": "mean",
    "REDUCE_ALL": "all",
    "REDUCE_ANY": "any",
    "REDUCE_MAX": "reduce_max",
    "REDUCE_MIN": "reduce_min",
    "REDUCE_PROD": "prod",
    "SUM": "sum",
}


_MOST_FACTORS = 4096  # that are multiplied one after another
_MOST_PIXELS = 4096  # kernels of 64 x 64 are what engines take


def _takes_integers(call: Call) -> bool:
    known = call.known(1) is not None and are_typed(0)(call)
    same = call.quant(0) == call.result_quant()
    if known and call.name == "REDUCE_PROD":
        axes = set(call.axes(1, call.rank(0)))
        sizes = [size for size in call.shape(0) if isinstance(size, int)]
        is_fixed = len(sizes) == call.rank(0)
        return is_fixed and 0 < math.prod(sizes[axis] for axis in axes) <= _MOST_FACTORS
    return known and (call.name in ("MEAN", "SUM") or (call.name in ("REDUCE_MAX", "REDUCE_MIN") and same))


@rule(*_REDUCTIONS, integers=_takes_integers)
def _reduction(call: Call) -> Any:
    if call.typed:
        return _of_integers(call)
    return reduced(call, _REDUCTIONS[call.name], *call.in_its_layout(0))


def _of_integers(call: Call) -> Any:
    """Extremes of the integers; sums and means of them by one factor, each as LiteRT rounds it; products."""
    if call.name == "REDUCE_PROD":
        return _product_of_integers(call)
    x, first = call.in_its_layout(0)
    axes = sorted(set(call.axes(1, call.rank(0))))
    count = math.prod(static([call.shape(0)[axis] for axis in axes], "a mean of integers"))
    of_x, of_y = call.held_quant(0), call.q()
    is_of_pixels = (
        x.dtype == plain_type(call.outputs[0]) == "i8"
        and axes == [1, 2]
        and call.rank(0) == 4
        and 0 < count <= _MOST_PIXELS
    )
    if call.name == "REDUCE_MAX" and is_of_pixels:
        image = call.first(0)
        size = static(image.shape[2:], "pixels")
        return _as_told(call, call.create("max_pool2d", [image], kernel=size, stride=size, **of_y))
    if call.name == "REDUCE_MIN" and is_of_pixels:
        least = call.create("reduce_min", [call.first(0)], axes=[2, 3], keepdim=True, **quant_only(of_y))
        return _as_told(call, least)
    if call.name in ("REDUCE_MAX", "REDUCE_MIN"):
        plain = nodes.steps(call, x, 0, plain_type(call.tensor(0)))
        found = reduced(call, _REDUCTIONS[call.name], plain, first)
        return call.mapped(found, lambda y: call.create("bitcast", [y], to=y.dtype, **quant_only(of_y)))
    if call.name == "SUM":
        # LiteRT rounds sums of the file's own integers, which bytes without a sign are not held as.
        turn = 128 if call.tensor(0).dtype == "u8" else 0
        sums = reduced(call, "sum", nodes.steps(call, x, 0, "i32"), first)
        factor = np.float32(of_x["q_scale"][0]) / np.float32(of_y["q_scale"][0])
        start = np.float32(-of_x["q_zero"] - turn) * factor * np.float32(count)

        def result(y: Any) -> Any:
            own = on(call, "add", y, turn * count) if turn else y
            return _rounded(call, on(call, "mul", call.cast(own, "f32"), float(factor)), start)

        return call.mapped(sums, result)
    if not count:
        raise InvalidModel("a mean of nothing")
    if is_of_pixels:
        return _as_told(call, _of_pixels(call, call.first(0), count))
    multiplier, shift = multiplier_of(of_x["q_scale"][0] / of_y["q_scale"][0])
    bits = min(count.bit_length() - 1, 32, 31 + shift)
    multiplier, shift = (multiplier << bits) // count, shift - bits
    sums = reduced(call, "sum", nodes.centred(call, x, 0), first)
    return call.mapped(sums, lambda y: nodes.result_of(call, nodes.scaled(call, y, multiplier, shift)))


def _product_of_integers(call: Call) -> Any:
    """The factors one after another, each product scaled so that all together are at the result's scale."""
    rank, shape = call.rank(0), static(call.shape(0), "a product of integers")
    axes = sorted(set(call.axes(1, rank)))
    kept = [axis for axis in range(rank) if axis not in axes]
    count = math.prod(shape[axis] for axis in axes)
    factors = call.permuted(nodes.centred(call, call[0], 0), [*kept, *axes])
    factors = call.reshape(factors, [*(shape[axis] for axis in kept), count])
    of_x, of_y = call.held_quant(0)["q_scale"][0], call.q()["q_scale"][0]
    multiplier, shift = multiplier_of(of_x * of_y ** (-1 / count))
    product = None
    for k in range(count):
        factor = call.create("slice", [factors], axis=len(kept), start=k, end=k + 1)
        raw = factor if product is None else call.create("mul", [product, factor])
        product = factor if product is None else nodes.scaled_once(call, raw, multiplier, shift)
    y = nodes.result_of(call, nodes.scaled_once(call, product, multiplier, shift), wraps=True)
    keeps = bool(call.option("KeepDims"))
    return call.reshape(y, [1 if axis in axes else shape[axis] for axis in range(rank) if keeps or axis in kept])


def _as_told(call: Call, of_pixels: Any) -> Any:
    """[N,C,1,1] as the operator has it."""
    if call.option("KeepDims"):
        return call.placed(of_pixels, True)
    return call.create("reshape", [of_pixels], shape=of_pixels.shape[:2])


def _of_pixels(call: Call, x: Any, count: int) -> Any:
    """Means over all pixels: every channel is convolved with ones, and its sum divided with the factor."""
    ones = np.ones((static(x.shape[1:2], "channels")[0], 1, *static(x.shape[2:], "pixels")), np.int8)
    weight = call.typed_constant(ones, {"q_scale": [1.0], "q_zero": 0})
    return call.create("conv2d", [x, weight], groups=len(ones), q_divisor=count, **call.q())


def _rounded(call: Call, value: Any, start: Any) -> Any:
    """value + start in f32 as integers of the result, halves away from zero."""
    q = call.q()
    whole = {"q_scale": [1.0], "q_zero": q["q_zero"], "q_rounding": "double"}
    dtype = plain_type(call.outputs[0])
    steps = call.create("quantize", [on(call, "add", value, float(start))], to=dtype, **whole)
    return call.create("bitcast", [steps], to=dtype, **quant_only(q))


def reduced(call: Call, op: str, x: Any, first: bool) -> Any:
    """An operator over the axes in input 1 of a value in a layout; over no axis the value as it is."""
    rank, keeps = call.rank(0), bool(call.option("KeepDims"))
    axes = sorted(set(call.axes(1, rank)))
    if not axes:
        return call.placed(x, first)
    if first and not keeps and set(range(rank)) - set(axes) - {0, 3}:
        x, first = call.permuted(x, TO_LAST), False
    y = call.create(op, [x], axes=[axis_in(axis, first) for axis in axes], keepdim=keeps)
    # Of an image's batches and channels both layouts have one order.
    return call.placed(y, first and keeps)


@rule("ARG_MAX", "ARG_MIN")
def _place_of_extreme(call: Call) -> Any:
    axis = call.axis(call.integer(1, "the axis"), call.rank(0))
    y = call.create({"ARG_MAX": "argmax", "ARG_MIN": "argmin"}[call.name], [call[0]], axis=axis)
    return call.cast(y, call.outputs[0].dtype)


def _is_of_unit_steps(call: Call) -> bool:
    """Whether the result is in steps of 1 / 128 around 0, as LiteRT demands."""
    if not are_typed(0)(call) or call.tensor(0).dtype not in ("i8", "u8"):
        return False
    to = typed_attributes(call.outputs[0].quant, call.outputs[0].dtype)
    return call.outputs[0].dtype == call.tensor(0).dtype and to["q_scale"] == [2**-7] and to["q_zero"] == 0


@rule("L2_NORMALIZATION", integers=_is_of_unit_steps)
def _l2_normalization(call: Call) -> Any:
    """Divided by the root of the sum of squares along the last axis, which is at least 1e-6."""
    x, first = call.in_its_layout(0)
    axis = axis_in(call.rank(0) - 1, first)
    if call.typed:
        return call.placed(_unit_of_integers(call, nodes.centred(call, x, 0), axis), first)
    squares = call.create("mul", [x, x])
    total = call.create("sum", [squares], axes=[axis], keepdim=True)
    length = call.create("maximum", [call.create("sqrt", [total]), call.like(1e-6, x)])
    return call.placed(call.activated(call.create("div", [x, length])), first)


def _unit_of_integers(call: Call, x: Any, axis: int) -> Any:
    """x by the root of its squares' sum, a multiplier and a shift: rounded twice; of i8 once, where room is left."""
    total = call.create("sum", [call.create("mul", [x, x])], axes=[axis], keepdim=True)
    count = nodes.quarters(call, total, axis)
    bits = [max(k - 3, 0) for k in range(16)]
    before = [7 if call.tensor(0).dtype == "u8" else max(7 - k, 0) for k in bits]
    raised = on(call, "mul", x, nodes.listed(call, [1 << k for k in before], count))
    product = nodes.high_product(call, raised, nodes.inverse_root(call, total, count))
    after = [k + b - 7 for k, b in zip(bits, before, strict=True)]
    return nodes.result_of(call, nodes.shifted_by(call, product, after, count))


@rule("LOCAL_RESPONSE_NORMALIZATION")
def _local_response(call: Call) -> Any:
    """x (bias + alpha sum of the squares of so many channels on both sides) ^ -beta"""
    x, radius = call.first(0), int(call.option("Radius"))
    bias, alpha, beta = (float(call.option(name)) for name in ("Bias", "Alpha", "Beta"))
    if radius < 0:
        raise InvalidModel(f"a radius of {radius}")
    n, c, h, w = x.shape
    squares = call.reshape(call.create("mul", [x, x]), [n, 1, c, h * w])
    width = 2 * min(radius, c if isinstance(c, int) else radius) + 1
    told = {"kernel": [width, 1], "stride": [1, 1], "padding": [width // 2, 0], "divisor_override": 1}
    sums = call.reshape(call.create("avg_pool2d", [squares], **told), [n, c, h, w])
    scaled = call.create("add", [call.create("mul", [sums, call.like(alpha, x)]), call.like(bias, x)])
    return call.placed(call.create("mul", [x, call.create("pow", [scaled, call.like(-beta, x)])]), True)


@rule("CUMSUM")
def _cumsum(call: Call) -> Any:
    axis = call.axis(call.integer(1, "the axis"), call.rank(0))
    told = {"exclusive": bool(call.option("Exclusive")), "reverse": bool(call.option("Reverse"))}
    return call.create("cumsum", [call[0]], axis=axis, **told)


@rule("TOPK_V2")
def _topk(call: Call) -> Any:
    count = call.integer(1, "how many")
    if not call.rank(0):
        raise InvalidModel("the greatest of a tensor of rank 0")
    values, places = call.create_all("topk", [call[0]], {"k": count})
    return [values, call.cast(places, call.outputs[1].dtype if len(call.outputs) > 1 else "i32")]
