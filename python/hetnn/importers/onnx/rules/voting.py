"""What ONNX's classifiers make of scores: transforms behind them, and the label of the class that wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.values import Array, Text

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")  # by number


def in_rows(call: Call, index: int = 0) -> Any:
    """The features, [N,F], as reals; a single row may be without N."""
    shape, x = call.shape(index, 1, 2), call[index]
    x = x if len(shape) == 2 else call.reshape(x, [1, *shape])
    return x if x.dtype in ("f32", "f64") else call.cast(x, "f32")


def transformed(call: Call, y: Any, transform: str) -> Any:
    """Scores [N,C] behind a transform; of one score a row only PROBIT changes any."""
    if transform not in TRANSFORMS:
        raise InvalidModel(f"post_transform must be one of {', '.join(TRANSFORMS)}; got {transform!r}")
    if transform == "PROBIT":
        return _probit(call, y)
    if y.shape[1] == 1 or transform == "NONE":
        return y
    if transform == "LOGISTIC":
        return call.create("sigmoid", [y])
    if transform == "SOFTMAX":
        return call.create("softmax", [y], axis=1)
    return _softmax_of_others(call, y)


def one_for_two(call: Call, y: Any, transform: str, shares: bool) -> Any:
    """Scores [N,2] of which one a row, [N,1], is the second: the first is what is left of 1 with `shares`, else -y."""
    if transform == "PROBIT":
        what = "the transform PROBIT of one score for two classes, of which the standard does not say what the other is"
        raise Unsupported(f"{what}; give the classifier a score for each")
    other = call.create("sub", [call.like(1, y), y]) if shares else call.create("neg", [y])
    both = call.create("concat", [other, y], axis=1)
    return call.create("sigmoid", [both]) if transform == "LOGISTIC" and not shares else both


def _softmax_of_others(call: Call, y: Any) -> Any:
    """Softmax in which a score of 0 stays nearly 0 and does not count in the sum."""
    most = call.create("reduce_max", [y], axes=[1], keepdim=True)
    counts = call.create("gt", [call.create("abs", [y]), call.like(1e-7, y)])
    parts = call.create("exp", [call.create("sub", [y, most])])
    total = call.create("sum", [call.create("where", [counts, parts, call.like(0, y)])], axes=[1], keepdim=True)
    small = call.create("mul", [y, call.create("exp", [call.create("neg", [most])])])
    return call.create("div", [call.create("where", [counts, parts, small]), total])


def _probit(call: Call, y: Any) -> Any:
    """sqrt(2) erfinv(2 y - 1), by Winitzki's approximation as ONNX Runtime has it."""

    def at(op: str, *values: Any) -> Any:
        return call.create(op, [call.like(value, y) if isinstance(value, float) else value for value in values])

    x = at("sub", at("mul", y, 2.0), 1.0)
    log = at("log", at("mul", at("sub", 1.0, x), at("add", x, 1.0)))
    v = at("add", at("mul", log, 0.5), 2 / (3.14159 * 0.147))
    root = at("sqrt", at("sub", at("sqrt", at("sub", at("mul", v, v), at("mul", log, 1 / 0.147))), v))
    signed = at("where", at("lt", x, 0.0), at("neg", root), root)
    return at("mul", signed, 1.41421356)


def class_labels(call: Call, *names: str) -> tuple[Any, int]:
    """The labels of classes, Text or integers, and how many."""
    for name in names or ("classlabels_strings", "classlabels_int64s"):
        labels = call.attr(name)
        if labels:
            return (call.texts(labels) if "string" in name else np.asarray(labels, np.int64)), len(labels)
    raise InvalidModel(f"{call.node.op_type} without labels of classes. Export the model again")


def picked(call: Call, labels: Any, place: Any) -> Any:
    """The label at each place."""
    if isinstance(labels, Text):
        return Text(labels.bytes, call.create("gather", [labels.spans, place], axis=0))
    if (labels == np.arange(len(labels))).all():
        return call.cast(place, "i64")
    return call.create("gather", [call.constant(labels, "i64"), place], axis=0)


@dataclass(frozen=True)
class Votes:
    """The sums of every class, [N,C], 0 where no leaf spoke of one, and which classes any spoke of."""

    sums: Any
    voted: Any
    always: Array  # of each class whether that is known
    never: Array
    base: Array  # what is added to the sums
    positive: bool  # all weights
    one_class: bool  # all weights are for one class


def classified(call: Call, votes: Votes, labels: Any, transform: str) -> list[Any]:
    """The labels [N] and the scores [N,C] in f32, as ONNX Runtime has them."""
    count = len(votes.always)
    if transform not in TRANSFORMS:
        raise InvalidModel(f"post_transform must be one of {', '.join(TRANSFORMS)}; got {transform!r}")
    if len(votes.base) not in (0, count, 1 if count == 2 else 0):
        raise InvalidModel(f"{call.node.op_type} with {len(votes.base)} base values for {count} classes")
    if count > 2:
        place, scores = _of_many(call, votes, transform)
    else:
        first, scores = (_of_two if count == 2 else _of_one)(call, votes, transform)
        place = call.reshape(call.cast(first, "i64"), first.shape[:1])
        if not (count == 2 and votes.one_class) and not isinstance(labels, Text):
            labels = np.arange(2)  # which class wins, whatever its label
        elif count == 1:
            place = call.create("mul", [place, call.constant(0, "i64")])
    return [picked(call, labels, place), call.cast(scores, "f32")]


def _of_many(call: Call, votes: Votes, transform: str) -> tuple[Any, Any]:
    """The class of the largest score among those that have one."""
    sums, has = votes.sums, votes.always.copy()
    if len(votes.base):
        sums = call.create("add", [sums, call.constant(votes.base, sums.dtype)])
        has[:] = True
    ranked = sums
    if not has.all():
        known = call.create("logical_or", [votes.voted, call.constant(has, "bool")])
        ranked = call.create("where", [known, sums, call.like(-np.inf, sums)])
    return call.create("argmax", [ranked], axis=1, keepdim=False), transformed(call, sums, transform)


def _where(call: Call, votes: Votes, column: int, a: Any, b: Any) -> Any:
    """`a` where a leaf spoke of that class, else `b`."""
    if votes.always[column]:
        return a
    if votes.never[column]:
        return b
    return call.create("where", [_column(call, votes.voted, column), a, b])


def _column(call: Call, values: Any, column: int) -> Any:
    return call.create("slice", [values], axis=1, start=column, end=column + 1)


def _wins(call: Call, votes: Votes, score: Any) -> Any:
    """Whether the second of two classes wins: behind a half where there are no others than shares of it."""
    return call.create("gt", [score, call.like(0.5 if votes.one_class and votes.positive else 0.0, score)])


def _of_one(call: Call, votes: Votes, transform: str) -> tuple[Any, Any]:
    base = float(votes.base[0]) if len(votes.base) else 0.0
    y = call.create("add", [votes.sums, call.like(base, votes.sums)]) if base else votes.sums
    return call.create("gt", [y, call.like(0.0, y)]), transformed(call, y, transform)


def _of_two(call: Call, votes: Votes, transform: str) -> tuple[Any, Any]:
    """Where no leaf spoke of the second class, the score of the first one is that of the second."""
    first, second = (_column(call, votes.sums, k) for k in range(2))
    none = call.like(0.0, first)
    if len(votes.base):
        # What a class starts with counts where it has a score; two replace the second class's by the first one's.
        begun = call.create("add", [first, call.like(float(votes.base[0]), first)])
        begun = _where(call, votes, 0, begun, none)
        if len(votes.base) == 1:
            first = begun
        else:
            second = call.create("add", [first, call.like(float(votes.base[1]), first)])
            turned = _where(call, votes, 0, call.create("neg", [second]), none)
            first = _where(call, votes, 1, turned, begun)
            second = _where(call, votes, 1, second, none)
    wins = _wins(call, votes, _where(call, votes, 1, second, first))
    both = transformed(call, call.create("concat", _full(call, [first, second]), axis=1), transform)
    if len(votes.base) == 2 or votes.always[1]:
        return wins, both
    if transform == "PROBIT" or not (votes.one_class or not len(votes.base)):
        alone = [transformed(call, first, transform), none]
    elif transform == "LOGISTIC":
        alone = [call.create("sigmoid", [x]) for x in (call.create("neg", [first]), first)]
    elif votes.one_class and votes.positive:
        alone = [call.create("sub", [call.like(1.0, first), first]), first]
    else:
        alone = [call.create("neg", [first]), first]
    return wins, _where(call, votes, 1, both, call.create("concat", _full(call, alone), axis=1))


def _full(call: Call, columns: Sequence[Any]) -> list[Any]:
    """Columns of as many rows each."""
    rows = next(x.shape for x in columns if len(x.shape) == 2)
    return [call.broadcast_to(x, rows) for x in columns]
