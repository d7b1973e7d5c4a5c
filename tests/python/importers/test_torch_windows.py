"""Torch's pooling by fractions, bags of embeddings, deep transposed convolutions: equal to eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import hetnn

aten = torch.ops.aten


def equal(function: Callable[..., Any], *inputs: Tensor) -> None:
    exe = hetnn.compile(function, args=inputs)
    torch.testing.assert_close(exe(*inputs), function(*inputs))


@pytest.mark.parametrize("axes", [2, 3])
def test_windows_by_fractions(axes: int) -> None:
    torch.manual_seed(1)
    pool = getattr(aten, f"fractional_max_pool{axes}d")
    x, u = torch.randn(2, 3, *[9, 10, 11][:axes]), torch.rand(2, 3, axes)
    for grid in ([5, 4, 3], [1, 4, 6], [2, 2, 1]):
        equal(lambda x, u, g=grid: pool(x, [2, 3, 4][:axes], g[:axes], u), x, u)
    equal(lambda x, u: pool(x, [2, 3, 4][:axes], [5, 4, 3][:axes], u), x[0], u[:1])


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("padding", [-1, 1])
def test_bags_with_what_training_keeps(mode: int, padding: int) -> None:
    torch.manual_seed(1)
    weight, indices = torch.rand(5, 3), torch.tensor([0, 2, 4, 1, 1])
    for last, ends in ((False, [0, 2, 2]), (True, [0, 2, 2, 5])):
        equal(
            lambda w, i, o, last=last: aten._embedding_bag(w, i, o, False, mode, False, None, last, padding),
            *(weight, indices, torch.tensor(ends)),
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_means_by_a_negative_divisor(dtype: torch.dtype) -> None:
    x = torch.arange(-8, 56).reshape(1, 1, 8, 8).to(dtype)
    equal(lambda x: nn.functional.avg_pool2d(x, 2, divisor_override=-3), x)


def test_deep_transposed_convolutions_add_in_the_order_of_torch() -> None:
    """Of 32 channels sums in another order differ by more than assert_close allows."""
    torch.manual_seed(1)
    for channels, groups, window in (
        (32, 1, {"stride": 2, "padding": 2, "output_padding": 1}),
        (6, 3, {"stride": (3, 2, 1), "padding": (1, 2, 0), "dilation": (2, 1, 3), "bias": False}),
    ):
        layer = nn.ConvTranspose3d(channels, 9, (3, 3, 2), groups=groups, **window).eval()
        layer.weight.data *= 60
        equal(layer, torch.empty(1, channels, 4, 5, 4).uniform_(-9, 9))


def test_deep_transposed_convolutions_of_any_size() -> None:
    torch.manual_seed(1)
    layer = nn.ConvTranspose3d(2, 3, (2, 3, 3), stride=(2, 1, 2), padding=(0, 1, 1), output_padding=(1, 0, 1)).eval()
    sizes = {0: Dim("n"), 2: Dim("d"), 3: Dim("h"), 4: Dim("w")}
    exe = hetnn.compile(layer, args=(torch.randn(2, 2, 3, 4, 5),), dynamic_shapes=(sizes,))
    for shape in ((2, 2, 3, 4, 5), (1, 2, 5, 2, 7)):
        x = torch.randn(shape)
        torch.testing.assert_close(exe(x), layer(x))


class Largest(nn.Module):
    def __init__(self, indices: bool) -> None:
        super().__init__()
        self.indices = indices

    def forward(self, x: Tensor) -> Any:
        if self.indices:
            return nn.functional.adaptive_max_pool1d(x[0], 3, return_indices=True)
        return nn.functional.adaptive_max_pool2d(x, (2, 3)), nn.functional.adaptive_max_pool1d(x[0], 4)


def test_the_largest_of_a_grid_over_any_size() -> None:
    """Also where the example's sizes are multiples of the grid's, which torch would take all to be."""
    sizes = {2: Dim("h", min=4, max=64), 3: Dim("w", min=4, max=64)}
    program = torch.export.export(Largest(False), (torch.randn(2, 3, 8, 12),), dynamic_shapes=(sizes,))
    for target in ("cpu", "cpu+relu-only"):
        exe = hetnn.compile(program, target)
        for height, width in ((8, 12), (7, 9), (4, 4), (17, 33)):
            x = torch.randn(2, 3, height, width)
            x[0, 0, 1, 2] = torch.nan
            for mine, theirs in zip(exe(x), Largest(False)(x), strict=True):
                torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)


def test_what_torch_decomposes_for_the_examples_sizes_alone_is_refused() -> None:
    program = torch.export.export(
        Largest(True), (torch.randn(2, 3, 8, 12),), dynamic_shapes=({3: Dim("w", min=4, max=64)},)
    )
    for _ in range(2):  # torch says so once
        with pytest.raises(hetnn.Unsupported, match="adaptive pooling of an image of symbolic size"):
            hetnn.compile(program)
