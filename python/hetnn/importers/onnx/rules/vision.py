"""ONNX operators on regions and samples of images."""

from __future__ import annotations

from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.onnx.rules.call import Call, rule
from hetnn.importers.onnx.rules.conv import kernel_of
from hetnn.importers.onnx.rules.late import found_shape, late, length_of


@rule("DeformConv")
def _deform_conv(call: Call) -> Any:
    if len(call[0].shape) != 4:
        raise Unsupported(f"DeformConv over {len(call[0].shape) - 2} axes")
    kernel_of(call, call[1])
    return call.create(
        "deform_conv2d",
        [call[0], call[1], call[2], call.optional(3), call.optional(4)],
        stride=call.attr("strides") or [1, 1],
        padding=call.attr("pads") or [0, 0],
        dilation=call.attr("dilations") or [1, 1],
        groups=int(call.attr("group")),
        offset_groups=int(call.attr("offset_group")),
    )


_SAMPLES = {"bilinear": "linear", "bicubic": "cubic"}


@rule("GridSample")
def _grid_sample(call: Call) -> Any:
    mode = call.attr("mode")
    told = {"outside": call.attr("padding_mode"), "align_corners": bool(call.attr("align_corners"))}
    x, grid = call.values()
    grid = with_sizes(call, grid, [x.shape[0], *[None] * (len(x.shape) - 2), len(x.shape) - 2])
    return call.create("grid_sample", [x, grid], mode=_SAMPLES.get(mode, mode), **told)


@rule("RoiAlign")
def _roi_align(call: Call) -> Any:
    aligned = call.version >= 16 and call.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    x, regions, images = call.values()
    regions = with_sizes(call, regions, [*images.shape[:1], 4])
    return call.create(
        "roi_align",
        [x, regions, with_sizes(call, images, regions.shape[:1])],
        output_size=[int(call.attr("output_height")), int(call.attr("output_width"))],
        spatial_scale=float(call.attr("spatial_scale")),
        sampling_ratio=int(call.attr("sampling_ratio")),
        aligned=aligned,
        mode=call.attr("mode"),
    )


@rule("TensorScatter")
def _tensor_scatter(call: Call) -> Any:
    circular = call.attr("mode", "linear") == "circular"
    cache, places = call[0], call.optional(2)
    if places is not None and len(places.shape) == 1:
        cache = with_sizes(call, cache, [places.shape[0], *[None] * (len(cache.shape) - 1)])
        places = with_sizes(call, places, cache.shape[:1])
    axis = call.axis(int(call.attr("axis")), len(cache.shape))
    update = with_sizes(call, call[1], [None if k == axis else size for k, size in enumerate(cache.shape)])
    return call.create("tensor_scatter", [cache, update, places], axis=axis, circular=circular)


@rule("Col2Im")
def _col2im(call: Call) -> Any:
    told = {
        ours: call.attr(theirs)
        for ours, theirs in (("stride", "strides"), ("padding", "pads"), ("dilation", "dilations"))
        if call.attr(theirs)
    }
    return late(call, "col2im_over", call.values(), 2 + length_of(call, 1, "the image's size"), **told)


@rule("MelWeightMatrix")
def _mel_weights(call: Call) -> Any:
    return late(call, "mel_weights", call.values(), 2, dtype=call.dtype_attr("output_datatype"))


@rule("ImageDecoder")
def _decode(call: Call) -> Any:
    return call.create("image_decode", [call[0]], format=call.attr("pixel_format", "RGB"), sizes=found_shape(call, 3))
