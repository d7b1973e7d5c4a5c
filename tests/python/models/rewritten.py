"""Networks full of activations that a small NPU lacks, as detectors, face recognition and phones use them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models import nets


def _conv(before: int, after: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(after), nn.LeakyReLU(0.1))


class PartialStage(nn.Module):
    """A stage of a cross-stage partial network: half the channels pass by the residual blocks."""

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        half = width // 2
        self.down = _conv(half, width, 3, 2)
        self.aside, self.into = _conv(width, half, 1), _conv(width, half, 1)
        self.blocks = nn.ModuleList(nn.Sequential(_conv(half, half, 1), _conv(half, half)) for _ in range(blocks))
        self.join = _conv(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.down(x)
        y = self.into(x)
        for block in self.blocks:
            y = y + block(y)
        joined: Tensor = self.join(torch.cat([self.aside(x), y], 1))
        return joined


class Detector(nn.Module):
    """A detector of LeakyReLU stages with a head for each of its last two scales."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.stem = _conv(3, width)
        self.stages = nn.ModuleList(PartialStage(width * 2 ** (k + 1), blocks) for k, blocks in enumerate((1, 2, 2)))
        self.heads = nn.ModuleList(nn.Conv2d(width * 2**k, 3 * 85, 1) for k in (2, 3))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        x = self.stem(x)
        seen = []
        for stage in self.stages:
            x = stage(x)
            seen.append(x)
        return tuple(head(scale) for head, scale in zip(self.heads, seen[1:], strict=True))


class FaceBlock(nn.Module):
    """Norm, convolution, PReLU, convolution, beside a strided shortcut."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.BatchNorm2d(before),
            nn.Conv2d(before, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.PReLU(after),
            nn.Conv2d(after, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        plain = before == after and stride == 1
        self.shortcut = (
            nn.Identity()
            if plain
            else nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.main(x) + self.shortcut(x)
        return y


class FaceNet(nn.Module):
    """IR-18: a residual network with PReLU that turns a face of 112 x 112 into 512 numbers."""

    def __init__(self, width: int = 64, side: int = 112) -> None:
        super().__init__()
        widths = [width * 2**k for k in range(4)]
        layers: list[nn.Module] = [
            nn.Conv2d(3, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.PReLU(width),
        ]
        before = width
        for after in widths:
            layers += [FaceBlock(before, after, 2), FaceBlock(after, after, 1)]
            before = after
        features = widths[-1] * (-(-side // 16)) ** 2
        layers += [nn.BatchNorm2d(before), nn.Flatten(), nn.Linear(features, 8 * width), nn.BatchNorm1d(8 * width)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return y


def settled(module: nn.Module, side: int) -> nets.Case:
    """With the statistics of a trained network, and slopes of every kind that real ones have (-1.28 to 1.3)."""
    nets.settle_batch_norms(module)
    for layer in module.modules():
        if isinstance(layer, nn.PReLU):
            nn.init.uniform_(layer.weight, -1.28, 1.3)
    return module.eval(), (torch.randn(1, 3, side, side),)


def detector(side: int = 320, width: int = 16) -> nets.Case:
    torch.manual_seed(7)
    return settled(Detector(width), side)


def face_net(side: int = 112, width: int = 64) -> nets.Case:
    torch.manual_seed(7)
    return settled(FaceNet(width, side), side)
