"""Gradients of core ATen's overloads: a sample of what tools/core_gradients.py tries, and gradients whose formulas are
written or derived here, on what its samples leave out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import hetnn

_TOOLS = str(Path(__file__).parents[3] / "tools")


@pytest.fixture(scope="module")
def tool() -> Any:
    sys.path.insert(0, _TOOLS)
    try:
        import core_gradients
    finally:
        sys.path.remove(_TOOLS)
    return core_gradients


@pytest.mark.parametrize("name", ["abs.default", "convolution.default", "_fft_c2r.default"])
def test_an_overload_has_torchs_gradients(tool: Any, name: str) -> None:
    assert tool.tried(name) == {"float64": ["equal"], "float32": ["equal"]}


def test_what_torch_does_not_differentiate_is_not_counted(tool: Any) -> None:
    names = tool.differentiated()
    assert len(names) >= 143
    assert not {"argmax.default", "logical_and.default", "floor_divide.default", "randn.default"} & set(names)


def x(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(len(shape)))


INDICES = torch.tensor([0, 2, 2, 4, 1, 2])
# Torch divides by how often another row is read, where some are read more often than others.
PAIRS = torch.tensor([0, 2, 2, 4, 0, 4])
OFFSETS = torch.tensor([0, 3, 3, 4])


def bags(indices: Tensor = INDICES, **options: Any) -> Callable[..., Tensor]:
    return lambda table, *weights: F.embedding_bag(
        indices, table, OFFSETS, per_sample_weights=weights[0] if weights else None, **options
    )


CALLS: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    **{f"cdist {p}": (lambda a, b, p=p: torch.cdist(a, b, p), (x(2, 4, 3), x(2, 5, 3))) for p in (0.5, 1.0, 3.0)},
    "cdist inf": (lambda a, b: torch.cdist(a, b, float("inf")), (x(4, 3), x(5, 3))),
    "cdist of the same row": (lambda a: torch.cdist(a, a, 1.5), (x(4, 3),)),
    **{f"pdist {p}": (lambda a, p=p: F.pdist(a, p), (x(4, 3),)) for p in (1.0, 2.0, 2.5)},
    "bags by mean": (bags(mode="mean"), (x(5, 3),)),
    "bags by maximum": (bags(mode="max"), (x(5, 3),)),
    "bags by frequency": (bags(PAIRS, mode="sum", scale_grad_by_freq=True), (x(5, 3),)),
    "bags with padding": (bags(mode="mean", padding_idx=2), (x(5, 3),)),
    "bags with weights": (bags(mode="sum", padding_idx=4), (x(5, 3), x(6))),
    "pads that repeat": (lambda a: F.pad(a, (2, 1, 0, 3), "replicate").square(), (x(1, 2, 3, 1),)),
    "pads that cut": (lambda a: F.pad(a, (-1, 2), "replicate").square(), (x(1, 2, 4),)),
    "a longer source": (lambda a, b: a.masked_scatter(a > 0, b).square(), (x(3, 4), x(20))),
    "windows that overlap": (lambda a: F.max_pool3d(a, 3, 1, 1).square(), (x(1, 2, 4, 4, 4),)),
}


@pytest.mark.parametrize("name", CALLS)
def test_gradients_with_formulas_of_ours(name: str) -> None:
    _is_torchs(*CALLS[name])


@pytest.mark.parametrize(
    ("mode", "outside", "corners"),
    [("bilinear", "border", False), ("nearest", "reflection", True), ("bicubic", "zeros", False)],
)
def test_gradients_of_samples_of_an_image(mode: str, outside: str, corners: bool) -> None:
    _is_torchs(lambda image, grid: F.grid_sample(image, grid, mode, outside, corners), (x(1, 2, 4, 4), x(1, 3, 3, 2)))


def _is_torchs(call: Callable[..., Tensor], given: tuple[Tensor, ...]) -> None:
    torch._dynamo.reset()
    hetnn.torch_report(clear=True)
    runs = (torch.compile(call, backend="hetnn", dynamic=False), call)
    mine, theirs = (_gradients(run, given) for run in runs)
    for got, want in zip(mine, theirs, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-8, atol=1e-8)
    report = hetnn.torch_report(clear=True)
    assert {row.kind for row in report if row.compiled} >= {"forward", "backward"}, str(report)
    torch._dynamo.reset()


def _gradients(call: Callable[..., Tensor], given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    tensors = [value.clone().requires_grad_() for value in given]
    out = call(*tensors)
    return torch.autograd.grad((out * torch.arange(out.numel()).reshape(out.shape)).sum(), tensors)
