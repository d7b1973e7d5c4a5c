"""Torch overloads of layers: products, convolutions, pooling, norms, attention."""

from __future__ import annotations

from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.registry import TORCH
from hetnn.importers.torch_rules.call import Call, rule


@rule("addmm.default")
def _addmm(call: Call) -> Any:
    product = call.create("matmul", [call["mat1"], call["mat2"]])
    if call["alpha"] != 1:
        product = call.create("mul", [product, call.constant(call["alpha"], call.dtype())])
    bias = call["self"]
    if call["beta"] != 1:
        bias = call.create("mul", [bias, call.constant(call["beta"], call.dtype())])
    return call.create("add", [product, bias])


@rule("matmul.default")
def _matmul(call: Call) -> Any:
    a, b = call["self"], call["other"]
    if len(a.shape) == 1:
        a = call.reshape(a, [1, *a.shape])
    if len(b.shape) == 1:
        b = call.reshape(b, [*b.shape, 1])
    return call.reshape(call.create("matmul", [a, b]), call.shape())


@rule(
    "_native_batch_norm_legit_no_training.default",
    "batch_norm.default",
    "native_batch_norm.default",
    "cudnn_batch_norm.default",
)
def _batch_norm(call: Call) -> Any:
    if call.args.get("training"):
        raise Unsupported("batch_norm in training mode; call model.eval() before exporting")
    out = call.create(
        "batch_norm",
        [call["input"], call["weight"], call["bias"], call["running_mean"], call["running_var"]],
        eps=float(call["eps"]),
    )
    return [out, None, None] if isinstance(call._node.meta["val"], (tuple, list)) else out


@rule("layer_norm.default", "native_layer_norm.default")
def _layer_norm(call: Call) -> Any:
    out = call.create(
        "layer_norm",
        [call["input"], call["weight"], call["bias"]],
        axes=len(call["normalized_shape"]),
        eps=float(call["eps"]),
    )
    return [out, None, None] if isinstance(call._node.meta["val"], (tuple, list)) else out


@rule("max_pool2d_with_indices.default")
def _max_pool_with_indices(call: Call) -> list[Any]:
    return [call.by_row(TORCH.rows["aten.max_pool2d.default"]), None]


@rule("conv2d.padding")
def _conv_padding(call: Call) -> Any:
    if call["padding"] == "valid":
        padding = [0, 0, 0, 0]
    else:
        kernel, dilation = call["weight"].shape[2:], call["dilation"]
        total = [(k - 1) * d for k, d in zip(kernel, [*dilation, *dilation][:2], strict=True)]
        padding = [total[0] // 2, total[1] // 2, total[0] - total[0] // 2, total[1] - total[1] // 2]
    return call.create(
        "conv2d",
        [call["input"], call["weight"], call["bias"]],
        stride=call["stride"],
        padding=padding,
        dilation=call["dilation"],
        groups=call["groups"],
    )


@rule("convolution.default")
def _convolution(call: Call) -> Any:
    """What torch makes of a convolution of any kind when it is asked to decompose all of them."""
    if len(call["weight"].shape) != 4:
        raise Unsupported(f"a convolution over {len(call['weight'].shape) - 2} axes")
    kind = {"output_padding": call["output_padding"]} if call["transposed"] else {}
    return call.create(
        "conv_transpose2d" if call["transposed"] else "conv2d",
        [call["input"], call["weight"], call["bias"]],
        stride=call["stride"],
        padding=call["padding"],
        dilation=call["dilation"],
        groups=call["groups"],
        **kind,
    )


@rule("scaled_dot_product_attention.default")
def _attention(call: Call) -> Any:
    scale = call["scale"]
    q, k, v, mask = call["query"], call["key"], call["value"], call["attn_mask"]
    if call.args.get("enable_gqa"):
        raise Unsupported("attention with grouped queries")
    shape = call.shape()
    if len(q.shape) == 3:
        q, k, v = (call.reshape(x, [1, *x.shape]) for x in (q, k, v))
    out = call.create(
        "scaled_dot_product_attention",
        [q, k, v, mask],
        is_causal=bool(call["is_causal"]),
        scale=0.0 if scale is None else float(scale),
    )
    return call.reshape(out, shape)
