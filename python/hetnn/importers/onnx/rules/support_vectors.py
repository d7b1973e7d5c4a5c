"""ONNX's support vector machines."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel
from hetnn.importers.onnx.rules.call import ONNX, Call
from hetnn.importers.onnx.rules.looping import late_loop
from hetnn.importers.onnx.rules.voting import class_labels, in_rows, one_for_two, picked, transformed
from hetnn.importers.onnx.values import Array

_ML = "ai.onnx.ml."
# Of the search for probabilities of several classes.
_MOST_ROUNDS, _NEAR = 100, 0.005


def _kernel(call: Call, x: Any, vectors: Any) -> Any:
    """What each of the vectors [S,F] has in common with each row of x [N,F]: [N,S]; without any, x itself."""
    gamma, added, degree = (float(number) for number in [*(call.attr("kernel_params") or []), 0, 0, 0][:3])
    kind = call.attr("kernel_type")
    if vectors.shape[0] == 0:
        return x
    if kind == "RBF":
        away = call.create("sub", [call.reshape(x, [x.shape[0], 1, x.shape[1]]), vectors])
        squares = call.create("sum", [call.create("mul", [away, away])], axes=[2])
        return call.create("exp", [call.create("mul", [squares, call.like(-gamma, x)])])
    products = call.linear(x, vectors, None)
    if kind == "LINEAR":
        return products
    scaled = call.create("add", [call.create("mul", [products, call.like(gamma, x)]), call.like(added, x)])
    if kind == "POLY":
        return call.create("pow", [scaled, call.like(degree, x)])
    if kind == "SIGMOID":
        return call.create("tanh", [scaled])
    raise InvalidModel(f"kernel_type must be one of LINEAR, POLY, RBF, SIGMOID; got {kind!r}")


@ONNX.rule(f"{_ML}SVMRegressor")
def _regress(call: Call) -> Any:
    """Σ c_s k(x, v_s) + rho; without vectors the coefficients are those of the features."""
    x = call.cast(in_rows(call), "f32")
    (features,) = call.static_shape(x, "features", slice(1, 2))
    count = int(call.attr("n_supports") or 0)
    coefficients, rho, vectors = (_numbers(call, name) for name in ("coefficients", "rho", "support_vectors"))
    if coefficients.size != (count or features) or vectors.size != count * features or rho.size != 1:
        raise InvalidModel(
            f"SVMRegressor of {count} vectors of {features} features with {vectors.size} numbers, {coefficients.size} "
            f"coefficients and {rho.size} rho"
        )
    alike = _kernel(call, x, call.constant(vectors.reshape(count, features), "f32"))
    weight = call.constant(coefficients.reshape(1, -1), "f32")
    y = call.linear(alike, weight, call.constant(rho, "f32"))
    if call.attr("one_class"):
        wins = call.create("gt", [y, call.like(0, y)])
        return call.create("where", [wins, call.like(1, y), call.like(-1, y)])
    return transformed(call, y, str(call.attr("post_transform")))


def _numbers(call: Call, name: str) -> Array:
    return np.asarray(call.attr(name) or [], np.float32)


@ONNX.rule(f"{_ML}SVMClassifier")
def _classify(call: Call) -> list[Any]:
    """The class that wins most comparisons of two, and those, or probabilities from them; without vectors, a linear
    score for each class."""
    labels, count = class_labels(call, "classlabels_strings", "classlabels_ints")
    x, transform = call.cast(in_rows(call), "f32"), str(call.attr("post_transform"))
    per_class = [int(number) for number in call.attr("vectors_per_class") or []]
    if not sum(per_class):
        return _of_features(call, x, labels, count, transform)
    pairs = list(itertools.combinations(range(count), 2))
    scores = _compared(call, x, per_class, pairs)
    wins = call.create("gt", [scores, call.like(0, scores)])
    winner = call.create("where", [wins, *(call.constant([pair[k] for pair in pairs], "i64") for k in range(2))])
    votes = call.create("sum", [call.cast(call.hot(winner, count, 2), "i32")], axes=[1])
    label = picked(call, labels, call.create("argmax", [votes], axis=1, keepdim=False))
    slopes, begins = _numbers(call, "prob_a"), _numbers(call, "prob_b")
    if slopes.size != begins.size or slopes.size not in (0, len(pairs)):
        raise InvalidModel(
            f"SVMClassifier with {slopes.size} prob_a and {begins.size} prob_b for {len(pairs)} pairs of classes"
        )
    if slopes.size:
        likely = call.create("mul", [scores, call.constant(slopes, "f32")])
        likely = call.create(
            "sigmoid", [call.create("neg", [call.create("add", [likely, call.constant(begins, "f32")])])]
        )
        return [label, transformed(call, _probabilities(call, likely, count, pairs), transform)]
    if count == 2:
        return [label, one_for_two(call, scores, transform, shares=transform not in ("NONE", "LOGISTIC"))]
    return [label, transformed(call, scores, transform)]


def _of_features(call: Call, x: Any, labels: Any, count: int, transform: str) -> list[Any]:
    coefficients, rho = _numbers(call, "coefficients"), _numbers(call, "rho")
    (features,) = call.static_shape(x, "features", slice(1, 2))
    if coefficients.size != count * features or not rho.size:
        raise InvalidModel(
            f"SVMClassifier of {count} classes with {coefficients.size} coefficients and {rho.size} rho for {features} "
            "features"
        )
    weight = call.constant(coefficients.reshape(count, features), "f32")
    scores = call.linear(x, weight, call.constant(np.full(count, rho[0]), "f32"))
    place = call.create("argmax", [scores], axis=1, keepdim=False)
    if count == 2 and not call.attr("prob_a"):
        # As onnxruntime: the second class also where a score is high enough to be its.
        most = call.create("reduce_max", [scores], axes=[1], keepdim=False)
        positive = bool((coefficients >= 0).all())
        enough = call.create("ge" if positive else "gt", [most, call.like(0.5 if positive else 0.0, most)])
        place = call.create("where", [enough, call.constant(1, "i64"), place])
    return [picked(call, labels, place), transformed(call, scores, transform)]


def _compared(call: Call, x: Any, per_class: list[int], pairs: Sequence[tuple[int, int]]) -> Any:
    """What speaks for the first of two classes, [N, pairs]: the sum over the vectors of both, each by its coefficient
    against the other class."""
    (features,) = call.static_shape(x, "features", slice(1, 2))
    ends = np.cumsum([0, *per_class])
    count, (coefficients, rho, vectors) = (
        int(ends[-1]),
        (_numbers(call, name) for name in ("coefficients", "rho", "support_vectors")),
    )
    rows = len(per_class) - 1
    if coefficients.size != rows * count or vectors.size != count * features or rho.size != len(pairs):
        raise InvalidModel(
            f"SVMClassifier of {count} vectors of {features} features in {len(per_class)} classes with {vectors.size} "
            f"numbers, {coefficients.size} coefficients and {rho.size} rho"
        )
    table, weights = coefficients.reshape(rows, count), np.zeros((len(pairs), count), np.float32)
    for k, (a, b) in enumerate(pairs):
        weights[k, ends[a] : ends[a + 1]] = table[b - 1, ends[a] : ends[a + 1]]
        weights[k, ends[b] : ends[b + 1]] = table[a, ends[b] : ends[b + 1]]
    alike = _kernel(call, x, call.constant(vectors.reshape(count, features), "f32"))
    return call.linear(alike, call.constant(weights, "f32"), call.constant(rho, "f32"))


def _probabilities(call: Call, likely: Any, count: int, pairs: Sequence[tuple[int, int]]) -> Any:
    """[N,C] from how likely the first of two classes is, [N, pairs]: the second method of Wu, Lin and Weng 2004, which
    minimizes Σ over a, b of (r_ba p_a - r_ab p_b)² by turns."""
    tiny = 1e-7
    likely = call.create("clamp", [likely], min=tiny, max=1 - tiny)
    rest = call.create("sub", [call.like(1, likely), likely])
    both = call.create("concat", [likely, rest, call.create("mul", [likely, call.like(0, likely)])], axis=1)
    places = np.full((count, count), 2 * len(pairs))
    for k, (a, b) in enumerate(pairs):
        places[a, b], places[b, a] = k, len(pairs) + k
    r = call.create("gather", [both, call.constant(places, "i64")], axis=1)  # [N,C,C]
    turned = call.create("permute", [r], perm=[0, 2, 1])
    square = call.create("sum", [call.create("mul", [r, r])], axes=[1], keepdim=True)  # [N,1,C]
    matrix = call.create(
        "sub", [call.create("mul", [call.constant(np.eye(count), "f32"), square]), call.create("mul", [r, turned])]
    )
    rows = [call.entry(matrix, k, 1) for k in range(count)]
    own = [call.create("slice", [row], axis=1, start=k, end=k + 1) for k, row in enumerate(rows)]
    hot = [call.constant(np.eye(count)[k], "f32") for k in range(count)]
    near, one, two = (call.constant(number, "f32") for number in (_NEAR / count, 1.0, 2.0))

    def round_of(given: Sequence[Any]) -> list[Any]:
        p = given[2]
        column = call.create("matmul", [matrix, call.reshape(p, [*p.shape, 1])])
        slopes = call.reshape(column, list(p.shape))
        mean = call.create("sum", [call.create("mul", [p, slopes])], axes=[1], keepdim=True)
        away = call.create("abs", [call.create("sub", [slopes, mean])])
        goes = call.create("ge", [call.create("reduce_max", [away], axes=[1], keepdim=True), near])
        moved = p
        for k in range(count):
            slope = call.create("slice", [slopes], axis=1, start=k, end=k + 1)
            step = call.create("div", [call.create("sub", [mean, slope]), own[k]])
            whole = call.create("add", [one, step])
            moved = call.create("div", [call.create("add", [moved, call.create("mul", [step, hot[k]])]), whole])
            more = call.create("add", [call.create("mul", [step, own[k]]), call.create("mul", [two, slope])])
            mean = call.create("add", [mean, call.create("mul", [step, more])])
            mean = call.create("div", [call.create("div", [mean, whole]), whole])
            slopes = call.create("div", [call.create("add", [slopes, call.create("mul", [step, rows[k]])]), whole])
        again = call.create("any", [call.reshape(goes, [goes.shape[0]])], axes=[0])
        return [again, call.create("where", [goes, moved, p])]

    begun = call.broadcast_to(call.constant(1 / count, "f32"), [likely.shape[0], count])
    (found,) = late_loop(call, call.constant(_MOST_ROUNDS, "i64"), None, [begun], [{}], round_of, most=_MOST_ROUNDS)
    return found
