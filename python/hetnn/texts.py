"""Texts as hetnn keeps them: UTF-8 one after another, and a span for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hetnn.errors import InvalidModel

# A span is where a text begins, times this, plus its length; 0 is the empty text.
SPAN = 1 << 32
MOST_AXES = 64  # of numpy


def packed(texts: Sequence[bytes], shape: Sequence[int], called: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The bytes, and the spans in this shape. InvalidModel naming what is `called` so for 2^31 bytes or more."""
    if len(shape) > MOST_AXES:
        raise InvalidModel(f"{called} has {len(shape)} axes; there may be {MOST_AXES}.")
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    if int(ends[-1]) >= SPAN // 2:
        raise InvalidModel(f"{called} holds {int(ends[-1])} bytes of text; there may be {SPAN // 2 - 1}.")
    lengths = np.diff(ends)
    spans = np.where(lengths > 0, ends[:-1] * SPAN + lengths, 0)
    return np.frombuffer(b"".join(texts), np.uint8), spans.reshape(tuple(shape))
