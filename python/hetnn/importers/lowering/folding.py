"""Nodes of constants, computed while importing: shapes may be made from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hetnn import _core
from hetnn._core import Dim
from hetnn.errors import Unsupported
from hetnn.importers.lowering.loop_body import SIZED, parts_of

# Nodes of larger constants stay.
_MOST_ELEMS = 1 << 16
# What a product may multiply by as it is kept.
_KEPT = frozenset({"dequantize_blocks"})


def is_fixed(op: str, attrs: Mapping[str, Any], found: Mapping[Dim, Any]) -> bool:
    """Whether no attribute depends on a symbol but those that the node finds."""
    return not any(
        isinstance(part, Dim) and part not in found for name in SIZED[op] for part in parts_of(attrs.get(name))
    )


def folded(
    op: str, arrays: Sequence[Any], attrs: dict[str, Any], found: Mapping[Dim, tuple[int, int]]
) -> list[np.ndarray[Any, Any]] | None:
    """What a node of constants gives, by the operator's meaning; None where it is large or has none here."""
    if op in _KEPT or any(array is not None and array.size > _MOST_ELEMS for array in arrays):
        return None
    builder = _core.GraphBuilder("constants")
    for symbol, (low, high) in found.items():
        builder.add_symbol(symbol.name, low, high, low)
    try:
        inputs: list[Any] = [array if array is None else builder.constant(array) for array in arrays]
        outputs = builder.create(op, inputs, attrs)
        for output in outputs:
            size = [n for n in output.shape if isinstance(n, int)]
            if (not found and len(size) < len(output.shape)) or int(np.prod(size, dtype=np.int64)) > _MOST_ELEMS:
                return None
            builder.output(output)
        return list(_core.interpret(builder.finish(), []))
    except Unsupported:
        return None
