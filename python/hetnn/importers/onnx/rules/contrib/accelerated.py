"""Small operators that ONNX Runtime has for accelerators alone, as their definitions say."""

from __future__ import annotations

from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.experts import gated
from hetnn.importers.onnx.rules.contrib.fused import activated, fused_conv, fused_matmul
from hetnn.importers.onnx.rules.contrib.pieces import channels_first, channels_last, total
from hetnn.importers.onnx.rules.contrib.quantized import (
    integers,
    reals,
)
from hetnn.importers.onnx.rules.declare import FLOAT, FLOATS, INT, SOME_INT, SOME_INTS, STRING, contrib


@contrib("BiasDropout", "data bias residual? ratio? training_mode?", seed=INT)
def _bias_dropout(call: Call) -> list[Any]:
    """Dropout(data + bias) + residual"""
    inputs = [call.create("add", [call[0], call[1]]), call.optional(3), call.optional(4)]
    y, *mask = call.standard_all("Dropout", inputs, {"seed": call.attr("seed")}, min(call.outputs_used(), 2))
    return [total(call, y, call.optional(2)), *mask]


@contrib("BiasAdd", "X bias skip")
def _bias_add(call: Call) -> Any:
    return total(call, *call.values())


@contrib("BiasSoftmax", "data bias", axis=1, is_inner_broadcast=SOME_INT)
def _bias_softmax(call: Call) -> Any:
    """Softmax(data + bias), over all axes from `axis` on."""
    data, bias = call.values()
    if not call.attr("is_inner_broadcast") and len(bias.shape) != len(data.shape):
        raise Unsupported("a bias of fewer axes that meets the first ones")
    x = call.create("add", [data, bias])
    axis = call.axis(int(call.attr("axis")), len(x.shape))
    return call.reshape(call.standard("Softmax", [call.standard("Flatten", [x], axis=axis)]), list(x.shape))


@contrib("BiasSplitGelu", "X bias")
def _split_gelu(call: Call) -> Any:
    """The first half of the last axis by GELU of the second."""
    x = call.create("add", [call[0], call[1]])
    left, right = call.standard_all("Split", [x], {"axis": -1, "num_outputs": 2}, 2)
    return call.create("mul", [left, call.standard("Gelu", [right])])


@contrib("GemmFastGelu", "X W bias?")
def _product_gelu(call: Call) -> Any:
    y = total(call, call.standard("MatMul", call.inputs[:2]), call.optional(2))
    return call.standard("Gelu", [y], approximate="tanh")


_ACTIVATION: dict[str, Any] = {"activation_alpha": FLOAT, "activation_beta": FLOAT, "activation_gamma": FLOAT}


@contrib(
    "FusedMatMulActivation",
    "A B",
    unread="transA transB transBatchA transBatchB",
    activation=STRING,
    activation_axis=INT,
    **_ACTIVATION,
    alpha=1.0,
    transA=0,
    transB=0,
    transBatchA=0,
    transBatchB=0,
)
def _activated_product(call: Call) -> Any:
    return activated(call, fused_matmul(call))


@contrib("NhwcConv", "X W B?", like="Conv")
@contrib("NhwcFusedConv", "X W B? Z?", like="Conv", activation=STRING, activation_params=FLOATS)
def _channels_last_conv(call: Call) -> Any:
    """As FusedConv of images whose channels are the last axis."""
    return activated(
        call, total(call, channels_last(call, fused_conv(call, channels_first(call, call[0]))), call.optional(3))
    )


_GROUPS: dict[str, Any] = {"activation": SOME_INT, "channels_last": 1, "epsilon": 1e-5, "groups": SOME_INT}


def _grouped(call: Call, x: Any) -> Any:
    """Images normalized by groups of channels, perhaps with SiLU behind."""
    image = channels_first(call, x) if call.attr("channels_last") else x
    told = {"num_groups": call.attr("groups"), "epsilon": call.attr("epsilon")}
    factors = [call.cast(call[k], x.dtype) for k in (1, 2)]
    y = call.standard("GroupNormalization", [image, *factors], **told)
    y = call.create("silu", [y]) if int(call.attr("activation")) else y
    return channels_last(call, y) if call.attr("channels_last") else y


@contrib("GroupNorm", "X gamma beta", **_GROUPS)
def _group_norm(call: Call) -> Any:
    return _grouped(call, call[0])


@contrib("SkipGroupNorm", "X gamma beta skip bias?", **_GROUPS)
def _skip_group_norm(call: Call) -> list[Any]:
    """Of the sum of an image, what was skipped and a bias; and that sum."""
    x, skip, bias = call[0], call[3], call.optional(4)
    last = bool(call.attr("channels_last"))
    if len(skip.shape) == 2:
        batch, channels = skip.shape
        skip = call.reshape(skip, [batch, 1, 1, channels] if last else [batch, channels, 1, 1])
    if bias is not None and not last:
        bias = call.reshape(bias, [bias.shape[0], 1, 1])
    whole = total(call, x, skip, bias)
    return [_grouped(call, whole), whole]


@contrib("SwiGLU", "gate up?", activation_alpha=1.0, activation_beta=0.0, limit=0.0, round_activation=0)
def _swiglu(call: Call) -> Any:
    """G sigmoid(alpha G) (L + beta); both may lie one behind the other."""
    if call.given(1):
        halves = [call[0], call[1]]
    else:
        halves = call.standard_all("Split", [call[0]], {"axis": -1, "num_outputs": 2}, 2)
    limit, dtype, rounds = float(call.attr("limit")), call[0].dtype, bool(call.attr("round_activation"))
    if rounds and dtype != "f32":
        raise Unsupported(f"an activation that is rounded to {dtype} on the way")
    gate, up = (call.cast(half, "f32") for half in halves)
    return call.cast(gated(call, gate, up, limit if limit > 0 else None), dtype)


@contrib(
    "QLinearReduceMean",
    "data data_scale data_zero_point? reduced_scale reduced_zero_point?",
    axes=SOME_INTS,
    keepdims=SOME_INT,
)
def _mean(call: Call) -> Any:
    axes = call.constant(list(call.attr("axes")), "i64")
    y = call.standard("ReduceMean", [reals(call, 0, 1, 2), axes], keepdims=call.attr("keepdims"))
    return integers(call, y, 3, 4, call[0].dtype)


@contrib("ReduceSumInteger", "data", axes=SOME_INTS, keepdims=SOME_INT)
def _sum_of_bytes(call: Call) -> Any:
    """In 32 bits."""
    axes = call.constant(list(call.attr("axes")), "i64")
    wide = call.cast(call[0], "i32" if call[0].dtype == "i8" else "u32")
    return call.standard("ReduceSum", [wide, axes], keepdims=call.attr("keepdims"))


@contrib("MulInteger", "A A_zero_point? B B_zero_point?")
def _product_of_bytes(call: Call) -> Any:
    """In 32 bits, from what stands for 0."""
    sides = []
    for k in (0, 2):
        wide = call.cast(call[k], "i32")
        zero = call.optional(k + 1)
        sides.append(wide if zero is None else call.create("sub", [wide, call.cast(zero, "i32")]))
    return call.create("mul", sides)


@contrib("IsAllFinite", "input*", isinf_only=0, isnan_only=0)
def _all_finite(call: Call) -> Any:
    if call.attr("isinf_only") or call.attr("isnan_only"):
        raise Unsupported("a look for one of the two alone")
    found = []
    for x in call.values():
        # What is not finite leaves something of itself when it is taken from itself.
        fine = call.create("eq", [call.create("sub", [x, x]), call.like(0, x)])
        found.append(call.create("all", [fine], axes=list(range(len(x.shape))), keepdim=False))
    return call.folded("logical_and", found)


@contrib("TorchEmbedding", "weight indices padding_idx? scale_grad_by_freq?")
def _embedding(call: Call) -> Any:
    return call.standard("Gather", [call[0], call[1]])


@contrib("ComplexMul", "A B")
@contrib("ComplexMulConj", "A B")
def _complex_product(call: Call) -> Any:
    """Of pairs in the last axis; the second operand's imaginary part may change its sign."""
    (a, b), (c, d) = (call.standard_all("Split", [call[k]], {"axis": -1, "num_outputs": 2}, 2) for k in (0, 1))
    d = call.create("neg", [d]) if call.node.op_type == "ComplexMulConj" else d
    real = call.create("sub", [call.create("mul", [a, c]), call.create("mul", [b, d])])
    imaginary = call.create("add", [call.create("mul", [a, d]), call.create("mul", [b, c])])
    return call.create("concat", [real, imaginary], axis=len(real.shape) - 1)
