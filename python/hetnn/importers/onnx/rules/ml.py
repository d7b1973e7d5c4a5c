"""ONNX operators of classical machine learning."""

from __future__ import annotations

from typing import Any

from hetnn.importers.onnx.rules.call import ONNX, Call

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
