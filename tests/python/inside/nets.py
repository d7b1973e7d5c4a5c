"""A residual network with what gets folded, fused and rewritten: batch norms, rectifiers with slopes, sums."""

from __future__ import annotations

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(channels)
        self.act = nn.PReLU(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.bn1(self.conv1(x))) + x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.layer1 = nn.Sequential(Block(8), Block(8))
        self.fc = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.layer1(self.stem(x).relu()).mean((2, 3)))


def residual() -> Net:
    torch.manual_seed(0)
    net = Net().eval()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_var.uniform_(0.5, 2)
            module.running_mean.uniform_(-1, 1)
    return net


def hooked(net: nn.Module, name: str, x: torch.Tensor) -> torch.Tensor:
    """What a module of the network returns in eager torch."""
    found: list[torch.Tensor] = []
    hook = net.get_submodule(name).register_forward_hook(lambda module, inputs, output: found.append(output))
    with torch.no_grad():
        net(x)
    hook.remove()
    return found[0]
