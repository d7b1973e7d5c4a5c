"""Steps of models that are not torch's: hetnn differentiates them, and losses are those of eager torch."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn
from torch.nn import functional

import hetnn
from hetnn.importers import import_model
from importers.onnx_models import model_of

CLASSES = 10


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, CLASSES))


def lenet() -> nn.Module:
    images = [nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 3), nn.ReLU(), nn.AvgPool2d(2)]
    return nn.Sequential(*images, nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, CLASSES))


def normed() -> nn.Module:
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.SiLU(), nn.Flatten(), nn.Linear(100, CLASSES))
    model[1].running_mean.uniform_(-1, 1)
    model[1].running_var.uniform_(0.5, 2)
    return model


def exported(model: nn.Module, x: torch.Tensor, path: Path, **options: Any) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model.eval(), (x,), path, dynamo=False, do_constant_folding=False, **options)
    return path


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (mlp, (8, 12)),
    "lenet": (lenet, (8, 1, 16, 16)),
    "normed": (normed, (8, 1, 7, 7)),
}


@pytest.mark.parametrize(("name", "optimizer"), [("mlp", "adam"), ("lenet", "momentum"), ("normed", "adamw")])
def test_200_steps_are_eager_torchs(name: str, optimizer: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    make, shape = NETWORKS[name]
    model = make()
    path = exported(model, torch.randn(shape), tmp_path / "net.onnx", keep_initializers_as_inputs=False)
    step = hetnn.compile_training(path, optimizer=optimizer, lr=1e-3, weight_decay=0.01)
    moves = {
        "adam": lambda p: torch.optim.Adam(p, 1e-3, weight_decay=0.01),
        "adamw": lambda p: torch.optim.AdamW(p, 1e-3, weight_decay=0.01),
        "momentum": lambda p: torch.optim.SGD(p, 1e-3, momentum=0.9, weight_decay=0.01),
    }[optimizer](model.parameters())
    for _ in range(200):
        x, y = torch.randn(shape), torch.randint(0, CLASSES, shape[:1])
        loss = functional.cross_entropy(model(x), y)
        moves.zero_grad()
        loss.backward()
        moves.step()
        assert step(x, y) == pytest.approx(loss.item(), rel=1e-4)
    assert set(step.parameters()) == {name for name, _ in model.named_parameters()}
    x = torch.randn(shape)
    torch.testing.assert_close(step.inference()(x), model(x), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("loss", ["mse", "l1", "bce_with_logits", "nll", "cross_entropy"])
def test_losses_are_torchs(loss: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Conv1d(2, 3, 1)
    x = torch.randn(4, 2, 5)
    step = hetnn.compile_training(exported(model, x, tmp_path / "net.onnx"), loss=loss, lr=0.1)
    classes = loss in ("nll", "cross_entropy")
    y = torch.randint(0, 3, (4, 5)) if classes else torch.rand(4, 3, 5)
    of_torch = {
        "mse": functional.mse_loss,
        "l1": functional.l1_loss,
        "bce_with_logits": functional.binary_cross_entropy_with_logits,
        "nll": functional.nll_loss,
        "cross_entropy": functional.cross_entropy,
    }[loss]
    moves = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        value = of_torch(model(x), y)
        moves.zero_grad()
        value.backward()
        moves.step()
        assert step(x, y) == pytest.approx(value.item(), rel=1e-5)


def test_sizes_that_are_open_stay_open(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = lenet()
    path = exported(
        model, torch.randn(2, 1, 16, 16), tmp_path / "net.onnx", input_names=["x"], dynamic_axes={"x": {0: "batch"}}
    )
    step = hetnn.compile_training(path, optimizer="sgd", lr=0.05)
    moves = torch.optim.SGD(model.parameters(), 0.05)
    for batch in (3, 5, 1):
        x, y = torch.randn(batch, 1, 16, 16), torch.randint(0, CLASSES, (batch,))
        value = functional.cross_entropy(model(x), y)
        moves.zero_grad()
        value.backward()
        moves.step()
        assert step(x, y) == pytest.approx(value.item(), rel=1e-4)


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.layer, self.head = kind(3, 6, bidirectional=True), nn.Linear(12, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x)[0].mean(0))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("axes", [{}, {"x": {0: "steps"}}], ids=["fixed", "open"])
def test_recurrent_layers_are_one_node(kind: type[nn.RNNBase], axes: dict[str, dict[int, str]], tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Recurrent(kind)
    path = exported(model, torch.randn(5, 2, 3), tmp_path / "net.onnx", input_names=["x"], dynamic_axes=axes)
    assert {row["op"] for row in import_model(path).graph.nodes()} >= {kind.__name__.lower()}
    step = hetnn.compile_training(path, optimizer="sgd", lr=0.5)
    moves = torch.optim.SGD(model.parameters(), 0.5)
    for length in (5, 5, 5) if not axes else (3, 7, 1):
        x, y = torch.randn(length, 2, 3), torch.randint(0, CLASSES, (2,))
        value = functional.cross_entropy(model(x), y)
        moves.zero_grad()
        value.backward()
        moves.step()
        assert step(x, y) == pytest.approx(value.item(), rel=1e-5)


def test_it_needs_no_torch(tmp_path: Path) -> None:
    path = exported(mlp(), torch.randn(8, 12), tmp_path / "net.onnx")
    program = f"""
import sys
import numpy as np
import hetnn
step = hetnn.compile_training({str(path)!r}, optimizer="adam", lr=0.01)
x, y = np.ones((8, 12), np.float32), np.arange(8)
losses = [step(x, y) for _ in range(20)]
assert losses[-1] < losses[0]
step.save({str(tmp_path / "step.hetnn")!r})
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    again = hetnn.load(tmp_path / "step.hetnn")
    assert float(again.state("steps")) == 20


def test_only_those_that_are_named_are_trained(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = mlp()
    path = exported(model, torch.randn(8, 12), tmp_path / "net.onnx")
    step = hetnn.compile_training(path, train=["4.weight", "4.bias"], lr=0.1)
    x, y = torch.randn(8, 12), torch.randint(0, CLASSES, (8,))
    step(x, y)
    assert set(step.parameters()) == {"4.weight", "4.bias"}
    learnt = copy.deepcopy(model)
    learnt.load_state_dict({name: torch.from_numpy(value) for name, value in step.parameters().items()}, strict=False)
    torch.testing.assert_close(step.inference()(x), learnt(x))


GRAPH = """graph @line {stage = imported} (%x: f32[4,2]) -> (%y) {
  %w = constant() {value = f32[1,2] {0.5, -0.25}} : f32[1,2]
  %b = constant() {value = f32[1] {0}} : f32[1]
  %y = linear(%x, %w, %b) : f32[4,1]
}"""


def test_graphs_as_text_learn() -> None:
    step = hetnn.compile_training(GRAPH, loss="mse", lr=0.1)
    x = np.random.default_rng(0).standard_normal((4, 2)).astype(np.float32)
    y = x @ np.array([[3.0], [-2.0]], np.float32) + 1
    losses = [step(x, y) for _ in range(300)]
    assert losses[-1] < 1e-3 * losses[0]
    assert set(step.parameters()) == {"w", "b"}
    np.testing.assert_allclose(step.inference()(x), y, atol=0.1)


def test_an_output_may_be_the_loss() -> None:
    model = model_of(
        """agraph (float[4,2] x, float[4,1] t) => (float loss, float[4,1] apart)
        <float[2,1] w = {0.5, -0.25}, float[2,1] other = {1, 1}> {
          y = MatMul(x, w)
          apart = MatMul(x, other)
          d = Sub(y, t)
          s = Mul(d, d)
          loss = ReduceMean<keepdims = 0>(s)
        }"""
    )
    step = hetnn.compile_training(model, loss="loss", lr=0.1, weight_decay=0.1)
    assert set(step.parameters()) == {"w"}  # the loss does not read the other
    x, t = np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)
    assert step(x, t) == pytest.approx(0.5625)
    assert step(x, t) < 0.5
    with pytest.raises(hetnn.InvalidModel, match=r"the loss must be one number of f32; it is f32\[4, 1\]"):
        hetnn.compile_training(GRAPH, loss="y")


def test_a_batch_norm_in_training_mode_takes_the_batchs_statistics() -> None:
    model = model_of(
        """agraph (float[8,2] x) => (float[8,2] y)
        <float[2] s = {1, 2}, float[2] b = {0, 1}, float[2] m = {0, 0}, float[2] v = {1, 1}> {
          y, mean, variance = BatchNormalization<training_mode = 1>(x, s, b, m, v)
        }"""
    )
    step = hetnn.compile_training(model, loss="mse", lr=0.1)
    assert set(step.parameters()) >= {"s", "b"}
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((8, 2)).astype(np.float32) for _ in range(2))
    norm = nn.BatchNorm1d(2)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 2.0]))
        norm.bias.copy_(torch.tensor([0.0, 1.0]))
    moves = torch.optim.SGD(norm.parameters(), 0.1)
    for _ in range(3):
        value = functional.mse_loss(norm(torch.from_numpy(x)), torch.from_numpy(y))
        moves.zero_grad()
        value.backward()
        moves.step()
        assert step(x, y) == pytest.approx(value.item(), rel=1e-5)


def test_norms_in_training_mode_keep_running_statistics(tmp_path: Path) -> None:
    torch.manual_seed(0)
    blocks = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.0)]
    model = nn.Sequential(*blocks, nn.Flatten(), nn.Linear(36, CLASSES)).train()
    x, path = torch.randn(8, 1, 7, 7), tmp_path / "net.onnx"
    kept = copy.deepcopy(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        training = torch.onnx.TrainingMode.PRESERVE
        torch.onnx.export(kept, (x,), path, dynamo=False, do_constant_folding=False, training=training)
    model.load_state_dict(kept.state_dict())  # which exporting has moved
    step = hetnn.compile_training(path, optimizer="sgd", lr=0.05)
    bits = hetnn.compile_training(path, optimizer="sgd", lr=0.05, checkpoint=100_000)
    moves = torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(5):
        x, y = torch.randn(8, 1, 7, 7), torch.randint(0, CLASSES, (8,))
        value = functional.cross_entropy(model(x), y)
        moves.zero_grad()
        value.backward()
        moves.step()
        assert step(x, y) == pytest.approx(value.item(), rel=1e-5)
        bits(x, y)
    wanted = {name: value for name, value in model.state_dict().items() if "num_batches" not in name}
    found = step.parameters()
    assert len(found) == len(wanted)
    for name, value in wanted.items():
        learnt = next(array for key, array in found.items() if key.endswith(name))
        near = 1e-2 if "running_var" in name else 1e-3  # torch divides by one element less
        torch.testing.assert_close(torch.from_numpy(learnt), value, rtol=near, atol=near / 10, msg=name)
    assert all(np.array_equal(value, bits.parameters()[name]) for name, value in found.items())
    torch.testing.assert_close(step.inference()(x), model.eval()(x), rtol=1e-2, atol=1e-2)


def test_a_variance_that_equals_a_weight_is_none(tmp_path: Path) -> None:
    """The exporter writes a new norm's variance and weight down once."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, CLASSES))
    path = exported(model, torch.randn(8, 5), tmp_path / "net.onnx")
    step = hetnn.compile_training(path, lr=0.1)
    moves = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        x, y = torch.randn(8, 5), torch.randint(0, CLASSES, (8,))
        value = functional.cross_entropy(model(x), y)
        moves.zero_grad()
        value.backward()
        moves.step()
        assert step(x, y) == pytest.approx(value.item(), rel=1e-5)
    assert len(step.parameters()) == 4


def test_a_loss_that_is_no_number_changes_nothing(tmp_path: Path) -> None:
    step = hetnn.compile_training(exported(mlp(), torch.randn(8, 12), tmp_path / "net.onnx"), optimizer="adam")
    before = step.state_dict()
    with pytest.raises(hetnn.InvalidModel, match="of step 1 is no finite number; parameters are those of step 0"):
        step(torch.full((8, 12), torch.nan), torch.zeros(8, dtype=torch.int64))
    with pytest.raises(hetnn.InvalidModel, match="gather_elements"):
        step(torch.ones(8, 12), torch.full((8,), CLASSES))
    assert all(np.array_equal(value, before[name]) for name, value in step.state_dict().items())


def test_integers_of_what_was_learnt(tmp_path: Path) -> None:
    torch.manual_seed(0)
    step = hetnn.compile_training(exported(lenet(), torch.randn(8, 1, 16, 16), tmp_path / "net.onnx"), lr=0.01)
    x = torch.randn(8, 1, 16, 16)
    step(x, torch.randint(0, CLASSES, (8,)))
    real, whole = step.inference()(x), step.inference(quantize=[x])(x)
    assert np.corrcoef(np.ravel(real), np.ravel(whole))[0, 1] > 0.98
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(step)).inference()(x), real)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"loss": "hinge"}, r"loss must be one of bce_with_logits, .*, or an output of the model \(y\); got 'hinge'"),
        ({"loss": lambda y, t: y}, "a loss that is a function is for torch modules"),
        ({"loss": "mse", "train": ["w", "c"]}, r"no parameter 'c' of f32; it has w, b"),
        ({"loss": "mse", "train": []}, "nothing in the model is trained"),
        ({"loss": "mse", "lr": float("nan")}, "lr must be a finite number above 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=text):
        hetnn.compile_training(GRAPH, **settings)


def test_operators_without_a_derivative_are_named_together() -> None:
    model = model_of(
        """agraph (float[4,3,3] x) => (float[4] y)
        <float[3,3] w = {1, 0, 0, 0, 1, 0, 0, 0, 1}> {
          a = MatMul(x, w)
          y = Det(a)
        }"""
    )
    with pytest.raises(hetnn.Unsupported, match="a derivative passes operators that have none: lu 'y"):
        hetnn.compile_training(model, loss="mse")


def test_torch_says_by_itself_what_is_trained() -> None:
    with pytest.raises(hetnn.InvalidModel, match="train and fix are for models that are not torch's"):
        hetnn.compile_training(nn.Linear(2, 2), (torch.ones(1, 2),), train=["weight"])


def test_initializers_in_files_beside_the_model_are_read(tmp_path: Path) -> None:
    model = onnx.load(exported(mlp(), torch.randn(8, 12), tmp_path / "net.onnx"))
    onnx.save(model, tmp_path / "apart.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    step = hetnn.compile_training(tmp_path / "apart.onnx", lr=0.01)
    assert step(torch.ones(8, 12), torch.zeros(8, dtype=torch.int64)) > 0
