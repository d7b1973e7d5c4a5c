"""Torch's control flow. Of branches both are computed and one is chosen, unless one takes long or may refuse what the
other was meant for: then only the one that is taken runs. A loop whose rounds are known and few becomes nodes, another
a node with a body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from hetnn._core import Dim
from hetnn.errors import Unsupported
from hetnn.importers.lowering.loop_body import DIVIDES, BodyInput, loop_node
from hetnn.importers.lowering.sizes import MOST, Size, maximum, minimum
from hetnn.importers.torch.rules.call import TORCH, Call
from hetnn.importers.torch.rules.conditions import CONDITIONS

# Overloads that refuse an index outside an axis, or a number that is no size, or may never end.
_PICKING = {
    "index", "index_put", "index_select", "index_add", "index_copy", "index_fill", "index_reduce", "gather", "scatter",
    "scatter_add", "scatter_reduce", "take", "put", "embedding", "one_hot", "_unsafe_index", "_unsafe_index_put",
    "item", "_local_scalar_dense", "while_loop",
} | {name.split(".")[1] for name in CONDITIONS}  # fmt: skip

# Those that take long.
_HEAVY = {
    "convolution", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linear",
    "mm", "bmm", "addmm", "baddbmm", "matmul", "scaled_dot_product_attention", "lstm", "gru", "_grouped_mm",
}  # fmt: skip

# Rounds of a loop that become nodes, each a copy of its body.
_MOST_ROUNDS = 256
# Rounds of a loop that only its condition ends.
_ANY_NUMBER = 2**63 - 1


@TORCH.rule("cond")
def _cond(call: Call) -> list[Any]:
    predicate, yes, no, operands = call.arguments
    chosen = call.cast(_value(call, predicate), "bool")
    if any(map(_is_for_one, (yes, no))):
        return _taken_alone(call, call.reshape(chosen, []), yes, no, operands)
    pairs = zip(*(call.body(branch, operands, asks=False) for branch in (yes, no)), strict=True)
    return [_choose(call, chosen, k, a, b) for k, (a, b) in enumerate(pairs)]


def _is_for_one(body: torch.fx.GraphModule) -> bool:
    """Whether a node takes some values only, or long, or may never end."""
    bodies = [each for each in body.modules() if isinstance(each, torch.fx.GraphModule)]
    nodes = [node for each in bodies for node in each.graph.nodes if node.op == "call_function"]
    names = [str(node.target).removeprefix("aten.").split(".")[0] for node in nodes]
    whole = (name for name, node in zip(names, nodes, strict=True) if not _is_float(node.meta.get("val")))
    return not (_PICKING | _HEAVY).isdisjoint(names) or not DIVIDES.isdisjoint(whole)


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _taken_alone(call: Call, chosen: Any, yes: Any, no: Any, operands: Sequence[Any]) -> list[Any]:
    """Each branch as a loop of one round or none."""
    rows = []
    for body, runs in ((yes, chosen), (no, call.create("logical_not", [chosen]))):

        def build(inputs: Sequence[Any], body: Any = body) -> list[Any]:
            return [inputs[1], *(_value(call, x) for x in call.body(body, operands))]

        rows.append(_looped(call, call.cast(runs, "i64"), None, [], build))
    out = []
    for k, (a, b) in enumerate(zip(*rows, strict=True)):
        if a.dtype != b.dtype or len(a.shape) != len(b.shape):
            raise Unsupported("branches whose results differ in type or rank")
        sizes = _found(call, a.shape[1:], b.shape[1:])
        one = call.create("choose", [chosen, a, b], sizes=[1, *sizes])
        out.append(_named(call, k, call.reshape(one, sizes), sizes))
    return out


def _choose(call: Call, condition: Any, k: int, a: Any, b: Any) -> Any:
    if a is None and b is None:
        return None
    a, b = _value(call, a), _value(call, b)
    if a.dtype != b.dtype or len(a.shape) != len(b.shape):
        raise Unsupported("branches whose results differ in type or rank")
    if list(a.shape) == list(b.shape):
        return call.create("where", [condition, a, b])
    found = _found(call, a.shape, b.shape)
    return _named(call, k, call.create("choose", [condition, a, b], sizes=found), found)


def _found(call: Call, a: Sequence[Size], b: Sequence[Size]) -> list[Size]:
    """Sizes of the one of two values that is chosen: numbers where both have them, else found as it is."""
    return [m if m == n and isinstance(m, int) else call.new_size(0, MOST) for m, n in zip(a, b, strict=True)]


def _named(call: Call, k: int, chosen: Any, found: Sequence[Size]) -> Any:
    """Output `k`, with torch's own names for its sizes."""
    wanted = call.shape(k)
    for axis, size in enumerate(wanted):
        if isinstance(size, Dim) and size != found[axis] and call.is_found(size):
            call.create("read_size", [call.whole(found[axis])], sizes=[size])
    return call.reshape(chosen, wanted)


def _value(call: Call, found: Any) -> Any:
    """A tensor, or a number as one."""
    if hasattr(found, "dtype"):
        return found
    if isinstance(found, bool):
        return call.constant(found, "bool")
    if isinstance(found, (int, Dim)):
        return call.reshape(call.whole(found), [])
    if isinstance(found, float):
        return call.constant(found, "f32")
    raise Unsupported(f"control flow over a {type(found).__name__}")


@TORCH.rule("map_impl")
def _map(call: Call) -> list[Any]:
    body, sequences, rest = call.arguments
    return _rounds(call, body, [], sequences, rest)


@TORCH.rule("scan")
def _scan(call: Call) -> list[Any]:
    body, carried, sequences, rest = call.arguments
    return _rounds(call, body, carried, sequences, rest)


def _rounds(call: Call, body: Any, carried: Sequence[Any], sequences: Sequence[Any], rest: Sequence[Any]) -> list[Any]:
    """The body for every part of the sequences in turn: what is carried at the end, and what each adds, stacked."""
    count = sequences[0].shape[0]
    if not isinstance(count, int) or not 0 < count <= _MOST_ROUNDS:
        return _loop_over(call, body, carried, sequences, rest, count)
    rows: list[list[Any]] = []
    for k in range(count):
        values = call.body(body, [*carried, *(call.entry(x, k) for x in sequences), *rest])
        carried, made = values[: len(carried)], values[len(carried) :]
        rows.append(made)
    return [*carried, *(call.stacked(values, 0) for values in zip(*rows, strict=True))]


def _loop_over(
    call: Call, body: Any, carried: Sequence[Any], sequences: Sequence[Any], rest: Sequence[Any], count: Size
) -> list[Any]:
    """As a node: a round takes the part of each sequence at its number."""
    state = [_value(call, x) for x in carried]

    def build(inputs: Sequence[Any]) -> list[Any]:
        number, going, *given = inputs
        parts = [call.create("gather", [x, number], axis=0) for x in sequences]
        return [going, *(_value(call, x) for x in call.body(body, [*given, *parts, *rest]))]

    trips = call.reshape(call.whole(count), [])
    made = _looped(call, trips, None, state, build)
    return [*made[: len(state)], *(call.reshape(x, [count, *x.shape[1:]]) for x in made[len(state) :])]


def _looped(call: Call, trips: Any, going: Any, state: Sequence[Any], build: Any) -> list[Any]:
    """A loop: what it carries, then what its rounds add, along an axis of their number."""
    types = [BodyInput("i64", []), BodyInput("bool", []), *(BodyInput(x.dtype, list(x.shape)) for x in state)]
    body, given = call.loop_body(types, build)
    stacked = given[1 + len(state) :]
    # Sizes that are known are found too where they are symbols, and then taken as what they were.
    sizes = [
        size if isinstance(size, int) or body.finds(size) else call.new_size(0, MOST)
        for x in stacked
        for size in x.shape
    ]
    count = call.new_size(0, MOST)
    made = loop_node(call, body, given, [trips, going], state, count, sizes)
    for k, x in enumerate(stacked, len(state)):
        shape = [count, *x.shape]
        if not any(map(body.finds, x.shape)) and shape != list(made[k].shape):
            made[k] = call.reshape(made[k], shape)
    return made


@TORCH.rule("while_loop")
def _while(call: Call) -> list[Any]:
    """The condition of what is carried says whether there is another round."""
    out = _repeated(call, keeps=False)
    for k, x in enumerate(out):
        size = call.number(k)
        if size is not None:  # of a number that torch reads as a size
            call.create("read_size", [x], sizes=[size])
    return out


@TORCH.rule("while_loop_stack_output")
def _while_kept(call: Call) -> list[Any]:
    """What every round carries on, stacked, which gradients read; without a round what it began with."""
    first = [_value(call, x) for x in call.arguments[2]]
    kept = _repeated(call, keeps=True)[len(first) :]
    count = kept[0].shape[0]
    rows = call.shape(0)[0]  # torch's own name for their number, the same for all
    call.create("read_size", [call.whole(maximum(1, count))], sizes=[rows])
    out = []
    for x, rounds in zip(first, kept, strict=True):
        both = call.create("concat", [call.reshape(x, [1, *x.shape]), rounds], axis=0)
        some = call.create("slice", [both], axis=0, start=minimum(1, count), end=count + 1)
        out.append(call.reshape(some, [rows, *x.shape]))
    return out


def _repeated(call: Call, keeps: bool) -> list[Any]:
    """What a loop carries at its end, and, where it keeps them, the same of every round."""
    condition, body, carried, rest = call.arguments
    state = [_value(call, x) for x in carried]

    def goes_on(values: Sequence[Any]) -> Any:
        (found,) = call.body(condition, [*values, *rest])
        return call.reshape(call.cast(_value(call, found), "bool"), [])

    def build(inputs: Sequence[Any]) -> list[Any]:
        made = [_value(call, x) for x in call.body(body, [*inputs[2:], *rest])]
        made = [x if x.dtype == like.dtype else call.cast(x, like.dtype) for x, like in zip(made, state, strict=True)]
        return [goes_on(made), *made, *(made if keeps else ())]

    return _looped(call, call.constant(_ANY_NUMBER, "i64"), goes_on(state), state, build)


@TORCH.rule("associative_scan")
def _associative(call: Call) -> list[Any]:
    """Each element joined with all before it, one after another."""
    body, sequences, rest = call.arguments
    count = sequences[0].shape[0]
    if not isinstance(count, int) or not 0 < count <= _MOST_ROUNDS:
        raise Unsupported(f"an associative scan over {count} parts; there must be 1 to {_MOST_ROUNDS}")
    rows = [[call.entry(x, 0) for x in sequences]]
    for k in range(1, count):
        rows.append(call.body(body, [*rows[-1], *(call.entry(x, k) for x in sequences), *rest]))
    return [call.stacked(values, 0) for values in zip(*rows, strict=True)]
