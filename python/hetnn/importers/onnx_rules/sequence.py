"""ONNX sequences and optionals whose lengths are known when compiling: lists of values, without a node."""

from __future__ import annotations

from typing import Any

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.onnx_rules.call import Call, Items, Nothing, rule
from hetnn.importers.onnx_rules.movement import late_part, slice_axis


def _items(call: Call, index: int) -> list[Any]:
    found = call.inputs[index]
    if not isinstance(found, Items):
        raise InvalidModel(f"{call.node.op_type} needs a sequence as input {index}")
    return list(found.values)


def _place(call: Call, index: int, length: int) -> int:
    """An index into a sequence, counted from the front."""
    place = int(call.number(index, "the place in a sequence"))
    if not -length <= place < length:
        raise InvalidModel(f"place {place} of a sequence of {length}")
    return place % length


@rule("SequenceEmpty")
def _empty(call: Call) -> Any:
    return [Items(())]


@rule("SequenceConstruct")
def _construct(call: Call) -> Any:
    return [Items(tuple(call.values()))]


@rule("SequenceAt")
def _at(call: Call) -> Any:
    items = _items(call, 0)
    return items[_place(call, 1, len(items))]


@rule("SequenceLength")
def _length(call: Call) -> Any:
    return call.constant(len(_items(call, 0)), "i64")


@rule("SequenceInsert")
def _insert(call: Call) -> Any:
    items = _items(call, 0)
    place = len(items)
    if call.given(2):
        place = int(call.number(2, "the place in a sequence"))
        if not -len(items) <= place <= len(items):
            raise InvalidModel(f"place {place} for an entry of a sequence of {len(items)}")
        place = place + len(items) if place < 0 else place
    items.insert(place, call[1])
    return [Items(tuple(items))]


@rule("SequenceErase")
def _erase(call: Call) -> Any:
    items = _items(call, 0)
    del items[_place(call, 1, len(items)) if call.given(1) else -1]
    return [Items(tuple(items))]


@rule("ConcatFromSequence")
def _concat(call: Call) -> Any:
    items = [call.value(item) for item in _items(call, 0)]
    if not items:
        raise InvalidModel("ConcatFromSequence of an empty sequence")
    if call.attr("new_axis", 0):
        return call.stacked(items, int(call.attr("axis")))
    return call.create("concat", items, axis=call.axis(int(call.attr("axis")), len(items[0].shape)))


@rule("SplitToSequence")
def _split(call: Call) -> Any:
    x = call[0]
    axis = call.axis(int(call.attr("axis", 0)), len(x.shape))
    known = call.known(1)
    if call.given(1) and known is None:
        if len(call[1].shape) != 1:
            raise Unsupported("a number of parts that is computed when the model runs; it must be known when compiling")
        count = call.static_shape(call[1], "the parts' sizes")[0]
        return [Items(tuple(late_part(call, axis, k, call.found_size()) for k in range(count)))]
    size = call.static_shape(x, "SplitToSequence")[axis]
    if known is None:
        parts = [1] * size
    elif known.ndim == 0:
        step = int(known)
        if step < 1:
            raise InvalidModel(f"SplitToSequence into parts of {step}")
        parts = [min(step, size - at) for at in range(0, size, step)]
    else:
        parts = [int(part) for part in known]
    items, at = [], 0
    for part in parts:
        item = slice_axis(call, x, axis, at, at + part, 1)
        if known is None and not call.attr("keepdims", 1):
            item = call.reshape(item, [n for k, n in enumerate(x.shape) if k != axis])
        items.append(item)
        at += part
    return [Items(tuple(items))]


@rule("Optional")
def _optional(call: Call) -> Any:
    return [call.inputs[0] if call.given(0) else Nothing()]


@rule("OptionalHasElement")
def _has_element(call: Call) -> Any:
    return call.constant(call.given(0) and not isinstance(call.inputs[0], Nothing), "bool")


@rule("OptionalGetElement")
def _get_element(call: Call) -> Any:
    if not call.given(0) or isinstance(call.inputs[0], Nothing):
        raise InvalidModel("OptionalGetElement of a value that is absent")
    return [call.inputs[0]]
