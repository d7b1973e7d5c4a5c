"""Filters of single pixels, one for each channel: what lies in an image times numbers, and copies of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.exporters.tosa.schema import number
from hetnn.exporters.tosa.writer import ONE, Factor, Tensor, Writer

_PIXELS = {"Pad": [0] * 4, "Stride": [1, 1], "Dilation": [1, 1]}
_SUMS = {"AccType": number("DType", "INT32"), "LocalBound": False}


_FEW_CHANNELS = 32


def by_channel(
    writer: Writer, x: Tensor, weights: Any, zeros: tuple[int, int, int], factor: Factor, rounding: str, bias: Any = 0
) -> Tensor:
    """An image of bytes, channels last, times a number and plus one for each channel or for all, rescaled.

    zeros: the zero points of image, weights and result. Where there are few channels, filters see all of them and have
    a weight for their own: some processors read and write rows of these faster.
    """
    channels = x.shape[3]
    values = np.broadcast_to(weights, channels)
    alone = writer.chains or channels > _FEW_CHANNELS
    if alone:
        filters = values.reshape(1, 1, -1, 1)
    else:
        filters = np.where(np.eye(channels, dtype=bool), values, zeros[1]).reshape(channels, 1, 1, channels)
    given = [
        *(x, writer.constant(filters, "i8"), writer.constant(np.broadcast_to(bias, channels), "i32")),
        *(writer.zero(zeros[0], "i8"), writer.zero(zeros[1], "i8")),
    ]
    sums = writer.add("DEPTHWISE_CONV2D" if alone else "CONV2D", given, "i32", x.shape, **_PIXELS, **_SUMS)
    return writer.rescale(sums, [factor], (0, zeros[2]), "i8", rounding)


def copied(writer: Writer, x: Tensor) -> Tensor:
    """The same bytes."""
    return by_channel(writer, x, 1, (0, 0, 0), ONE, "single")
