"""ONNX operators of classical machine learning."""

from __future__ import annotations

from typing import Any

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.onnx.rules.call import ONNX, Call
from hetnn.importers.onnx.values import Records

_ML = "ai.onnx.ml."


@ONNX.rule(f"{_ML}ArrayFeatureExtractor")
def _pick_features(call: Call) -> Any:
    x, places = call.values()
    count = 1 if not places.shape else places.shape[-1]
    picked = call.create("gather", [x, call.reshape(places, [count])], axis=len(x.shape) - 1)
    return picked if len(x.shape) > 1 else call.reshape(picked, [1, count])


@ONNX.rule(f"{_ML}Binarizer")
def _binarize(call: Call) -> Any:
    x = call[0]
    return call.cast(call.create("gt", [x, call.like(float(call.attr("threshold")), x)]), x.dtype)


@ONNX.rule(f"{_ML}ZipMap")
def _by_label(call: Call) -> Records:
    """Scores [N,C], or those of one row, by the labels of their classes."""
    keys = tuple(call.attr("classlabels_int64s") or ()) or tuple(call.attr("classlabels_strings") or ())
    shape, x = call.shape(0, 1, 2), call[0]
    x = x if len(shape) == 2 else call.reshape(x, [1, *shape])
    x = with_sizes(call, x, [None, len(keys)])
    if x.shape[1] != len(keys) or len(set(keys)) != len(keys):
        raise InvalidModel(f"ZipMap of {x.shape[1]} scores by {len(keys)} labels, of which each must have one")
    return Records(tuple(key if isinstance(key, int) else _text(key) for key in keys), x)


def _text(key: str | bytes) -> str:
    return key if isinstance(key, str) else key.decode()
