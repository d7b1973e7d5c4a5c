"""Numbered tries in forked workers with limits on memory and time: how they ended, and what was found."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BATCH = 50
SECONDS = 12.0  # of the processor; a machine that is busy may take longer
MEMORY_BYTES = 3 << 30


class Found(Exception):
    """What a try raises to say what is wrong."""


@dataclass(frozen=True)
class Finding:
    """A try that raised something, died, or did not end."""

    index: int
    what: str


def command_line(description: str | None) -> argparse.ArgumentParser:
    """Of a fuzzer of models."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="SEED:INDEX of one model to try here, without a worker")
    return parser


def tell(what: str, counts: Counter[str], findings: list[Finding]) -> int:
    """Prints how the tries ended; the exit code."""
    print(f"{counts.total()} {what}: {dict(counts)}; {len(findings)} findings")
    return 1 if findings else 0


def try_each(
    attempt: Callable[[int], str],
    first: int,
    count: int,
    *,
    seconds: float = float("inf"),
    describe: Callable[[int], str] = str,
    batch: int = BATCH,
) -> tuple[Counter[str], list[Finding]]:
    """Tries `attempt(first)` and so on until there were enough or the time is over.

    An attempt's answer is counted by its first word; whatever it raises, its death and its hanging are findings, which
    are printed as they come, with what `describe` says of them.
    """
    counts: Counter[str] = Counter()
    findings: list[Finding] = []
    end = time.monotonic() + seconds
    for begin in range(first, first + count, batch):
        if time.monotonic() > end:
            break
        for finding in _batch(attempt, begin, min(begin + batch, first + count), counts):
            print(f"{describe(finding.index)}: {finding.what}", file=sys.stderr, flush=True)
            findings.append(finding)
    return counts, findings


def in_a_process(call: Callable[[], Any]) -> Any:
    """What a call gives that starts threads: workers are forked from a process that has none."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(call)


def _work(attempt: Callable[[int], str], first: int, end: int, pipe: int) -> None:
    """In a worker: a line before and after every try."""
    # What the process had before is no concern of the tries: engines of browsers reserve a terabyte.
    had = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (had + MEMORY_BYTES, had + MEMORY_BYTES))
    for index in range(first, end):
        os.write(pipe, f"begin {index}\n".encode())
        try:
            outcome = attempt(index)
        except Found as found:
            outcome = "error " + json.dumps(str(found)[:1500])
        except BaseException as error:  # whatever it is, it is a finding
            text = "".join(traceback.format_exception(error)[-4:])
            outcome = "error " + json.dumps(f"{type(error).__name__}: {text[-1500:]}")
        os.write(pipe, f"end {index} {outcome}\n".encode())


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _batch(attempt: Callable[[int], str], first: int, end: int, counts: Counter[str]) -> list[Finding]:
    findings = []
    while first < end:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            with open(os.devnull, "wb") as null:
                os.dup2(null.fileno(), 2)
            _work(attempt, first, end, writing)
            os._exit(0)
        os.close(writing)
        current, died, pending = first, "", b""
        begin_cpu = 0.0
        while True:
            ready, _, _ = select.select([reading], [], [], 1.0)
            if ready:
                data = os.read(reading, 1 << 16)
                if not data:
                    break
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    word, _, rest = line.decode().partition(" ")
                    if word == "begin":
                        current, begin_cpu = int(rest), _cpu_seconds(pid)
                        continue
                    _, _, outcome = rest.partition(" ")
                    counts[outcome.split()[0]] += 1
                    if outcome.startswith("error"):
                        findings.append(Finding(current, json.loads(outcome[6:])))
                    first = current + 1
            elif _cpu_seconds(pid) - begin_cpu > SECONDS:
                died = f"hangs: {SECONDS} s"
                os.kill(pid, signal.SIGKILL)
        os.close(reading)
        _, status = os.waitpid(pid, 0)
        if first < end:
            if os.WIFSIGNALED(status) and not died:
                died = f"dies of {signal.Signals(os.WTERMSIG(status)).name}"
            findings.append(Finding(current, died or f"exits: {status}"))
            counts["died"] += 1
            first = current + 1
    return findings
