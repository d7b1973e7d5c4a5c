"""Regions and samples of images, and transforms of signals."""

from __future__ import annotations

import math
from typing import Any

from hetnn.exporters.onnx.rules.call import Call, exports
from hetnn.exporters.onnx.rules.layers import window


@exports("deform_conv2d")
def _deform_conv2d(call: Call) -> Any:
    groups: dict[str, Any] = {"group": int(call.attrs["groups"]), "offset_group": int(call.attrs["offset_groups"])}
    return call.create("DeformConv", call.inputs, **groups, **window(call))


@exports("grid_sample")
def _grid_sample(call: Call) -> Any:
    told: dict[str, Any] = {"padding_mode": call.attrs["outside"], "align_corners": int(call.attrs["align_corners"])}
    return call.create("GridSample", call.inputs, mode=call.attrs["mode"], **told)


@exports("roi_align")
def _roi_align(call: Call) -> Any:
    height, width = call.fixed(call.attrs["output_size"], "the output's sizes")
    return call.create(
        "RoiAlign",
        call.inputs,
        output_height=height,
        output_width=width,
        spatial_scale=call.attrs["spatial_scale"],
        sampling_ratio=int(call.attrs["sampling_ratio"]),
        coordinate_transformation_mode="half_pixel" if call.attrs["aligned"] else "output_half_pixel",
        mode=call.attrs["mode"],
    )


@exports("image_decode")
def _image_decode(call: Call) -> Any:
    return call.create("ImageDecoder", [call[0]], pixel_format=call.attrs["format"])


@exports("dft")
def _dft(call: Call) -> Any:
    """ONNX divides the inverse by the length; other norms scale what it gives."""
    x, inverse, length = call[0], bool(call.attrs["inverse"]), call.attrs["length"]
    axis = call.axis(x)
    if inverse and call.attrs["onesided"]:
        call.refuse("the inverse of one half of the frequencies: ONNX's DFT reads all of them")
    size = length or (x.shape or ())[axis]
    given = None if length == 0 else call.reshape(call.writer.size(length), [])
    told: dict[str, Any] = {"inverse": int(inverse), "onesided": int(call.attrs["onesided"])}
    y = call.create("DFT", [x, given, call.constant(axis, "i64")], **told)
    norm = call.attrs["norm"]
    if norm == "backward":
        return y
    (number,) = call.fixed([size], "the length")
    factor = {
        "forward": number if inverse else 1 / number,
        "ortho": math.sqrt(number) if inverse else 1 / math.sqrt(number),
    }
    return call.create("Mul", [y, call.like(factor[norm], y)])
