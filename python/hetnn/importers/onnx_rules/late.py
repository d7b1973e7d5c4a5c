"""Where axes, bounds or shapes are values of the model: operators of the shape that the model declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.onnx_rules.call import Call
from hetnn.importers.sizes import Size


def is_late(call: Call, index: int) -> bool:
    """Whether an input is given and not known when compiling."""
    return call.given(index) and call.known(index) is None


def length_of(call: Call, index: int, called: str) -> int:
    """How many numbers an input of rank 0 or 1 holds."""
    shape = call.static_shape(call[index], called)
    if len(shape) > 1:
        raise Unsupported(f"{called} of rank {len(shape)}")
    return shape[0] if shape else 1


def declared(call: Call, rank: int, called: str, output: int = 0) -> list[Size]:
    """The shape that the model declares for an output. Unsupported where it declares none of that rank."""
    found = call.declared(output)
    if found is None or len(found) != rank:
        raise Unsupported(
            f"{called} is computed when the model runs, and the model declares no shape of rank {rank} for the result"
        )
    return found


def late(call: Call, op: str, inputs: Sequence[Any], rank: int, output: int = 0, **attrs: Any) -> Any:
    """An operator that checks, when it runs, whether the values give the shape that the model declares."""
    return call.create(op, inputs, sizes=declared(call, rank, "what its shape depends on", output), **attrs)
