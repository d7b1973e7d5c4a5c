"""What backends whose runs here take what they take on the device measure, and what was found, kept for the process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np

from hetnn.backends.backend import Backend, Port

_Said = TypeVar("_Said")
RUNS = 20
_LEAST = "graph @least {stage = imported} (%x: f32[1]) -> (%y) {\n  %y = relu(%x) : f32[1]\n}"
_MOST_KNOWN = 10_000


class Known(Generic[_Said]):
    """What a compiler has said of graphs: a model is planned and compiled several times. Emptied where it is full."""

    def __init__(self) -> None:
        self._said: dict[Hashable, _Said] = {}

    def once(self, key: Hashable, ask: Callable[[], _Said]) -> _Said:
        """What was said under the key, else what `ask` says now."""
        if key not in self._said:
            if len(self._said) >= _MOST_KNOWN:
                self._said.clear()
            self._said[key] = ask()
        return self._said[key]


def median_us(run: Callable[[], Any]) -> float:
    """Microseconds of a run: the median of some, behind one that is not counted."""
    run()
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        run()
        times.append((time.perf_counter() - began) * 1e6)
    return statistics.median(times)


def visit_us(backend: Backend) -> float:
    """Microseconds of a subgraph that computes next to nothing."""
    from hetnn import _core

    run = backend.open(backend.compile(_core.Graph.parse(_LEAST)), [Port("x", "f32", (1,))], [Port("y", "f32", (1,))])
    arrays = [np.zeros(1, np.float32)]
    return median_us(lambda: run(arrays))
