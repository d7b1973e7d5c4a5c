"""ONNX operators of classical machine learning: what prepares features, and linear models over them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn.element_types import is_float
from hetnn.errors import InvalidModel
from hetnn.importers.onnx.rules.call import ONNX, Call
from hetnn.importers.onnx.rules.voting import class_labels, in_rows, one_for_two, picked, transformed
from hetnn.importers.onnx.values import Array, Text

_ML = "ai.onnx.ml."


def _columns(call: Call, name: str, count: Any) -> Array:
    """Numbers of an attribute, one a feature or one for all."""
    numbers = np.asarray(call.attr(name) or [], np.float32)
    if numbers.size != 1 and numbers.size != count:
        raise InvalidModel(f"{call.node.op_type} with {numbers.size} {name} for {count} features")
    return numbers


@ONNX.rule(f"{_ML}Scaler")
def _scale(call: Call) -> Any:
    shape = call.shape(0, 1, 2)
    x = call.cast(call[0], "f32")
    offset, scale = (_columns(call, name, shape[-1]) for name in ("offset", "scale"))
    return call.create("mul", [call.create("sub", [x, call.constant(offset, "f32")]), call.constant(scale, "f32")])


@ONNX.rule(f"{_ML}Normalizer")
def _normalize(call: Call) -> Any:
    """Each row by its greatest number, its sum of sizes or its length; rows of zeros stay."""
    shape = call.shape(0, 1, 2)
    x, axes = call.cast(call[0], "f32"), [len(shape) - 1]
    norm = call.attr("norm")
    if norm == "MAX":
        size = call.create("reduce_max", [x], axes=axes, keepdim=True)
    elif norm == "L1":
        size = call.create("sum", [call.create("abs", [x])], axes=axes, keepdim=True)
    elif norm == "L2":
        size = call.create("sqrt", [call.create("sum", [call.create("mul", [x, x])], axes=axes, keepdim=True)])
    else:
        raise InvalidModel(f"norm must be one of MAX, L1, L2; got {norm!r}")
    none = call.create("eq", [size, call.like(0, x)])
    return call.create("div", [x, call.create("where", [none, call.like(1, x), size])])


@ONNX.rule(f"{_ML}Imputer")
def _impute(call: Call) -> Any:
    """Numbers in the place of missing ones, which are NaN or one that is named."""
    shape, x = call.shape(0, 1, 2), call[0]
    kind = "float" if is_float(x.dtype) else "int64"
    given, missing = call.attr(f"imputed_value_{kind}s") or [], call.attr(f"replaced_value_{kind}", 0)
    if len(given) != 1 and len(given) != shape[-1]:
        raise InvalidModel(f"Imputer with {len(given)} values for {shape[-1]} features")
    if isinstance(missing, float) and math.isnan(missing):
        absent = call.create("ne", [x, x])
    else:
        absent = call.create("eq", [x, call.like(missing, x)])
    return call.create("where", [absent, call.constant(given, x.dtype), x])


@ONNX.rule(f"{_ML}FeatureVectorizer")
def _side_by_side(call: Call) -> Any:
    """The features of every input, [N,F], behind one another; each with as many as are said, cut or filled with 0."""
    wanted = [int(count) for count in call.attr("inputdimensions") or []]
    parts = [in_rows(call, k) for k in range(len(call.values()))]
    if len(wanted) != len(parts):
        raise InvalidModel(f"FeatureVectorizer of {len(parts)} inputs with {len(wanted)} inputdimensions")
    filled = []
    for part, count in zip(parts, wanted, strict=True):
        (have,) = call.static_shape(part, "features", slice(1, 2))
        filled.append(call.create("pad", [call.cast(part, "f32")], padding=[0, 0, 0, count - have]))
    return call.create("concat", filled, axis=1)


@ONNX.rule(f"{_ML}OneHotEncoder")
def _categories(call: Call) -> Any:
    """1 where a value is a category, along a new last axis; values that are none are refused unless `zeros` is set."""
    x = call.inputs[0]
    if isinstance(x, Text):
        names = call.attr("cats_strings") or []
        table = call.texts(names)
        place = call.create("text_find", [x.bytes, x.spans, table.bytes, table.spans])
        same = call.hot(place, len(names) + 1, len(x.shape))
        same = call.create("slice", [same], axis=len(x.shape), start=0, end=len(names))
    else:
        x = call.cast(call.value(x), "i64")
        column = call.reshape(x, [*x.shape, 1])
        same = call.create("eq", [column, call.constant(call.attr("cats_int64s") or [], "i64")])
    hot = call.cast(same, "f32")
    if call.attr("zeros"):
        return hot
    # A value without a category picks what a table of one row does not have, which ends the run.
    lacks = call.create("logical_not", [call.create("any", [same], axes=[len(x.shape)], keepdim=True)])
    one = call.create("gather", [call.constant([1.0], "f32"), call.cast(lacks, "i64")], axis=0)
    return call.create("mul", [hot, one])


def _linear(call: Call, x: Any, rows: int) -> Any:
    """x [N,F] by `rows` rows of coefficients, and intercepts where there are any."""
    coefficients, intercepts = (
        np.asarray(call.attr(name) or [], np.float32) for name in ("coefficients", "intercepts")
    )
    (count,) = call.static_shape(x, "features", slice(1, 2))
    if coefficients.size != rows * count or intercepts.size not in (0, rows):
        raise InvalidModel(
            f"{call.node.op_type} with {coefficients.size} coefficients and {intercepts.size} intercepts for {rows} by "
            f"{count} features"
        )
    weight = call.constant(coefficients.reshape(rows, count), "f32")
    return call.linear(call.cast(x, "f32"), weight, call.constant(intercepts, "f32") if intercepts.size else None)


@ONNX.rule(f"{_ML}LinearRegressor")
def _linear_regressor(call: Call) -> Any:
    y = _linear(call, in_rows(call), int(call.attr("targets", 1)))
    return transformed(call, y, str(call.attr("post_transform")))


@ONNX.rule(f"{_ML}LinearClassifier")
def _linear_classifier(call: Call) -> list[Any]:
    """The class of the greatest score; of two classes one score may speak, which is the second's."""
    labels, count = class_labels(call, "classlabels_strings", "classlabels_ints")
    transform, rows = str(call.attr("post_transform")), len(call.attr("intercepts") or []) or count
    scores = _linear(call, in_rows(call), rows)
    if rows == count and rows > 1:
        place = call.create("argmax", [scores], axis=1, keepdim=False)
        return [picked(call, labels, place), transformed(call, scores, transform)]
    if rows != 1 or count != 2:
        raise InvalidModel(f"LinearClassifier of {count} classes with {rows} scores")
    place = call.cast(call.create("gt", [call.reshape(scores, [scores.shape[0]]), call.like(0, scores)]), "i64")
    return [picked(call, labels, place), one_for_two(call, scores, transform, shares=transform != "LOGISTIC")]
