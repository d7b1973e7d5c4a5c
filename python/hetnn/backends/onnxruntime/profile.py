"""What of a run's time is which node's, by ONNX Runtime's profile."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

_TAKEN = "_kernel_time"  # behind a node's name


def shares(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, float]:
    """By node its part of 1, all 0 where no row is a node's. A row is the node's whose name begins its own, as that of
    `conv_nchwc` is `conv`'s; what ONNX Runtime makes of several stands under one of them."""
    taken: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["cat"] == "Node" and row["name"].endswith(_TAKEN):
            taken[row["name"].removesuffix(_TAKEN)].append(row["dur"])
    parts = dict.fromkeys(names, 0.0)
    for called, times in taken.items():
        owner = max((name for name in names if called.startswith(name)), key=len, default=None)
        if owner is not None:
            parts[owner] += statistics.median(times)
    total = sum(parts.values())
    return {name: part / total for name, part in parts.items()} if total else parts
