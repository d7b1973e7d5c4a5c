"""How `hetnn serve` and the store behave at their limits, each figure beside its bar: overload, latency, start, lists.

    python benchmarks/serve_limits.py [--seconds 10] [--storm-seconds 600] [--json FILE]

The network takes some milliseconds on one thread. Its capacity is what connections that are always busy get. Then 0.7
times as many requests come: evenly, which the bar is for, since what is above p50 then is the server's doing; and at
random moments, where even a server that adds nothing lets them wait for each other, as the figure beside says. Last, 4
times as many come at random moments, in turn with what connections that are always busy get, and for a while. Requests
come from a program of its own (`benchmarks/load`), since what a client takes of the cores counts as the server's.

Two more networks are asked by connections that are always busy: ResNet-18, beside runs without a server, and
wide layers whose rows share runs (at most 16 of them), beside runs of the best fixed number of rows. Other work on the
machine disturbs the figures.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pickle
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from serve import request

NAME = "net"
PROGRAM = Path(__file__).resolve().parents[1] / "build/release/benchmarks/load/http_load"
STRETCHES = 15


@dataclass
class Seen:
    """Of requests that come at some rate: seconds of each that was answered or refused."""

    came: list[float] = field(default_factory=list)  # when, after the first
    answered: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    late: int = 0  # of those answered, after the time was over

    def rate(self, seconds: float) -> float:
        """Answers a second."""
        return (len(self.answered) - self.late) / seconds


@dataclass
class Case:
    """A network that connections keep busy. `counts`: of rows in a run without a server; the best one counts."""

    file: Path
    message: bytes
    row: npt.NDArray[np.float32]
    connections: int
    counts: tuple[int, ...] = (1,)
    threads: int | None = None
    arguments: tuple[str, ...] = ()


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(int(len(values) * part), len(values) - 1)] if values else float("nan")


def compile_network() -> Any:
    import torch
    from torch import nn

    import hetnn

    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 64, 3), nn.ReLU(), *(nn.Conv2d(64, 64, 3, padding=1) for _ in range(12))]
    layers += [nn.AdaptiveAvgPool2d(1)]
    x = torch.randn(1, 3, 48, 48)
    return hetnn.compile(torch.export.export(nn.Sequential(*layers).eval(), (x,)), "cpu", threads=1)


def rate_of(call: Callable[[], object], seconds: float) -> float:
    """Calls a second."""
    call()
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        call()
        count += 1
    return count / (time.perf_counter() - begun)


def resnet(folder: Path) -> Case:
    import hetnn

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/python"))
    from models import nets

    module, args = nets.vision("resnet18")
    executable = hetnn.compile(module, args=args)
    executable.save(folder / "resnet.hetnn")
    x = args[0].numpy()
    return Case(folder / "resnet.hetnn", request(executable.inputs[0].name, x, NAME), x, connections=3)


def wide_layers(folder: Path) -> Case:
    import torch
    from torch import nn

    import hetnn

    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(4))).eval()
    rows = torch.export.Dim("rows", min=1, max=64)
    executable = hetnn.compile(model, args=(torch.randn(2, 2048),), dynamic_shapes=({0: rows},), threads=1)
    executable.save(folder / "wide.hetnn")
    row = np.zeros((1, 2048), np.float32)
    message = request(executable.inputs[0].name, row, NAME)
    counts, batches = (1, 2, 4, 8, 12, 16), ("--max-batch", "16")
    return Case(folder / "wide.hetnn", message, row, 33, counts, threads=1, arguments=batches)


class Load:
    """The program that asks a server over HTTP, which takes little of the cores: that would count as the server's."""

    def __init__(self, port: int, message: Path) -> None:
        self._begin = [str(PROGRAM), str(port), str(message)]

    def __call__(self, kind: str, count: float, seconds: float) -> Seen:
        command = [*self._begin, kind, f"{count}", f"{seconds}"]
        return Seen(**json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))

    def busy(self, connections: int, seconds: float) -> float:
        """Answers a second when `connections` always have a request."""
        return self("busy", connections, seconds).rate(seconds)


def spread(values: list[float]) -> float:
    """p99 / p50."""
    return percentile(values, 0.99) / percentile(values, 0.5)


def ideal(came: list[float], run_s: float) -> list[float]:
    """What requests would take of a server that runs one after another and adds nothing."""
    out, free = [], 0.0
    for at in came:
        free = max(free, at) + run_s
        out.append(free - at)
    return out


def paced(file: Path, rate: float, seconds: float) -> list[float]:
    """What runs take without a server, as many at once as there are cores, from when each was due: what the machine
    itself adds at that pace."""
    import hetnn

    executable = hetnn.load(file)
    inputs = np.zeros(executable.inputs[0].shape, np.float32)
    out: list[float] = []

    def one(due: float) -> None:
        executable(inputs)
        out.append(time.perf_counter() - due)

    cores = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(cores):
            pool.submit(executable, inputs)
        due = time.perf_counter() + 0.1
        for _ in range(int(rate * seconds)):
            time.sleep(max(due - time.perf_counter(), 0))
            pool.submit(one, due)
            due += 1 / rate
    return out


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def serving(*arguments: str) -> Any:
    """The server's ready line, and the seconds from the command to it."""
    ports = [f"--{name}-port=0" for name in ("http", "grpc", "metrics")]
    begun = time.perf_counter()
    command = [sys.executable, "-m", "hetnn", "serve", *arguments, *ports]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline()), time.perf_counter() - begun
    finally:
        process.terminate()
        process.wait(30)


def fill(folder: Path, file: Path, count: int) -> None:
    """A store of that many networks, which share one file; all rows but the first are copies of it."""
    code = "import sys, hetnn; hetnn.Store(sys.argv[1]).add('n0', sys.argv[2])"
    subprocess.run([sys.executable, "-c", code, str(folder), str(file)], check=True)
    with contextlib.closing(sqlite3.connect(folder / "index.sqlite")) as database:
        row = database.execute("SELECT * FROM versions").fetchone()
        rows = [(f"n{k}", *row[1:]) for k in range(1, count)]
        database.executemany(f"INSERT INTO versions VALUES ({','.join('?' * len(row))})", rows)
        database.commit()


_ASK_STORE = """
import json, sys, time
import hetnn
store = hetnn.Store(sys.argv[1])
store.association("n0")
def best(call, rounds):
    out = []
    for _ in range(rounds):
        begun = time.perf_counter(); call(); out.append(time.perf_counter() - begun)
    return min(out)
print(json.dumps([best(lambda: store.find("n0"), 200) * 1e6, best(lambda: store.association("n0"), 200) * 1e6,
                  best(store.list, 5)]))
"""


def measure_store(folder: Path, file: Path) -> dict[str, tuple[float, str]]:
    fill(folder / "large", file, 10_000)
    said = subprocess.run(
        [sys.executable, "-c", _ASK_STORE, str(folder / "large")], check=True, capture_output=True, text=True
    ).stdout
    find_us, association_us, list_s = json.loads(said)
    return {
        "version found among 10,000 networks, us": (find_us, "<= 100"),
        "association found among 10,000 networks, us": (association_us, "<= 100"),
        "10,000 networks listed, s": (list_s, "<= 0.2"),
    }


def measure_start(folder: Path, file: Path) -> dict[str, tuple[float, str]]:
    fill(folder / "thousand", file, 1000)
    with serving("--model", f"{NAME}={file}") as (_, alone_s):
        pass
    with serving("--store", str(folder / "thousand")) as (_, thousand_s):
        pass
    return {"ready after the command, s": (alone_s, "<= 1.5"), "with 1,000 networks, s": (thousand_s, "<= 3")}


def measure_busy(case: Case, message: Path, seconds: float) -> float:
    """Answers a second, of the inferences a second without the server: both in turn, the middle of five rounds."""
    import hetnn

    executable = hetnn.load(case.file, threads=case.threads)

    def alone() -> float:
        batches = [np.repeat(case.row, count, 0) for count in case.counts]
        return max(len(x) * rate_of(lambda x=x: executable(x), seconds / 5 / len(batches)) for x in batches)  # type: ignore[misc]

    shares = []
    with serving("--model", f"{NAME}={case.file}", *case.arguments) as (ready, _):
        load = Load(ready["http"], message)
        load.busy(case.connections, 0.5)
        for _ in range(5):
            before = alone()
            answers = load.busy(case.connections, seconds / 5)
            shares.append(2 * answers / (before + alone()))
    return sorted(shares)[2]


class Watching:
    """The most bytes that a process has while this goes on."""

    def __init__(self, pid: int) -> None:
        self._pid, self._over = pid, threading.Event()
        self.most = resident_bytes(pid)

    def __enter__(self) -> Watching:
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            self.most = max(self.most, resident_bytes(self._pid))


def measure_load(file: Path, message: Path, seconds: float, storm_seconds: float) -> dict[str, tuple[float, str]]:
    with serving("--model", f"{NAME}={file}", "--queue", "16") as (ready, _):
        load = Load(ready["http"], message)
        load.busy(4, 1)
        capacity = load.busy(4, seconds / 2)
        # Other work, and other guests of the machine, come in bursts of a tenth of a second: of many stretches, the one
        # in the middle counts.
        stretches = [load("evenly", 0.7 * capacity, seconds / 8) for _ in range(STRETCHES)]
        calm = sorted(stretches, key=lambda seen: spread(seen.answered))[STRETCHES // 2]
        random_ = load("random", 0.7 * capacity, seconds)
        shares = []
        for _ in range(5):  # in turn with what it can, whose middle counts as above
            first = load.busy(4, seconds / 10)
            storm = load("random", 4 * first, seconds / 5)
            shares.append(2 * storm.rate(seconds / 5) / (first + load.busy(4, seconds / 10)))
        (worker,) = ready["workers"]
        before = resident_bytes(worker)
        with Watching(worker) as watching:
            storm = load("random", 4 * capacity, storm_seconds)
        grown = watching.most - before
    alone = sorted(spread(paced(file, 0.7 * capacity, seconds / 8)) for _ in range(STRETCHES))[STRETCHES // 2]
    return {
        "capacity, requests/s": (capacity, ""),
        "0.7 of it, evenly: p50, ms": (percentile(calm.answered, 0.5) * 1e3, ""),
        "0.7 of it, evenly: p99 / p50": (spread(calm.answered), "<= 1.5"),
        "the same without a server": (alone, ""),
        "0.7 of it, at random: p99 / p50": (spread(random_.answered), ""),
        "the same of one that adds nothing": (spread(ideal(random_.came, 1 / capacity)), ""),
        "0.7 of it: p99 of health, ms": (percentile(calm.health, 0.99) * 1e3, "<= 10"),
        "4 times: answered, of capacity": (sorted(shares)[2], ">= 0.9"),
        "4 times: refused, of those that came": (len(storm.refused) / len(storm.came), ""),
        "4 times: p50 of refusals, ms": (percentile(storm.refused, 0.5) * 1e3, ""),
        "4 times: p99 of refusals, ms": (percentile(storm.refused, 0.99) * 1e3, "<= 10"),
        "4 times: p99 of health, ms": (percentile(storm.health, 0.99) * 1e3, "<= 10"),
        f"4 times, {storm_seconds:g} s: memory, MB more": (grown / 1e6, "<= 50"),
    }


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--storm-seconds", type=float)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--busy", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not PROGRAM.exists():
        raise SystemExit(f"{PROGRAM} is missing: build the target http_load.")
    if args.load is not None:
        file, message = args.load / "net.hetnn", args.load / "request"
        print(json.dumps(measure_load(file, message, args.seconds, args.storm_seconds or args.seconds)))
        return 0
    if args.busy is not None:
        case = pickle.loads(args.busy.read_bytes())
        message = args.busy.with_name("message")
        message.write_bytes(case.message)
        print(measure_busy(case, message, args.seconds))
        return 0
    os.environ["HETNN_VERIFY"] = "0"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "net.hetnn"
        executable = compile_network()
        executable.save(file)
        figures = measure_store(folder, file) | measure_start(folder, file)
        (port,) = executable.inputs
        inputs = np.zeros(port.shape, np.float32)
        runs = sorted(_seconds(lambda: executable(inputs)) for _ in range(100))
        figures["a run without a server, ms"] = (runs[50] * 1e3, "")
        # Torch stays out of what measures.
        (folder / "request").write_bytes(request(port.name, inputs, NAME))
        asked = [sys.executable, __file__, "--seconds", str(args.seconds)]

        def ask(*options: str) -> Any:
            return json.loads(subprocess.run([*asked, *options], check=True, stdout=subprocess.PIPE, text=True).stdout)

        for label, bar, make in (
            ("ResNet-18 by HTTP, of runs without a server", ">= 0.95", resnet),
            ("rows that share runs, of the best fixed number", ">= 0.9", wide_layers),
        ):
            (folder / "case").write_bytes(pickle.dumps(make(folder)))
            figures[label] = (ask("--busy", str(folder / "case")), bar)
        said = ask("--load", str(folder), *(["--storm-seconds", str(args.storm_seconds)] if args.storm_seconds else []))
        figures |= {label: (figure, bar) for label, (figure, bar) in said.items()}
    for label, (figure, bar) in figures.items():
        print(f"{label:<48} {figure:>10.4g}   {bar}")
    if args.json is not None:
        args.json.write_text(json.dumps({label: figure for label, (figure, _) in figures.items()}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
