"""Order, picks by value, and sizes that come of values."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.exporters.onnx.rules.call import Call, Value, exports
from hetnn.exporters.onnx.writer import Branch


@exports("sort")
def _sort(call: Call) -> Any:
    """All of TopK, which keeps equals in their order."""
    x, axis = call[0], call.axis(call[0])
    if not call.attrs["stable"] and not x.dtype.startswith(("f", "bf")):
        call.refuse(f"of {x.dtype} with equals in torch's own order; sort with stable=True")
    if x.rank == 0:
        return _alone(call, x)
    return _top(call, x, (x.shape or ())[axis], axis, bool(call.attrs["descending"]), True)


@exports("topk")
def _topk(call: Call) -> Any:
    """Of integers equals are common, and hetnn picks those that torch does."""
    if not call[0].dtype.startswith(("f", "bf")):
        call.refuse(f"of {call[0].dtype} with equals in torch's own order; sort with stable=True and take the first")
    if call[0].rank == 0:
        return _alone(call, call[0])
    told = bool(call.attrs["largest"]), bool(call.attrs["sorted"])
    return _top(call, call[0], call.attrs["k"], call.axis(call[0]), *told)


def _alone(call: Call, x: Value) -> Any:
    """Of a number: itself, and its place."""
    return [call.create("Identity", [x]), call.constant(0, "i64")]


def _top(call: Call, x: Value, count: Any, axis: int, largest: bool, ordered: bool) -> Any:
    wide = x if call.takes("TopK", [x, None]) else call.cast(x, "i32")
    told: dict[str, Any] = {"axis": axis, "largest": int(largest), "sorted": int(ordered)}
    values, indices = call.create_all("TopK", [wide, call.writer.size(count)], [None, None], **told)
    return [call.cast(values, x.dtype), indices]


@exports("argmax", "argmin")
def _place(call: Call) -> Any:
    op_type = "ArgMax" if call.row["op"] == "argmax" else "ArgMin"
    return call.create(op_type, [call[0]], axis=call.axis(call[0]), keepdims=int(call.attrs["keepdim"]))


def _counts(call: Call, row: Value, values: Value, right: bool) -> Value:
    """How many entries of a row are before each value: compared with all of them."""
    less = "LessOrEqual" if right else "Less"
    found = call.create(less, [call.unsqueeze(row, [-2]), call.unsqueeze(values, [-1])])
    return call.create("ReduceSum", [call.cast(found, "i64"), call.integers([-1])], keepdims=0)


@exports("searchsorted")
def _searchsorted(call: Call) -> Any:
    counts = call.cast(_counts(call, call[0], call[1], bool(call.attrs["right"])), call.dtype)
    return counts if call.shape else call.reshape(counts, [])


@exports("repeat_index")
def _repeat_index(call: Call) -> Any:
    """Of each place of the result, how many runs end before it."""
    repeats = call.cast(call[0], "i64")
    ends = call.create("CumSum", [repeats, call.constant(0, "i64")])
    total = call.create("ReduceSum", [repeats], keepdims=0)
    places = call.create("Range", [call.constant(0, "i64"), total, call.constant(1, "i64")])
    return call.cast(_counts(call, ends, places, right=True), call.dtype)


@exports("nonzero")
def _nonzero(call: Call) -> Any:
    """A row an element; of a scalar a row without columns."""
    x = call[0]
    if not x.rank:
        call.refuse("of a scalar: engines differ in how many places it has")
    return call.permute(call.create("NonZero", [x], shape=[x.rank, 0]), [1, 0])


@exports("compress")
def _compress(call: Call) -> Any:
    return call.create("Compress", call.inputs, axis=call.axis(call[0]))


@exports("unique")
def _unique(call: Call) -> Any:
    if call.attrs["neighbours"]:
        call.refuse("of neighbours alone, which ONNX's Unique does not tell apart")
    if call[0].dtype == "bool":
        call.refuse("of bools, which engines' Unique does not take")
    told: dict[str, Any] = {"axis": call.axis(call[0]), "sorted": int(call.attrs["sorted"])}
    return call.create_all("Unique", [call[0]], [None] * 4, **told)


@exports("read_size")
def _read_size(call: Call) -> Any:
    """The integers are sizes from here on."""
    flat = call.cast(call.reshape(call[0], [len(call.attrs["sizes"])]), "i64")
    for k, size in enumerate(call.attrs["sizes"]):
        if not isinstance(size, int):
            call.writer.known[str(size)] = call.create("Slice", [flat, call.integers([k]), call.integers([k + 1])])
    return call[0]


@exports("require", "require_sizes")
def _require(call: Call) -> Any:
    """True: what must hold is not looked at by an ONNX model."""
    return call.constant(np.ones(call.fixed(call.shape, "sizes"), np.bool_), "bool")


_MOST = 1 << 31


@exports("non_max_suppression")
def _non_max_suppression(call: Call) -> Any:
    most, overlap, least = (call.optional(k) for k in (2, 3, 4))
    ready = [
        call.integers([_MOST]) if most is None else call.cast(most, "i64"),
        None if overlap is None else call.cast(overlap, "f32"),
        None if least is None else call.cast(least, "f32"),
    ]
    boxes = [call.cast(call[k], "f32") for k in (0, 1)]
    return call.create("NonMaxSuppression", [*boxes, *ready], center_point_box=int(call.attrs["centered"]))


@exports("choose")
def _choose(call: Call) -> Any:
    """An If whose branches give what lies around them."""
    branches: dict[str, Any] = {"then_branch": Branch(call[1].name), "else_branch": Branch(call[2].name)}
    return call.create("If", [call.reshape(call[0], [])], dtype=call.dtype, **branches)
