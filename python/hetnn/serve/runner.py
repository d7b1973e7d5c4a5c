"""One loaded version of a network, and the way of its requests to the threads that run them, which are not Python's.

The event loop hands jobs in and gets their answers back as futures; it never runs a network itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hetnn import _runtime
from hetnn.errors import Error, InternalError
from hetnn.executable import Executable
from hetnn.serve.tensors import Tensors

_DEFAULT_PRIORITY = 1 << 20  # of a request that names none: after every one that does


@dataclass(frozen=True)
class Batching:
    """How many inferences one run may take, and how long it may wait for them."""

    most: int = 16
    delay_us: int = 0


@dataclass(slots=True)
class Result:
    """Outputs of one request, when its run began and how long it took."""

    outputs: _runtime.Outputs
    started_ns: int
    run_ns: int


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


@dataclass(slots=True, eq=False)
class Job:
    """A request that waits. `ended` gets its result, or why there is none, once and on the loop's thread."""

    request: _runtime.Inference
    bound: _runtime.Bound
    runner: Runner
    ended: Callable[[Result | Exception], None]
    begun_ns: int
    deadline_ns: int = 0
    sequence: _runtime.OpenSequence | None = None  # whose states must outlive it
    receive: Any = None  # an ASGI server's, which says when the client has left
    number: int = -1
    done: bool = False

    @property
    def rows(self) -> int:
        """How many inferences it is, where requests share runs; else 1."""
        return self.bound.rows if self.runner.batches else 1

    def end(self, result: Result | Exception) -> None:
        """Hands over the result or the error, once: what comes later is dropped."""
        if not self.done:
            self.done = True
            self.ended(result)

    def give_up(self, why: Exception) -> None:
        """Ends it without a result; where it still waits, its place is free."""
        if not self.done:
            self.runner.drop(self)
            self.end(why)

    def leave(self) -> None:
        """Nobody waits for it any more."""
        self.give_up(ClientGone())


class Deliveries:
    """Brings what ended on other threads to the event loop, much of it with one waking."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.ends = _runtime.Ends(self._descriptor)
        self._numbers = itertools.count()
        self.jobs: dict[int, Job] = {}
        self.soon = loop.call_soon
        loop.add_reader(self._descriptor, self._deliver)

    def register(self, job: Job) -> None:
        """Gives the job its number; it is kept until it ends."""
        job.number = next(self._numbers)
        self.jobs[job.number] = job

    def forget(self, job: Job) -> None:
        """Drops a job that was not taken, so that no result comes."""
        del self.jobs[job.number]

    def close(self) -> None:
        """Stops listening for results."""
        self._loop.remove_reader(self._descriptor)

    def _deliver(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._descriptor)
        for number, outputs, started_ns, run_ns, run_rows, busy_us in self.ends.take():
            job = self.jobs.pop(number)
            if run_rows:
                job.runner.counters.executed(run_rows, run_ns, busy_us)
            if job.done or outputs is None:
                continue
            if isinstance(outputs, _runtime.Failure):
                job.end(_exception_of(outputs, job.runner.name))
            else:
                job.end(Result(outputs, started_ns, run_ns))


def _exception_of(failure: _runtime.Failure, name: str) -> Exception:
    try:
        failure.throw()
    except Error as error:
        return error
    except Exception as error:
        return InternalError(f"running '{name}' failed: {type(error).__name__}: {error}")
    raise AssertionError("a failure throws")


def batch_symbol(executable: Executable) -> str | None:
    """The symbol that is the first size of every input and output and nothing else, of a model on the general
    processor alone: an accelerator has code for some sizes only."""
    ports = [*executable.inputs, *executable.outputs]
    firsts = {port.shape[0] if port.shape else None for port in ports}
    symbol = next(iter(firsts), None)
    if len(firsts) != 1 or not isinstance(symbol, str) or not symbol.isidentifier() or executable.states:
        return None
    if any(isinstance(size, str) and symbol in size for port in ports for size in port.shape[1:]):
        return None
    return symbol if executable.on_general_processor else None


class Runner:
    """Runs one executable for the event loop's requests, in the order of their priorities and arrival."""

    def __init__(
        self, name: str, version: str, hash: str, executable: Executable, batching: Batching, deliveries: Deliveries
    ) -> None:
        self.name = name
        self.version = version
        self.hash = hash
        self.executable = executable
        self.tensors = Tensors(executable, name)
        self.signature = self.tensors.signature
        self.stateful = bool(executable.states)
        self.batches = batching.most > 1 and batch_symbol(executable) is not None
        self.counters = _runtime.Counters()
        self._deliveries = deliveries
        self._wakes = False
        # A second thread lets one request's accelerator work beside another's part on the cpu.
        accelerated = not executable.on_general_processor
        # Of requests that wait for one another each is run on a core of its own: threads in step with one another
        # would wait for every core that the server itself needs.
        cores = 0 if accelerated or self.stateful or executable.threads == 1 else executable.threads
        self._queue = _runtime.RunQueue(
            executable._engine,
            deliveries.ends,
            threads=cores or (2 if accelerated and not self.stateful else 1),
            cores=cores,
            most_rows=batching.most if self.batches else 1,
            delay_us=batching.delay_us,
            own_states=self.stateful,
        )

    def submit(self, job: Job) -> bool:
        """Takes the job in; false when the runner is closed, and another one should be asked. Sequences stay."""
        # Steps of a sequence keep their order.
        priority = 0 if self.stateful else job.request.priority
        self._deliveries.register(job)
        taken = self._queue.submit(
            job.number,
            job.bound,
            priority or _DEFAULT_PRIORITY,
            job.begun_ns,
            job.rows,
            job.sequence,
        )
        if not taken:
            self._deliveries.forget(job)
        elif not self._wakes:  # once for all that this turn of the loop brings
            self._wakes = True
            self._deliveries.soon(self._wake)
        return taken

    def _wake(self) -> None:
        self._wakes = False
        self._queue.wake()

    def drop(self, job: Job) -> None:
        """Takes back a job that still waits."""
        self._queue.drop(job.number)

    def close(self) -> None:
        """Takes no more jobs but those of sequences that have begun; those that wait are still run."""
        self._queue.close()
