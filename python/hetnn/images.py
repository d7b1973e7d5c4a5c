"""Images for models that decode them: read by Pillow, where it is installed."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from hetnn.errors import Unsupported

_MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}


def decode_image(file: bytes, format: str) -> npt.NDArray[np.uint8]:
    """Pixels [height, width, channels] of an image in `RGB`, `BGR` or `Grayscale`; none of bytes that are no image.

    Unsupported where Pillow is not installed.
    """
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise Unsupported("decoding an image needs Pillow. Install hetnn[images].") from error
    channels = 1 if format == "Grayscale" else 3
    try:
        with Image.open(io.BytesIO(file)) as image:
            pixels: Any = np.asarray(image.convert(_MODES[format]))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return np.zeros((0, 0, channels), np.uint8)
    made: npt.NDArray[np.uint8] = pixels.reshape(*pixels.shape[:2], channels)
    return made[:, :, ::-1] if format == "BGR" else made
