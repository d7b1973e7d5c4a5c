"""Progress of long work, on stderr only: stdout belongs to the answer."""

from __future__ import annotations

import math
import sys
import time
from types import TracebackType

from hetnn.terminal import printable


class Progress:
    """Names the step at work, and how long the whole may still take where that is known and it takes longer than 2 s.

    On a terminal the line is rewritten in place; elsewhere steps of a second and more are printed when they are
    finished, and what is left at most every 10 s. Use it as a context manager and call it with the name of each step,
    and again while it lasts:

        with Progress("compile") as progress:
            progress("import")
    """

    _SHORT_S, _EVERY_S = 2.0, 10.0

    def __init__(self, title: str, quiet: bool = False) -> None:
        self._title = title
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._step = ""
        self._began = self._step_began = time.monotonic()
        self._left_told = -math.inf  # when what is left was printed last

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_step()
        if self._quiet:
            return
        word = "failed" if kind else "done"
        self._write(f"{self._title}: {word} in {time.monotonic() - self._began:.1f} s\n")

    def __call__(self, step: str) -> None:
        """Ends the step before and begins `step`, or says what is left of the one at work."""
        if step != self._step:
            self._end_step()
            self._step, self._step_began = str(step), time.monotonic()
        left = self._left(getattr(step, "left_s", None))
        if self._terminal:
            self._write(f"{self._title}: {step} ...{left}")
        elif left and time.monotonic() - self._left_told >= self._EVERY_S:
            self._left_told = time.monotonic()
            self._write(f"{self._title}: {step}{left}\n")

    def _left(self, left_s: float | None) -> str:
        """Of what takes long, how long it still does."""
        if left_s is None or time.monotonic() - self._began + left_s < self._SHORT_S:
            return ""
        minutes, seconds = divmod(round(left_s), 60)
        return f", about {f'{minutes} min ' if minutes else ''}{seconds} s left"

    def _end_step(self) -> None:
        spent_s = time.monotonic() - self._step_began
        if self._step and (self._terminal or spent_s >= 1.0):
            self._write(f"{self._title}: {self._step} {spent_s:.1f} s\n")
        self._step = ""

    def _write(self, text: str) -> None:
        if not self._quiet:
            sys.stderr.write(("\r\x1b[K" if self._terminal else "") + printable(text))
            sys.stderr.flush()
