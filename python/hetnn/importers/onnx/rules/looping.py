"""Loops that go on as long as values say: a node with a body."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hetnn._core import Dim
from hetnn.errors import Unsupported
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.loop_body import Body, BodyInput, loop_node
from hetnn.importers.lowering.sizes import LONGEST
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.sequence import joint, known_sizes, packed
from hetnn.importers.onnx.values import Items, Maybe, Nothing, Tensors, Text


def late_loop(
    call: Call,
    trips: Any,
    going: Any,
    carried: Sequence[Any],
    said: Sequence[Mapping[int, int]],
    round_of: Callable[[Sequence[Any]], list[Any]],
    most: int = LONGEST,
    changing: Sequence[Sequence[int]] = (),
) -> list[Any]:
    """A node with a body, which runs as often as values say: what is carried behind the last round, and the stacked.

    `round_of` adds the nodes of a round, of its number, whether it goes on and what is carried; it gives whether there
    is another round, what is carried and what is stacked. `said` are the sizes by axis that the model declares for what
    is carried. The node is built again where it turns out that a carried value changes its shape, in axes that are not
    among those of `changing`, which says them of tensors. There are at most `most` rounds.
    """
    state = [_flattened(call, value) for value in carried]
    axes_of = [[list(axes) for axes in each.changing] for each in state]
    for told, (own, *_) in zip(changing, axes_of, strict=False):
        own.extend(told)
    while True:
        body, given, rebuilt = _loop_body(call, round_of, state, axes_of)
        flat = [value for each in state for value in each.values]
        behind = given[1 : 1 + len(flat)]
        rows = [row for each in axes_of for row in each]
        fixed = [sizes_said for each, sizes_said in zip(state, said, strict=True) for _ in each.values]
        found = False
        for before, after, axes, sizes_said in zip(flat, behind, rows, fixed, strict=True):
            if before.dtype != after.dtype or len(before.shape) != len(after.shape):
                raise Unsupported(
                    f"a Loop that changes a carried value from {before.dtype}{list(before.shape)} to "
                    f"{after.dtype}{list(after.shape)}"
                )
            unlike = [
                k
                for k, size in enumerate(before.shape)
                if k not in axes and size not in (after.shape[k], sizes_said.get(k))
            ]
            axes.extend(unlike)
            found |= bool(unlike)
        if not found:
            break
    # Sizes that stay are found too where they are symbols, and then taken as what they were.
    sizes = [
        call.found_size() if axis in axes or isinstance(size, Dim) else size
        for value, axes in zip(flat, rows, strict=True)
        for axis, size in enumerate(value.shape)
        if axes
    ]
    stacked = given[1 + len(flat) :]
    sizes += [size if isinstance(size, int) else call.found_size() for value in stacked for size in value.shape]
    made = loop_node(call, body, given, [trips, going], flat, call.found_size(0, most), sizes)
    for k, (value, axes) in enumerate(zip(flat, rows, strict=True)):
        if axes:
            stays = [None if axis in axes else size for axis, size in enumerate(value.shape)]
            made[k] = with_sizes(call, made[k], stays)
    out = []
    for each, after in zip(state, rebuilt, strict=True):
        out.append(each.build(made[: len(each.values)], after))
        del made[: len(each.values)]
    return [*out, *made]


@dataclass(frozen=True)
class _Flat:
    """What a loop carries as tensors: those, of each the axes that change, and what they are together again.

    The second argument of `build` is a value of the same kind, of which it takes what is known of shapes.
    """

    values: list[Any]
    changing: list[list[int]]
    build: Callable[[Sequence[Any], Any], Any]


def _flattened(call: Call, found: Any) -> _Flat:
    if isinstance(found, (Items, Tensors)):
        row = packed(call, found)

        def sequence(values: Sequence[Any], like: Any) -> Any:
            made = joint([row] if like is None else [row, like], values[0], values[1])
            return made if made.sizes is None else replace(made, sizes=known_sizes(made.sizes))

        return _Flat([row.values, row.shapes], [[0], [0]], sequence)
    if isinstance(found, Maybe):
        inner = _flattened(call, found.value)
        there = call.reshape(found.there, [])

        def optional(values: Sequence[Any], like: Any) -> Any:
            return Maybe(values[0], inner.build(values[1:], None if like is None else like.value))

        return _Flat([there, *inner.values], [[], *inner.changing], optional)
    if isinstance(found, Nothing):
        raise Unsupported("a Loop of an unknown number of rounds that carries a value that is always absent at first")
    if isinstance(found, Text):
        return _Flat([found.bytes, found.spans], [[0], []], lambda values, _: Text(*values))
    if isinstance(found, Complex):
        return _Flat([found.real, found.imag], [[], []], lambda values, _: Complex(*values))
    return _Flat([call.value(found)], [[]], lambda values, _: values[0])


def _like(call: Call, found: Any, before: Any) -> Any:
    """What a round gives in the form of what it got."""
    if isinstance(before, Maybe) and not isinstance(found, (Maybe, Nothing)):
        return Maybe(is_there(call, found), _like(call, found, before.value))
    if isinstance(found, Nothing) and isinstance(before, Maybe):
        return Maybe(is_there(call, found), before.value)
    return packed(call, found) if isinstance(found, Items) else found


def _loop_body(
    call: Call,
    round_of: Callable[[Sequence[Any]], list[Any]],
    state: list[_Flat],
    changing: list[list[list[int]]],
) -> tuple[Body, list[Any], list[Any]]:
    """The body, the values that it gives, and what it carries in the form of the model."""
    types = [BodyInput("i64", []), BodyInput("bool", [])]
    for each, rows in zip(state, changing, strict=True):
        types += [
            BodyInput(value.dtype, [call.new_size() if k in axes else n for k, n in enumerate(value.shape)], axes)
            for value, axes in zip(each.values, rows, strict=True)
        ]
    rebuilt: list[Any] = []

    def build(inputs: Sequence[Any]) -> list[Any]:
        rest = list(inputs[2:])
        carried = []
        for each in state:
            carried.append(each.build(rest[: len(each.values)], None))
            del rest[: len(each.values)]
        condition, *found = round_of([*inputs[:2], *carried])
        rebuilt[:] = [_like(call, value, before) for value, before in zip(found, carried, strict=False)]
        flat = [part for value in rebuilt for part in _flattened(call, value).values]
        return [call.value(condition), *flat, *(call.value(value) for value in found[len(state) :])]

    body, given = call.body(types, build)
    return body, given, rebuilt


def is_there(call: Call, found: Any) -> Any:
    """Whether an optional value is present, as a bool []."""
    if isinstance(found, Maybe):
        return call.reshape(found.there, [])
    return call.constant(not isinstance(found, Nothing), "bool")
