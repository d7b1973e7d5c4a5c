"""Operators whose shapes are values: ONNX has them with those values as inputs."""

from __future__ import annotations

from typing import Any

from hetnn.exporters.onnx.rules.call import Call, Value, exports
from hetnn.exporters.onnx.writer import attribute


def _whole(call: Call, k: int) -> Value | None:
    """Input k as i64 of rank 1, where it is there."""
    value = call.optional(k)
    return None if value is None else call.cast(value, "i64")


@exports("reshape_to")
def _reshape_to(call: Call) -> Any:
    return call.create("Reshape", [call[0], _whole(call, 1)], allowzero=int(call.attrs["allow_zero"]))


@exports("expand_to")
def _expand_to(call: Call) -> Any:
    return call.create("Expand", [call[0], _whole(call, 1)])


@exports("tile_over")
def _tile_over(call: Call) -> Any:
    return call.create("Tile", [call[0], _whole(call, 1)])


@exports("slice_over")
def _slice_over(call: Call) -> Any:
    return call.create("Slice", [call[0], *(_whole(call, k) for k in range(1, 5))])


@exports("split_over")
def _split_over(call: Call) -> Any:
    """From the end of the parts before to that of this one."""
    parts, axis, index = call.cast(call[1], "i64"), call.axis(call[0]), int(call.attrs["index"])
    ends = call.create("CumSum", [parts, call.constant(0, "i64")])
    bounds = [call.integers([0]), ends] if index == 0 else [ends, ends]
    starts = call.integers([0]) if index == 0 else _entry(call, bounds[0], index - 1)
    return call.create("Slice", [call[0], starts, _entry(call, ends, index), call.integers([axis])])


def _entry(call: Call, value: Value, k: int) -> Value:
    return call.create("Slice", [value, call.integers([k]), call.integers([k + 1])])


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@exports("pad_over")
def _pad_over(call: Call) -> Any:
    value = call.optional(2)
    value = None if value is None else call.reshape(value, [])
    return call.create("Pad", [call[0], _whole(call, 1), value, _whole(call, 3)], mode=_MODES[call.attrs["mode"]])


@exports("unit_axes")
def _unit_axes(call: Call) -> Any:
    return call.create("Unsqueeze" if call.attrs["add"] else "Squeeze", [call[0], _whole(call, 1)])


@exports("range_over")
def _range_over(call: Call) -> Any:
    return call.create("Range", [call.reshape(call[k], []) for k in range(3)])


@exports("col2im_over")
def _col2im_over(call: Call) -> Any:
    names = {"stride": "strides", "padding": "pads", "dilation": "dilations"}
    axes = call.fixed(call[1].shape or (), "the image's axes")[0]
    told: dict[str, Any] = {theirs: call.fixed(call.attrs[ours], ours) for ours, theirs in names.items()}
    whole = {"strides": axes, "dilations": axes, "pads": 2 * axes}
    told = {name: part * whole[name] if len(part) == 1 else part for name, part in told.items()}
    return call.create("Col2Im", [call[0], _whole(call, 1), _whole(call, 2)], **told)


@exports("mel_weights")
def _mel_weights(call: Call) -> Any:
    given = [call.reshape(call[k], []) for k in range(5)]
    return call.create("MelWeightMatrix", given, dtype=call.dtype, output_datatype=attribute(call.dtype, "dtype"))


@exports("resize_over")
def _resize_over(call: Call) -> Any:
    region, scales, goals = (call.optional(k) for k in (1, 2, 3))
    axes = [int(axis) for axis in call.attrs["axes"]]
    if call.attrs["rounding"] == "ceil_to_shrink":
        call.refuse("places that are rounded up where an axis shrinks, as the first Upsample had them")
    told: dict[str, Any] = {
        "axes": axes or None,
        "mode": call.attrs["mode"],
        "coordinate_transformation_mode": call.attrs["places"],
        "nearest_mode": call.attrs["rounding"],
        "antialias": int(call.attrs["antialias"]),
        "cubic_coeff_a": call.attrs["cubic_coefficient"],
        "exclude_outside": int(call.attrs["exclude_outside"]),
        "extrapolation_value": call.attrs["outside"],
        "keep_aspect_ratio_policy": call.attrs["policy"],
    }
    told = {name: value for name, value in told.items() if value is not None}
    scales = None if scales is None else call.cast(scales, "f32")
    return call.create("Resize", [call[0], region, scales, None if goals is None else call.cast(goals, "i64")], **told)


@exports("tensor_scatter")
def _tensor_scatter(call: Call) -> Any:
    mode = "circular" if call.attrs["circular"] else "linear"
    return call.create("TensorScatter", call.inputs, axis=call.axis(call[0]), mode=mode)
