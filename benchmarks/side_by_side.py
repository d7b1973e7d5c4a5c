"""Latency of well-known networks in hetnn beside torch and, where it is there, ONNX Runtime; a process each, in turns.

    python benchmarks/side_by_side.py [--nets resnet18,mobilenet_v2] [--threads 2] [--rounds 5] [--json FILE]

A peer's figure is the median over rounds of its fastest run in a block of at least a quarter of a second. Peers that do
not measure are stopped, so that they take no time from the others. `ratio` is the fastest other peer over hetnn.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BLOCK_S = 0.25


def build(peer: str, net: str, threads: int) -> tuple[Callable[[], Any], list[Any], list[Any]]:
    """A function that runs the network once, its results, and torch's."""
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    import torch

    from models import nets

    torch.set_num_threads(threads)
    module, inputs = nets.NETS[net]()
    with torch.no_grad():
        reference = [module(*inputs).numpy()]
    if peer == "torch":

        def run() -> Any:
            with torch.no_grad():
                return [module(*inputs).numpy()]

    elif peer == "onnxruntime":
        import tempfile

        import onnxruntime

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.onnx"
            names = [f"x{k}" for k in range(len(inputs))]
            torch.onnx.export(module, inputs, path, input_names=names, dynamo=True, external_data=False, verbose=False)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        feed = dict(zip(names, [x.numpy() for x in inputs], strict=True))

        def run() -> Any:
            return session.run(None, feed)

    else:
        import hetnn

        executable = hetnn.compile(torch.export.export(module, inputs, strict=False), "cpu", threads=threads)
        arrays = [x.numpy() for x in inputs]

        def run() -> Any:
            return [executable(*arrays)]

    return run, list(run()), reference


def work(run: Callable[[], Any], got: list[Any], want: list[Any]) -> None:
    """One peer's process: says how far it is from what is wanted, then measures one block for each line it reads."""
    import numpy as np

    error = max(float(np.abs(g - w).max() / np.abs(w).max()) for g, w in zip(got, want, strict=True))
    print(json.dumps({"error": error}), flush=True)
    for _ in sys.stdin:
        best, runs, begin = float("inf"), 0, time.perf_counter()
        while runs < 5 or time.perf_counter() - begin < BLOCK_S:
            start = time.perf_counter()
            run()
            best, runs = min(best, time.perf_counter() - start), runs + 1
        print(json.dumps({"best_us": best * 1e6}), flush=True)


class Peer:
    """A peer's process, stopped while others measure."""

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


def compare(net: str, commands: dict[str, list[str]], threads: int, rounds: int) -> dict[str, Any]:
    """The peers' times and errors; each is what its command, a Python script's, calls `work` with."""
    peers = {name: Peer([sys.executable, *command], threads) for name, command in commands.items()}
    for _ in range(rounds):
        for peer in peers.values():
            peer.measure()
    for peer in peers.values():
        peer.end()
    times = {name: statistics.median(peer.best_us) for name, peer in peers.items()}
    others = [time_us for name, time_us in times.items() if name != "hetnn"]
    errors = {name: peer.error for name, peer in peers.items()}
    return {"net": net, "us": times, "error": errors, "ratio": min(others) / times["hetnn"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default="resnet18,mobilenet_v2,minilm")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(*build(args.work, args.nets, args.threads))
        return 0
    names = ["hetnn", "torch"]
    if importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("onnxscript"):
        names.append("onnxruntime")
    rows = []
    for net in args.nets.split(","):
        common = ["--nets", net, "--threads", str(args.threads)]
        commands = {name: [__file__, "--work", name, *common] for name in names}
        rows.append(compare(net, commands, args.threads, args.rounds))
        times = "  ".join(f"{name} {time_us / 1e3:.3f} ms" for name, time_us in rows[-1]["us"].items())
        print(f"{net:14} {times}  ratio {rows[-1]['ratio']:.2f}  error {rows[-1]['error']['hetnn']:.1e}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
