"""Steps of long work: the name of each, and the time that is left as far as it can be told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_AT_LEAST_S = 0.2  # of work before which nothing is predicted


class Step(str):
    """The name of a step at work; `left_s` are the seconds until importing ends, then those until compiling does; of a
    calibration those until all samples are read. None where nothing is known of them.
    """

    __slots__ = ("left_s",)
    left_s: float | None

    def __new__(cls, name: str, left_s: float | None = None) -> Step:  # noqa: D102
        step = super().__new__(cls, name)
        step.left_s = left_s
        return step


class Telling:
    """Tells `progress` of the steps of one stretch of work, whose parts are announced as shares from 0 to 1."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._began = time.monotonic()

    def __call__(self, step: str, done: float) -> None:
        """That `step` is at work, and what is done of the whole stretch."""
        spent_s = time.monotonic() - self._began
        known = done > 0 and spent_s >= _AT_LEAST_S
        self._progress(Step(step, spent_s * (1 - done) / done if known else None))


_counted: ContextVar[Callable[[int, int], None] | None] = ContextVar("counted", default=None)
_TOLD_EVERY_S = 0.1


@contextmanager
def counted(progress: Callable[[str], None], step: str) -> Iterator[None]:
    """While it lasts, `announce` tells `progress` how far `step` is; what is counted from 0 again is predicted anew."""
    telling, last = Telling(progress), time.monotonic()

    def announce_parts(done: int, of: int) -> None:
        nonlocal telling, last
        now = time.monotonic()
        if done == 0:
            telling = Telling(progress)
        elif now - last >= _TOLD_EVERY_S:
            last = now
            telling(step, done / of)

    progress(Step(step))
    token = _counted.set(announce_parts)
    try:
        yield
    finally:
        _counted.reset(token)


def announce(done: int, of: int) -> None:
    """That of `of` parts of the step at work so many are done: nodes that are imported, samples that are read."""
    told = _counted.get()
    if told is not None:
        told(done, of)
