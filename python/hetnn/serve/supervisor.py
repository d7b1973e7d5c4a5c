"""The process of `hetnn serve`: holds the sockets, starts the workers, starts them anew when they die, and ends them.

It imports no network code, so that it costs little beside its workers.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from typing import IO, Any

from hetnn.errors import InvalidModel, Unavailable

_BACKLOG = 2048
_START_S = 60.0
_AGAIN_S = 0.5  # between two starts of a worker that dies at once


@dataclass(frozen=True)
class Settings:
    """What the command line says."""

    store: str | None = None
    models: dict[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    http_port: int = 8000
    grpc_port: int = 8001
    metrics_port: int = 8002
    workers: int = 1
    queue: int = 256
    max_batch: int = 16
    batch_delay_us: int = 0
    tokens: tuple[str, ...] = ()
    allow_compile: bool = False
    target: str = "cpu"
    grace_s: float = 10.0
    tls_cert: str | None = None
    tls_key: str | None = None


def _bound(host: str, port: int, *, listening: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    out = socket.socket(family, socket.SOCK_STREAM)
    out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if not listening:  # the workers' own sockets share the port, which this one reserves
        out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        out.bind((host, port))
        if listening:
            out.listen(_BACKLOG)
    except OSError as error:
        out.close()
        raise InvalidModel(f"cannot listen on {host} port {port}: {error.strerror}. Choose another, or 0.") from None
    return out


class _Worker:
    """One worker's process, which has imported all it needs when it is told its number, and the pipe on which it says
    that it is ready."""

    def __init__(self, settings: dict[str, Any], kept_fds: list[int]) -> None:
        self.started_s = time.monotonic()
        self.ready_fd, said_fd = os.pipe()
        command = [sys.executable, "-m", "hetnn.serve.worker", json.dumps({**settings, "ready_fd": said_fd})]
        self.process = subprocess.Popen(
            command, pass_fds=[*kept_fds, said_fd], stdin=subprocess.PIPE, stdout=2, start_new_session=True
        )
        os.close(said_fd)

    def begin(self, index: int) -> _Worker:
        """Makes it the worker of that number."""
        self.started_s = time.monotonic()
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # a process that has died is noticed like any other
            self.process.stdin.write(b"%d\n" % index)
            self.process.stdin.close()
        return self

    def end(self) -> None:
        """Lets it answer what it has, or leave where it was never told its number."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()

    def wait_ready(self) -> None:
        """Unavailable with the worker's own words when it does not become ready."""
        said = b""
        with selectors.DefaultSelector() as selector, os.fdopen(self.ready_fd, "rb", buffering=0) as pipe:
            selector.register(pipe, selectors.EVENT_READ)
            while not said.endswith(b"\n"):
                left_s = self.started_s + _START_S - time.monotonic()
                if left_s <= 0 or not selector.select(left_s):
                    break
                part = pipe.read(4096)
                if not part:
                    break
                said += part
        self.ready_fd = -1
        if said != b"ready\n":
            self.process.kill()
            self.process.wait()
            why = said.decode(errors="replace").strip() or "it ended, or took too long"
            raise Unavailable(f"a worker of the server did not start: {why}")

    def gone(self) -> bool:
        return self.process.poll() is not None


class Supervisor:
    """A running server. `serve` returns when it was told to end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ending = False

    def serve(self, ready: IO[str]) -> None:
        """Starts everything, writes the line that says so, and keeps the workers alive until SIGTERM or SIGINT."""
        settings = self._settings
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        with contextlib.ExitStack() as stack:
            http = stack.enter_context(_bound(settings.host, settings.http_port, listening=True))
            metrics = stack.enter_context(_bound(settings.host, settings.metrics_port, listening=True))
            remote = stack.enter_context(_bound(settings.host, settings.grpc_port, listening=False))
            folder = tempfile.mkdtemp(prefix="hetnn-")
            stack.callback(shutil.rmtree, folder, True)
            memory_fd = os.memfd_create("hetnn-workers")
            stack.callback(os.close, memory_fd)
            os.ftruncate(memory_fd, 16 * settings.workers)
            parent_fd, alive_fd = os.pipe()
            stack.callback(os.close, alive_fd)
            shared = {
                **asdict(settings),
                "grpc_port": remote.getsockname()[1],
                "folder": folder,
                "memory_fd": memory_fd,
                "parent_fd": parent_fd,
                "http_fd": http.fileno(),
                "metrics_fd": metrics.fileno(),
            }
            kept_fds = [memory_fd, parent_fd, http.fileno(), metrics.fileno()]
            workers: list[_Worker] = []
            try:
                workers.extend(_Worker(shared, kept_fds).begin(k) for k in range(settings.workers))
                for worker in workers:
                    worker.wait_ready()
                line = {
                    "ready": True,
                    "http": http.getsockname()[1],
                    "grpc": remote.getsockname()[1],
                    "metrics": metrics.getsockname()[1],
                    "pid": os.getpid(),
                    "workers": [worker.process.pid for worker in workers],
                }
                ready.write(json.dumps(line) + "\n")
                ready.flush()
                self._keep_alive(workers, shared, kept_fds, memory_fd)
                http.close()
                metrics.close()
                remote.close()
            finally:
                self._stop(workers)

    def _end(self, number: int, frame: object) -> None:
        self._ending = True

    def _keep_alive(self, workers: list[_Worker], shared: dict[str, Any], kept_fds: list[int], memory_fd: int) -> None:
        """Puts a spare process, which has its imports behind it, in the place of a worker that has died."""
        spare = _Worker(shared, kept_fds)
        try:
            while not self._ending:
                for k, worker in enumerate(workers):
                    if not worker.gone():
                        continue
                    os.pwrite(memory_fd, struct.pack("q", 0), 8 * k)  # the requests that it held are gone
                    if time.monotonic() - worker.started_s < _AGAIN_S:
                        time.sleep(_AGAIN_S)
                    sys.stderr.write(f"hetnn serve: worker {worker.process.pid} died; another takes its place\n")
                    if worker.ready_fd >= 0:
                        os.close(worker.ready_fd)
                    workers[k] = spare.begin(k)
                    spare = _Worker(shared, kept_fds)
                time.sleep(0.02)
        finally:
            spare.end()
            spare.process.wait()

    def _stop(self, workers: list[_Worker]) -> None:
        for worker in workers:
            worker.end()
        ends_s = time.monotonic() + self._settings.grace_s + 2
        for worker in workers:
            try:
                worker.process.wait(max(ends_s - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
