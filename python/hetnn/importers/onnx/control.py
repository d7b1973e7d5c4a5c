"""ONNX branches and loops whose way is known when compiling: the nodes that run, one round after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from hetnn._core import Dim
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.sizes import LONGEST, Size
from hetnn.importers.onnx.fixed import read_size
from hetnn.importers.onnx.model import dtype_name
from hetnn.importers.onnx.rules.call import Call, Inline
from hetnn.importers.onnx.rules.late import is_late
from hetnn.importers.onnx.rules.looping import late_loop
from hetnn.report.text import count
from hetnn.texts import MOST_AXES

# Of rounds, where only a condition ends them.
_ANY_NUMBER = 2**63 - 1
# More rounds than that are a graph too large to plan.
_MOST_ROUNDS = 4096


def branch(call: Call, inline: Inline) -> list[Any]:
    """The branch that an If takes; where that is not known, both, and a choice between what they give."""
    name = call.node.name or "If"
    known = call.known(0)

    def side(holds: bool) -> list[Any]:
        called = "then" if holds else "else"
        return inline(call.attr(f"{called}_branch"), f"{name}/{called}/", [])

    if known is not None and known.size == 1 and not isinstance(known.reshape(-1)[0], Dim):
        return side(bool(known.reshape(-1)[0]))
    condition = call.reshape(call[0], [])
    taken, other = (call.forks.side(call, condition, holds, partial(side, holds)) for holds in (True, False))
    return [call.forks.joined(call, condition, a, b) for a, b in zip(taken, other, strict=True)]


def _rounds(count: int, what: str) -> None:
    if count > _MOST_ROUNDS:
        raise Unsupported(f"a {what} of more than {_MOST_ROUNDS} rounds")


def loop(call: Call, inline: Inline) -> list[Any]:
    """A Loop: unrolled where its number of rounds and conditions are known, else a node with a body."""
    body, name = call.attr("body"), call.node.name or "Loop"
    if any(_is_open(call, k) for k in (0, 1)):
        return _of_values(call, inline)
    trips = int(call.number(0, "the number of rounds")) if call.given(0) else None
    going = bool(call.number(1, "the condition")) if call.given(1) else True
    state = call.inputs[2:]
    _check_outputs(body, 1 + len(state), len(body.output))
    gathered: list[list[Any]] = [[] for _ in range(len(body.output) - 1 - len(state))]
    count = 0
    while going and (trips is None or count < trips):
        _rounds(count + 1, "Loop")
        given = [call.constant(count, "i64"), call.constant(True, "bool"), *state]
        condition, *found = inline(body, f"{name}/{count}/", given)
        state = found[: len(state)]
        for row, value in zip(gathered, found[len(state) :], strict=True):
            row.append(value)
        known = call.known_of(condition)
        if known is None or isinstance(known.reshape(-1)[0], Dim):  # of open sizes, each run says
            return _of_values(call, inline)
        going, count = bool(known.reshape(-1)[0]), count + 1
    return [*state, *(_stacked(call, row, 0, body.output[k - len(gathered)]) for k, row in enumerate(gathered))]


def _check_outputs(body: Any, least: int, most: int) -> None:
    """InvalidModel for a body that gives fewer values than are carried, or more than the node has."""
    if not least <= len(body.output) <= most:
        raise InvalidModel(f"a body with {count(len(body.output), 'output')}, of which there must be {least} to {most}")


def _each(call: Call, name: str, count: int) -> list[int]:
    """An attribute of one integer for each of so many values; zeros where it is not given."""
    given = [int(n) for n in call.attr(name) or [0] * count]
    if len(given) != count:
        raise InvalidModel(f"{name} {given}, of which there must be {count}")
    return given


def _is_open(call: Call, index: int) -> bool:
    """Whether an input is given and no number that is known when compiling."""
    known = call.known(index) if call.given(index) else None
    return is_late(call, index) or (known is not None and known.dtype == object)


def _of_values(call: Call, inline: Inline) -> list[Any]:
    """A Loop that goes on as long as values say."""
    trips = call.reshape(call.cast(call[0], "i64"), []) if call.given(0) else call.constant(_ANY_NUMBER, "i64")
    going = call.reshape(call[1], []) if call.given(1) else None
    body, name = call.attr("body"), call.node.name or "Loop"
    state = call.inputs[2:]
    said = [_declared_sizes(output) for output in body.output[1 : 1 + len(state)]]
    return late_loop(call, trips, going, state, said, lambda given: inline(body, f"{name}/", given))


def _declared_sizes(output: Any) -> dict[int, int]:
    """The fixed sizes that a model declares for a tensor, by their axes: a run is checked for them."""
    sizes = [read_size(dim) for dim in output.type.tensor_type.shape.dim]
    return {axis: size for axis, size in enumerate(sizes) if isinstance(size, int)}


def scan(call: Call, inline: Inline) -> list[Any]:
    """A Scan: unrolled over axes of fixed size, else a loop over a symbolic one."""
    if call.version < 9:
        return _batches(call, inline)
    parts = _scanned(call, len(call.inputs))
    state, sequences = call.inputs[: len(call.inputs) - parts], [call.value(x) for x in call.inputs[-parts:]]
    axes = [
        call.axis(axis, len(x.shape)) for axis, x in zip(_each(call, "scan_input_axes", parts), sequences, strict=True)
    ]
    backwards = _each(call, "scan_input_directions", parts)
    body = call.attr("body")
    _check_outputs(body, len(state), len(body.output))
    results = len(body.output) - len(state)
    turned, out_axes = (_each(call, f"scan_output_{what}", results) for what in ("directions", "axes"))
    count = _length(sequences, axes)
    if not isinstance(count, int):
        behind = _late_scan(call, inline, state, sequences, axes, backwards)
        late = [_placed(call, *each) for each in zip(behind[len(state) :], turned, out_axes, strict=True)]
        return [*behind[: len(state)], *late]
    state, rows = _scan(call, inline, body, state, sequences, axes, backwards, call.node.name or "Scan")
    stacked = [
        _stacked(call, row[::-1] if back else row, axis, body.output[len(state) + k])
        for k, (row, back, axis) in enumerate(zip(rows, turned, out_axes, strict=True))
    ]
    return [*state, *stacked]


def _length(sequences: list[Any], axes: list[int]) -> Size:
    """The size of the axes that are scanned."""
    sizes: set[Size] = {x.shape[axis] for x, axis in zip(sequences, axes, strict=True)}
    if len(sizes) != 1:
        raise InvalidModel(f"a Scan over axes of sizes {sorted(map(str, sizes))}, which must be equal")
    return sizes.pop()


def _while_inside(call: Call, step: Any, length: Any, state: list[Any], found: list[Any]) -> list[Any]:
    """What a step gives; behind the end of its sequence, if that has a length of its own, the state stays, the rest is
    0."""
    if length is None:
        return found
    inside = call.create("lt", [step, length])
    values = [call.value(value) for value in found]
    before = [*map(call.value, state), *(call.like(0, value) for value in values[len(state) :])]
    return [call.create("where", [inside, *pair]) for pair in zip(values, before, strict=True)]


def _from_the_end(call: Call, length: Any, step: Any) -> Any:
    """Where a step backwards through a sequence of that length is; 0 behind its end."""
    one = call.constant(1, "i64")
    place = call.create("sub", [call.create("sub", [length, step]), one])
    return call.create("maximum", [place, call.constant(0, "i64")])


def _late_scan(
    call: Call,
    inline: Inline,
    state: list[Any],
    sequences: list[Any],
    axes: list[int],
    backwards: list[int],
    own: Any = None,
) -> list[Any]:
    """A loop of as many rounds as the axes are long, each of which picks its entries; as in _scan for `own`."""
    body, name = call.attr("body"), call.node.name or "Scan"
    rows = [
        call.create("flip", [x], axes=[axis]) if back and own is None else x
        for x, axis, back in zip(sequences, axes, backwards, strict=True)
    ]

    def round_of(given: Sequence[Any]) -> list[Any]:
        number, going, *carried = given
        places = [number if own is None or not back else _from_the_end(call, own, number) for back in backwards]
        entries = [call.create("gather", [x, *at], axis=axis) for x, axis, *at in zip(rows, axes, places, strict=True)]
        found = inline(body, f"{name}/", [*carried, *entries])
        return [going, *_while_inside(call, number, own, carried, found)]

    trips = call.reshape(call.whole(_length(sequences, axes)), [])
    said = [_declared_sizes(output) for output in body.output[: len(state)]]
    return late_loop(call, trips, None, state, said, round_of)


def _placed(call: Call, stacked: Any, turned: int, axis: int) -> Any:
    """Values that are stacked along the first axis, from the last to the first where turned, along another axis."""
    stacked = call.create("flip", [stacked], axes=[0]) if turned else stacked
    rank = len(stacked.shape)
    at = call.axis(axis, rank)
    return stacked if at == 0 else call.create("permute", [stacked], perm=[*range(1, at + 1), 0, *range(at + 1, rank)])


def _scanned(call: Call, inputs: int) -> int:
    """How many of the inputs, the last ones, are scanned."""
    parts = int(call.attr("num_scan_inputs"))
    if not 1 <= parts <= inputs:
        raise InvalidModel(f"a Scan over {parts} of {inputs} inputs")
    return parts


def _scan(
    call: Call,
    inline: Inline,
    body: Any,
    state: list[Any],
    sequences: list[Any],
    axes: list[int],
    backwards: list[int],
    name: str,
    own: Any = None,
) -> tuple[list[Any], list[list[Any]]]:
    """The state behind the last step, and what every step adds to each result; steps from `own` on count nothing."""
    count = _length(sequences, axes)
    if not isinstance(count, int):
        raise Unsupported(f"a Scan over an axis of symbolic size {count}")
    _rounds(count, "Scan")
    rows: list[list[Any]] = [[] for _ in range(len(body.output) - len(state))]
    for step in range(count):
        given = [
            call.entry(x, count - 1 - step if back else step, axis)
            if own is None or not back
            else call.create("gather", [x, _from_the_end(call, own, call.constant(step, "i64"))], axis=axis)
            for x, axis, back in zip(sequences, axes, backwards, strict=True)
        ]
        found = inline(body, f"{name}/{step}/", [*state, *given])
        found = _while_inside(call, call.constant(step, "i64"), own, state, found)
        state = found[: len(state)]
        for row, value in zip(rows, found[len(state) :], strict=True):
            row.append(value)
    return state, rows


def _batches(call: Call, inline: Inline) -> list[Any]:
    """Operator set 8: a scan of axis 1 for each index of axis 0, whose sequences may be unlike in length."""
    parts, body = _scanned(call, len(call.inputs) - 1), call.attr("body")
    inputs = [call.value(x) for x in call.inputs[1:]]
    backwards = _each(call, "directions", parts)
    _check_outputs(body, len(inputs) - parts, len(body.output))
    batches = inputs[0].shape[0]
    lengths = [call.cast(call[0], "i64")] if call.given(0) else []

    def of_batch(own: list[Any], name: str) -> list[Any]:
        state, sequences = own[: len(inputs) - parts], own[len(inputs) - parts : len(inputs)]
        length, axes = own[-1] if lengths else None, [0] * parts
        if not isinstance(_length(sequences, axes), int):
            return _late_scan(call, inline, state, sequences, axes, backwards, length)
        state, rows = _scan(call, inline, body, state, sequences, axes, backwards, name, length)
        outputs = body.output[len(state) :]
        return [*state, *(_stacked(call, row, 0, out) for row, out in zip(rows, outputs, strict=True))]

    name = call.node.name or "Scan"
    if not isinstance(batches, int):

        def round_of(given: Sequence[Any]) -> list[Any]:
            own = [call.create("gather", [x, given[0]], axis=0) for x in [*inputs, *lengths]]
            return [given[1], *of_batch(own, name)]

        return late_loop(call, call.reshape(call.whole(batches), []), None, [], [], round_of)
    _rounds(batches, "Scan")
    columns: list[list[Any]] = [[] for _ in body.output]
    for batch in range(batches):
        own = [call.entry(x, batch) for x in [*inputs, *lengths]]
        for column, value in zip(columns, of_batch(own, f"{name}/{batch}"), strict=True):
            column.append(value)
    return [_stacked(call, column, 0, out) for column, out in zip(columns, body.output, strict=True)]


def _stacked(call: Call, rows: list[Any], axis: int, declared: Any) -> Any:
    """Values of one shape along a new axis."""
    if not rows:
        tensor = declared.type.tensor_type
        sizes = [size if isinstance(size, int) else 0 for size in map(read_size, tensor.shape.dim)]
        if not all(0 <= size <= LONGEST for size in sizes) or len(sizes) > MOST_AXES:
            raise InvalidModel(f"'{declared.name}' of {sizes[:9]}")
        return call.create("expand", [call.constant(np.zeros(1), dtype_name(tensor.elem_type))], shape=[0, *sizes])
    values = [call.value(row) for row in rows]
    return call.stacked(values, call.axis(axis, len(values[0].shape) + 1))


CONTROL: dict[str, Callable[[Call, Inline], list[Any]]] = {"If": branch, "Loop": loop, "Scan": scan}
