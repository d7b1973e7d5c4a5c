"""How faults are tried: `make fault` says a hundred times each, other runs of the tests a few."""

import os
import signal
import subprocess
import time
from pathlib import Path

ROUNDS = int(os.environ.get("HETNN_FAULT_ROUNDS", "4"))


def paused(process: subprocess.Popen[str]) -> None:
    """Stops it, and returns when every thread has: the signal takes its time."""
    process.send_signal(signal.SIGSTOP)
    states = Path(f"/proc/{process.pid}/task")
    while any((task / "stat").read_text().rpartition(")")[2].split()[0] != "T" for task in states.iterdir()):
        time.sleep(0.001)
