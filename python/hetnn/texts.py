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


def coded(value: Any, path: str) -> tuple[Any, Any]:
    """The UTF-8 of an array of texts, and their spans. InvalidModel where it holds anything else."""
    array = np.asarray(value)
    texts = array.reshape(-1).tolist()
    if not texts or array.dtype.kind in "OUST":
        try:
            utf8 = [text if isinstance(text, bytes) else str.encode(text, "utf-8") for text in texts]
        except (TypeError, UnicodeEncodeError) as error:
            raise InvalidModel(f"input '{path}' must hold texts: {error}.") from error
        return packed(utf8, array.shape, f"input '{path}'")
    raise InvalidModel(f"input '{path}' must be an array of texts; got {array.dtype}.")


def decoded(utf8: Any, spans: Any) -> Any:
    """An array of texts. InvalidModel for spans outside the bytes, and for what is no UTF-8."""
    data, out = utf8.tobytes(), np.empty(spans.shape, object)
    for k, span in enumerate(spans.reshape(-1).tolist()):
        begin, length = divmod(span, SPAN)
        if span < 0 or begin + length > len(data):
            raise InvalidModel(f"the model gives a text at {begin} to {begin + length} of {len(data)} bytes.")
        try:
            out.flat[k] = data[begin : begin + length].decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidModel(f"the model gives a text that is no UTF-8: {error}.") from error
    return out
