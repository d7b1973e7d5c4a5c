"""ONNX operators on regions and samples of images."""

from __future__ import annotations

from typing import Any

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size, divide, maximum
from hetnn.importers.onnx.rules.call import Call, rule
from hetnn.importers.onnx.rules.conv import kernel_of
from hetnn.importers.onnx.rules.late import found_shape, is_late, late, length_of
from hetnn.importers.onnx.rules.movement import slice_axis


@rule("DeformConv")
def _deform_conv(call: Call) -> Any:
    if len(call[0].shape) != 4:
        raise Unsupported(f"DeformConv over {len(call[0].shape) - 2} axes")
    kernel, x, weight = kernel_of(call, call[1]), call[0], call[1]
    stride, dilation = call.attr("strides") or [1, 1], call.attr("dilations") or [1, 1]
    pads = call.attr("pads") or [0] * 4
    groups, offset_groups = int(call.attr("group")), int(call.attr("offset_group"))
    filters = weight.shape[0]
    places: list[Size | None] = [None, None]
    if (len(pads), len(stride), len(dilation)) == (4, 2, 2) and 0 not in stride:  # else the operator refuses them
        spans = [dilation[k] * (kernel[k] - 1) + 1 - pads[k] - pads[2 + k] for k in (0, 1)]
        places = [divide(x.shape[2 + k] - spans[k], stride[k]) + 1 for k in (0, 1)]
    taps = offset_groups * kernel[0] * kernel[1]
    met = [with_sizes(call, call[2], [x.shape[0], 2 * taps, *places])]
    for port, sizes in ((3, [filters]), (4, [x.shape[0], taps, *places])):
        met.append(with_sizes(call, call[port], sizes) if call.given(port) else None)
    told = {"stride": stride, "padding": pads, "dilation": dilation, "groups": groups, "offset_groups": offset_groups}
    x = with_sizes(call, x, [None, weight.shape[1] * groups, None, None])
    return call.create("deform_conv2d", [x, weight, *met], **told)


@rule("CenterCropPad")
def _center_crop_pad(call: Call) -> Any:
    """The middle of each axis, with zeros around what is short; of an odd rest the larger part stands behind.

    Raises Unsupported of sizes that are values of the model: the standard's own definition serves them.
    """
    x = call[0]
    if is_late(call, 1):
        raise Unsupported("")
    rank, wanted = len(x.shape), call.sizes(1, "the shape")
    axes = call.axes(None, rank) or list(range(rank))
    if len(axes) != len(wanted):
        raise InvalidModel(f"{len(wanted)} sizes for {len(axes)} axes; there must be one for each")
    for axis, size in zip(axes, wanted, strict=True):
        own = x.shape[axis]
        first = divide(maximum(own - size, 0), 2)
        x = slice_axis(call, x, axis, first, first + size, 1)
        missing = maximum(size - own, 0)
        before = divide(missing, 2)
        padding: list[Size] = [0 for _ in range(2 * rank)]
        padding[axis], padding[rank + axis] = before, missing - before
        x = call.create("pad", [x], padding=padding, mode="constant", value=0.0) if missing != 0 else x
        known: list[Size | None] = [size if k == axis else None for k in range(rank)]
        x = with_sizes(call, x, known)
    return x


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
