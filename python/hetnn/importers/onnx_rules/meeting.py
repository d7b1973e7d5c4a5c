"""Symbolic sizes that must be equal for a node to mean anything: taken as one, which each run checks."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from hetnn.importers.sizes import Size

if TYPE_CHECKING:
    from hetnn.importers.onnx_rules.call import Call


def met(call: Call, values: Sequence[Any], *, broadcast: bool = False, apart: Collection[int] = ()) -> list[Any]:
    """The values with one text for sizes that meet in an axis, all but those `apart`.

    Axes are counted from the back, from -1, where values broadcast, and ones meet nothing; else from the front. A
    known size goes before a symbol, and a symbol of the model before one that a node gives its value. Sizes that
    cannot be equal stay as they are, for the operator to refuse.
    """
    shapes = [list(value.shape) for value in values]
    rank = max(map(len, shapes), default=0)
    for axis in range(-rank, 0) if broadcast else range(rank):
        if axis in apart:
            continue
        here = [k for k, shape in enumerate(shapes) if -len(shape) <= axis < len(shape)]
        sizes = {shapes[k][axis] for k in here if not broadcast or shapes[k][axis] != 1}
        if len(sizes) > 1 and sum(isinstance(size, int) for size in sizes) <= 1:
            one = min(sizes, key=lambda size: _rank(call, size))
            for k in here:
                if shapes[k][axis] in sizes:
                    shapes[k][axis] = one
    pairs = zip(values, shapes, strict=True)
    return [v if list(v.shape) == shape else call.create("match_shape", [v], shape=shape) for v, shape in pairs]


def _rank(call: Call, size: Size) -> tuple[bool, int, int, str]:
    """Smaller is what others are taken as."""
    if isinstance(size, int):
        return False, 0, 0, ""
    symbols = set(re.findall(r"[A-Za-z_]\w*(?!\w*\()", size))
    return True, len([s for s in symbols if not call.is_named(s)]), len(size), size
