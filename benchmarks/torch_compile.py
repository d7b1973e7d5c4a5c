"""torch.compile with hetnn beside hetnn.compile, and its first call beside inductor's, on three networks of inference.

    python benchmarks/torch_compile.py [--models resnet50,bert,gpt2] [--threads 2] [--rounds 15] [--no-first]

A run's time is the least of a block of runs in turn, the ratio the median over rounds of hetnn.compile's time over that
of torch.compile(backend="hetnn"): above 1 the latter is ahead. A first call, in a process of its own with an empty
cache of inductor's, is the time by the clock from torch.compile to the result. Random weights.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "benchmarks")]

import torch  # noqa: E402
from timing import rounds_us  # noqa: E402
from torch import nn  # noqa: E402

import hetnn  # noqa: E402
from models import nets  # noqa: E402

Case = tuple[nn.Module, torch.Tensor]
BACKENDS = ("hetnn", "inductor")


class Words(nn.Module):
    """A model of transformers, of which one tensor is asked."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: torch.Tensor) -> Any:
        return self.model(words, use_cache=False, return_dict=False)[0]


def resnet50() -> Case:
    model, (x,) = nets.vision("resnet50")
    return model, x


def bert() -> Case:
    from transformers import BertConfig, BertModel

    return Words(BertModel(BertConfig())), torch.randint(0, 30522, (1, 128))


def gpt2() -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    return Words(GPT2LMHeadModel(GPT2Config())), torch.randint(0, 50257, (1, 64))


MODELS: dict[str, Callable[[], Case]] = {"resnet50": resnet50, "bert": bert, "gpt2": gpt2}


def case_of(name: str) -> Case:
    """The network in evaluation mode, and its input."""
    nets.declare_torchvision_operators()  # transformers imports it
    torch.manual_seed(0)
    model, x = MODELS[name]()
    return model.eval(), x


def first_call(name: str, backend: str, threads: int) -> float:
    """Seconds, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--first", name, backend, str(threads)]
        told = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=told)
    return float(done.stdout.split()[-1])


def print_first_call(name: str, backend: str, threads: int) -> None:
    """What such a process does."""
    torch.set_num_threads(threads)
    model, x = case_of(name)
    with torch.no_grad():
        model(x)
        begin = time.perf_counter()
        torch.compile(model, backend=backend, options={"threads": threads} if backend == "hetnn" else None)(x)
        print(time.perf_counter() - begin)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-first", dest="with_first", action="store_false", help="leave first calls out")
    parser.add_argument("--first", nargs=3, metavar=("MODEL", "BACKEND", "THREADS"), help=argparse.SUPPRESS)
    told = parser.parse_args()
    warnings.simplefilter("ignore")
    if told.first:
        print_first_call(told.first[0], told.first[1], int(told.first[2]))
        return 0
    torch.set_num_threads(told.threads)
    print(f"{'network':10} {'ms':>8} {'ratio':>6} {'first call s':>13} {'of inductor s':>14}")
    for name in told.models.split(","):
        model, x = case_of(name)
        with torch.no_grad():
            compiled = torch.compile(model, backend="hetnn", options={"threads": told.threads})
            executable = hetnn.compile(torch.export.export(model, (x,)), threads=told.threads)
            torch.testing.assert_close(compiled(x), torch.as_tensor(executable(x)), rtol=1e-3, atol=1e-3)
            took = rounds_us({"hetnn": partial(executable, x), "torch": partial(compiled, x)}, told.rounds, 0.3)
        ratio = statistics.median(a / b for a, b in zip(took["hetnn"], took["torch"], strict=True))
        first = [f"{first_call(name, backend, told.threads):.1f}" if told.with_first else "" for backend in BACKENDS]
        print(f"{name:10} {min(took['torch']) / 1e3:8.2f} {ratio:6.2f} {first[0]:>13} {first[1]:>14}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
