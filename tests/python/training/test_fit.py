"""Training over epochs, gradients of several batches, modes of layers, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hetnn

CLASSES = 3


def plain() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, CLASSES))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(4, 5), torch.randint(0, CLASSES, (4,))


def test_epochs_end_when_losses_no_longer_fall() -> None:
    step = hetnn.compile_training(plain(), batch(), lr=0.1)
    batches = [batch() for _ in range(3)]
    history = step.fit(batches, 4, progress=False)
    assert [len(epoch) for epoch in history.losses] == [3] * 4
    assert history.stopped == "epochs"
    assert step.steps == 12
    assert history.means()[-1] < history.means()[0]
    assert history.svg().count("<line") == 3
    stopped = step.fit(batches, 50, patience=2, least=1e6)
    assert (stopped.stopped, len(stopped.losses)) == ("patience", 3)  # the first is lower than none at all


def test_ctrl_c_loses_nothing() -> None:
    step = hetnn.compile_training(plain(), batch(), lr=0.1)

    def interrupted() -> Iterator[Any]:
        yield batch()
        yield batch()
        raise KeyboardInterrupt

    history = step.fit(interrupted(), 5, progress=False)
    assert (history.stopped, len(history.losses[0]), step.steps) == ("interrupted", 2, 2)
    assert history is step.history
    step(*batch())
    assert step.steps == 3


def test_a_loader_that_is_read_up_is_told() -> None:
    step = hetnn.compile_training(plain(), batch(), lr=0.1)
    with pytest.raises(hetnn.InvalidModel, match="the loader gave nothing in epoch 2"):
        step.fit(iter([batch()]), 2, progress=False)
    assert len(step.history.losses[0]) == 1
    with pytest.raises(hetnn.InvalidModel, match="epochs and patience are whole numbers from 1 on; got 0"):
        step.fit([batch()], 0)


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_gradients_of_several_batches_make_one_update(optimizer: str) -> None:
    model = plain()
    step = hetnn.compile_training(model, batch(), optimizer=optimizer, lr=0.05, eps=1e-3, accumulate=3)
    kinds: dict[str, Any] = {
        "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
        "adam": lambda p: torch.optim.Adam(p, lr=0.05, eps=1e-3),
    }
    moves = kinds[optimizer](model.parameters())
    for k in range(9):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        (loss / 3).backward()
        assert step(x, y) == pytest.approx(loss.item(), rel=1e-5)
        if k % 3 == 2:
            moves.step()
            moves.zero_grad()
    assert step.steps == 3
    for name, value in step.parameters().items():
        np.testing.assert_allclose(value, model.state_dict()[name], atol=1e-5)


def test_adams_steps_are_as_long_as_they_should_be() -> None:
    """Of a gradient that is always 1 each is the learning rate: an error that all have alike adds up."""
    model = nn.Linear(1, 1, bias=False)
    one = torch.ones(1, 1)
    step = hetnn.compile_training(model, (one, one), loss=lambda out, y: (out * y).mean(), optimizer="adam", lr=1.0)
    for _ in range(20):
        step(one, one)
    assert step.parameters()["weight"].item() == pytest.approx(model.weight.item() - 20, abs=2e-5)


def test_a_layer_in_evaluation_mode_stays_in_it() -> None:
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Dropout(0.5), nn.Linear(12, CLASSES)]
    model = nn.Sequential(*layers).train()
    model[1].eval()
    model[3].eval()
    x, y = torch.randn(4, 1, 4, 4), torch.randint(0, CLASSES, (4,))
    step = hetnn.compile_training(model, (x, y), lr=0.1)
    assert not any("running" in name for name in step.executable.states)
    moves = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = nn.functional.cross_entropy(model(x), y)
        moves.zero_grad()
        loss.backward()
        moves.step()
        assert step(x, y) == pytest.approx(loss.item(), rel=1e-4)
    assert (model.training, model[1].training) == (True, False)


def test_of_a_model_in_evaluation_mode_what_is_frozen_stays_in_it() -> None:
    torch.manual_seed(0)
    frozen = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Dropout(0.5)).requires_grad_(False)
    model = nn.Sequential(frozen, nn.Flatten(), nn.Linear(12, 4), nn.BatchNorm1d(4), nn.Linear(4, CLASSES)).eval()
    step = hetnn.compile_training(model, (torch.randn(4, 1, 4, 4), torch.randint(0, CLASSES, (4,))), lr=0.1)
    kept = [name for name in step.parameters() if "running" in name]
    assert kept == ["3.running_mean", "3.running_var"]
    assert not any(layer.training for layer in model.modules())


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(7, 5), nn.Linear(5, 7, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.embed(x)))


def test_a_parameter_of_two_layers_is_one() -> None:
    torch.manual_seed(0)
    model = Tied().train()
    x, y = torch.randint(0, 7, (4,)), torch.randint(0, 7, (4,))
    step = hetnn.compile_training(model, (x, y), lr=0.1)
    moves = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        loss = nn.functional.cross_entropy(model(x), y)
        moves.zero_grad()
        loss.backward()
        moves.step()
        assert step(x, y) == pytest.approx(loss.item(), rel=1e-5)
    learnt = step.inference()
    torch.testing.assert_close(learnt(x), model(x).detach(), rtol=1e-4, atol=1e-5)


class Spare(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.read, self.unread = nn.Linear(5, CLASSES), nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.read(x)


def test_a_layer_that_nothing_reads_is_not_trained() -> None:
    step = hetnn.compile_training(Spare(), batch(), lr=0.1)
    step(*batch())
    assert set(step.parameters()) == {"read.weight", "read.bias"}


@pytest.mark.parametrize("target", [-1, CLASSES, 10**6])
def test_targets_out_of_range_change_nothing(target: int) -> None:
    step = hetnn.compile_training(plain(), batch(), lr=0.1)
    before = step.state_dict()
    with pytest.raises(hetnn.InvalidModel, match="outside an axis of 3"):
        step(batch()[0], torch.tensor([0, 1, 2, target]))
    assert all(np.array_equal(value, before[name]) for name, value in step.state_dict().items())


def test_states_of_another_model_are_refused_whole() -> None:
    step = hetnn.compile_training(plain(), batch(), optimizer="adam", lr=0.1)
    wider = nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, CLASSES))
    other = hetnn.compile_training(wider, batch(), optimizer="adam", lr=0.1)
    before = step.state_dict()
    with pytest.raises(hetnn.InvalidModel, match=r"the state '.*' is float32\[8, 5\]; got float32\[9, 5\]"):
        step.load_state_dict(other.state_dict())
    bare = hetnn.compile_training(plain(), batch(), lr=0.1)
    with pytest.raises(hetnn.InvalidModel, match="is missing in the states"):
        step.load_state_dict(bare.state_dict())
    assert all(np.array_equal(value, before[name]) for name, value in step.state_dict().items())


@pytest.mark.parametrize("lr", [0, -1.0, float("nan"), float("inf"), "fast"])
def test_learning_rates_that_move_nothing_are_refused(lr: Any) -> None:
    with pytest.raises(hetnn.InvalidModel, match="lr must be a finite number above 0"):
        hetnn.compile_training(plain(), batch(), lr=lr)


def test_gradients_of_gradients_are_refused_by_name() -> None:
    def steep(out: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        loss = nn.functional.cross_entropy(out, targets)
        (slope,) = torch.autograd.grad(loss, out, create_graph=True)
        return loss + slope.square().sum()

    with pytest.raises(hetnn.InvalidModel, match="gradient of a gradient"):
        hetnn.compile_training(plain(), batch(), loss=steep)


def test_what_was_learnt_becomes_integers() -> None:
    step = hetnn.compile_training(plain(), batch(), lr=0.1)
    samples = [batch()[0] for _ in range(8)]
    step.fit([batch() for _ in range(4)], progress=False)
    exact, integers = step.inference(), step.inference("cpu+relu-only", quantize=samples)
    x = samples[0]
    assert np.abs(np.asarray(exact(x)) - np.asarray(integers(x))).max() < 0.1
