"""Small networks that are trained in the tests, and samples of what they see."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Images = NDArray[np.float32]

# 3x5 pixels of each digit.
_ROWS = (
    "111101101101111 010110010010111 111001111100111 111001111001111 101101111001001",
    "111100111001111 111100111101111 111001010010010 111101111101111 111101111001111",
)
_GLYPHS = " ".join(_ROWS).split()


def digits(count: int, seed: int) -> tuple[Images, NDArray[np.int64]]:
    """Images [count,1,16,16] of digits at random places and sizes, under noise, and which digits they show."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count)
    images = np.zeros((count, 1, 16, 16), np.float32)
    for image, label in zip(images, labels, strict=True):
        glyph = np.array(list(_GLYPHS[label]), np.float32).reshape(5, 3)
        large = np.kron(glyph, np.ones((2, rng.integers(2, 4)))) * rng.uniform(0.8, 1.3)
        top, left = rng.integers(0, 16 - large.shape[0] + 1), rng.integers(0, 16 - large.shape[1] + 1)
        image[0, top : top + large.shape[0], left : left + large.shape[1]] = large
    return images + rng.normal(0, 0.2, images.shape).astype(np.float32), labels


class Block(nn.Module):
    """A depthwise and a pointwise convolution around what was there before."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.pointwise = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.pointwise(nn.functional.relu6(self.norm(self.depthwise(x)))))


class Classifier(nn.Module):
    """Ten classes of images [n,1,16,16]: convolutions, batch norms, a residual block, pools and a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2))
        self.block = Block(24)
        self.second = nn.Sequential(nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d(2))
        self.dense = nn.Linear(48 * 16, 10)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.dense(self.second(self.block(self.first(x))).flatten(1))
        return out


@cache
def classifier() -> nn.Module:
    """The classifier, trained on 6000 images for two epochs."""
    torch.manual_seed(0)
    module = Classifier()
    images, labels = (torch.from_numpy(part) for part in digits(6000, 1))
    optimizer = torch.optim.Adam(module.parameters(), 3e-3)
    for _ in range(2):
        for rows in torch.randperm(len(images)).split(100):
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(images[rows]), labels[rows]).backward()
            optimizer.step()
    return module.eval()


class Encoder(nn.Module):
    """One block of a transformer, with a channel after the norm and one of the result that are far larger than all."""

    def __init__(self, wide: int = 32) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(wide)
        self.attention = nn.MultiheadAttention(wide, 4, batch_first=True)
        self.up, self.down = nn.Linear(wide, 2 * wide), nn.Linear(2 * wide, wide)
        self.last = nn.LayerNorm(wide)
        with torch.no_grad():
            self.norm.weight[3] = 40.0
            self.up.weight[:, 3] /= 40.0
            self.down.weight[5] *= 60.0

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        y = y + self.attention(y, y, y, need_weights=False)[0]
        out: Tensor = self.last(y + self.down(nn.functional.gelu(self.up(y))))
        return out
