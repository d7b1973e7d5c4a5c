"""One loaded version of a network: a queue by priority, and the threads that run what stands in it, in batches.

The event loop hands jobs in and gets their answers back as futures; it never runs a network itself.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetnn.errors import Error, InternalError, Unsupported
from hetnn.executable import Array, Executable, Session
from hetnn.serve.statistics import Counters
from hetnn.serve.tensors import DATATYPES

_DEFAULT_PRIORITY = 1 << 20  # of a request that names none: after every one that does


@dataclass(frozen=True)
class Batching:
    """How many inferences one run may take, and how long it may wait for them."""

    most: int = 16
    delay_us: int = 0


@dataclass(slots=True)
class Result:
    """Outputs of one request, when its run began, how long it took, and of how many requests' inferences it was."""

    outputs: Sequence[Array]
    started_ns: int
    run_ns: int
    rows: int


@dataclass(slots=True)
class Job:
    """A request that waits. A future that is done already, cancelled or timed out, is not run."""

    arrays: list[Array]
    future: asyncio.Future[Result]
    arrived_ns: int
    rows: int = 1
    session: Sequence_ | None = None


@dataclass(slots=True)
class Sequence_:  # noqa: N801 - the protocol's word, beside typing's
    """A client's sequence: its states, made by the first step."""

    runner: Runner
    session: Session | None = None
    used_ns: int = 0


class Deliveries:
    """Brings results from runners' threads to the event loop, many with one waking."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ready: deque[tuple[asyncio.Future[Result], Result | BaseException]] = deque()
        self._called = False

    def post(self, future: asyncio.Future[Result], result: Result | BaseException) -> None:
        self._ready.append((future, result))
        if not self._called:
            self._called = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._called = False
        while self._ready:
            future, result = self._ready.popleft()
            if future.done():
                continue
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)


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
    kinds = {device["name"]: device["kind"] for device in executable.target["devices"]}
    used = {kinds.get(part["device"]) for part in executable.report("dict")["subgraphs"]}
    return symbol if used <= {"cpu", "reference"} else None


class Runner:
    """Runs one executable for the event loop's requests, in the order of their priorities and arrival."""

    def __init__(
        self, name: str, version: str, hash: str, executable: Executable, batching: Batching, deliveries: Deliveries
    ) -> None:
        self.name = name
        self.version = version
        self.hash = hash
        self.executable = executable
        self.inputs = executable.inputs
        self.outputs = executable.outputs
        for port in (*self.inputs, *self.outputs):
            if port.dtype not in DATATYPES:
                raise Unsupported(f"'{port.name}' of '{name}' is {port.dtype}, which the protocol has no name for.")
        self.stateful = bool(executable.states)
        self.batches = batching.most > 1 and batch_symbol(executable) is not None
        self.counters = Counters()
        self._batching = batching
        self._deliveries = deliveries
        self._queue: list[tuple[int, int, Job]] = []
        self._numbers = itertools.count()
        self._wake = threading.Condition(threading.Lock())
        self._closed = False
        self._threads: list[threading.Thread] = []
        # A second thread lets one request's accelerator work beside another's part on the cpu.
        accelerated = any(device["kind"] not in ("cpu", "reference") for device in executable.target["devices"])
        self._most_threads = 2 if accelerated and not self.stateful else 1

    def submit(self, job: Job, priority: int = 0) -> bool:
        """Takes the job in; false when the runner is closed, and another one should be asked. Sequences stay."""
        if self.stateful or priority == 0:
            priority = _DEFAULT_PRIORITY  # steps of a sequence keep their order
        with self._wake:
            if self._closed and job.session is None:
                return False
            heapq.heappush(self._queue, (priority, next(self._numbers), job))
            if len(self._threads) < self._most_threads:
                thread = threading.Thread(target=self._serve, name=f"{self.name}:{self.version}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._wake.notify()
        return True

    def close(self) -> None:
        """Takes no more jobs but those of sequences that have begun; those that wait are still run."""
        with self._wake:
            self._closed = True
            self._wake.notify_all()

    def _serve(self) -> None:
        while jobs := self._take():
            self._run(jobs)

    def _take(self) -> list[Job]:
        """The next job, and with it those that fit into one run; none once the runner is closed and empty."""
        with self._wake:
            while True:
                while not self._queue:
                    if self._closed:
                        self._threads.remove(threading.current_thread())
                        return []
                    self._wake.wait()
                job = heapq.heappop(self._queue)[2]
                if not job.future.done():
                    break
            jobs = [job]
            if not self.batches:
                return jobs
            rows, last_ns = job.rows, job.arrived_ns + self._batching.delay_us * 1000
            while rows < self._batching.most:
                if self._queue:
                    other = self._queue[0][2]
                    if other.future.done():
                        heapq.heappop(self._queue)
                        continue
                    if rows + other.rows > self._batching.most or not _alike(job, other):
                        break
                    heapq.heappop(self._queue)
                    jobs.append(other)
                    rows += other.rows
                    continue
                left_ns = last_ns - time.perf_counter_ns()
                if left_ns <= 0 or self._closed or not self._wake.wait(left_ns * 1e-9):
                    break
            return jobs

    def _run(self, jobs: list[Job]) -> None:
        if len(jobs) > 1:
            try:
                self._run_batch(jobs)
                return
            except Error:  # one at a time tells whose fault it is
                pass
        for job in jobs:
            started_ns = time.perf_counter_ns()
            result: Result | BaseException
            try:
                outputs = self.executable.run(job.arrays, session=self._session(job))
                run_ns = time.perf_counter_ns() - started_ns
                self.counters.executed(job.rows, run_ns, self.executable.last_times)
                result = Result(outputs, started_ns, run_ns, job.rows)
            except Error as error:
                result = error
            except Exception as error:
                result = InternalError(f"running '{self.name}' failed: {type(error).__name__}: {error}")
            self._deliveries.post(job.future, result)

    def _run_batch(self, jobs: list[Job]) -> None:
        started_ns = time.perf_counter_ns()
        arrays = [np.concatenate(parts) for parts in zip(*(job.arrays for job in jobs), strict=True)]
        outputs = self.executable.run(arrays)
        run_ns = time.perf_counter_ns() - started_ns
        rows = sum(job.rows for job in jobs)
        self.counters.executed(rows, run_ns, self.executable.last_times)
        begin = 0
        for job in jobs:
            parts = [output[begin : begin + job.rows] for output in outputs]
            begin += job.rows
            self._deliveries.post(job.future, Result(parts, started_ns, run_ns, job.rows))

    def _session(self, job: Job) -> Session | None:
        if not self.stateful:
            return None
        if job.session is None:
            return self.executable.session()
        if job.session.session is None:
            job.session.session = self.executable.session()
        return job.session.session


def _alike(a: Job, b: Job) -> bool:
    """Whether two jobs' inputs differ in their first sizes only."""
    return all(x.shape[1:] == y.shape[1:] and x.dtype == y.dtype for x, y in zip(a.arrays, b.arrays, strict=True))


def job_rows(arrays: Sequence[Any]) -> int:
    """Inferences of a request whose inputs have them as first size."""
    return int(arrays[0].shape[0]) if arrays and arrays[0].ndim else 1
