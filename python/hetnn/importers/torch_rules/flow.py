"""Torch's control flow: bodies become nodes of the graph. Of branches both are computed and one is chosen."""

from __future__ import annotations

from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.torch_rules.call import TORCH, Call

# Rounds of a loop that become nodes, each a copy of its body.
_MOST_ROUNDS = 1024


@TORCH.rule("cond")
def _cond(call: Call) -> list[Any]:
    predicate, yes, no, operands = call.arguments
    chosen = call.cast(predicate, "bool")
    pairs = zip(call.body(yes, operands), call.body(no, operands), strict=True)
    return [_choose(call, chosen, a, b) for a, b in pairs]


def _choose(call: Call, condition: Any, a: Any, b: Any) -> Any:
    if not (hasattr(a, "dtype") and hasattr(b, "dtype")) or list(a.shape) != list(b.shape):
        raise Unsupported("branches whose results differ in shape, or are no tensors")
    return call.create("where", [condition, a, b])


@TORCH.rule("map_impl")
def _map(call: Call) -> list[Any]:
    body, sequences, rest = call.arguments
    rounds = [call.body(body, [*parts, *rest]) for parts in _parts(call, sequences)]
    return [_stacked(call, values) for values in zip(*rounds, strict=True)]


@TORCH.rule("scan")
def _scan(call: Call) -> list[Any]:
    body, carried, sequences, rest = call.arguments
    rounds: list[list[Any]] = []
    for parts in _parts(call, sequences):
        values = call.body(body, [*carried, *parts, *rest])
        carried, made = values[: len(carried)], values[len(carried) :]
        rounds.append(made)
    return [*carried, *(_stacked(call, values) for values in zip(*rounds, strict=True))]


@TORCH.rule("while_loop")
def _while(call: Call) -> list[Any]:
    raise Unsupported("a loop whose number of rounds depends on values")


def _parts(call: Call, sequences: list[Any]) -> list[list[Any]]:
    """For every index of the first axis the parts of all sequences."""
    count = sequences[0].shape[0]
    if not isinstance(count, int) or not 0 < count <= _MOST_ROUNDS:
        raise Unsupported(f"a loop over {count} parts; there must be 1 to {_MOST_ROUNDS}, known when compiling")
    return [[_part(call, sequence, k) for sequence in sequences] for k in range(count)]


def _part(call: Call, sequence: Any, index: int) -> Any:
    part = call.create("slice", [sequence], axis=0, start=index, end=index + 1)
    return call.reshape(part, list(sequence.shape)[1:])


def _stacked(call: Call, values: tuple[Any, ...]) -> Any:
    parts = [call.reshape(value, [1, *value.shape]) for value in values]
    return parts[0] if len(parts) == 1 else call.create("concat", parts, axis=0)
