"""ONNX sequences and optionals: lists of values where lengths and places are known when compiling, else nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.element_types import numpy_type
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.sizes import Size, product
from hetnn.importers.onnx.model import dtype_name
from hetnn.importers.onnx.rules.call import Call, rule
from hetnn.importers.onnx.rules.late import is_late_number
from hetnn.importers.onnx.rules.movement import late_part, slice_axis
from hetnn.importers.onnx.rules.text import joined
from hetnn.importers.onnx.values import Items, Maybe, Nothing, Sizes, Tensors, Text

# Sizes in a row of a sequence's shapes, behind the rank.
MOST_ITEM_AXES = 8
# Parts that are values of their own; of more a node makes a sequence.
_MOST_ITEMS = 4096


def packed(call: Call, found: Any) -> Tensors:
    """A sequence of a known length as values that nodes read."""
    if isinstance(found, Tensors):
        return found
    if not isinstance(found, Items):
        raise InvalidModel(f"{call.node.op_type} needs a sequence")
    items = [call.value(item) for item in found.values]
    if not items:
        empty = np.zeros(0, numpy_type(found.dtype))
        shapes = call.constant(np.zeros((0, MOST_ITEM_AXES + 1)), "i64")
        return Tensors(call.constant(empty, found.dtype), shapes, None, begun=True)
    if any(item.dtype != items[0].dtype or len(item.shape) > MOST_ITEM_AXES for item in items):
        raise Unsupported(f"a sequence of several element types, or of tensors of more than {MOST_ITEM_AXES} axes")
    flat = [call.reshape(x, [product(x.shape)]) for x in items]
    values = call.joined(flat, 0)
    return Tensors(values, shapes_of(call, [x.shape for x in items]), common([known_sizes(x.shape) for x in items]))


def shapes_of(call: Call, shapes: Sequence[Sequence[Size]]) -> Any:
    """Shapes as rows of their rank and sizes."""
    rows = [[len(shape), *shape, *[0] * (MOST_ITEM_AXES - len(shape))] for shape in shapes]
    fixed = all(isinstance(size, int) for row in rows for size in row)
    return call.constant(rows, "i64") if fixed else call.value(Sizes(np.array(rows, dtype=object)))


def known_sizes(shape: Sequence[Any]) -> tuple[int | None, ...]:
    """Sizes that are no symbols, None in the place of the others."""
    return tuple(size if isinstance(size, int) else None for size in shape)


def common(shapes: Sequence[tuple[int | str | None, ...] | None]) -> tuple[int | str | None, ...] | None:
    """What is true of all of these shapes."""
    first, *others = shapes
    for shape in others:
        if first is None or shape is None or len(first) != len(shape):
            return None
        first = tuple(a if a == b else None for a, b in zip(first, shape, strict=True))
    return first


def joint(rows: Sequence[Tensors], values: Any, shapes: Any) -> Tensors:
    """A sequence of these values and shapes, of which is known what is true of all of those sequences."""
    told = [row.sizes for row in rows if not row.begun]
    return Tensors(values, shapes, common(told) if told else None, begun=not told)


def _sequence(call: Call, index: int) -> Items | Tensors:
    found = call.inputs[index] if call.given(index) else None
    if not isinstance(found, (Items, Tensors)):
        raise InvalidModel(f"{call.node.op_type} needs a sequence as input {index}")
    return found


def _place(call: Call, index: int, length: int) -> int:
    """An index into a sequence, counted from the front."""
    place = int(call.number(index, "the place in a sequence"))
    if not -length <= place < length:
        raise InvalidModel(f"place {place} of a sequence of {length}")
    return place % length


@rule("SequenceEmpty")
def _empty(call: Call) -> Any:
    return [Items((), dtype_name(int(call.attr("dtype") or 1)))]


@rule("SequenceConstruct")
def _construct(call: Call) -> Any:
    return [Items(tuple(_item(call, k) for k in range(len(call.inputs))))]


def _item(call: Call, index: int) -> Any:
    """An input that goes into a sequence: a tensor, of texts or complex numbers too."""
    found = call.inputs[index] if call.given(index) else None
    return found if isinstance(found, (Text, Complex)) else call[index]


@rule("SequenceAt")
def _at(call: Call) -> Any:
    found = _sequence(call, 0)
    if isinstance(found, Items) and not is_late_number(call, 1):
        return found.values[_place(call, 1, len(found.values))]
    row = packed(call, found)
    sizes = row.sizes if row.sizes is not None else _declared(call)
    symbols: list[Size] = []
    shape: list[Size] = []
    for size in sizes:
        if isinstance(size, str):
            symbol, has_value = call.named(size)
            shape.append(symbol)
            symbols.append(call.found_size() if has_value or symbol in symbols else symbol)
        else:
            shape.append(call.found_size() if size is None else size)
            symbols.append(shape[-1])
    y = call.create("sequence_at", [row.values, row.shapes, call[1]], sizes=symbols)
    return y if symbols == shape else call.create("match_shape", [y], shape=shape)


def _declared(call: Call) -> list[int | None]:
    """The shape that the model declares for what comes out of a sequence of tensors of any rank."""
    declared = call.declared()
    if declared is None:
        raise Unsupported("a tensor of unknown rank out of a sequence. Declare its shape among the model's value_info")
    return [size if isinstance(size, int) else None for size in declared]


@rule("SequenceLength")
def _length(call: Call) -> Any:
    found = _sequence(call, 0)
    if isinstance(found, Items):
        return call.constant(len(found.values), "i64")
    count = found.shapes.shape[0]
    return call.constant(count, "i64") if isinstance(count, int) else [Sizes(np.array(count, dtype=object))]


@rule("SequenceInsert")
def _insert(call: Call) -> Any:
    found = _sequence(call, 0)
    if isinstance(found, Items) and not is_late_number(call, 2):
        items = list(found.values)
        place = len(items)
        if call.given(2):
            place = int(call.number(2, "the place in a sequence"))
            if not -len(items) <= place <= len(items):
                raise InvalidModel(f"place {place} for an entry of a sequence of {len(items)}")
            place = place + len(items) if place < 0 else place
        items.insert(place, _item(call, 1))
        return [Items(tuple(items))]
    row, x = packed(call, found), call[1]
    parts = call.create_all("sequence_insert", [row.values, row.shapes, x, call.optional(2)], {})
    return [joint([row, Tensors(None, None, known_sizes(x.shape))], *parts[:2])]


@rule("SequenceErase")
def _erase(call: Call) -> Any:
    found = _sequence(call, 0)
    if isinstance(found, Items) and not is_late_number(call, 1):
        items = list(found.values)
        del items[_place(call, 1, len(items)) if call.given(1) else _last(items)]
        return [Items(tuple(items), found.dtype)]
    row = packed(call, found)
    told = {"total": call.found_size()}
    values, shapes = call.create_all("sequence_erase", [row.values, row.shapes, call.optional(1)], told)
    return [joint([row], values, shapes)]


def _last(items: Sequence[Any]) -> int:
    if not items:
        raise InvalidModel("SequenceErase of an empty sequence")
    return -1


@rule("ConcatFromSequence")
def _concat(call: Call) -> Any:
    if call.attr("axis") is None:
        raise InvalidModel("ConcatFromSequence needs the attribute axis, which is absent")
    found, stacks = _sequence(call, 0), bool(call.attr("new_axis", 0))
    if isinstance(found, Tensors):
        rank = len(_declared(call)) if found.sizes is None else len(found.sizes) + stacks
        told = {"axis": int(call.attr("axis")), "new_axis": stacks, "sizes": [call.found_size() for _ in range(rank)]}
        return call.create_all("sequence_concat", [found.values, found.shapes], told)[0]
    items = list(found.values)
    if not items:
        raise InvalidModel("ConcatFromSequence of an empty sequence")
    if all(isinstance(item, Text) for item in items):
        data, spans = joined(call, items)
        return Text(data, _joined(call, spans, stacks))
    if all(isinstance(item, Complex) for item in items):
        parts = ([item.real for item in items], [item.imag for item in items])
        return Complex(*(_joined(call, part, stacks) for part in parts))
    return _joined(call, [call.value(item) for item in items], stacks)


def _joined(call: Call, items: list[Any], stacks: bool) -> Any:
    """Tensors one behind the other along an axis, or along a new one."""
    axis = int(call.attr("axis"))
    if stacks:
        return call.stacked(items, call.axis(axis, len(items[0].shape) + 1))
    return call.create("concat", items, axis=call.axis(axis, len(items[0].shape)))


def _parts(call: Call, size: Any) -> list[int] | None:
    """The sizes of the parts of an axis; None: they are found when the model runs, or are too many to name."""
    known = call.known(1)
    if call.given(1) and (known is None or known.dtype == object):
        return None
    if known is not None and known.ndim > 0:
        parts = [int(part) for part in known.reshape(-1)]
        if isinstance(size, int) and (known.ndim > 1 or min(parts, default=0) < 0 or sum(parts) != size):
            raise InvalidModel(f"SplitToSequence of an axis of {size} into parts of {parts}")
        return parts if isinstance(size, int) else None
    each = 1 if known is None else int(known)
    if each < 1:
        raise InvalidModel(f"SplitToSequence into parts of {each}")
    if not isinstance(size, int) or size > each * _MOST_ITEMS:
        return None
    return [min(each, size - at) for at in range(0, size, each)]


@rule("SplitToSequence")
def _split(call: Call) -> Any:
    x = call[0]
    axis, keeps = call.axis(call.attr("axis", 0), len(x.shape)), bool(call.attr("keepdims", 1)) or call.given(1)
    parts = _parts(call, x.shape[axis])
    if parts is not None:
        items, at = [], 0
        for part in parts:
            item = slice_axis(call, x, axis, at, at + part, 1)
            items.append(item if keeps else call.reshape(item, [n for k, n in enumerate(x.shape) if k != axis]))
            at += part
        return [Items(tuple(items), x.dtype)]
    sizes = known_sizes(x.shape)
    counted = call[1].shape[0] if call.given(1) and len(call[1].shape) == 1 else None
    if isinstance(counted, int) and counted <= _MOST_ITEMS and None not in sizes:
        return [Items(tuple(late_part(call, axis, k, call.found_size()) for k in range(counted)))]
    told = {"axis": axis, "keepdim": keeps, "count": call.found_size()}
    values, shapes = call.create_all("sequence_split", [x, call.optional(1)], told)
    own = [None] if call.given(1) else [1] * keeps
    return [Tensors(values, shapes, (*sizes[:axis], *own, *sizes[axis + 1 :]))]


@rule("Optional")
def _optional(call: Call) -> Any:
    return [call.inputs[0] if call.given(0) else Nothing()]


@rule("OptionalHasElement")
def _has_element(call: Call) -> Any:
    found = call.inputs[0] if call.given(0) else Nothing()
    return found.there if isinstance(found, Maybe) else call.constant(not isinstance(found, Nothing), "bool")


@rule("OptionalGetElement")
def _get_element(call: Call) -> Any:
    if not call.given(0) or isinstance(call.inputs[0], Nothing):
        raise InvalidModel("OptionalGetElement of a value that is absent")
    found = call.inputs[0]
    return [found.value if isinstance(found, Maybe) else found]
