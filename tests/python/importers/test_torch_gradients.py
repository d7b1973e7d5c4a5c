"""Gradients of layers as torch overloads, beside torch's own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import hetnn

aten = torch.ops.aten


def close(function: object, *inputs: Tensor) -> None:
    near = 1e-8 if inputs[0].dtype == torch.float64 else 2e-2 if inputs[0].dtype == torch.bfloat16 else 1e-4
    found, wanted = hetnn.compile(function, args=inputs)(*inputs), function(*inputs)  # type: ignore[operator]
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for one, other in pairs:
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=near, atol=near)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 6, 7)])
@pytest.mark.parametrize("trains", [True, False])
def test_of_batch_norm(dtype: torch.dtype, shape: tuple[int, ...], trains: bool) -> None:
    torch.manual_seed(0)
    x, gradient = (torch.randn(shape).to(dtype) for _ in range(2))
    weight, mean = (torch.randn(3).to(dtype) for _ in range(2))
    variance = torch.rand(3).to(dtype) + 0.5
    kept, scale = (v.to(dtype) for v in aten.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)[1:])

    def backward(gradient: Tensor, x: Tensor, weight: Tensor, kept: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
        return aten.native_batch_norm_backward(
            gradient, x, weight, mean, variance, kept, scale, trains, 1e-5, [True, True, True]
        )  # type: ignore[no-any-return]

    close(backward, gradient, x, weight, kept, scale)


@pytest.mark.parametrize("trains", [True, False])
def test_batch_norm_moves_its_statistics(trains: bool) -> None:
    torch.manual_seed(0)
    x, weight, bias, mean = torch.randn(4, 3, 5), torch.randn(3), torch.randn(3), torch.randn(3)

    def norm(x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, ...]:
        return aten._native_batch_norm_legit_functional(x, weight, bias, mean, variance, trains, 0.2, 1e-5)  # type: ignore[no-any-return]

    close(norm, x, weight, bias, mean, torch.rand(3) + 0.5)


@pytest.mark.parametrize("ceil", [True, False])
def test_of_pools_by_their_places(ceil: bool) -> None:
    """Places that another pooling gave, and the pooling's own."""
    torch.manual_seed(0)
    x, window = torch.randn(2, 3, 7, 7), ([3, 3], [2, 2], [1, 1], [1, 1], ceil)
    pooled, places = aten.max_pool2d_with_indices(x, *window)

    def given(gradient: Tensor, x: Tensor, places: Tensor) -> Tensor:
        return aten.max_pool2d_with_indices_backward(gradient, x, *window, places)  # type: ignore[no-any-return]

    def own(gradient: Tensor, x: Tensor) -> Tensor:
        return given(gradient, x, aten.max_pool2d_with_indices(x, *window)[1])

    gradient = torch.randn_like(pooled)
    close(given, gradient, x, places)
    close(own, gradient, x)
    close(own, gradient[0], x[0])


def test_of_thresholds() -> None:
    gradient, x = torch.randn(4, 50), torch.randn(4, 50)
    x[0, :3] = torch.tensor([float("nan"), 0.5, float("inf")])
    close(lambda gradient, x: aten.threshold_backward(gradient, x, 0.5), gradient, x)
    module = nn.Threshold(0.5, -1.0)
    close(lambda x: module(x), x.nan_to_num())
