"""Steps of training as executables: losses and parameters are those of eager torch, and nothing is lost."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch._higher_order_ops import while_loop
from torch.export.experimental import _export_forward_backward

import hetnn

CLASSES = 3
# Above what rounding leaves of gradients that are zero, such as those of biases before norms.
EPS = 1e-3


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.second, self.head = nn.Conv2d(6, 6, 3, stride=2), nn.Linear(6, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.second(torch.relu(self.norm(self.first(x))))
        return self.head(nn.functional.gelu(x).mean((2, 3)))


class Attentive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(self.embed(x)).mean(1))


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, CLASSES))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "plain": (plain, lambda: torch.randn(4, 5)),
    "normed": (Normed, lambda: torch.randn(4, 2, 7, 7)),
    "attentive": (Attentive, lambda: torch.randint(0, 11, (4, 6))),
}
SETTINGS: dict[str, Any] = {"lr": 0.05, "weight_decay": 0.01, "eps": EPS}
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, weight_decay=0.01),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.05, weight_decay=0.01, eps=EPS),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.01, eps=EPS),
}


def targets() -> torch.Tensor:
    return torch.randint(0, CLASSES, (4,))


def eager_step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> float:
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss)


def assert_learnt(step: Any, model: nn.Module) -> None:
    found = step.parameters()
    wanted = {name: value for name, value in model.state_dict().items() if name in found}
    assert set(found) >= {name for name, value in model.named_parameters() if value.requires_grad}
    for name, value in wanted.items():
        torch.testing.assert_close(torch.from_numpy(found[name]), value, rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [*(("plain", each) for each in OPTIMIZERS), ("normed", "momentum"), ("normed", "adamw"), ("attentive", "adam")],
)
def test_a_step_is_eager_torchs(name: str, optimizer: str) -> None:
    torch.manual_seed(0)
    make, draw = NETWORKS[name]
    model = make().train()
    step = hetnn.compile_training(model, (draw(), targets()), optimizer=optimizer, **SETTINGS)
    moves = OPTIMIZERS[optimizer](model.parameters())
    for _ in range(4):
        x, y = draw(), targets()
        assert step(x, y) == pytest.approx(eager_step(model, moves, x, y), rel=1e-4)
    assert_learnt(step, model)
    assert step.steps == 4


def test_convolutions_and_their_gradients_have_kernels() -> None:
    torch.manual_seed(0)
    layers = [nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3, stride=2, groups=2)]
    model = nn.Sequential(*layers, nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8, CLASSES))
    x, y = torch.randn(4, 2, 6, 6), targets()
    step = hetnn.compile_training(model, (x, y), optimizer="adam", lr=1e-3)
    means = {row["kernel"] for row in step.executable.profile(x, y) if row["kernel"].startswith("meaning")}
    assert means <= {"meaning of add", "meaning of require"}  # of the count of batches, an integer, and of the loss


def test_norms_and_pools_of_a_step_are_one_operator_each() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    x, y = torch.randn(4, 2, 6, 6), targets()
    step = hetnn.compile_training(nn.Sequential(model, nn.Linear(54, CLASSES)), (x, y), lr=0.1)
    kernels = [row["kernel"] for row in step.executable.profile(x, y)]
    for kernel in ("batch_norm_training", "batch_norm_gradient", "max_pool_gradient"):
        assert kernels.count(kernel) == 1, kernel
    assert "max_pool_indices" not in kernels


def test_what_follows_a_norm_is_computed_in_its_launch() -> None:
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8))

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.head = inner, nn.Linear(8, CLASSES)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(torch.relu(x + self.inner(x)).mean((2, 3)))

    model = Residual()
    x, y = torch.randn(4, 8, 6, 6), targets()
    eager = copy.deepcopy(model)
    step = hetnn.compile_training(model, (x, y), optimizer="momentum", lr=0.1)
    fused = [row for row in step.executable.report("dict")["fusions"] if "relu" in " ".join(row["nodes"])]
    assert any("batch_norm" in row["into"] for row in fused)
    moves = torch.optim.SGD(eager.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        assert step(x, y) == pytest.approx(eager_step(eager, moves, x, y), rel=1e-5)
    assert_learnt(step, eager)


def test_updates_are_written_over_states() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(384, 128), nn.GELU(), nn.Linear(128, CLASSES))
    step = hetnn.compile_training(model, (torch.randn(4, 384), targets()), optimizer="adam")
    assert step.executable.arena_bytes < 2 * 4 * 384 * 128  # a gradient, and no second one beside it


def test_scratch_lies_where_no_value_does() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(384, 128), nn.GELU(), nn.Linear(128, CLASSES))
    x, y = torch.randn(4, 384), targets()
    executable = hetnn.compile_training(model, (x, y)).executable
    executable(x, y)
    # Weights are packed in the run, into as much as they take, which the gradients take later.
    packed_bytes = model[0].weight.nbytes
    assert executable.arena_bytes <= executable.kept_bytes < executable.arena_bytes + packed_bytes


def test_a_file_goes_on_where_training_stopped(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Normed().train()
    step = hetnn.compile_training(model, (torch.randn(4, 2, 7, 7), targets()), optimizer="adam", lr=0.02)
    for _ in range(3):
        step(torch.randn(4, 2, 7, 7), targets())
    step.save(tmp_path / "step.hetnn")
    again = hetnn.load(tmp_path / "step.hetnn")
    x, y = torch.randn(4, 2, 7, 7), targets()
    assert float(again(x, y)) == step(x, y)
    for name, value in step.state_dict().items():
        assert np.array_equal(value, again.state(name)), name


def test_a_pickle_and_a_copy_go_on_where_training_stopped() -> None:
    torch.manual_seed(0)
    model, x, y = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Linear(6, CLASSES)), torch.randn(4, 5), targets()
    step = hetnn.compile_training(model, (x, y), optimizer="adam", lr=0.05)
    for _ in range(3):
        step(x, y)
    others = [pickle.loads(pickle.dumps(step)), copy.deepcopy(step)]
    loss, learnt = step(x, y), step.inference("cpu")(x)
    for other in others:
        assert other(x, y) == loss
        assert other.steps == 4
        np.testing.assert_array_equal(other.inference("cpu")(x), learnt)


@pytest.mark.parametrize("training", [True, False])
def test_an_exported_program_is_trained_as_it_was_exported(training: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Linear(6, CLASSES)).train(training)
    x, y = torch.randn(4, 5), targets()
    step = hetnn.compile_training(torch.export.export(model, (x,)), (x, y), optimizer="momentum", **SETTINGS)
    moves = OPTIMIZERS["momentum"](model.parameters())
    for _ in range(4):
        assert step(x, y) == pytest.approx(eager_step(model, moves, x, y), rel=1e-5)
    assert_learnt(step, model)
    if not training:  # of one in training mode norms stay in it
        np.testing.assert_allclose(step.inference("cpu")(x), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_file_keeps_its_size_from_step_to_step(tmp_path: Path) -> None:
    """Moments begin alike, and as constants of the step do: none may lie in another's bytes."""
    torch.manual_seed(0)
    step = hetnn.compile_training(Normed(), (torch.randn(4, 2, 7, 7), targets()), optimizer="adam", lr=0.02)
    paths = [tmp_path / f"{k}.hetnn" for k in range(4)]
    step.save(paths[0])
    for path, after in itertools.pairwise(paths):
        again = hetnn.load(path)
        again(torch.randn(4, 2, 7, 7), targets())
        states = again.state_dict()
        again.save(after)
        kept = hetnn.load(after).state_dict()
        assert all(np.array_equal(value, kept[name]) for name, value in states.items())
    assert len({path.stat().st_size for path in paths}) == 1


def test_what_was_learnt_is_compiled_for_inference() -> None:
    torch.manual_seed(0)
    model = Normed()
    step = hetnn.compile_training(model, (torch.randn(4, 2, 7, 7),), lr=0.1)
    before = model.state_dict()["head.weight"].clone()
    for _ in range(5):
        step(torch.randn(4, 2, 7, 7), targets())
    assert torch.equal(model.state_dict()["head.weight"], before)  # the caller's module stays as it is
    learnt = copy.deepcopy(model).eval()
    learnt.load_state_dict({name: torch.from_numpy(value) for name, value in step.parameters().items()}, strict=False)
    x = torch.randn(4, 2, 7, 7)
    torch.testing.assert_close(step.inference("cpu+relu-only")(x), learnt(x), rtol=1e-4, atol=1e-5)


def test_frozen_parameters_are_constants() -> None:
    torch.manual_seed(0)
    model = plain().train()
    for parameter in model[0].parameters():
        parameter.requires_grad_(False)
    step = hetnn.compile_training(model, (torch.randn(4, 5), targets()), lr=0.05, weight_decay=0.01)
    assert set(step.parameters()) == {"2.weight", "2.bias"}
    moves = OPTIMIZERS["sgd"]([p for p in model.parameters() if p.requires_grad])
    for _ in range(3):
        x, y = torch.randn(4, 5), targets()
        assert step(x, y) == pytest.approx(eager_step(model, moves, x, y), rel=1e-4)
    assert_learnt(step, model)


def test_gradients_are_clipped_together() -> None:
    torch.manual_seed(0)
    model = plain().train()
    step = hetnn.compile_training(model, (torch.randn(4, 5), targets()), lr=0.5, clip_norm=0.1)
    for _ in range(3):
        x, y = torch.randn(4, 5), targets()
        loss = nn.functional.cross_entropy(model(x), y)
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        torch.optim.SGD(model.parameters(), lr=0.5).step()
        assert step(x, y) == pytest.approx(float(loss), rel=1e-4)
    assert_learnt(step, model)


class Repeating(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.again = nn.Linear(5, CLASSES), nn.Linear(CLASSES, CLASSES)

    def forward(self, x: torch.Tensor, rounds: torch.Tensor) -> torch.Tensor:
        weight, bias = self.again.weight, self.again.bias
        begin = (torch.zeros((), dtype=torch.int64), self.first(x))
        _, out = while_loop(lambda k, h: k < rounds, lambda k, h: (k + 1, torch.tanh(h @ weight.t() + bias)), begin)
        return out

    def eager(self, x: torch.Tensor, rounds: int) -> torch.Tensor:
        out = self.first(x)
        for _ in range(rounds):
            out = torch.tanh(self.again(out))
        return out


def test_loops_whose_rounds_a_value_says_are_trained() -> None:
    torch.manual_seed(0)
    model, x, y = Repeating(), torch.randn(4, 5), targets()
    step = hetnn.compile_training(model, (x, torch.tensor(3), y), lr=0.3)
    moves = torch.optim.SGD(model.parameters(), lr=0.3)
    for rounds in (3, 1, 5, 2):  # of none torch's own derivative is that of one
        loss = nn.functional.cross_entropy(model.eager(x, rounds), y)
        moves.zero_grad()
        loss.backward()
        moves.step()
        assert step(x, torch.tensor(rounds), y) == pytest.approx(float(loss.detach()), rel=1e-5)
    assert_learnt(step, model)


def test_a_loss_that_is_no_number_ends_the_step_and_changes_nothing() -> None:
    torch.manual_seed(0)
    step = hetnn.compile_training(Normed(), (torch.randn(4, 2, 7, 7), targets()), optimizer="adam", lr=0.01)
    step(torch.randn(4, 2, 7, 7), targets())
    before = step.state_dict()
    with pytest.raises(hetnn.InvalidModel, match="of step 2 is no finite number; parameters are those of step 1"):
        step(torch.full((4, 2, 7, 7), float("nan")), targets())
    for name, value in step.state_dict().items():
        assert np.array_equal(value, before[name]), name
    assert np.isfinite(step(torch.randn(4, 2, 7, 7), targets()))


def test_the_learning_rate_and_parameters_may_be_set() -> None:
    torch.manual_seed(0)
    model = plain().train()
    step = hetnn.compile_training(model, (torch.randn(4, 5), targets()), lr=0.05)
    step.learning_rate = 0.2
    other = plain().train()
    step.load_parameters(other.state_dict())
    moves = torch.optim.SGD(other.parameters(), lr=0.2)
    for _ in range(2):
        x, y = torch.randn(4, 5), targets()
        assert step(x, y) == pytest.approx(eager_step(other, moves, x, y), rel=1e-4)
    assert_learnt(step, other)
    with pytest.raises(hetnn.InvalidModel, match="lr must be a finite number above 0"):
        step.learning_rate = float("nan")
    with pytest.raises(hetnn.InvalidModel, match=r"'3\.weight' is not trained"):
        step.load_parameters({"3.weight": np.zeros(3)})
    with pytest.raises(hetnn.InvalidModel, match="missing in the states"):
        step.load_state_dict({})


def test_dropout_draws_anew_each_step() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(50, 50), nn.Dropout(0.5), nn.Linear(50, CLASSES)).train()
    step = hetnn.compile_training(model, (torch.randn(4, 50), targets()), lr=1e-9)
    x, y = torch.randn(4, 50), targets()
    assert len({step(x, y) for _ in range(4)}) == 4


def test_other_losses_and_a_joint_graph_of_torch() -> None:
    torch.manual_seed(0)
    model, x, y = plain().train(), torch.randn(4, 5), torch.rand(4, CLASSES)
    for loss, function in (
        ("mse", nn.functional.mse_loss),
        ("bce_with_logits", nn.functional.binary_cross_entropy_with_logits),
        (lambda found, wanted: (found - wanted).abs().mean(), nn.functional.l1_loss),
    ):
        assert hetnn.compile_training(model, (x, y), loss=loss)(x, y) == pytest.approx(float(function(model(x), y)))

    class Lossy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return nn.functional.mse_loss(self.inner(x), y)

    joint = _export_forward_backward(torch.export.export(Lossy(), (x, y)))
    step = hetnn.compile_training(joint, lr=0.1)
    assert step(x, y) == pytest.approx(float(nn.functional.mse_loss(model(x), y)))
    assert set(step.parameters()) == {f"inner.{name}" for name, _ in model.named_parameters()}
    with pytest.raises(hetnn.Unsupported, match="compile_training"):
        hetnn.compile(joint)


@pytest.mark.parametrize(
    ("name", "make"), [("sgd", torch.optim.SGD), ("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)]
)
def test_numbers_that_are_not_given_are_torch_s(name: str, make: Any) -> None:
    torch.manual_seed(0)
    model, x, y = plain(), torch.randn(4, 5), targets()
    step = hetnn.compile_training(model, (x, y), optimizer=name, lr=0.05)
    eager = copy.deepcopy(model)
    optimizer = make(eager.parameters(), lr=0.05)
    for _ in range(8):
        eager_step(eager, optimizer, x, y)
        step(x, y)
    for key, value in eager.named_parameters():
        assert torch.allclose(torch.as_tensor(step.parameters()[key]), value, atol=1e-5), key


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"optimizer": "lion"}, "optimizer must be one of sgd, momentum, adam, adamw"),
        ({"loss": "hinge"}, "loss must be a function or one of"),
        ({"lr": 0.0}, "lr must be a finite number above 0"),
        ({"lr": float("nan")}, "lr must be a finite number above 0"),
        ({"weight_decay": -1.0}, "weight_decay must be a finite number from 0 on"),
        ({"betas": (0.9, 1.0)}, r"betas\[1\] must be a number in \[0, 1\)"),
        ({"clip_norm": -1.0}, "clip_norm must be a finite number above 0"),
        ({"loss": lambda found, wanted: found}, r"the loss must be one real number; it is torch.float32\[4, 3\]"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=why):
        hetnn.compile_training(plain(), (torch.randn(4, 5), targets()), **wrong)


def test_a_module_without_parameters_to_train_is_refused() -> None:
    with pytest.raises(hetnn.InvalidModel, match="train"):
        hetnn.compile_training(nn.Sequential(nn.Flatten()), (torch.randn(4, 3), targets()))
