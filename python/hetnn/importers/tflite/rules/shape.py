"""TFLite's operators on shapes, and those that make tensors from numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn.element_types import numpy_type
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.tflite.rules.call import Call, always, rule


@rule("SHAPE", integers=always)
def _shape(call: Call) -> Any:
    shape = call.shape(0)
    if all(isinstance(size, int) for size in shape):
        return call.of_array(np.array(shape, numpy_type(call.outputs[0].dtype)))
    return call.of_array(np.array(shape, object))


@rule("RANK", integers=always)
def _rank(call: Call) -> Any:
    return call.of_array(np.array(call.rank(0), np.int32))


@rule("FILL", integers=always)
def _fill(call: Call) -> Any:
    return call.broadcast_to(call.reshape(call[1], []), call.sizes(0, "the shape"))


@rule("RANGE", integers=always)
def _range(call: Call) -> Any:
    numbers = [call.known(k) for k in range(3)]
    if any(number is None for number in numbers):
        raise Unsupported("bounds that are computed when the model runs")
    start, end, step = (number.reshape(-1)[0].item() for number in numbers if number is not None)
    if step == 0 or not all(map(math.isfinite, (start, end, step))):
        raise InvalidModel(f"a range from {start} to {end} by steps of {step}")
    count = max(math.ceil((end - start) / step), 0)
    if count > 1 << 28:
        raise InvalidModel(f"a range of {count} numbers")
    return call.of_array((start + np.arange(count) * step).astype(numpy_type(call.outputs[0].dtype)))


@rule("ONE_HOT", integers=always)
def _one_hot(call: Call) -> Any:
    """`on` at the places along a new axis, `off` elsewhere; no place outside it is one."""
    rank, depth = call.rank(0), call.integer(1, "the depth")
    axis = call.axis(int(call.option("Axis", -1)), rank + 1)
    if depth < 0:
        raise InvalidModel(f"a depth of {depth}")
    hot = call.hot(call.cast(call.plain(call[0], 0), "i64"), depth, axis)
    return call.create("where", [hot, call.reshape(call[2], []), call.reshape(call[3], [])])
