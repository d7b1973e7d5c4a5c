"""What two threads lose beside one busy process, for MNASNet 1.0 (Tan et al. 2019, figure 7; random weights): hetnn,
and XNNPACK where PEERS is an interpreter with ExecuTorch.

python benchmarks/beside_busy.py [PEERS] [--rounds N]

Each engine lives in a process of its own and is asked in turn, idle and with a process that computes all the time. A
loss is the time a run takes beside that process over the time it takes idle, medians over rounds. Exit 1 when hetnn's
loss is more than 1.1 times XNNPACK's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

THREADS = 2
_MOST_OVER_PEER = 1.1
_BLOCK_S = 0.7


def mnasnet() -> nn.Module:
    """For images of 1x3x224x224."""
    torch.manual_seed(0)

    def block(inside: int, outside: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> list[nn.Module]:
        pad = kernel // 2
        return [nn.Conv2d(inside, outside, kernel, stride, pad, groups=groups, bias=False), nn.BatchNorm2d(outside)]

    class Inverted(nn.Module):
        def __init__(self, inside: int, outside: int, kernel: int, stride: int, wider: int) -> None:
            super().__init__()
            wide = inside * wider
            depthwise = block(wide, wide, kernel, stride, wide)
            self.layers = nn.Sequential(*block(inside, wide), nn.ReLU(), *depthwise, nn.ReLU(), *block(wide, outside))
            self.adds = stride == 1 and inside == outside

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.layers(x) if self.adds else self.layers(x)

    layers = [*block(3, 32, 3, 2), nn.ReLU(), *block(32, 32, 3, 1, 32), nn.ReLU(), *block(32, 16)]
    inside = 16
    stages = [
        (3, 24, 3, 2, 3),
        (3, 40, 5, 2, 3),
        (3, 80, 5, 2, 6),
        (2, 96, 3, 1, 6),
        (4, 192, 5, 2, 6),
        (1, 320, 3, 1, 6),
    ]
    for count, outside, kernel, stride, wider in stages:
        for k in range(count):
            layers.append(Inverted(inside, outside, kernel, stride if k == 0 else 1, wider))
            inside = outside
    layers += [*block(320, 1280), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000)]
    return nn.Sequential(*layers).eval()


def hetnn_run(model: nn.Module, x: torch.Tensor) -> Callable[[], Any]:
    import hetnn

    exe = hetnn.compile(model, args=(x,), threads=THREADS)
    return lambda: exe(x)


def xnnpack_run(model: nn.Module, x: torch.Tensor) -> Callable[[], Any]:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower
    from executorch.extension.pybindings import _C, portable_lib

    _C._unsafe_reset_threadpool(THREADS)
    exported = torch.export.export(model, (x,))
    lowered = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch()
    with tempfile.NamedTemporaryFile() as file:
        file.write(lowered.buffer)
        file.flush()
        program = portable_lib._load_for_executorch(file.name)
    return lambda: program.forward((x,))


ENGINES = {"hetnn": hetnn_run, "xnnpack": xnnpack_run}


def answer(run: Callable[[], Any]) -> None:
    """For each line of standard input, the milliseconds that a run takes; first a line when it is ready."""
    run()
    print(json.dumps("ready"), flush=True)
    for _ in sys.stdin:
        count, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < _BLOCK_S:
            run()
            count += 1
        print(json.dumps((time.perf_counter() - begun) / count * 1e3), flush=True)


class Engine:
    """A process that runs something when it is asked, and answers with the milliseconds that took."""

    def __init__(self, command: list[str], **variables: str) -> None:
        env = {**os.environ, "OMP_NUM_THREADS": str(THREADS), **variables}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self._next()

    def _next(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                return json.loads(line)
            except ValueError:  # an engine's own words
                continue
        raise SystemExit(f"{self._process.args!r} ended with {self._process.wait()}")

    def ms(self) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return float(self._next())

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--answer", choices=ENGINES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answer is not None:
        answer(ENGINES[args.answer](mnasnet(), torch.linspace(-1, 1, 3 * 224 * 224).reshape(1, 3, 224, 224)))
        return 0
    script = str(Path(__file__).resolve())
    engines = {"hetnn": Engine([sys.executable, script, "--answer", "hetnn"])}
    if args.peers is not None:
        engines["xnnpack"] = Engine([str(args.peers.absolute()), script, "--answer", "xnnpack"])
    took: dict[tuple[str, bool], list[float]] = {(name, busy): [] for name in engines for busy in (False, True)}
    try:
        for _ in range(args.rounds):
            for busy in (False, True):
                other = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
                time.sleep(0.3)
                try:
                    for name, engine in engines.items():
                        took[name, busy].append(engine.ms())
                finally:
                    if other is not None:
                        other.kill()
                        other.wait()
    finally:
        for engine in engines.values():
            engine.close()
    ms = {key: statistics.median(rows) for key, rows in took.items()}
    losses = {name: ms[name, True] / ms[name, False] for name in engines}
    for name, loss in losses.items():
        idle, beside = ms[name, False], ms[name, True]
        print(f"{name:<8} idle {idle:6.2f} ms, beside a busy process {beside:6.2f} ms: {loss:.2f} times")
    if "xnnpack" not in losses:
        return 0
    over = losses["hetnn"] / losses["xnnpack"]
    print(f"hetnn's loss over XNNPACK's: {over:.2f} (bar {_MOST_OVER_PEER})")
    return 0 if over <= _MOST_OVER_PEER else 1


if __name__ == "__main__":
    sys.exit(main())
