"""Steps of long work: the name of each, and the time that is left as far as it can be told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Progress = Callable[[str], None]

_AT_LEAST_S = 0.2  # of work before which nothing is predicted
_TOLD_EVERY_S = 0.1


class Step(str):
    """The name of a step at work; `left_s` are the seconds until it ends, and of a pass of the compiler those until
    compiling does. None where nothing is known of them.
    """

    __slots__ = ("left_s",)
    left_s: float | None

    def __new__(cls, name: str, left_s: float | None = None) -> Step:  # noqa: D102
        step = super().__new__(cls, name)
        step.left_s = left_s
        return step


def silent(_: str) -> None:
    """For work that nobody asks about."""


class Telling:
    """Tells `progress` of the steps of one stretch of work, whose parts are announced as shares from 0 to 1."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._began = time.monotonic()

    def __call__(self, step: str, done: float) -> None:
        """That `step` is at work, and what is done of the whole stretch."""
        spent_s = time.monotonic() - self._began
        known = done > 0 and spent_s >= _AT_LEAST_S
        self._progress(Step(step, spent_s * (1 - done) / done if known else None))


class _Counter:
    """What is done of one step: shares of the part at work, which lies between `low` and `high` of the whole."""

    def __init__(self, progress: Progress, step: str) -> None:
        self._progress, self._step = progress, step
        self._telling, self._last = Telling(progress), time.monotonic()
        self.low, self.high = 0.0, 1.0

    def tell(self, share: float) -> None:
        done = self.low + (self.high - self.low) * share
        now = time.monotonic()
        if done == 0:
            self._telling = Telling(self._progress)
        elif now - self._last >= _TOLD_EVERY_S:
            self._last = now
            self._telling(self._step, min(done, 1.0))


_counted: ContextVar[_Counter | None] = ContextVar("counted", default=None)


@contextmanager
def counted(progress: Progress, step: str) -> Iterator[None]:
    """While it lasts, what is announced tells `progress` how far `step` is; what begins at 0 is predicted anew."""
    progress(Step(step))
    token = _counted.set(None if progress is silent else _Counter(progress, step))
    try:
        yield
    finally:
        _counted.reset(token)


def announce(done: float, of: float) -> None:
    """That of `of` parts of the work at hand so many are done: nodes that are imported, samples that are read."""
    counter = _counted.get()
    if counter is not None:
        counter.tell(done / of if of else 1.0)


@contextmanager
def part(number: int, of: int) -> Iterator[None]:
    """While it lasts, what is announced is of the part with that number of the work at hand."""
    counter = _counted.get()
    if counter is None:
        yield
        return
    low, high = counter.low, counter.high
    each = (high - low) / of
    counter.low, counter.high = low + each * number, low + each * (number + 1)
    counter.tell(0.0)
    try:
        yield
    finally:
        counter.low, counter.high = low, high


def teller() -> Callable[[float], None] | None:
    """What takes the share that is done of the work at hand; None where nobody asks."""
    counter = _counted.get()
    return None if counter is None else counter.tell
