"""Products and convolutions with what ONNX Runtime's optimizer joins to them, and its forms of GELU."""

from __future__ import annotations

from typing import Any

from hetnn.importers.onnx.rules.activations import activate, numbers_of
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.pieces import total
from hetnn.importers.onnx.rules.declare import FLOAT, FLOATS, STRING, contrib
from hetnn.importers.onnx.rules.elementwise import swish


def activated(call: Call, y: Any) -> Any:
    """What the attributes `activation…` make of a value."""
    name = call.attr("activation")
    if not name:
        return y
    listed = call.attr("activation_params") or []
    numbers = dict(zip(numbers_of(name), listed, strict=False))
    named = {key: call.attr(f"activation_{key}") for key in numbers_of(name)}
    return activate(call, name, y, {**numbers, **{key: number for key, number in named.items() if number is not None}})


@contrib("FusedConv", "X W B? Z?", unread="activation_params", like="Conv", activation=STRING, activation_params=FLOATS)
def _fused_conv(call: Call) -> Any:
    """activation(Conv(X, W, B) + Z)"""
    return activated(call, total(call, fused_conv(call, call[0]), call.optional(3)))


def fused_conv(call: Call, x: Any) -> Any:
    """The convolution of a value as the node says it, without what is joined to it."""
    own = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    inputs = [x, call[1], call.optional(2)]
    return call.standard("Conv", inputs, **{name: call.attr(name) for name in own})


@contrib(
    "FusedGemm",
    "A B C?",
    unread="activation_alpha activation_beta activation_gamma",
    like="Gemm",
    activation=STRING,
    activation_alpha=FLOAT,
    activation_beta=FLOAT,
    activation_gamma=FLOAT,
)
def _fused_gemm(call: Call) -> Any:
    own = ("alpha", "beta", "transA", "transB")
    return activated(call, call.standard("Gemm", call.inputs, **{name: call.attr(name) for name in own}))


def _turned(call: Call, x: Any, side: str) -> Any:
    """A stack of matrices as its attributes turn it: its first axis goes behind the others, then the last two swap."""
    rank = len(x.shape)
    order = list(range(rank))
    if rank > 1:
        if call.attr(f"transBatch{side}", 0):
            order = [*range(1, rank - 1), 0, rank - 1]
        if call.attr(f"trans{side}"):
            order[-2:] = reversed(order[-2:])
    return x if order == sorted(order) else call.create("permute", [x], perm=order)


@contrib(
    "FusedMatMul",
    "A B",
    unread="transA transB transBatchA transBatchB",
    alpha=1.0,
    transA=0,
    transB=0,
    transBatchA=0,
    transBatchB=0,
)
@contrib("TransposeMatMul", "A B", unread="transA transB", alpha=1.0, transA=0, transB=0)
@contrib("SparseToDenseMatMul", "A B", unread="transA transB", alpha=1.0, transA=0, transB=0)
def fused_matmul(call: Call) -> Any:
    """alpha A B of stacks of matrices as the node turns them."""
    y = call.standard("MatMul", [_turned(call, call[0], "A"), _turned(call, call[1], "B")])
    alpha = float(call.attr("alpha"))
    return y if alpha == 1 else call.create("mul", [y, call.like(alpha, y)])


@contrib("Gelu", "X")
@contrib("BiasGelu", "A B")
def _gelu(call: Call) -> Any:
    return call.standard("Gelu", [total(call, *call.all_inputs())])


@contrib("FastGelu", "X bias?")
def _fast_gelu(call: Call) -> Any:
    return call.standard("Gelu", [total(call, *call.all_inputs())], approximate="tanh")


@contrib("QuickGelu", "X", alpha=1.702)
def _quick_gelu(call: Call) -> Any:
    return swish(call, call[0], float(call.attr("alpha")))
