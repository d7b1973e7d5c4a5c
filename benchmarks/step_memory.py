"""What a step of training needs of memory at most: parameters, moments, values kept for the gradients, scratch.

    python benchmarks/step_memory.py eager|FILE.hetnn NETWORK OPTIMIZER THREADS

In a process of its own: the most that lies in memory and belongs to no file during steps after the third, less what did
before the network was there, when another one had taken steps: what a library makes once is left out. Prints bytes.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from training_networks import NETWORKS, Teacher, Trained

import hetnn

STEPS = 3
# What has taken steps before: its step lies in a file beside the other's.
FIRST, FIRST_STEP = torch.nn.Linear(1, 10), (torch.ones(1, 1), torch.zeros(1, dtype=torch.int64))
FIRST_FILE = "first.hetnn"


def of_peer(peer: str, network: str, optimizer: str, threads: int) -> int:
    """Bytes of a step of `eager`, or of the executable in a file."""
    command = [sys.executable, __file__, peer, network, optimizer, str(threads)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout)


def _kilobytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def _peak(run: Callable[[], object]) -> int:
    for _ in range(STEPS):
        run()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    for _ in range(STEPS):
        run()
    return _kilobytes("VmHWM") - _kilobytes("RssFile") - _kilobytes("RssShmem")


def main() -> int:
    peer, network, optimizer, threads = sys.argv[1:]
    warnings.simplefilter("ignore")
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    make, draw = NETWORKS[network]
    x = draw()
    y = Teacher(x)(x)
    Trained(FIRST, optimizer)(*FIRST_STEP)
    first = None if peer == "eager" else hetnn.load(Path(peer).with_name(FIRST_FILE), threads=int(threads))
    if first:
        first(*FIRST_STEP)
    before = _kilobytes("RssAnon")
    step = Trained(make(), optimizer) if peer == "eager" else hetnn.load(peer, threads=int(threads))
    print(1024 * (_peak(lambda: step(x, y)) - before))
    return 0


if __name__ == "__main__":
    sys.exit(main())
