"""Torch overloads of layers: products, convolutions, norms, attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.errors import Unsupported
from hetnn.importers.lowering import sizes
from hetnn.importers.lowering.convolution import convolve
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.norms import standardized
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.torch.rules.call import Call, rule
from hetnn.importers.torch.rules.indexing import fixed
from hetnn.importers.torch.rules.pooling import batched, paired_window


def with_addend(call: Call, product: Any) -> Any:
    """alpha product + beta self; with a beta of 0 self is not read, NaN or not."""
    if call["alpha"] != 1:
        product = call.create("mul", [product, call.constant(call["alpha"], call.dtype())])
    bias = call["self"]
    if call["beta"] == 0:
        return product
    if call["beta"] != 1:
        bias = call.create("mul", [bias, call.constant(call["beta"], call.dtype())])
    return call.create("add", [product, bias])


@rule("addmm.default")
def _addmm(call: Call) -> Any:
    return with_addend(call, call.create("matmul", [call["mat1"], call["mat2"]]))


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
        if call.is_tuple() or call["running_mean"] is not None or call["running_var"] is not None:
            raise Unsupported("batch_norm in training mode; call model.eval() before exporting")
        return _by_the_batch(call, None)[0]
    out = call.create(
        "batch_norm",
        [call["input"], call["weight"], call["bias"], call["running_mean"], call["running_var"]],
        eps=float(call["eps"]),
    )
    # Without training there are no statistics to save.
    return [out, *(call.constant(np.zeros(0), call.dtype(k)) for k in (1, 2))] if call.is_tuple() else out


@rule("_native_batch_norm_legit.no_stats")
def _native_batch_norm(call: Call) -> list[Any]:
    out, mean, scale = _by_the_batch(call, [call.dtype(k) for k in (1, 2)])
    return [out, call.reshape(mean, call.shape(1)), call.reshape(scale, call.shape(2))]


@rule("_native_batch_norm_legit_functional.default")
def _moving_batch_norm(call: Call) -> list[Any]:
    """In training by the batch, with the running statistics moved towards its own."""
    running = [call["running_mean"], call["running_var"]]
    if not call["training"]:
        eps = float(call["eps"])
        out = call.create("batch_norm", [call["input"], call["weight"], call["bias"], *running], eps=eps)
        return [out, *(call.constant(np.zeros(0), call.dtype(k)) for k in (1, 2)), *running]
    x, wide = call["input"], _wide(call["input"])
    values = [None if v is None else call.cast(v, wide) for v in (x, call["weight"], call["bias"])]
    out, mean, variance = call.create_all("batch_norm_training", values, {"eps": float(call["eps"])})
    moved = []
    for old, new in zip(running, (mean, _unbiased(call, variance)), strict=True):
        parts = (old, 1 - call["momentum"]), (call.cast(new, old.dtype), call["momentum"])
        moved.append(call.create("add", [call.create("mul", [part, call.like(by, part)]) for part, by in parts]))
    saved = [call.cast(v, call.dtype(k)) for k, v in ((1, mean), (2, _scale(call, variance)))]
    return [call.cast(out, call.dtype()), *saved, *moved]


@rule("native_batch_norm_backward.default")
def _batch_norm_gradient(call: Call) -> list[Any]:
    """Those of the input, the weight and the bias, as far as they are asked for."""
    wide = _wide(call["input"])
    gradient, x = (call.cast(call[name], wide) for name in ("grad_out", "input"))
    names = ("weight", "save_mean", "save_invstd", "running_mean", "running_var")
    weight, mean, scale, *running = (None if call[n] is None else call.cast(call[n], wide) for n in names)
    if call["train"]:
        made = call.create_all("batch_norm_gradient", [gradient, x, weight, mean, scale], {})
    else:  # the statistics are constants
        over, along = [axis for axis in range(len(x.shape)) if axis != 1], [x.shape[1], *[1] * (len(x.shape) - 2)]
        mean, scale = running[0], _scale(call, running[1])
        by = scale if weight is None else call.create("mul", [scale, weight])
        away = call.create("sub", [x, call.reshape(mean, along)])
        products = call.create("sum", [call.create("mul", [gradient, away])], axes=over)
        made = [
            call.create("mul", [gradient, call.reshape(by, along)]),
            call.create("mul", [products, scale]),
            call.create("sum", [gradient], axes=over),
        ]
    asked = [bool(one) and call.reads(k) for k, one in enumerate(call["output_mask"])]
    return [call.cast(v, call.dtype(k)) if one else None for k, (v, one) in enumerate(zip(made, asked, strict=True))]


def _wide(x: Any) -> str:
    """The type that statistics of a value are computed in."""
    return "f64" if x.dtype == "f64" else "f32"


def _scale(call: Call, variance: Any) -> Any:
    """1 / sqrt(variance + eps)"""
    return call.create("rsqrt", [call.create("add", [variance, call.like(float(call["eps"]), variance)])])


def _unbiased(call: Call, variance: Any) -> Any:
    """A batch's variance times n / (n - 1), n being its elements in a channel: what the running one moves towards."""
    count = sizes.product([size for axis, size in enumerate(call["input"].shape) if axis != 1])
    if isinstance(count, int):
        return call.create("mul", [variance, call.like(count / (count - 1) if count > 1 else math.inf, variance)])
    n = call.cast(call.whole(count), variance.dtype)
    return call.create("mul", [variance, call.create("div", [n, call.create("sub", [n, call.like(1, n)])])])


def _by_the_batch(call: Call, kept: Sequence[str] | None) -> list[Any]:
    """The norm by the mean and variance of the input itself, in f32 at least, the mean, and what away from it is
    multiplied by; both rounded to the types in which torch keeps them, if it does."""
    x = call.cast(call["input"], _wide(call["input"]))
    over = [axis for axis in range(len(x.shape)) if axis != 1]
    if kept is None or all(dtype == x.dtype for dtype in kept):
        given = [None if call[name] is None else call.cast(call[name], x.dtype) for name in ("weight", "bias")]
        out, mean, variance = call.create_all("batch_norm_training", [x, *given], {"eps": float(call["eps"])})
        return [call.cast(out, call.dtype()), mean, _scale(call, variance)]
    _, mean, scale = standardized(call, x, over, float(call["eps"]))
    mean, scale = (call.cast(value, dtype) for dtype, value in zip(kept, (mean, scale), strict=True))
    away = call.create("sub", [x, call.cast(mean, x.dtype)])
    out = call.create("mul", [away, call.cast(scale, x.dtype)])
    along = [1 if axis in over else size for axis, size in enumerate(x.shape)]
    for name, op in (("weight", "mul"), ("bias", "add")):
        if call[name] is not None:
            out = call.create(op, [out, call.cast(call.reshape(call[name], along), x.dtype)])
    return [call.cast(out, call.dtype()), mean, scale]


@rule("layer_norm.default", "native_layer_norm.default")
def _layer_norm(call: Call) -> Any:
    x, axes, eps = call["input"], len(call["normalized_shape"]), float(call["eps"])
    out = call.create("layer_norm", [x, call["weight"], call["bias"]], axes=axes, eps=eps)
    if not call.is_tuple():
        return out
    statistics = [None, None]
    if call.reads(1) or call.reads(2):
        over = list(range(len(x.shape) - axes, len(x.shape)))
        statistics = list(standardized(call, x, over, eps)[1:])
    return [out, *statistics]


@rule("group_norm.default")
def _group_norm(call: Call) -> Any:
    return call.create(
        "group_norm",
        [call["input"], call["weight"], call["bias"]],
        groups=call["num_groups"],
        eps=float(call["eps"]),
    )


@rule("native_group_norm.default")
def _native_group_norm(call: Call) -> Any:
    x, groups, eps = call["input"], call["group"], float(call["eps"])
    out = call.create("group_norm", [x, call["weight"], call["bias"]], groups=groups, eps=eps)
    if not (call.reads(1) or call.reads(2)):
        return [out, None, None]
    count = sizes.product(x.shape[1:])
    (elements,) = fixed([count], "the statistics of a group norm")
    flat = call.reshape(x, [x.shape[0], groups, elements // groups])
    return [out, *(call.reshape(value, [x.shape[0], groups]) for value in standardized(call, flat, [2], eps)[1:])]


@rule("rms_norm.default")
def _rms_norm(call: Call) -> Any:
    x, eps = call["input"], call["eps"]
    eps = {"f64": 2.0**-52, "f16": 2.0**-10, "bf16": 2.0**-7}.get(x.dtype, 2.0**-23) if eps is None else float(eps)
    return call.create("rms_norm", [x, call["weight"]], axes=len(call["normalized_shape"]), eps=eps)


def _convolution_of(call: Call, padding: list[int], transposed: bool) -> Any:
    axes = len(call["weight"].shape) - 2
    x, made = batched(call, axes)
    window = {
        "stride": paired_window(call["stride"], axes),
        "padding": padding,
        "dilation": paired_window(call["dilation"], axes),
        "groups": call["groups"],
    }
    if transposed:
        window["output_padding"] = paired_window(call["output_padding"], axes)
    out = convolve(call, x, call["weight"], call["bias"], window, transposed)
    return call.reshape(out, out.shape[1:]) if made else out


@rule("conv1d.default", "conv2d.default", "conv3d.default")
def _conv(call: Call) -> Any:
    return _convolution_of(call, paired_window(call["padding"], len(call["weight"].shape) - 2), False)


@rule("conv1d.padding", "conv2d.padding", "conv3d.padding")
def _conv_same(call: Call) -> Any:
    kernel = call["weight"].shape[2:]
    if call["padding"] == "valid":
        return _convolution_of(call, [0] * len(kernel), False)
    total = [(k - 1) * d for k, d in zip(kernel, paired_window(call["dilation"], len(kernel)), strict=True)]
    return _convolution_of(call, [t // 2 for t in total] + [t - t // 2 for t in total], False)


@rule("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input")
def _conv_transpose(call: Call) -> Any:
    return _convolution_of(call, paired_window(call["padding"], len(call["weight"].shape) - 2), True)


@rule("convolution.default")
def _convolution(call: Call) -> Any:
    """What torch makes of a convolution of any kind when it is asked to decompose all of them."""
    return _convolution_of(
        call, paired_window(call["padding"], len(call["weight"].shape) - 2), bool(call["transposed"])
    )


def _for_heads(call: Call, x: Any, queries: Sequence[Size]) -> Any:
    """Keys or values for each batch and head of the queries: those that serve several are repeated."""
    if len(x.shape) != 4 or len(queries) != 4:
        return x
    batch, heads, length, depth = x.shape
    wanted = [queries[0] if batch == 1 else batch, queries[1] if heads == 1 else heads, length, depth]
    if wanted != list(x.shape):
        x = call.create("expand", [x], shape=wanted)
    if not call.args.get("enable_gqa") or wanted[1] == queries[1]:
        return x
    if not isinstance(wanted[1], int) or not isinstance(queries[1], int):
        raise Unsupported("attention with grouped queries of a number of heads that is open")
    groups = queries[1] // wanted[1]
    x = call.create(
        "expand", [call.reshape(x, [*wanted[:2], 1, length, depth])], shape=[*wanted[:2], groups, length, depth]
    )
    return call.reshape(x, [wanted[0], queries[1], length, depth])


@rule("_scaled_dot_product_flash_attention_for_cpu.default")
def _attention_with_sums(call: Call) -> Any:
    """What torch runs the next by; its second output, sums of exponentials, is for gradients."""
    if call["dropout_p"] != 0:
        raise Unsupported("attention with dropout")
    return _attention(call), None


@rule("scaled_dot_product_attention.default")
def _attention(call: Call) -> Any:
    scale = call["scale"]
    q, k, v, mask = call["query"], call["key"], call["value"], call["attn_mask"]
    shape = call.shape()
    if len(q.shape) == 3:
        q, k, v = (call.reshape(x, [1, *x.shape]) for x in (q, k, v))
    k, v = (_for_heads(call, x, q.shape) for x in (k, v))
    k = with_sizes(call, k, [None, None, None, q.shape[3]])
    v = with_sizes(call, v, [None, None, k.shape[2], None])
    out = call.create(
        "scaled_dot_product_attention",
        [q, k, v, mask],
        is_causal=bool(call["is_causal"]),
        scale=0.0 if scale is None else float(scale),
    )
    return call.reshape(out, shape)
