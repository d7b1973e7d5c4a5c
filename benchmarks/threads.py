"""Both ways to run parallel regions side by side: hetnn's own pool, and teams of OpenMP (built with
HETNN_THREADS=openmp, which `make bench-threads` does).

python benchmarks/threads.py SITE [--rounds N]

SITE is a folder with the package of the other build. Each build lives in a process of its own and is asked in turn:
MNASNet 1.0, whose regions take some 100 us; a network of three small layers, where starting a region is most of the
time; and MNASNet in turns with eager torch, whose threads are OpenMP's, as before and after steps in torch. Times are
medians over rounds, ratios openmp / own.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from beside_busy import THREADS, Engine, answer, mnasnet
from torch import nn


def _compiled(model: nn.Module, x: torch.Tensor) -> Callable[[], Any]:
    import hetnn

    executable = hetnn.compile(model.eval(), args=(x,), threads=THREADS)
    return lambda: executable(x)


def large() -> Callable[[], Any]:
    return _compiled(mnasnet(), torch.linspace(-1, 1, 3 * 224 * 224).reshape(1, 3, 224, 224))


def small() -> Callable[[], Any]:
    layers = [nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()]
    return _compiled(
        nn.Sequential(*layers, nn.Conv2d(16, 8, 1)), torch.linspace(-1, 1, 16 * 32 * 32).view(1, 16, 32, 32)
    )


def beside_torch() -> Callable[[], Any]:
    run, a = large(), torch.rand(384, 384)
    torch.set_num_threads(THREADS)

    def both() -> None:
        for _ in range(4):
            torch.mm(a, a)
        run()

    return both


TASKS = {"large": large, "small": small, "beside torch": beside_torch}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--answer", choices=TASKS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answer is not None:
        answer(TASKS[args.answer]())
        return 0
    if args.site is None or not (args.site / "hetnn").is_dir():
        parser.error(f"{args.site} has no package hetnn; `make bench-threads` builds one")
    script = str(Path(__file__).resolve())
    for task in TASKS:
        command = [sys.executable, script, "--answer", task]
        engines = {"own": Engine(command), "openmp": Engine(command, PYTHONPATH=str(args.site.absolute()))}
        took: dict[str, list[float]] = {name: [] for name in engines}
        for _ in range(args.rounds):
            for name, engine in engines.items():
                took[name].append(engine.ms())
        for engine in engines.values():
            engine.close()
        own, openmp = (statistics.median(took[name]) for name in ("own", "openmp"))
        print(f"{task:<12} own {own:7.3f} ms, openmp {openmp:7.3f} ms: {openmp / own:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
