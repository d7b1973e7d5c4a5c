"""Images, sequences and volumes in another size, and read at given places."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn import _core
from hetnn.errors import Unsupported
from hetnn.importers.lowering import sizes
from hetnn.importers.lowering.resampling import along
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.torch.rules.call import Call, rule
from hetnn.importers.torch.rules.indexing import fixed


def _upsampled(call: Call, op: str, scales: list[float], **attrs: Any) -> Any:
    return call.create(op, [call[call.names[0]]], size=call.shape()[-2:], scales=scales, **attrs)


# Bits of a share of a byte, such that it fits into 16.
_MOST_SHARE_BITS = 22


def _byte_shares(size: int, wanted: int, align_corners: bool, scale: float | None) -> tuple[np.ndarray[Any, Any], int]:
    """What each of `size` bytes gives to each of `wanted`, [size, wanted], as integers of so many bits behind the
    point, as torch resizes bytes."""
    corner = 0.5 if align_corners else 0.0
    if align_corners:
        step = (size - 1) / (wanted - 1) if wanted > 1 else 0.0
    else:
        step = 1 / scale if scale else size / wanted
    shares = np.zeros((size, wanted))
    for k in range(wanted):
        centre = step * (k + 0.5 - corner)
        first = math.floor(centre - 0.5 + corner)
        for place in (first, first + 1):
            shares[min(max(place, 0), size - 1), k] += max(0.0, 1 - abs(place - centre + 0.5 - corner))
    bits = 0
    while bits < _MOST_SHARE_BITS and int(0.5 + shares.max() * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    return np.floor(shares * (1 << bits) + 0.5).astype(np.int64), bits


def _resized_bytes(call: Call, scales: list[float]) -> Any:
    """Columns, then rows, each rounded to a byte."""
    x = call[call.names[0]]
    size, wanted = fixed(x.shape[-2:], "an image of bytes"), fixed(call.shape()[-2:], "an image of bytes")
    lead = list(x.shape[:-2])
    x = call.cast(x, "i32")
    for axis in (1, 0):
        corners = bool(call["align_corners"])
        if size[axis] == wanted[axis]:  # copied, whatever the scale
            continue
        shares, bits = _byte_shares(size[axis], wanted[axis], corners, scales[axis] if scales else None)
        turned = [*range(len(lead)), len(lead) + 1, len(lead)]
        x = call.create("permute", [x], perm=turned) if axis == 0 else x
        rows = sizes.product(lead) * x.shape[-2]
        flat = call.create("matmul", [call.reshape(x, [rows, size[axis]]), call.constant(shares, "i32")])
        total = call.create("add", [flat, call.constant(1 << (bits - 1), "i32")])
        total = call.create("shift_right", [total, call.constant(bits, "i32")])
        total = call.create("clamp", [total], min=0.0, max=255.0)
        x = call.reshape(total, [*lead, x.shape[-2], wanted[axis]])
        x = call.create("permute", [x], perm=turned) if axis == 0 else x
    return call.cast(x, "u8")


@rule("upsample_nearest2d.vec", "upsample_bilinear2d.vec")
def _upsample_by(call: Call) -> Any:
    op = call.target.split(".")[1]
    corners = {"align_corners": bool(call["align_corners"])} if "align_corners" in call.args else {}
    scales = [float(scale) for scale in call["scale_factors"] or []]
    if corners and call["input"].dtype == "u8":
        return _resized_bytes(call, scales)
    return _upsampled(call, op, scales, **corners)


@rule("upsample_nearest2d.default", "upsample_bilinear2d.default")
def _upsample_to(call: Call) -> Any:
    op = call.target.split(".")[1]
    corners = {"align_corners": bool(call["align_corners"])} if "align_corners" in call.args else {}
    given = [call["scales_h"], call["scales_w"]]
    scales = [] if None in given else [float(scale) for scale in given]
    if corners and call["self"].dtype == "u8":
        return _resized_bytes(call, scales)
    return _upsampled(call, op, scales, **corners)


@rule("grid_sampler_2d.default", "grid_sampler_3d.default")
def _grid_sampler(call: Call) -> Any:
    x, mode = call["input"], call["interpolation_mode"]
    if mode != 0 and len(x.shape) == 4:
        raise Unsupported("sampling of images other than by means of neighbours")  # in f32, as torch rounds
    return call.create(
        "grid_sample",
        [x, call["grid"]],
        mode=("linear", "nearest", "cubic")[mode],
        outside=("zeros", "border", "reflection")[call["padding_mode"]],
        align_corners=bool(call["align_corners"]),
    )


@rule("_upsample_bilinear2d_aa.default", "_upsample_bicubic2d_aa.default")
def _antialiased(call: Call) -> Any:
    """Columns, then rows, each by a product with fixed shares."""
    x = call["self"]
    if not x.dtype.startswith(("f", "bf")):
        raise Unsupported("antialiased resizing of integers")
    given, goals = (fixed(shape[-2:], "an antialiased image") for shape in (x.shape, call.shape()))
    scales = [call["scales_h"], call["scales_w"]]
    for axis in (3, 2):
        at = axis - 2
        if given[at] == goals[at]:  # copied, whatever the scale
            continue
        corners, cubic = bool(call["align_corners"]), "bicubic" in call.target
        shares = _core.torch_shares(given[at], goals[at], scales[at] or 0, corners, cubic, antialias=True, single=True)
        x = along(call, x, axis, shares)
    return x


@rule("upsample_bicubic2d.vec", "upsample_bicubic2d.default")
def _bicubic(call: Call) -> Any:
    """Along the width, then along the height, each by a product with fixed shares."""
    x = call[call.names[0]]
    if x.dtype not in ("f32", "f64"):
        raise Unsupported("bicubic resizing of other than f32 and f64")
    goals, given = fixed(call.shape()[-2:], "a bicubic image"), fixed(x.shape[-2:], "a bicubic image")
    scales = call["scale_factors"] if "scale_factors" in call.args else [call["scales_h"], call["scales_w"]]
    corners = bool(call["align_corners"])
    for axis in (3, 2):
        size, goal, scale = given[axis - 2], goals[axis - 2], (scales or [0, 0])[axis - 2] or 0
        single = x.dtype == "f32"
        shares = _core.torch_shares(size, goal, scale, corners, cubic=True, antialias=False, single=single)
        x = along(call, x, axis, shares)
    return x


def _as_images(call: Call, x: Any, image: list[Size], size: list[Size], scales: list[float]) -> Any:
    """Resized linearly as images of that shape."""
    corners = bool(call["align_corners"])
    return call.create("upsample_bilinear2d", [call.reshape(x, image)], size=size, scales=scales, align_corners=corners)


def _given_scales(call: Call) -> list[float]:
    """Those of the axes, or none where one is missing."""
    if "scale_factors" in call.args:
        given = list(call["scale_factors"] or [None])
    else:
        given = [value for name, value in call.args.items() if name.startswith("scales")]
    return [] if None in given else [float(scale) for scale in given]


@rule("upsample_linear1d.vec", "upsample_linear1d.default")
def _upsample_sequence(call: Call) -> Any:
    x, shape, scales = call[call.names[0]], call.shape(), _given_scales(call)
    images = _as_images(call, x, [*x.shape[:2], 1, x.shape[2]], [1, shape[2]], [1.0, *scales] if scales else [])
    return call.reshape(images, shape)


@rule("upsample_trilinear3d.vec", "upsample_trilinear3d.default")
def _upsample_volume(call: Call) -> Any:
    """Planes, then the third axis over whole planes."""
    x, shape, scales = call[call.names[0]], call.shape(), _given_scales(call)
    batch, channels, depth, height, width = x.shape
    planes = _as_images(call, x, [batch, channels * depth, height, width], list(shape[3:]), scales[1:])
    pixels = shape[3] * shape[4]
    deep = _as_images(
        call, planes, [batch, channels, depth, pixels], [shape[2], pixels], [scales[0], 1.0] if scales else []
    )
    return call.reshape(deep, shape)


@rule("affine_grid_generator.default")
def _affine_grid(call: Call) -> Any:
    """Each place of the result, between -1 and 1 along each axis, times the matrix."""
    theta, shape = call["theta"], fixed(call["size"], "a grid of places")
    axes = []
    for size in shape[2:]:
        places = np.linspace(-1, 1, size) if size > 1 else np.zeros(size)
        axes.append(places if call["align_corners"] else places * (size - 1) / size)
    places = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(shape[2:])], -1)
    base = call.constant(places.reshape(1, -1, len(axes) + 1), theta.dtype)
    turned = call.create("permute", [theta], perm=[0, 2, 1])
    return call.reshape(call.create("matmul", [base, turned]), call.shape())
