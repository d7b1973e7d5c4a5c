"""Runs of an executable one after another, or several at a time, and what they took."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from hetnn.inside.timeline import Figures, last_figures

if TYPE_CHECKING:
    from hetnn.executable import Executable

LEAST_RUNS = 5
_TOLD_EVERY_S = 0.1


@dataclass
class Measured:
    """The runs of all streams, and the time from the first's start to the last's end."""

    spent_us: list[float] = field(default_factory=list)
    figures: list[Figures] = field(default_factory=list)
    wall_s: float = 0.0

    def percentile(self, percent: float) -> float:
        """The least time that this share of the runs does not exceed."""
        ordered = sorted(self.spent_us)
        return ordered[min(len(ordered) - 1, max(0, -int(-len(ordered) * percent // 100) - 1))]


def measure(
    executable: Executable,
    inputs: Sequence[Sequence[Any]],
    seconds: float,
    runs: int | None,
    streams: int,
    tell: Callable[[float], None] = lambda _: None,
) -> Measured:
    """Runs on one of `inputs` after another, by `streams` threads at once, until `seconds` are over and there were
    LEAST_RUNS; or `runs` in all. Between runs `tell` is given the share that is done, now and then.
    """
    out = Measured()
    lock, numbers, failures = threading.Lock(), count(), list[BaseException]()
    began = time.perf_counter()
    end = began + seconds

    def goes_on(number: int) -> bool:
        if failures:
            return False
        return number < runs if runs is not None else number < LEAST_RUNS or time.perf_counter() < end

    def share(number: int, now: float) -> float:
        if runs is not None:
            return number / runs
        return min(number / LEAST_RUNS, (now - began) / seconds if seconds else 1.0, 1.0)

    def stream(tells: bool = False) -> None:
        told = began
        try:
            while True:
                with lock:
                    number = next(numbers)
                if not goes_on(number):
                    return
                if tells and (now := time.perf_counter()) - told >= _TOLD_EVERY_S:
                    told = now
                    tell(share(number, now))
                start = time.perf_counter()
                executable.run(inputs[number % len(inputs)])
                us = (time.perf_counter() - start) * 1e6
                with lock:
                    out.spent_us.append(us)
                    out.figures.append(last_figures(executable))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=stream) for _ in range(streams - 1)]
    for thread in threads:
        thread.start()
    stream(tells=True)
    for thread in threads:
        thread.join()
    out.wall_s = time.perf_counter() - began
    if failures:
        raise failures[0]
    return out
