"""Steps of training beside eager torch, and how far that is from itself in f64."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hetnn
from fuzz.networks.program import Program
from fuzz.workers import Found

STEPS = 4
DECAY = 0.02  # of adamw
OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda of, lr: torch.optim.SGD(of, lr), "momentum": lambda of, lr: torch.optim.SGD(of, lr, momentum=0.9),
    "adam": lambda of, lr: torch.optim.Adam(of, lr),
    "adamw": lambda of, lr: torch.optim.AdamW(of, lr, weight_decay=DECAY),
}  # fmt: skip


def loss_of(results: Any, target: Tensor) -> Tensor:
    return F.mse_loss(results[0], target)


def _eager(module: nn.Module, batches: list[tuple[list[Tensor], Tensor]], optimizer: Any) -> list[float]:
    out = []
    for inputs, target in batches:
        optimizer.zero_grad()
        loss = loss_of(module(*inputs), target)
        loss.backward()
        optimizer.step()
        out.append(float(loss))
    return out


def attempt_training(program: Program, rng: random.Random) -> str:
    """How it ended; Found where losses or what was learnt differ."""
    if not program.outputs or not program.params:
        return "empty"
    program = replace(program, outputs=program.outputs[-1:])
    module = program.read().module().train()
    run = program.read().runs[0]
    by = torch.Generator().manual_seed(rng.randrange(1 << 30))
    batches, name, rate = [], rng.choice(sorted(OPTIMIZERS)), rng.choice([0.01, 0.03])
    with torch.no_grad():
        first = module(*run.values())[0]
    if not first.is_floating_point() or not first.numel() or not list(module.parameters()):
        return "empty"
    for _ in range(STEPS):
        inputs = [x if not x.is_floating_point() else torch.randn(x.shape, generator=by) for x in run.values()]
        batches.append((inputs, torch.randn(first.shape, generator=by)))
    wide = [([x.double() if x.is_floating_point() else x for x in inputs], y.double()) for inputs, y in batches]
    eager, exact = copy.deepcopy(module), copy.deepcopy(module).double()
    try:
        wanted = _eager(eager, batches, OPTIMIZERS[name](eager.parameters(), rate))
        truth = _eager(exact, wide, OPTIMIZERS[name](exact.parameters(), rate))
    except RuntimeError as error:
        return "void " + " ".join(str(error)[:60].split())
    try:
        decay = DECAY if name == "adamw" else 0.0
        args = (*batches[0][0], batches[0][1])
        told: dict[str, Any] = {"optimizer": name, "lr": rate, "weight_decay": decay, "tune": False}
        step = hetnn.compile_training(module, args, loss=loss_of, **told)
    except hetnn.Unsupported as error:
        return "refused " + " ".join(str(error)[:100].split())
    if any(not abs(theirs - true) <= 1e-3 * abs(true) for theirs, true in zip(wanted, truth, strict=True)):
        return "void: small differences grow"
    found = [float(step(*inputs, target)) for inputs, target in batches]
    for k, (mine, theirs, true) in enumerate(zip(found, wanted, truth, strict=True)):
        if not abs(mine - true) <= 10 * abs(theirs - true) + 1e-4 * abs(true) + 1e-6:
            raise Found(f"{name} {rate}: loss {k} is {mine}, torch's {theirs}, in f64 {true}")
    learnt = step.parameters()
    for key, value in exact.named_parameters():
        mine, theirs = torch.as_tensor(learnt[key]), dict(eager.named_parameters())[key]
        far, near = (float((each.double() - value).abs().max()) for each in (mine, theirs))
        if not far <= 20 * near + 1e-3 * rate * STEPS + 1e-5:
            raise Found(f"{name} {rate}: '{key}' is {far:.3g} from f64, torch's {near:.3g}")
    return "equal"
