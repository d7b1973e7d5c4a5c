"""Engines beside each other: each in a process of its own, asked in turns, those that wait stopped.

A figure is the median over rounds of the fastest run in a block of at least a quarter of a second.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

BLOCK_S = 0.25


def serve(run: Callable[[], Any], error: float) -> None:
    """An engine's process: says how far its answer is from what is wanted, then measures a block for each line it
    reads."""
    print(json.dumps({"error": error}), flush=True)
    for _ in sys.stdin:
        best, runs, begin = float("inf"), 0, time.perf_counter()
        while runs < 5 or time.perf_counter() - begin < BLOCK_S:
            start = time.perf_counter()
            run()
            best, runs = min(best, time.perf_counter() - start), runs + 1
        print(json.dumps({"best_us": best * 1e6}), flush=True)


def work(run: Callable[[], Any], got: list[Any], want: list[Any]) -> None:
    """`serve` of an engine whose answers are judged by the largest difference as a share of the largest element."""
    import numpy as np

    serve(run, max(float(np.abs(g - w).max() / np.abs(w).max()) for g, w in zip(got, want, strict=True)))


class Peer:
    """An engine's process, stopped while others measure. RuntimeError where it does not run the network."""

    def __init__(self, command: list[str], threads: int) -> None:
        env = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
        )
        self.error = float(self._read()["error"])
        self.best_us: list[float] = []
        self.process.send_signal(signal.SIGSTOP)

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise RuntimeError(f"{self.process.args!r} ended without an answer")

    def measure(self) -> None:
        assert self.process.stdin is not None
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.best_us.append(float(self._read()["best_us"]))
        self.process.send_signal(signal.SIGSTOP)

    def end(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.communicate()


def blocks(peers: dict[str, Peer], rounds: int) -> dict[str, list[float]]:
    """The figure of each round, in us; their processes end."""
    for _ in range(rounds):
        for peer in peers.values():
            peer.measure()
    for peer in peers.values():
        peer.end()
    return {name: peer.best_us for name, peer in peers.items()}


def measure(peers: dict[str, Peer], rounds: int) -> dict[str, float]:
    """The time of each in us; their processes end."""
    return {name: statistics.median(best_us) for name, best_us in blocks(peers, rounds).items()}


def compare(net: str, commands: dict[str, list[str]], threads: int, rounds: int) -> dict[str, Any]:
    """The peers' times and errors; each is what its command, a Python script's, calls `work` with."""
    peers = {name: Peer([sys.executable, *command], threads) for name, command in commands.items()}
    times = measure(peers, rounds)
    others = [time_us for name, time_us in times.items() if name != "hetnn"]
    errors = {name: peer.error for name, peer in peers.items()}
    return {"net": net, "us": times, "error": errors, "ratio": min(others) / times["hetnn"]}
