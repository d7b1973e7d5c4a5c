"""TFLite's operators that search, mark and pick places."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.sizes import LONGEST, product
from hetnn.importers.tflite.rules.call import Call, always, rule, static


@rule("WHERE", integers=always)
def _where(call: Call) -> Any:
    """The places [n, rank] at which a tensor is not 0."""
    shape = call.shape(0)
    most = product(shape)
    return call.create(
        "nonzero", [call.plain(call[0], 0)], count=call.found_size(most if isinstance(most, int) else LONGEST)
    )


@rule("REVERSE_SEQUENCE", integers=always)
def _reverse_sequence(call: Call) -> Any:
    """The first so many entries of an axis turned, for each entry of another."""
    rank = call.ranked(0, 2, 8)
    along, batch = (call.axis(int(call.option(name)), rank) for name in ("SeqDim", "BatchDim"))
    if along == batch:
        raise InvalidModel(f"sequences along the axis {along} of their batches")
    x = call[0]
    (count,) = static([x.shape[along]], "a sequence")
    shape = [x.shape[axis] if axis in (along, batch) else 1 for axis in range(rank)]
    places = call.reshape(call.constant(np.arange(count), "i64"), [count if k == along else 1 for k in range(rank)])
    lengths = call.cast(call.reshape(call[1], [shape[k] if k == batch else 1 for k in range(rank)]), "i64")
    turned = call.create("sub", [call.create("sub", [lengths, call.constant(1, "i64")]), places])
    index = call.create("where", [call.create("lt", [places, lengths]), turned, places])
    return call.create("gather_elements", [x, call.broadcast_to(index, x.shape)], axis=along, from_end=False)


@rule("DYNAMIC_UPDATE_SLICE", integers=always)
def _update_slice(call: Call) -> Any:
    """An operand with an update in it, moved inside where it would reach over an end."""
    rank = call.rank(0)
    x, update, starts = call[0], call[1], call.cast(call[2], "i64")
    outer, inner = static(x.shape, "an update of a part"), static(update.shape, "an update of a part")
    if len(inner) != rank or any(a > b for a, b in zip(inner, outer, strict=True)):
        raise InvalidModel(f"an update of {inner} of {outer}")
    if call.typed:
        raise Unsupported("updates of integers that stand for reals")
    room = call.constant(np.subtract(outer, inner), "i64")
    starts = call.create("minimum", [call.create("maximum", [starts, call.constant(0, "i64")]), room])
    index = call.constant(np.zeros(inner), "i64")
    steps = np.cumprod([1, *outer[::-1]])[-2::-1]
    for axis, step in enumerate(steps.tolist()):
        own = call.constant(np.arange(inner[axis]).reshape([-1 if k == axis else 1 for k in range(rank)]), "i64")
        at = call.create("add", [own, call.entry(starts, axis)])
        index = call.create("add", [index, call.create("mul", [at, call.constant(step, "i64")])])
    flat = call.reshape(x, [product(outer)])
    places, values = (call.reshape(each, [product(inner)]) for each in (index, update))
    return call.reshape(call.create("scatter_elements", [flat, places, values], axis=0), outer)


@rule("BROADCAST_ARGS", integers=always)
def _broadcast_args(call: Call) -> Any:
    """The shape to which two shapes broadcast."""
    shapes = [tuple(call.integers(k, "a shape")) for k in (0, 1)]
    return call.of_array(
        np.array(np.broadcast_shapes(*shapes), np.int64 if call.tensor(0).dtype == "i64" else np.int32)
    )


@rule("MATRIX_DIAG")
def _matrix_diag(call: Call) -> Any:
    """Vectors on the diagonals of matrices of zeros."""
    x = call[0]
    (size,) = static(x.shape[-1:], "a diagonal")
    unit = call.constant(np.eye(size), x.dtype)
    return call.create("mul", [call.reshape(x, [*x.shape, 1]), unit])


@rule("BUCKETIZE")
def _bucketize(call: Call) -> Any:
    """Between which boundaries each number lies."""
    bounds = call.constant(np.asarray(call.option("Boundaries", []), np.float32), "f32")
    found = call.create("searchsorted", [bounds, call.cast(call[0], "f32")], right=True)
    return call.cast(found, "i32")


@rule("NON_MAX_SUPPRESSION_V4")
def _non_max_suppression(call: Call) -> list[Any]:
    """Places of the boxes of the highest scores, none too much over another, zeros behind them; and how many."""
    boxes, scores = call[0], call[1]
    most = call.integer(2, "how many boxes")
    if most < 0:
        raise InvalidModel(f"{most} boxes")
    (count,) = static(boxes.shape[:1], "boxes")
    found = call.found_size(min(most, count))
    limits = [call.constant([most], "i64"), *(call.reshape(call[k], [1]) for k in (3, 4))]
    rows = [call.reshape(boxes, [1, count, 4]), call.reshape(scores, [1, 1, count])]
    places = call.create("non_max_suppression", [*rows, *limits], count=found)
    picked = call.cast(call.entry(places, 2, 1), "i32")
    return [
        call.create("pad", [picked], padding=[0, most - found]),
        call.cast(call.reshape(call.whole(found), []), "i32"),
    ]
