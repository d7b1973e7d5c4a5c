"""Where axes, bounds or shapes are values of the model: operators that give symbols their values when they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hetnn._core import Dim
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.onnx.rules.call import Call
from hetnn.texts import MOST_AXES


def is_late(call: Call, index: int) -> bool:
    """Whether an input is given and not known when compiling."""
    return call.given(index) and call.known(index) is None


def is_late_number(call: Call, index: int) -> bool:
    """As is_late, of what must be numbers (axes, steps, places): sizes that are open are not known either."""
    known = call.known(index)
    return call.given(index) and (known is None or any(isinstance(size, Dim) for size in known.reshape(-1)))


def length_of(call: Call, index: int, called: str) -> int:
    """How many numbers an input of rank 0 or 1 holds."""
    shape = list(call[index].shape)
    if len(shape) > 1:
        raise Unsupported(f"{called} of rank {len(shape)}")
    count = shape[0] if shape else 1
    if isinstance(count, Dim):
        raise open_rank(call, f"{called} of {count} numbers", count)
    if count > MOST_AXES:
        raise Unsupported(f"{called} of {count} numbers, one an axis; there may be {MOST_AXES} axes")
    return count


def open_rank(call: Call, found: str, count: Dim) -> Unsupported:
    """What to say of a node whose result has as many axes as an open size says."""
    result = next(name for name in call.node.output if name)
    return Unsupported(
        f"{found}, so that the rank of '{result}' is not known; declare its shape in the model, or give {count} by fix="
    )


def axes_count(call: Call, index: int, rank: int, sign: int) -> int:
    """How many axes an input names that a Squeeze (`sign` -1) takes from `rank` axes, or an Unsqueeze (1) adds."""
    declared = call.declared()
    if declared is not None and len(call[index].shape) == 1:
        count = sign * (len(declared) - rank)
        if count < 0:
            op = call.node.op_type
            raise InvalidModel(f"{op} of {list(call[0].shape)}, of which the model declares {len(declared)} axes")
        call.inputs[index] = with_sizes(call, call[index], [count])
    return length_of(call, index, "axes")


def shape_length(call: Call, index: int) -> int:
    """How many numbers an input holds that is the shape of the result: where that is open, as the model declares it."""
    declared = call.declared()
    if declared is not None and len(call[index].shape) == 1:
        call.inputs[index] = with_sizes(call, call[index], [len(declared)])
    return length_of(call, index, "the shape")


def found_shape(call: Call, rank: int, output: int = 0) -> list[Size]:
    """The sizes that the model declares for an output, and symbols that a node gives values where it declares none."""
    declared = call.declared(output)
    if declared is None or len(declared) != rank:
        declared = [None] * rank
    return [size if isinstance(size, int) else call.found_size() for size in declared]


def late(
    call: Call,
    op: str,
    inputs: Sequence[Any],
    rank: int,
    output: int = 0,
    kept: Mapping[int, Size] | None = None,
    **attrs: Any,
) -> Any:
    """An operator whose values give the shape of what it computes; it checks sizes that the model declares.

    `kept` are sizes by axis that values do not change.
    """
    kept = kept or {}
    sizes = found_shape(call, rank, output)
    sizes = [kept[axis] if isinstance(kept.get(axis), int) else size for axis, size in enumerate(sizes)]
    y = call.create(op, inputs, sizes=sizes, **attrs)
    shape = [kept.get(axis, size) for axis, size in enumerate(sizes)]
    return y if shape == sizes else call.create("match_shape", [y], shape=shape)
