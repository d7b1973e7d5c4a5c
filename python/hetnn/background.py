"""Runs in the background: a future of a run's outputs, and the threads that make it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

from hetnn import _runtime

# More than CPUs, because runs also wait: for devices, and for their turn.
_THREADS = 8 * (os.cpu_count() or 1)
_pool: ThreadPoolExecutor | None = None


class Run(Future[Any]):
    """A run's outputs, once it has ended. It can be awaited; `cancel` also stops one that is under way."""

    def __init__(self, stop: _runtime.Stop) -> None:
        super().__init__()
        self._stop = stop
        self._stopped = False

    def cancel(self) -> bool:
        """Asks the run to stop, between commands or inside the simulator. False when it has ended already."""
        if self.done():
            return False
        self._stop.request()
        super().cancel()
        return True

    def cancelled(self) -> bool:
        """True when it ended because it was asked to stop; while it still ends, False."""
        return self._stopped or super().cancelled()

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self).__await__()

    def _make(self, run: Callable[[], Any]) -> None:
        if not self.set_running_or_notify_cancel():
            return
        try:
            self.set_result(run())
        except CancelledError as error:
            self._stopped = True
            self.set_exception(error)
        except BaseException as error:
            self.set_exception(error)


def start(run: Callable[[], Any], stop: _runtime.Stop) -> Run:
    """Calls `run` on a thread of a pool."""
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="hetnn")
    out = Run(stop)
    _pool.submit(out._make, run)
    return out


def _forget() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # the parent's threads are not the child's
