"""Steps of training: hetnn beside eager torch and torch.compile, on six networks, two threads, batch as written.

    python benchmarks/training.py [--steps 200] [--threads 2] [--rounds 7] [--optimizer adam] [--no-inductor]
                                  [--json FILE]

First as many steps as --steps on the same data from the same values: the largest difference of a loss from eager's, of
its own size, and beside it that of eager itself from values 1e-7 of their size apart: what rounding alone makes of it;
then how far hetnn's and eager's are from those of eager in f64.
Labels are taught, the largest of ten fixed sums over the inputs: of random ones nothing can be learnt, and losses that
never fall say little. Then steps in turns: a step's time is the least of a block of them, a ratio the median over
rounds of a peer's time over hetnn's; above 1 hetnn is ahead. At last the most memory that a step needs
(step_memory.py), in MB, hetnn's and eager's.

Ends with 1 where a loss is 1e-4 or more away.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import step_memory
import torch
from timing import Run, rounds_us
from torch import nn
from training_networks import LEARNING_RATE, NETWORKS, OPTIMIZERS, Exact, Teacher, Trained

import hetnn

# Of a block of steps in a round.
BLOCK_S = 0.15
NEAR = 1e-4
APART = 1e-7


def moved(model: nn.Module) -> nn.Module:
    """A copy whose parameters are by a rounding others."""
    out = copy.deepcopy(model)
    draw = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in out.parameters():
            parameter.mul_(1 + APART * torch.randn(parameter.shape, generator=draw))
    return out


def measured(name: str, told: argparse.Namespace) -> dict[str, Any]:
    """A row of the table."""
    torch.manual_seed(0)
    make, draw = NETWORKS[name]
    model = make()
    inputs = [draw() for _ in range(told.steps)]
    teacher = Teacher(inputs[0])
    batches = [(x, teacher(x)) for x in inputs]
    begin = time.perf_counter()
    step = hetnn.compile_training(model, batches[0], optimizer=told.optimizer, lr=LEARNING_RATE, threads=told.threads)
    row: dict[str, Any] = {"network": name, "compile_s": round(time.perf_counter() - begin, 2)}
    peers: dict[str, Callable[..., float]] = {"hetnn": step, "eager": Trained(model, told.optimizer)}
    if told.inductor:
        peers["inductor"] = Trained(model, told.optimizer, torch.compile)
    beside, exact = Trained(moved(model), told.optimizer), Exact(model, told.optimizer)
    losses = [(peers["eager"](*one), step(*one), beside(*one), exact(*one)) for one in batches]
    row["loss_away"], row["moved_away"] = (max(abs(one[k] / one[0] - 1) for one in losses) for k in (1, 2))
    row["f64_away"], row["eager_f64_away"] = (max(abs(one[k] / one[3] - 1) for one in losses) for k in (1, 0))
    runs: dict[str, Run] = {peer: partial(run, *batches[0]) for peer, run in peers.items()}
    took = rounds_us(runs, told.rounds, BLOCK_S)
    row["hetnn_us"] = min(took["hetnn"])
    for peer in took:
        if peer != "hetnn":
            ratios = (theirs / ours for theirs, ours in zip(took[peer], took["hetnn"], strict=True))
            row[f"x_{peer}"] = statistics.median(ratios)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "step.hetnn"
        step.save(path)
        first = hetnn.compile_training(
            step_memory.FIRST, step_memory.FIRST_STEP, optimizer=told.optimizer, threads=told.threads
        )
        first.save(path.with_name(step_memory.FIRST_FILE))
        for peer, told_as in (("hetnn", str(path)), ("eager", "eager")):
            row[f"mb_{peer}"] = step_memory.of_peer(told_as, name, told.optimizer, told.threads) / 1e6
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=200, help="how many losses are compared")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--optimizer", choices=sorted(OPTIMIZERS), default="adam")
    parser.add_argument("--only", default=",".join(NETWORKS), help="networks, by commas")
    parser.add_argument("--no-inductor", dest="inductor", action="store_false", help="leave torch.compile out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows too")
    told = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(told.threads)
    rows = []
    print(
        f"{'network':14} {'compile s':>9} {'loss away':>10} {'eager away':>10} "
        f"{'from f64':>9} {'eager':>8} {'hetnn us':>9} {'x eager':>8} "
        f"{'x inductor':>10} {'MB':>6} {'MB eager':>8}"
    )
    for name in told.only.split(","):
        row = measured(name, told)
        rows.append(row)
        inductor = f"{row['x_inductor']:10.2f}" if "x_inductor" in row else " " * 10
        print(
            f"{name:14} {row['compile_s']:9.2f} {row['loss_away']:10.1e} {row['moved_away']:10.1e} "
            f"{row['f64_away']:9.1e} {row['eager_f64_away']:8.1e} {row['hetnn_us']:9.0f} "
            f"{row['x_eager']:8.2f} {inductor} {row['mb_hetnn']:6.1f} {row['mb_eager']:8.1f}",
            flush=True,
        )
    for peer in ("eager", "inductor"):
        if f"x_{peer}" in rows[0]:
            print(f"geometric mean of {peer}: {statistics.geometric_mean(row[f'x_{peer}'] for row in rows):.2f}")
    if told.json:
        told.json.write_text(json.dumps({"threads": told.threads, "rows": rows}, indent=1) + "\n")
    return int(any(row["loss_away"] >= NEAR for row in rows))


if __name__ == "__main__":
    sys.exit(main())
