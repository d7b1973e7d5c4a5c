"""Runs a second of a tiny network (an MLP 16 → 64 → 4, one thread), from C++ and from Python, the library's size and
the milliseconds from a file to the first answer; beside it ExecuTorch and LiteRT, where PEERS is an interpreter that
has them.

python benchmarks/runtime.py BUILD [PEERS]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import hetnn


def runs_per_second(exe: hetnn.Executable, threads: int, seconds: float = 1.0) -> float:
    """Of so many Python threads together."""
    counts = [0] * threads
    end = time.perf_counter() + seconds

    def call(k: int) -> None:
        x, y = np.full((1, 16), 0.5, np.float32), np.empty((1, 4), np.float32)
        while time.perf_counter() < end:
            for _ in range(100):
                exe.run([x], [y])
            counts[k] += 100

    callers = [threading.Thread(target=call, args=(k,)) for k in range(threads)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return sum(counts) / seconds


def beside(python: Path, peer: str) -> dict[str, Any]:
    """The peer's row, or why there is none."""
    script = Path(__file__).with_name("runtime_peer.py")
    done = subprocess.run([python, script, peer], capture_output=True, text=True, cwd="/tmp")
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    return {"absent": done.stderr.strip().splitlines()[-1]}


def main() -> None:
    build = Path(sys.argv[1])
    peers = Path(sys.argv[2]).absolute() if len(sys.argv) > 2 else None
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4)).eval()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.hetnn"
        hetnn.compile(torch.export.export(model, (torch.zeros(1, 16),)), "cpu", threads=1).save(path)
        begin = time.perf_counter()
        exe = hetnn.load(path, threads=1)
        load_ms = (time.perf_counter() - begin) * 1e3
        exe.run([np.full((1, 16), 0.5, np.float32)])
        start_ms = (time.perf_counter() - begin) * 1e3
        command = [build / "benchmarks/cpp/bench_capi_runs", "--benchmark_format=json"]
        env = {**os.environ, "HETNN_NETWORK": str(path)}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
        subprocess.run(["strip", "-o", f"{folder}/stripped", build / "lib/libhetnn_runtime.so.1"], check=True)
        rows = {
            "c": {row["name"]: row["items_per_second"] for row in json.loads(done.stdout)["benchmarks"]},
            "python": {"one_thread": runs_per_second(exe, 1), "eight_threads": runs_per_second(exe, 8)},
            "load_ms": load_ms,
            "start_ms": start_ms,
            "library_mb": Path(folder, "stripped").stat().st_size / 1e6,
        }
        if peers:
            rows |= {peer: beside(peers, peer) for peer in ("executorch", "litert")}
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
