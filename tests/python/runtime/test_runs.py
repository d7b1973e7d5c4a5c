"""Runs in the background, bounds, deadlines, Ctrl-C, the times of runs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import hetnn

X = np.ones((1, 4, 8, 8), np.float32)


@pytest.fixture(scope="module")
def small() -> hetnn.Executable:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(4, 4, 3), nn.Sigmoid()).eval()
    exported = torch.export.export(model, (torch.zeros(X.shape),))
    return hetnn.compile(exported, "cpu+relu-only", strategy="take-all", rewrite="off", threads=1)


SLOW_SHAPE = (1, 16, 224, 224)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network whose simulation takes seconds."""
    model = nn.Sequential(*[nn.Conv2d(16, 16, 3, padding=1) for _ in range(12)]).eval()
    exported = torch.export.export(model, (torch.zeros(SLOW_SHAPE),))
    path = tmp_path_factory.mktemp("slow") / "slow.hetnn"
    hetnn.compile(exported, "cpu+relu-only", strategy="take-all", rewrite="off").save(path)
    return path


def test_a_future_holds_the_outputs(small: hetnn.Executable) -> None:
    expected = small.run([X])[0]
    futures = [small.run_async([X]) for _ in range(8)]
    for future in futures:
        np.testing.assert_array_equal(future.result(30)[0], expected)
        assert not future.cancel()


def test_a_future_can_be_awaited(small: hetnn.Executable) -> None:
    async def both() -> list[np.ndarray]:
        first, second = small.run_async([X]), small.run_async([X])
        return [(await first)[0], (await second)[0]]

    a, b = asyncio.run(both())
    np.testing.assert_array_equal(a, b)


def test_a_future_holds_the_error(small: hetnn.Executable) -> None:
    future = small.run_async([np.ones((2, 2), np.float32)])
    with pytest.raises(hetnn.InvalidModel, match=r"must be f32\[1,4,8,8\]; got f32\[2,2\]"):
        future.result(30)


def test_a_run_is_cancelled_inside_the_simulator(slow: Path) -> None:
    exe = hetnn.load(slow)
    future = exe.run_async([np.zeros(SLOW_SHAPE, np.float32)])
    time.sleep(0.2)
    assert future.running()
    begin = time.perf_counter()
    assert future.cancel()
    with pytest.raises(CancelledError):
        future.result(30)
    assert time.perf_counter() - begin < 1
    assert future.cancelled()


def test_a_run_ends_at_its_deadline(slow: Path) -> None:
    future = hetnn.load(slow).run_async([np.zeros(SLOW_SHAPE, np.float32)], timeout_s=0.1)
    with pytest.raises(hetnn.Unavailable, match=r"the run's deadline passed before it ended\."):
        future.result(30)


def test_runs_beyond_the_bound_wait_or_are_refused(slow: Path) -> None:
    x = np.zeros(SLOW_SHAPE, np.float32)
    refusing = hetnn.load(slow, max_concurrent_runs=1, refuse_when_full=True)
    first = refusing.run_async([x])
    time.sleep(0.2)
    with pytest.raises(hetnn.Unavailable, match=r"all 1 runs that the executable takes at once are under way\."):
        refusing.run([x])
    first.cancel()
    waiting = hetnn.load(slow, max_concurrent_runs=1)
    first = waiting.run_async([x])
    time.sleep(0.2)
    with pytest.raises(hetnn.Unavailable, match="deadline"):
        waiting.run_async([x], timeout_s=0.05).result(30)
    first.cancel()
    with pytest.raises(hetnn.InvalidModel, match="max_concurrent_runs must be 1 or more, or None for no bound; got 0"):
        waiting.limit_runs(0)


def test_ctrl_c_ends_a_run_within_a_second(slow: Path) -> None:
    code = (
        "import sys, time, numpy, hetnn\n"
        f"exe, x = hetnn.load(sys.argv[1]), numpy.zeros({SLOW_SHAPE}, 'f')\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    while True: exe.run([x])\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped', flush=True)\n"
    )
    # Whoever runs the tests in the background may have told their processes to ignore it.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    command = [sys.executable, "-c", code, slow]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=heed) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        begin = time.perf_counter()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopped\n"
        assert time.perf_counter() - begin < 1


def test_a_forked_child_has_threads_of_its_own(small: hetnn.Executable) -> None:
    expected = small.run_async([X]).result(30)[0]
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if np.array_equal(small.run_async([X]).result(20)[0], expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_last_times_are_those_of_the_calling_thread(small: hetnn.Executable) -> None:
    small.run([X])
    times = small.last_times
    keys = {"name", "device", "at", "start_us", "finish_us", "queue_us", "cycles", "fallback"}
    assert [set(row) for row in times] == [keys, keys]
    assert times[0]["cycles"] > 0
    assert 0 <= times[0]["start_us"] <= times[0]["finish_us"] <= times[1]["start_us"] <= times[1]["finish_us"]
    seen: list[object] = []
    other = threading.Thread(target=lambda: seen.append(small.last_times))
    other.start()
    other.join()
    assert seen == [[]]
    assert small.last_times == times


def test_a_trace_has_arrows_between_subgraphs(small: hetnn.Executable, tmp_path: Path) -> None:
    small.trace(tmp_path / "trace.json", X)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = {event["name"]: event for event in events if event["ph"] == "X" and event["cat"] == "subprogram"}
    (begin,), (end,) = ([event for event in events if event["ph"] == phase] for phase in "sf")
    first, second = spans.values()
    assert (begin["tid"], end["tid"]) == (first["tid"], second["tid"])
    # Viewers bind an arrow to the span that is open at its time: it leaves within, just before the end.
    assert first["ts"] <= begin["ts"] < first["ts"] + first["dur"] <= begin["ts"] + 1e-3 + 1e-9
    assert begin["ts"] <= end["ts"] == second["ts"]
    assert begin["id"] == end["id"]
