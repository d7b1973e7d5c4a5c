"""Pooling, reductions and scans."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn import _core
from hetnn.exporters.onnx.rules.call import Call, Value, exports
from hetnn.exporters.onnx.rules.layers import window


def _kernel(call: Call) -> dict[str, Any]:
    kernel = call.fixed(call.attrs["kernel"], "a window")
    told = window(call, len(kernel))
    return {
        **told,
        "strides": told["strides"] or kernel,
        "kernel_shape": kernel,
        "ceil_mode": int(call.attrs["ceil_mode"]),
    }


@exports("max_pool2d")
def _max_pool2d(call: Call) -> Any:
    return call.create("MaxPool", [call[0]], **_kernel(call))


@exports("max_pool_indices")
def _max_pool_indices(call: Call) -> Any:
    """ONNX counts through the whole tensor, hetnn through each plane."""
    kernel = call.fixed(call.attrs["kernel"], "a window")
    told: dict[str, Any] = {ours: call.fixed(call.attrs[ours], ours) for ours in ("stride", "padding", "dilation")}
    told = {ours: part * len(kernel) if len(part) == 1 else part for ours, part in told.items()}
    names = {"strides": told["stride"], "pads": told["padding"] * 2, "dilations": told["dilation"]}
    attrs: dict[str, Any] = {**names, "kernel_shape": kernel, "ceil_mode": int(call.attrs["ceil_mode"])}
    _, places = call.create_all("MaxPool", [call[0]], [None, None], **attrs)
    plane = math.prod((call[0].shape or ())[2:])
    return call.create("Mod", [places, call.writer.size(plane)])


@exports("avg_pool2d")
def _avg_pool2d(call: Call) -> Any:
    """A divisor of its own changes means of whole windows, padding counted."""
    told, divisor = _kernel(call), int(call.attrs["divisor_override"])
    counts = bool(call.attrs["count_include_pad"]) or bool(divisor)
    y = call.create("AveragePool", [call[0]], **told, count_include_pad=int(counts))
    if not divisor:
        return y
    if told["ceil_mode"]:
        call.refuse("a divisor of its own with partial windows, whose size ONNX's AveragePool divides by")
    return call.create("Mul", [y, call.like(math.prod(told["kernel_shape"]) / divisor, y)])


@exports("adaptive_avg_pool2d")
def _adaptive_avg_pool2d(call: Call) -> Any:
    """The mean of all, windows of one size, or else a product with the weights of each axis."""
    x, goals = call[0], call.fixed(call.attrs["output_size"], "the output's sizes")
    if not x.dtype.startswith(("f", "bf")):
        call.refuse(f"means of {x.dtype}, which are cut to whole numbers")
    if goals == [1, 1]:
        return call.create("GlobalAveragePool", [x])
    sizes = call.fixed((x.shape or ())[2:], "the image's sizes")
    if all(size % goal == 0 for size, goal in zip(sizes, goals, strict=True)):
        kernel = [size // goal for size, goal in zip(sizes, goals, strict=True)]
        return call.create("AveragePool", [x], kernel_shape=kernel, strides=kernel)
    down, across = (call.constant(_means(*pair), x.dtype) for pair in zip(sizes, goals, strict=True))
    return call.create("MatMul", [down, call.create("MatMul", [x, call.permute(across, [1, 0])])])


def _means(size: int, goal: int) -> Any:
    """Weights, [goal, size], of windows from floor(i size / goal) to ceil((i + 1) size / goal)."""
    out = np.zeros((goal, size))
    for i in range(goal):
        begin, end = i * size // goal, -(-(i + 1) * size // goal)
        out[i, begin:end] = 1 / (end - begin)
    return out


_REDUCTIONS = {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "prod": "ReduceProd",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
}


@exports("sum", "mean", "prod", "reduce_max", "reduce_min", "any", "all")
def _reduce(call: Call) -> Any:
    x, axes = call[0], [int(axis) for axis in call.attrs["axes"]]
    return reduced(call, call.row["op"], x, call.integers(axes) if axes else None, bool(call.attrs["keepdim"]), False)


def reduced(call: Call, op: str, x: Value, axes: Value | None, keep: bool, noop: bool) -> Value:
    """A reduction over axes; none: over all, or, with `noop`, over none."""
    told: dict[str, Any] = {"keepdims": int(keep), "noop_with_empty_axes": int(noop)}
    if op in ("any", "all"):
        counted = call.cast(x, "bool") if op == "any" else call.create("Not", [call.cast(x, "bool")])
        counts = call.create("ReduceSum", [call.cast(counted, "i64"), axes], **told)
        none = call.create("Equal", [counts, call.like(0, counts)])
        return none if op == "all" else call.create("Not", [none])
    op_type = _REDUCTIONS[op]
    if op == "mean" and x.dtype == "bool":
        call.refuse("means of bools")
    if call.takes(op_type, [x, axes]):
        return call.create(op_type, [x, axes], **told)
    if x.dtype == "bool" or x.dtype in ("i8", "u8", "i16", "u16"):
        return call.cast(call.create(op_type, [call.cast(x, "i64"), axes], **told), call.dtype)
    return call.create(op_type, [x, axes], **told)


@exports("reduce_over")
def _reduce_over(call: Call) -> Any:
    told = bool(call.attrs["keepdim"]), bool(call.attrs["none_if_empty"])
    return reduced(call, call.attrs["reduction"], call[0], call.cast(call[1], "i64"), *told)


@exports("cumsum", "cumprod")
def _scan(call: Call) -> Any:
    op_type = "CumSum" if call.row["op"] == "cumsum" else "CumProd"
    # ONNX has no running sum of a number.
    x = call.unsqueeze(call[0], [0]) if call[0].rank == 0 else call[0]
    axis = call.constant(0 if call[0].rank == 0 else call.axis(x), "i64")
    told: dict[str, Any] = {name: int(call.attrs[name]) for name in ("exclusive", "reverse")}
    sums = call.create(op_type, [x, axis], **told)
    return sums if call[0].rank else call.reshape(sums, [])


# Images in another size.


@exports("upsample_nearest2d", "upsample_bilinear2d")
def _upsample(call: Call) -> Any:
    """By the sizes, or the scales where these lead there; else along each axis by a table of what is read."""
    x, goals = call[0], list(call.shape[2:])
    given = [float(scale) for scale in call.attrs["scales"]]
    is_nearest = call.row["op"] == "upsample_nearest2d"
    places = "asymmetric" if is_nearest else "align_corners" if call.attrs["align_corners"] else "half_pixel"
    told: dict[str, Any] = {"coordinate_transformation_mode": places, "mode": "nearest" if is_nearest else "linear"}
    told |= {"nearest_mode": "floor"} if is_nearest else {}
    sizes = list((x.shape or ())[2:])
    if places == "align_corners" or not any(given):
        return call.create("Resize", [x, None, None, call.writer.sizes(call.shape)], **told)
    if not all(given):
        call.refuse(f"one of the scales {given} is none")
    # These axes are copied or doubled, whatever the scale.
    for axis, (size, goal) in enumerate(zip(sizes, goals, strict=True)):
        if isinstance(size, int) and goal in (size, 2 * size if is_nearest else size):
            given[axis] = 1.0 if goal == size else 2.0
    if [_grown(size, scale) for size, scale in zip(sizes, given, strict=True)] == goals:
        return call.create("Resize", [x, None, call.constant([1, 1, *given], "f32")], **told)
    for axis, size, goal, scale in zip(
        (2, 3), call.fixed(sizes, "sizes"), call.fixed(goals, "sizes"), given, strict=True
    ):
        read: Any = _core.resampled(size, goal, scale, told["mode"], places, "floor", -0.75, False, False)
        if not is_nearest:
            call.refuse(f"scales {given} of {sizes} that lead to other sizes than {goals}")
        x = call.create("Gather", [x, call.constant(read, "i64")], axis=axis)
    return x


def _grown(size: Any, scale: float) -> Any:
    """The size that ONNX's Resize makes of a size by a scale."""
    if isinstance(size, int):
        return math.floor(np.float32(size) * np.float32(scale))
    return size * int(scale) if scale == int(scale) else None
