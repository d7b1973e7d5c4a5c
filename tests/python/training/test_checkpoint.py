"""What a step keeps for its gradients is computed again where a budget says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hetnn

ROWS, WIDTH, LAYERS = 512, 32, 6


def deep() -> nn.Module:
    layers: list[nn.Module] = []
    for _ in range(LAYERS):
        layers += [nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Dropout(0.1)]
    return nn.Sequential(*layers, nn.Linear(WIDTH, 10))


def normed() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(2, 8, 3, padding=1)]
    for _ in range(3):
        layers += [nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))


def learnt(model: nn.Module, x: torch.Tensor, **options: Any) -> tuple[int, list[float], dict[str, Any]]:
    y = torch.arange(len(x)) % 10
    step = hetnn.compile_training(model, (x, y), optimizer="adam", lr=1e-2, **options)
    losses = [step(x, y) for _ in range(3)]
    return step.executable.arena_bytes, losses, step.state_dict()


@pytest.mark.parametrize(("make", "shape", "share"), [(deep, (ROWS, WIDTH), 0.7), (normed, (8, 2, 24, 24), 0.7)])
def test_memory_falls_and_no_bit_changes(make: Any, shape: tuple[int, ...], share: float) -> None:
    torch.manual_seed(0)
    model, x = make(), torch.randn(shape)
    arena, losses, states = learnt(model, x)
    refusal = r"checkpoint is 1 bytes; of \d+ that gradients need \d+ stay in memory at once"
    with pytest.raises(hetnn.DoesNotFit, match=refusal) as told:
        learnt(model, x, checkpoint=1)
    needed, least = (int(word) for word in str(told.value).split() if word.isdigit() and int(word) > 1)
    again, same_losses, same_states = learnt(model, x, checkpoint=least)
    assert again < share * arena, (needed, least)
    assert same_losses == losses
    for name, value in states.items():
        np.testing.assert_array_equal(same_states[name], value, err_msg=name)
    assert learnt(model, x, checkpoint=needed)[0] == arena
