"""Timing alternatives beside each other, for the benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

Run = Callable[[], Any]


def rounds_us(runs: Mapping[str, Run], rounds: int, block_s: float = 0.04) -> dict[str, list[float]]:
    """The least time of each in every round, where each has a block of time in turn."""
    took: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, least in least_us(runs, 1, block_s).items():
            took[name].append(least)
    return took


def least_us(runs: Mapping[str, Run], rounds: int, block_s: float = 0.04) -> dict[str, float]:
    """The least time of each over rounds in which each has a block of time in turn."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            begin, done = time.perf_counter(), 0
            while done < 2 or time.perf_counter() - begin < block_s:
                start = time.perf_counter()
                run()
                best[name] = min(best[name], (time.perf_counter() - start) * 1e6)
                done += 1
    return best
