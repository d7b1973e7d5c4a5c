"""ONNX operators whose results are as large as values say."""

from __future__ import annotations

from typing import Any

from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import LONGEST, Size, product
from hetnn.importers.onnx.rules.call import Call, rule
from hetnn.importers.onnx.rules.text import coded
from hetnn.importers.onnx.values import Text


def _most(size: Size) -> int:
    return min(size, LONGEST) if isinstance(size, int) else LONGEST


@rule("NonZero")
def _nonzero(call: Call) -> Any:
    """The indices in columns, where the operator has rows."""
    count = call.found_size(0, _most(product(call[0].shape)))
    return call.create("permute", [call.create("nonzero", [call[0]], count=count)], perm=[1, 0])


@rule("Compress")
def _compress(call: Call) -> Any:
    x, axis = call[0], call.attr("axis")
    if axis is None:
        x, axis = call.reshape(x, [product(x.shape)]), 0
    axis = call.axis(int(axis), len(x.shape))
    return call.create("compress", [x, call[1]], axis=axis, count=call.found_size(0, _most(x.shape[axis])))


@rule("Unique")
def _unique(call: Call) -> list[Any]:
    """As numpy's: NaN is one number, but slices that hold it differ."""
    given, axis = call.inputs[0], call.attr("axis")
    alone = axis is None
    x, texts = coded(call, given) if isinstance(given, Text) else (call[0], None)
    if axis is None:
        x, axis = call.reshape(x, [product(x.shape)]), 0
    axis = call.axis(int(axis), len(x.shape))
    count = call.found_size(0, _most(x.shape[axis]))
    told = {"axis": axis, "sorted": bool(call.attr("sorted")), "equal_nan": alone, "count": count}
    values, *rest = call.create_all("unique", [x], told)
    if texts is not None:
        values = Text(texts.bytes, call.create("gather", [texts.spans, values], axis=0))
    return [values, *rest]


@rule("NonMaxSuppression")
def _non_max_suppression(call: Call) -> Any:
    most = with_sizes(call, call[2], [1]) if call.given(2) else call.constant(0, "i64")
    boxes = with_sizes(call, call[0], [None, None, 4])
    scores = with_sizes(call, call[1], [boxes.shape[0], None, boxes.shape[1]]) if len(boxes.shape) == 3 else call[1]
    least = [None if value is None else with_sizes(call, value, [1]) for value in (call.optional(3), call.optional(4))]
    inputs = [boxes, scores, most, *least]
    centered = bool(call.attr("center_point_box"))
    return call.create("non_max_suppression", inputs, centered=centered, count=call.found_size())
