"""torch.compile(backend="hetnn"): what it computes is what torch's eager mode does, forward and backward."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn


@pytest.fixture(autouse=True)
def _apart() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    hetnn.torch_report(clear=True)
    yield
    torch._dynamo.reset()
    hetnn.torch_report(clear=True)


def compiled(model: Any, **kwargs: Any) -> Any:
    return torch.compile(model, backend="hetnn", **kwargs)


def all_run_by_hetnn() -> bool:
    report = hetnn.torch_report()
    return len(report) > 0 and all(row.compiled for row in report)


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, stride=2),
        nn.PReLU(8),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )


def attentive() -> nn.Module:
    return nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True)


NETWORKS = {"convolutional": (convolutional, (2, 3, 12, 12)), "attentive": (attentive, (2, 5, 16))}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_inference_is_eager_torchs(name: str, target: str) -> None:
    make, shape = NETWORKS[name]
    model, x = make().eval(), torch.randn(shape)
    with torch.no_grad():
        found = compiled(model, options={"target": target})(x)
        torch.testing.assert_close(found, model(x), rtol=1e-4, atol=1e-5)
    assert all_run_by_hetnn()
    assert [row.kind for row in hetnn.torch_report()] == ["inference"]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_training_step_is_eager_torchs(name: str) -> None:
    make, shape = NETWORKS[name]
    model = make().train()
    other = copy.deepcopy(model)
    run = compiled(model)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.05, momentum=0.9) for one in (model, other)]
    for _ in range(5):
        x = torch.randn(shape)
        losses = []
        for call, optimizer in zip((run, other), optimizers, strict=True):
            loss = call(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss)
        torch.testing.assert_close(losses[0], losses[1], rtol=1e-4, atol=1e-6)
    for (called, mine), theirs in zip(model.state_dict().items(), other.state_dict().values(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5, msg=called)
    assert all_run_by_hetnn()
    assert [row.kind for row in hetnn.torch_report()] == ["forward", "backward"]


def test_weights_that_change_count_at_once() -> None:
    model, x = convolutional().eval(), torch.randn(2, 3, 12, 12)
    run = compiled(model)
    with torch.no_grad():
        run(x)
        for k in range(3):
            model[0].weight.mul_(1.5)
            for _ in range(7):  # changed, at rest, packed again
                torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-5, msg=f"change {k}")
        model.load_state_dict(convolutional().state_dict())
        torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-5)
        model[0].weight = nn.Parameter(torch.randn(8, 3, 3, 3))
        torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_written_past_their_counters_count(dtype: torch.dtype) -> None:
    model, x = convolutional().eval().to(dtype), torch.randn(2, 3, 12, 12, dtype=dtype)
    run = compiled(model)
    near = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 0.05, "atol": 0.05}
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            for _ in range(6):
                torch.testing.assert_close(run(x), model(x), **near, msg=name)
            tensor.data.mul_(0.5).add_(0.25)
            torch.testing.assert_close(run(x), model(x), **near, msg=name)


def test_models_that_share_a_graph_have_their_weights_packed_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers of one class are one graph for torch, which gives it the weights of each in turn."""
    made: list[weakref.ref[Any]] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        executable = hetnn.compile(*args, **kwargs)
        made.append(weakref.ref(executable))
        return executable

    monkeypatch.setattr("hetnn.dynamo.backend.compile", counted)
    models, x = [convolutional().eval() for _ in range(3)], torch.randn(2, 3, 12, 12)
    runs = [compiled(model) for model in models]

    def check(rounds: int) -> None:
        for _ in range(rounds):
            for run, model in zip(runs, models, strict=True):
                torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-5)

    with torch.no_grad():
        check(10)
        assert len(hetnn.torch_report()) == 1
        assert len(made) == 4  # of each, and one whose weights are inputs
        models[1][0].weight.mul_(1.5)
        check(10)
        assert len(made) == 5
        del runs[1], models[1]
        check(2)
    gc.collect()
    assert [one() is None for one in made].count(True) == 2  # what was packed before, and of the model that is gone


def test_weights_of_inference_mode_have_no_versions() -> None:
    with torch.inference_mode():
        model, x = convolutional().eval(), torch.randn(2, 3, 12, 12)
        run = compiled(model)
        torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-5)
        model[0].weight.mul_(2)
        torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-5)


def test_sizes_and_numbers_may_change() -> None:
    def scaled(x: Tensor, n: int) -> Tensor:
        return (x * n).sum(1) + x.shape[0]

    run = compiled(scaled, dynamic=True)
    for rows, n in ((3, 5), (4, 9), (17, 2), (8, -3)):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(run(x, n), scaled(x, n))
    assert all_run_by_hetnn()
    assert len(hetnn.torch_report()) <= 2


def test_inputs_are_written_as_the_model_does() -> None:
    def step(cache: Tensor, x: Tensor) -> Tensor:
        cache.mul_(0.5).add_(x)
        return cache.sum()

    mine, theirs, x = torch.ones(4), torch.ones(4), torch.randn(4)
    run = compiled(step)
    for _ in range(3):
        torch.testing.assert_close(run(mine, x), step(theirs, x))
        torch.testing.assert_close(mine, theirs)
    assert all_run_by_hetnn()


@pytest.mark.parametrize(("mask", "norm_first"), [("none", True), ("padding", False), ("pairs", True), ("both", False)])
def test_layers_that_torch_fuses_in_inference(mask: str, norm_first: bool) -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=norm_first, activation="gelu").eval()
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2]) if mask in ("padding", "both") else None
    pairs = torch.triu(torch.full((5, 5), True), 1) if mask in ("pairs", "both") else None

    def call(x: Tensor) -> Tensor:
        return layer(x, src_mask=pairs, src_key_padding_mask=padding)

    x = torch.randn(2, 5, 16)
    with torch.no_grad():
        torch.testing.assert_close(compiled(call)(x), call(x), rtol=1e-4, atol=1e-5)
    assert all_run_by_hetnn()


def test_attention_that_gives_its_weights() -> None:
    attention = nn.MultiheadAttention(16, 2, batch_first=True).eval()
    x = torch.randn(2, 5, 16)
    with torch.no_grad():
        for average in (True, False):

            def call(x: Tensor, average: bool = average) -> Any:
                return attention(x, x, x, average_attn_weights=average)

            torch.testing.assert_close(compiled(call)(x), call(x), rtol=1e-4, atol=1e-5)
    assert all_run_by_hetnn()


def test_a_graph_that_hetnn_lacks_stays_with_torch() -> None:
    def model(x: Tensor) -> Tensor:
        return torch.linalg.eigvals(x @ x.T).abs().sum() + x.relu().sum()

    x = torch.randn(4, 4)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model)(x), model(x), rtol=1e-4, atol=1e-4)
    (row,) = hetnn.torch_report()
    assert not row.compiled
    assert "linalg_eig" in row.why
    assert row.at.startswith("test_torch_compile.py:")
    assert str(hetnn.torch_report()).startswith("0 of 1 graphs run by hetnn")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"mode": "fastest"}, "mode must be one of default"),
        ({"options": {"target": "cpu+nothing-like-it"}}, "nothing-like-it"),
        ({"options": {"thread": 1}}, "thread"),
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=why):
        compiled(convolutional().eval(), **wrong)(torch.randn(2, 3, 12, 12))
