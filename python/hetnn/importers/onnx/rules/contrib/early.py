"""Operators of the standard's first drafts, which ONNX Runtime kept."""

from __future__ import annotations

from typing import Any

from hetnn.errors import InvalidModel
from hetnn.importers.onnx.rules.activations import activate
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.pieces import part
from hetnn.importers.onnx.rules.declare import FLOAT, FLOATS, INTS, as_standard, contrib

as_standard("MemcpyFromHost", "X", domain="", like="Identity")
as_standard("MemcpyToHost", "X", domain="", like="Identity")
as_standard("DynamicSlice", "data starts ends axes?", domain="", like="Slice")


@contrib("Affine", "X", domain="", alpha=1.0, beta=0.0)
@contrib("ScaledTanh", "X", domain="", alpha=FLOAT, beta=FLOAT)
def _activation(call: Call) -> Any:
    given = {key: call.attr(key) for key in ("alpha", "beta") if call.attr(key) is not None}
    return activate(call, call.node.op_type, call[0], given)


@contrib("ParametricSoftplus", "X", domain="", alpha=FLOAT, beta=FLOAT)
def _softplus(call: Call) -> Any:
    """alpha Softplus(beta x)"""
    alpha, beta = (call.like(float(call.attr(key) or 0), call[0]) for key in ("alpha", "beta"))
    return call.create("mul", [call.standard("Softplus", [call.create("mul", [call[0], beta])]), alpha])


@contrib("Scale", "input", domain="", scale=1.0)
def _scale(call: Call) -> Any:
    return call.create("mul", [call[0], call.like(float(call.attr("scale")), call[0])])


@contrib("ImageScaler", "input", domain="", scale=1.0, bias=FLOATS)
def _image_scaler(call: Call) -> Any:
    """Images by a number, and what is added to each channel."""
    x, bias = call.ranked(0, 4, 4), call.attr("bias") or []
    y = call.create("mul", [x, call.like(float(call.attr("scale")), x)])
    return call.create("add", [y, call.reshape(call.constant(bias, x.dtype), [len(bias), 1, 1])])


@contrib("Crop", "input", domain="", border=INTS, scale=INTS)
def _crop(call: Call) -> Any:
    """Images without their borders: left, top, right and bottom; `scale`: as many rows and columns instead."""
    x, border, size = call.ranked(0, 4, 4), call.attr("border") or [], call.attr("scale")
    if len(border) != 4 or (size and len(size) != 2):
        raise InvalidModel(f"Crop needs four borders, and two sizes if any; got {border} and {size}")
    left, top, right, bottom = border
    ends = [x.shape[2] - bottom, x.shape[3] - right]
    if size:
        ends = [top + size[0], left + size[1]]
    return part(call, part(call, x, top, ends[0], 2), left, ends[1], 3)
