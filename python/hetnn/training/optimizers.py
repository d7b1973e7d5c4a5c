"""Optimizers as torch.optim has them, built behind a joint graph."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.updates import Optimizer, Updates

RATE, STEPS = "learning_rate", "steps"
GATHERED = "gathered"  # how many batches' gradients wait for an update

# What clip_grad_norm_ adds to a norm that it divides by.
_CLIP_EPSILON = 1e-6


@dataclass(frozen=True)
class Settings:
    """Those of an optimizer."""

    lr: float
    weight_decay: float = 0.0
    momentum: float = 0.9
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    clip_norm: float | None = None
    accumulate: int = 1

    def check(self) -> None:
        """InvalidModel for a number that makes no sense."""
        for name, low in (("lr", 0.0), ("eps", 0.0), ("clip_norm", 0.0)):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value > low):
                raise InvalidModel(f"{name} must be a finite number above {low:g}; got {value!r}.")
        if not (isinstance(self.accumulate, int) and not isinstance(self.accumulate, bool) and self.accumulate >= 1):
            raise InvalidModel(f"accumulate must be a whole number from 1 on; got {self.accumulate!r}.")
        if not (_is_number(self.weight_decay) and self.weight_decay >= 0):
            raise InvalidModel(f"weight_decay must be a finite number from 0 on; got {self.weight_decay!r}.")
        for name, value in (("momentum", self.momentum), ("betas[0]", self.betas[0]), ("betas[1]", self.betas[1])):
            if not (_is_number(value) and 0 <= value < 1):
                raise InvalidModel(f"{name} must be a number in [0, 1); got {value!r}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _sgd(build: Updates, settings: Settings, rate: Any, name: str, value: Any, gradient: Any, moves: bool) -> None:
    gradient = _decayed(build, settings, value, gradient)
    if moves:
        before = build.zeros_like(value, f"{name}.momentum")
        gradient = build.create("add", build.create("mul", before, settings.momentum), gradient)
        gradient = build.keep(before, gradient)
    build.keep(value, build.create("sub", value, build.create("mul", gradient, rate)))


def _adam(
    build: Updates, settings: Settings, rate: Any, name: str, value: Any, gradient: Any, counted: Any, apart: bool
) -> None:
    if apart and settings.weight_decay:
        kept = build.create("sub", 1.0, build.create("mul", rate, settings.weight_decay))
        start = build.create("mul", value, kept)
    else:
        start, gradient = value, _decayed(build, settings, value, gradient)
    means = []
    moments = (gradient, build.create("mul", gradient, gradient))
    for k, (beta, moment) in enumerate(zip(settings.betas, moments, strict=True), 1):
        before = build.zeros_like(value, f"{name}.moment{k}")
        after = build.create("add", build.create("mul", before, beta), build.create("mul", moment, 1 - beta))
        after = build.keep(before, after)  # read where it is kept, so that it lies nowhere else
        means.append(build.create("div", after, _share_seen(build, beta, counted)) if beta else after)
    root = build.create("add", build.create("sqrt", means[1]), settings.eps)
    build.keep(value, build.create("sub", start, build.create("mul", build.create("div", means[0], root), rate)))


def _share_seen(build: Updates, beta: float, counted: Any) -> Any:
    """1 - beta^steps as -expm1(steps log beta): the difference in f32 was 1e-5 of itself away, in every step alike."""
    return build.create("neg", build.create("expm1", build.create("mul", counted, math.log(beta))))


def _decayed(build: Updates, settings: Settings, value: Any, gradient: Any) -> Any:
    if not settings.weight_decay:
        return gradient
    return build.create("add", gradient, build.create("mul", value, settings.weight_decay))


def _clipped(build: Updates, most: float, gradients: Mapping[str, tuple[Any, Any]]) -> dict[str, tuple[Any, Any]]:
    """All gradients, shrunk so that together they are no longer than `most`."""
    total = None
    for _, gradient in gradients.values():
        squares = build.sum_of_squares(gradient)
        total = squares if total is None else build.create("add", total, squares)
    norm = build.create("add", build.create("sqrt", total), _CLIP_EPSILON)
    share = build.create("minimum", build.create("div", most, norm), 1.0)
    return {name: (value, build.create("mul", gradient, share)) for name, (value, gradient) in gradients.items()}


def _accumulated(
    build: Updates, batches: int, gradients: Mapping[str, tuple[Any, Any]]
) -> tuple[Updates, dict[str, tuple[Any, Any]]]:
    """Means of the gradients of so many batches, and what updates states with each of the last of them."""
    gathered = build.state(np.array(0.0), GATHERED)
    count = build.create("add", gathered, 1.0)
    due = build.create("ge", count, float(batches))
    build.keep(gathered, build.choose(due, 0.0, count))
    means = {}
    for name, (value, gradient) in gradients.items():
        before = build.zeros_like(value, f"{name}.gradient")
        mean = build.create("add", before, build.create("mul", gradient, 1 / batches))
        build.keep(before, build.choose(due, 0.0, mean))
        means[name] = (value, mean)
    return build.only_if(due), means


def _optimizer(kind: str, settings: Settings) -> Optimizer:
    def update(build: Updates, gradients: Mapping[str, tuple[Any, Any]]) -> None:
        rate = build.state(np.array(settings.lr), RATE)
        build.keep(rate, rate)
        if settings.accumulate > 1:
            build, gradients = _accumulated(build, settings.accumulate, gradients)
        steps = build.state(np.array(0.0), STEPS)
        counted = build.create("add", steps, 1.0)
        build.keep(steps, counted)
        if settings.clip_norm is not None:
            gradients = _clipped(build, settings.clip_norm, gradients)
        for name, (value, gradient) in gradients.items():
            if kind in ("sgd", "momentum"):
                _sgd(build, settings, rate, name, value, gradient, kind == "momentum")
            else:
                _adam(build, settings, rate, name, value, gradient, counted, kind == "adamw")

    return update


KINDS = ("sgd", "momentum", "adam", "adamw")


def optimizer_of(kind: str, settings: Settings) -> Optimizer:
    """The optimizer of a name. InvalidModel for an unknown one, and for numbers that make no sense."""
    if kind not in KINDS:
        raise InvalidModel(f"optimizer must be one of {', '.join(KINDS)}; got {kind!r}.")
    settings.check()
    return _optimizer(kind, settings)
