"""The networks of the CPU's bench, each as `name -> (module in evaluation mode, example inputs)`; random weights.

They are alive: every output depends on the inputs and has a usable size, since batch norms have the statistics of
random batches and layers that start with zeros are drawn anew. A network that answers zeros equals wrong answers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "python"))
from models import nets
from models.nets import Case


def vision(name: str, batch: int = 1) -> Case:
    module, (x,) = nets.vision(name)
    return module, (torch.randn(batch, *x.shape[1:]),)


class ProposalNet(nn.Module):
    """MTCNN's first network, in the sizes of its paper (Zhang et al. 2016)."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 10, 16, 32)
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3) for a, b in pairwise(widths))
        self.slopes = nn.ModuleList(nn.PReLU(width) for width in widths[1:])
        self.face, self.box = nn.Conv2d(32, 2, 1), nn.Conv2d(32, 4, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        for k, (layer, slope) in enumerate(zip(self.layers, self.slopes, strict=True)):
            x = slope(layer(x))
            if k == 0:
                x = nn.functional.max_pool2d(x, 2, 2, ceil_mode=True)
        return self.box(x), self.face(x).softmax(dim=1)


def _twice(inside: int, outside: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in (inside, outside):
        layers += [nn.Conv2d(width, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Three levels, 32 channels at the highest."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([_twice(3, 32), _twice(32, 64), _twice(64, 128)])
        self.wider = nn.ModuleList([nn.ConvTranspose2d(128, 64, 2, 2), nn.ConvTranspose2d(64, 32, 2, 2)])
        self.up = nn.ModuleList([_twice(128, 64), _twice(64, 32)])
        self.last = nn.Conv2d(32, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept: list[Tensor] = []
        for k, block in enumerate(self.down):
            x = block(nn.functional.max_pool2d(x, 2) if k else x)
            kept.append(x)
        for wider, block, beside in zip(self.wider, self.up, kept[1::-1], strict=True):
            x = block(torch.cat([wider(x), beside], 1))
        result: Tensor = self.last(x)
        return result


class Recurrent(nn.Module):
    """Two LSTM layers of 256 over frames of 80 values, as a keyword spotter has."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.last = nn.LSTM(80, 256, 2, batch_first=True), nn.Linear(256, 64)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.last(self.layers(x)[0])
        return result


class Temporal(nn.Module):
    """Dilated convolutions over time with residuals (Bai et al. 2018): 8 blocks of 128 channels, kernel 3."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(40, 128, 1)
        self.blocks = nn.ModuleList(nn.Conv1d(128, 128, 3, padding=2**k, dilation=2**k) for k in range(8))
        self.last = nn.Conv1d(128, 32, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = x + torch.relu(block(x))
        result: Tensor = self.last(x)
        return result


def of(module: nn.Module, *shape: int) -> Case:
    return module, (torch.randn(*shape),)


# What the bars of docs/cpu.md speak of.
MAIN: dict[str, Callable[[], Case]] = {
    **{
        name: lambda name=name: vision(name)  # type: ignore[misc]
        for name in (
            "resnet18",
            "resnet50",
            "mobilenet_v2",
            "mobilenet_v3_large",
            "efficientnet_b0",
            "vgg16",
            "densenet121",
            "squeezenet1_1",
            "shufflenet_v2_x1_0",
            "regnet_y_400mf",
            "convnext_tiny",
            "vit_b_16",
        )
    },
    "minilm_16": lambda: nets.minilm(16),
    "minilm_128": lambda: nets.minilm(128),
    "proposal_240x320": lambda: of(ProposalNet(), 1, 3, 240, 320),
    "unet_256": lambda: of(UNet(), 1, 3, 256, 256),
    "lstm_100": lambda: of(Recurrent(), 1, 100, 80),
}
# Kinds of networks that nothing was tuned to.
OTHERS: dict[str, Callable[[], Case]] = {
    "resnext50": lambda: vision("resnext50_32x4d"),
    "mnasnet": lambda: vision("mnasnet1_0"),
    "googlenet": lambda: vision("googlenet"),
    "swin_t": lambda: vision("swin_t"),
    "temporal_400": lambda: of(Temporal(), 1, 40, 400),
    "mobilenet_v2_x8": lambda: vision("mobilenet_v2", batch=8),
    "resnet50_x8": lambda: vision("resnet50", batch=8),
}
NETWORKS = MAIN | OTHERS


def build(name: str) -> Case:
    torch.manual_seed(7)
    module, inputs = NETWORKS[name]()
    for layer in module.modules():
        if isinstance(layer, nn.Linear) and not layer.weight.any():
            nn.init.normal_(layer.weight, std=0.05)
    _take_statistics(module.eval(), inputs)
    return module.eval(), inputs


def _take_statistics(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    """Gives batch norms the statistics of four random batches."""
    norms = [layer for layer in module.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.reset_parameters()
        norm.momentum = None
        norm.train()
    for _ in range(4 if norms else 0):
        with torch.no_grad():
            module(*(torch.randn(4, *x.shape[1:]) for x in inputs))


def others(inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Second inputs of the same shapes: an answer that does not read its input equals none of both."""
    torch.manual_seed(8)
    return tuple(
        torch.randn_like(x)
        if x.is_floating_point()
        else x
        if bool((x == 1).all())
        else torch.randint(0, 30522, x.shape)
        for x in inputs
    )
