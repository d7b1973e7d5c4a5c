"""Operators of integers that stand for reals: what the standard's operators make of the reals, as integers again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hetnn.importers.lowering.sizes import product
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.pieces import channels_first, channels_last
from hetnn.importers.onnx.rules.declare import INT, SOME_INT, contrib


@contrib("QuantizeLinear", "x y_scale y_zero_point?", axis=INT)
@contrib("DequantizeLinear", "x x_scale x_zero_point?", axis=INT)
def _as_the_standard(call: Call) -> Any:
    return call.standard(call.node.op_type, call.inputs, axis=call.attr("axis"))


def reals(call: Call, x: int, scale: int, zero: int) -> Any:
    """The reals for which an input's integers stand; which inputs are the step and what stands for 0."""
    return call.standard("DequantizeLinear", [call[x], call[scale], call.optional(zero)])


def integers(call: Call, y: Any, scale: int, zero: int, dtype: str) -> Any:
    """Reals as integers of a type, which is that of what stands for 0 where it is given."""
    nothing = call.optional(zero)
    return call.standard("QuantizeLinear", [y, call[scale], call.constant(0, dtype) if nothing is None else nothing])


def _of_one(call: Call, compute: Callable[[Any], Any], scale: int = 3, zero: int = 4) -> Any:
    """Of the inputs X, X_scale, X_zero_point, Y_scale, Y_zero_point."""
    return integers(call, compute(reals(call, 0, 1, 2)), scale, zero, call[0].dtype)


def _sum_in_steps(call: Call) -> Any:
    """A + B in the steps of the result, in the order in which ONNX Runtime adds: what lies halfway is rounded alike."""
    a, b = (call.cast(call[k], "f32") for k in (0, 3))
    rates = [call.create("div", [call[k], call[6]]) for k in (1, 4)]
    zeros = [
        call.create("mul", [call.cast(call[k], "f32"), rate])
        for k, rate in ((2, rates[0]), (5, rates[1]))
        if call.given(k)
    ]
    fixed = call.cast(call[7], "f32") if call.given(7) else call.constant(0, "f32")
    for value in zeros:
        fixed = call.create("sub", [fixed, value])
    y = call.create("add", [call.create("mul", [b, rates[1]]), fixed])
    return call.create("add", [call.create("mul", [a, rates[0]]), y])


_TWO = "A A_scale A_zero_point? B B_scale B_zero_point? C_scale C_zero_point?"


@contrib("QLinearAdd", _TWO)
def _add(call: Call) -> Any:
    one = call.constant(1, "f32")
    return call.standard("QuantizeLinear", [_sum_in_steps(call), one, call.constant(0, call[0].dtype)])


@contrib("QLinearMul", _TWO)
def _mul(call: Call) -> Any:
    y = call.standard("Mul", [reals(call, 0, 1, 2), reals(call, 3, 4, 5)])
    return integers(call, y, 6, 7, call[0].dtype)


_ONE = "X X_scale X_zero_point? Y_scale Y_zero_point?"


@contrib("QLinearSigmoid", _ONE)
def _sigmoid(call: Call) -> Any:
    return _of_one(call, lambda x: call.standard("Sigmoid", [x]))


@contrib("QLinearLeakyRelu", _ONE, alpha=0.01)
def _leaky_relu(call: Call) -> Any:
    return _of_one(call, lambda x: call.standard("LeakyRelu", [x], alpha=call.attr("alpha")))


@contrib("QLinearSoftmax", "X X_scale x_zero_point? y_scale y_zero_point", axis=-1, opset=SOME_INT)
def _softmax(call: Call) -> Any:
    """Before operator set 13 over all axes from `axis` on."""
    shape = list(call[0].shape)
    axis = call.axis(int(call.attr("axis")), len(shape))

    def compute(x: Any) -> Any:
        if int(call.attr("opset")) >= 13:
            return call.standard("Softmax", [x], axis=axis)
        flat = call.reshape(x, [*shape[:axis], product(shape[axis:])])
        return call.reshape(call.standard("Softmax", [flat], axis=-1), shape)

    return _of_one(call, compute)


def _laid_out(call: Call, x: Any, compute: Callable[[Any], Any]) -> Any:
    """What becomes of images whose channels are last where the node says so."""
    if not call.attr("channels_last"):
        return compute(x)
    return channels_last(call, compute(channels_first(call, x)))


@contrib("QLinearGlobalAveragePool", "X x_scale x_zero_point y_scale y_zero_point", channels_last=0)
def _global_average(call: Call) -> Any:
    return _of_one(call, lambda x: _laid_out(call, x, lambda image: call.standard("GlobalAveragePool", [image])))


_WINDOW = ("auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides")


def _window(call: Call) -> dict[str, Any]:
    return {name: call.attr(name) for name in _WINDOW if call.attr(name) is not None}


@contrib(
    "QLinearAveragePool",
    "X x_scale x_zero_point? y_scale y_zero_point?",
    like="AveragePool",
    channels_last=0,
)
def _average(call: Call) -> Any:
    def compute(x: Any) -> Any:
        return _laid_out(call, x, lambda image: call.standard("AveragePool", [image], **_window(call)))

    return _of_one(call, compute)


@contrib("NhwcMaxPool", "x", like="MaxPool")
def _max_pool(call: Call) -> Any:
    return channels_last(call, call.standard("MaxPool", [channels_first(call, call[0])], **_window(call)))


@contrib(
    "QLinearConv",
    "x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B?",
    like="Conv",
    channels_last=0,
)
def _conv(call: Call) -> Any:
    own = {name: call.attr(name) for name in ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")}
    return _laid_out(call, call[0], lambda x: call.standard("QLinearConv", [x, *call.inputs[1:]], **own))


@contrib("QLinearConcat", "Y_scale Y_zero_point inputs*", axis=SOME_INT)
def _concat(call: Call) -> Any:
    """Of values, each with its step and what stands for 0."""
    values = [reals(call, k, k + 1, k + 2) for k in range(2, len(call.inputs), 3)]
    return integers(call, call.standard("Concat", values, axis=call.attr("axis")), 0, 1, call[2].dtype)


@contrib("QLinearWhere", "condition X x_scale x_zero_point Y y_scale y_zero_point z_scale z_zero_point")
def _where(call: Call) -> Any:
    y = call.standard("Where", [call[0], reals(call, 1, 2, 3), reals(call, 4, 5, 6)])
    return integers(call, y, 7, 8, call[1].dtype)


def _real_product(call: Call, sums: Any, scales: list[Any], bias: Any = None) -> Any:
    """Sums of products of integers as reals."""
    scale = call.create("mul", [call.cast(value, "f32") for value in scales])
    y = call.create("mul", [call.cast(sums, "f32"), scale])
    return y if bias is None else call.create("add", [y, bias])


@contrib("MatMulInteger16", "A B")
def _product_of_16(call: Call) -> Any:
    return call.standard("MatMulInteger", [call[0], call[1]])


@contrib("MatMulIntegerToFloat", "A B a_scale b_scale a_zero_point? b_zero_point? bias?")
def _real_matmul(call: Call) -> Any:
    return real_matmul(call, call[0], call[1], call[2], call[3], *(call.optional(k) for k in (4, 5, 6)))


def real_matmul(call: Call, a: Any, b: Any, a_scale: Any, b_scale: Any, a_zero: Any, b_zero: Any, bias: Any) -> Any:
    """A B + bias of integers, as reals."""
    return _real_product(call, call.standard("MatMulInteger", [a, b, a_zero, b_zero]), [a_scale, b_scale], bias)


@contrib("DynamicQuantizeMatMul", "A B b_scale b_zero_point? bias?")
def _dynamic_matmul(call: Call) -> Any:
    return dynamic_product(call, call[0], call[1], call[2], call.optional(3), call.optional(4))


def dynamic_product(call: Call, x: Any, weight: Any, scale: Any, zero: Any, bias: Any) -> Any:
    """x weight + bias, the first as integers whose step its own values say."""
    x, x_scale, x_zero = call.standard_all("DynamicQuantizeLinear", [x], {}, 3)
    return real_matmul(call, x, weight, x_scale, scale, x_zero, zero, bias)


@contrib(
    "QGemm",
    "A a_scale a_zero_point B b_scale b_zero_point C? y_scale? y_zero_point?",
    alpha=1.0,
    transA=0,
    transB=0,
)
def _gemm(call: Call) -> Any:
    """alpha A B + C, where C counts in the steps of alpha A B; reals where the result has no step."""
    call.shape(0, 2)
    call.shape(3, 2)
    a, b = (
        call.create("permute", [call[k]], perm=[1, 0]) if call.attr(f"trans{side}") else call[k]
        for k, side in ((0, "A"), (3, "B"))
    )
    sums = call.standard("MatMulInteger", [a, b, call[2], call[5]])
    sums = call.create("add", [sums, call[6]]) if call.given(6) else sums
    alpha = call.create("mul", [call.cast(call[1], "f32"), call.constant(call.attr("alpha"), "f32")])
    y = _real_product(call, sums, [alpha, call[4]])
    return integers(call, y, 7, 8, call[0].dtype) if call.given(7) else y
