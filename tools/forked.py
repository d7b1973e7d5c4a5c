"""Runs functions by name, each in a forked process of its own, so that a crash or a hang is the result of one alone."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

# What came of a job, and a text about it.
Result = tuple[str, str]


def _work(job: Callable[[str], Result], name: str, pipe: Connection) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        pipe.send(job(name))
    except BaseException as error:  # whatever it is, it is this job's result
        pipe.send(("error", f"{type(error).__name__}: {error}"))


def run_forked(
    job: Callable[[str], Result], names: Sequence[str], jobs: int, seconds: float, tell: Callable[[str, Result], None]
) -> dict[str, Result]:
    """The result of job(name) for every name, at most `jobs` at once; `crash` where a process died without one, and
    `timeout` after so many seconds. `tell` hears of each as it comes."""
    context = multiprocessing.get_context("fork")
    waiting, results = list(reversed(names)), dict.fromkeys(names, ("crash", ""))
    running: dict[Connection, tuple[str, Any, float]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            name = waiting.pop()
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(job, name, theirs))
            process.start()
            theirs.close()
            running[ours] = name, process, time.monotonic() + seconds
        ready = wait(list(running), timeout=max(0.0, min(end for *_, end in running.values()) - time.monotonic()))
        late = [pipe for pipe, (*_, end) in running.items() if time.monotonic() >= end and pipe not in ready]
        for pipe in [*ready, *late]:
            assert isinstance(pipe, Connection)
            name, process, _ = running.pop(pipe)
            try:
                results[name] = ("timeout", f"after {seconds:g} s") if pipe in late else pipe.recv()
            except EOFError:
                process.join()
                results[name] = ("crash", f"exit code {process.exitcode}")
            process.kill()
            process.join()
            pipe.close()
            tell(name, results[name])
    return results
