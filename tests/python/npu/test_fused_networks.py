"""Residuals and activations in the instructions of large layers and of the blocks that networks are made of."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from npu.programs import ONE_TILE, both, check_against_torch, export, target

# Layers larger than the scratchpad: kilobytes of it, and a producer of a result as large as its input.
TILED: dict[str, tuple[int, nn.Module, tuple[int, ...]]] = {
    "rows": (24, nn.Conv2d(16, 16, 3, padding=1), (2, 16, 28, 20)),
    "strips_of_a_depthwise": (24, nn.Conv2d(48, 48, 5, padding=2, groups=48), (1, 48, 17, 13)),
    "filters": (64, nn.Conv2d(64, 64, 3, padding=1), (1, 64, 9, 11)),
    "filters_and_rows": (40, nn.Conv2d(48, 48, 3, padding=2, dilation=2), (2, 48, 19, 15)),
    "columns_of_a_linear": (24, nn.Linear(96, 96), (37, 96)),
}


class Residual(nn.Module):
    def __init__(self, layer: nn.Module, activation: nn.Module) -> None:
        super().__init__()
        self.layer, self.activation = layer, activation

    def forward(self, x: Tensor, r: Tensor) -> Tensor:
        result: Tensor = self.activation(self.layer(x) + r)
        return result


@pytest.mark.parametrize("case", TILED)
def test_every_tile_of_a_large_layer_takes_its_part_of_the_addend(case: str, tmp_path: Path) -> None:
    kilobytes, layer, shape = TILED[case]
    torch.manual_seed(9)
    module, inputs = Residual(layer, nn.Hardtanh(-0.7, 0.9)), (torch.randn(shape), torch.randn(shape))
    spec = target(sram={"bytes": kilobytes << 10})
    programs = both(export(module, *inputs), spec, tmp_path)
    assert programs[0].computes() == ["conv2d +old act=2"]
    assert programs[0].steps() > (shape[0] if len(shape) == 4 else 1)
    check_against_torch(module, inputs, programs)


def test_every_tile_of_a_batched_product_takes_its_part_of_the_addend(tmp_path: Path) -> None:
    class Product(nn.Module):
        def forward(self, a: Tensor, b: Tensor, r: Tensor) -> Tensor:
            return F.relu(r + a @ b)

    torch.manual_seed(9)
    inputs = (torch.randn(3, 70, 24), torch.randn(3, 24, 32), torch.randn(3, 70, 32))
    programs = both(export(Product(), *inputs), target(sram={"bytes": 10 << 10}), tmp_path)
    assert programs[0].computes() == ["matmul +old act=1"]
    assert programs[0].steps() > 3
    check_against_torch(Product(), inputs, programs)


def test_an_addend_that_costs_more_than_it_saves_stays_a_layer(tmp_path: Path) -> None:
    """Blocks of few filters read the addend in runs far below a burst, once for each block."""
    torch.manual_seed(9)
    module = Residual(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU())
    inputs = (torch.randn(1, 256, 6, 6), torch.randn(1, 256, 6, 6))
    small = target(sram={"bytes": 48 << 10}, dram={"burst_bytes": 1024})
    programs = both(export(module, *inputs), small, tmp_path)
    assert programs[0].computes()[-1] == "elementwise act=1"
    assert not any("+old" in line for line in programs[0].computes())
    check_against_torch(module, inputs, programs)
    fits = both(export(module, *inputs), target(sram={"bytes": 16 << 20}, dram=ONE_TILE), tmp_path)
    assert fits[0].computes() == ["conv2d +old act=1"]


def norm(channels: int) -> nn.BatchNorm2d:
    out = nn.BatchNorm2d(channels)
    nn.init.uniform_(out.running_var, 0.5, 2)
    nn.init.normal_(out.running_mean)
    return out


class BasicBlock(nn.Module):
    """ResNet's, with its strided shortcut."""

    def __init__(self, channels: int, filters: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(channels, filters, 3, stride, 1, bias=False), norm(filters))
        self.second = nn.Sequential(nn.Conv2d(filters, filters, 3, padding=1, bias=False), norm(filters))
        self.shortcut = (
            nn.Identity()
            if stride == 1 and channels == filters
            else nn.Sequential(nn.Conv2d(channels, filters, 1, stride, bias=False), norm(filters))
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


@pytest.mark.parametrize(
    ("filters", "stride", "want"),
    [
        (16, 1, ["conv2d act=1", "conv2d +old act=1"]),
        (24, 2, ["conv2d", "conv2d act=1", "conv2d +old act=1"]),
    ],
)
def test_a_residual_block_takes_one_layer_a_convolution(
    filters: int, stride: int, want: list[str], tmp_path: Path
) -> None:
    torch.manual_seed(9)
    module, x = BasicBlock(16, filters, stride).eval(), torch.randn(1, 16, 14, 14)
    programs = both(export(module, x), target((), dram=ONE_TILE), tmp_path)
    assert sorted(programs[0].computes()) == sorted(want)
    check_against_torch(module, (x,), programs)


class InvertedResidual(nn.Module):
    """MobileNetV2's."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, hidden, 1, bias=False),
            norm(hidden),
            nn.ReLU6(),
            nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden, bias=False),
            norm(hidden),
            nn.ReLU6(),
            nn.Conv2d(hidden, channels, 1, bias=False),
            norm(channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + self.layers(x)
        return result


def test_an_inverted_residual_takes_three_layers(tmp_path: Path) -> None:
    torch.manual_seed(9)
    module, x = InvertedResidual(8, 48).eval(), torch.randn(1, 8, 14, 14)
    programs = both(export(module, x), target(("clamp",), dram=ONE_TILE), tmp_path)
    assert programs[0].computes() == ["conv2d act=2", "conv2d act=2", "conv2d +old"]
    assert len(programs[1].computes()) == 6
    check_against_torch(module, (x,), programs)


def test_linear_layers_over_four_axes_take_the_residual_as_rows(tmp_path: Path) -> None:
    """The engine's linear layers run over rows, feature maps are stored channels last: such a layer is reshaped."""
    torch.manual_seed(9)
    module, inputs = Residual(nn.Linear(8, 8), nn.ReLU()), (torch.randn(2, 3, 4, 8), torch.randn(2, 3, 4, 8))
    programs = both(export(module, *inputs), target(), tmp_path)
    assert programs[0].computes()[0].startswith("conv2d")
    check_against_torch(module, inputs, programs)


def test_a_residual_of_any_batch(tmp_path: Path) -> None:
    """The stream is made anew for every size; what is fused was decided at the example's."""
    torch.manual_seed(9)
    module = BasicBlock(8, 8, 1).eval()
    example = torch.randn(2, 8, 10, 10)
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(module, (example,), dynamic_shapes=({0: batch},), strict=False)
    programs = both(program, target(), tmp_path)
    assert set(programs[0].computes()) == {"conv2d act=1", "conv2d +old act=1"}
    for size in (1, 2, 7):
        check_against_torch(module, (torch.randn(size, 8, 10, 10),), programs)
