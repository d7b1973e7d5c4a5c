"""Progress of long work, on stderr only: stdout belongs to the answer."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from hetnn.terminal import printable


class Progress:
    """Names the step at work. On a terminal the line is rewritten in place; elsewhere only finished steps are printed.

    Use it as a context manager and call it with the name of each step:

        with Progress("compile") as progress:
            progress("import")
    """

    def __init__(self, title: str, quiet: bool = False) -> None:
        self._title = title
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._step = ""
        self._began = self._step_began = time.monotonic()

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
        """Ends the step before and begins `step`."""
        self._end_step()
        self._step, self._step_began = step, time.monotonic()
        if self._terminal:
            self._write(f"{self._title}: {step} ...")

    def _end_step(self) -> None:
        spent_s = time.monotonic() - self._step_began
        if self._step and (self._terminal or spent_s >= 1.0):
            self._write(f"{self._title}: {self._step} {spent_s:.1f} s\n")
        self._step = ""

    def _write(self, text: str) -> None:
        if not self._quiet:
            sys.stderr.write(("\r\x1b[K" if self._terminal else "") + printable(text))
            sys.stderr.flush()
