"""Small networks of the kinds that an NPU runs, as text: what fuzzers of schedules and tests of tokens take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import hetnn
from hetnn.importers import import_model
from npu.programs import export, target


class Separable(nn.Module):
    """MobileNet's: depthwise and pointwise layers, a mean over all pixels and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        sizes = [(8, 16, 1), (16, 24, 2), (24, 24, 1)]
        self.depthwise = nn.ModuleList([nn.Conv2d(a, a, 3, stride, 1, groups=a) for a, _, stride in sizes])
        self.pointwise = nn.ModuleList([nn.Conv2d(a, b, 1) for a, b, _ in sizes])
        self.head = nn.Linear(24, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.stem(x))
        for depthwise, pointwise in zip(self.depthwise, self.pointwise, strict=True):
            x = F.relu(pointwise(F.relu(depthwise(x))))
        out: Tensor = self.head(x.mean((2, 3)))
        return out


class Residuals(nn.Module):
    """ResNet's: additions around two convolutions, one of them strided."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(8, 8, 1), nn.Conv2d(16, 4, 1)
        self.layers = nn.ModuleList([nn.Conv2d(8, 8, 3, padding=1) for _ in range(4)])
        self.down, self.short = nn.Conv2d(8, 16, 3, 2, 1), nn.Conv2d(8, 16, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for first, second in zip(self.layers[::2], self.layers[1::2], strict=True):
            x = F.relu(x + second(F.relu(first(x))))
        out: Tensor = self.head(F.relu(self.down(x) + self.short(x)))
        return out


class Joined(nn.Module):
    """Inception's: branches that lie side by side, one of them pooled, and a slice of the joint."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(6, 6, 1), nn.Conv2d(8, 4, 1)
        self.narrow, self.wide, self.pooled = nn.Conv2d(6, 8, 1), nn.Conv2d(6, 12, 3, padding=1), nn.Conv2d(6, 4, 1)
        self.last = nn.Conv2d(24, 8, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        branches = [F.relu(self.narrow(x)), F.relu(self.wide(x)), self.pooled(F.max_pool2d(x, 3, 1, 1))]
        x = torch.cat(branches, 1)
        out: Tensor = self.head(self.last(x) + x[:, 4:12])
        return out


class Pooled(nn.Module):
    """LeNet's: convolutions and pools in turn, and linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 12, 5, padding=2), nn.Conv2d(12, 20, 3)
        self.hidden, self.head = nn.Linear(500, 48), nn.Linear(48, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.first(x)), 2)
        x = F.avg_pool2d(F.relu(self.second(x)), 2)
        out: Tensor = self.head(F.relu(self.hidden(x.flatten(1))))
        return out


class Products(nn.Module):
    """An attention's: rows times rows, turned and cut."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(24, 24), nn.Linear(24, 16)
        self.keys, self.values = nn.Linear(24, 24), nn.Linear(24, 24)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        weights = F.relu(self.keys(x) @ x.transpose(1, 2))
        x = (weights @ self.values(x) + x)[:, 1:]
        out: Tensor = self.head(x)
        return out


@dataclass(frozen=True)
class Network:
    """A graph's text with inputs; `kib` is a scratchpad in which it does not lie as a whole."""

    name: str
    graph: str
    inputs: list[np.ndarray]
    kib: int

    def sheet(self, kib: int | None = None) -> dict[str, Any]:
        spec = target(sram={"bytes": (kib or self.kib) << 10})
        spec["numerics"] = {"rounding": "double"}
        return spec


KINDS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "separable": (Separable, (1, 3, 32, 32), 8),
    "residuals": (Residuals, (2, 8, 16, 16), 8),
    "joined": (Joined, (1, 6, 20, 14), 12),
    "pooled": (Pooled, (1, 1, 24, 24), 16),
    "products": (Products, (2, 20, 24), 4),
}


NAMES = [f"{name} {dtype}" for name in KINDS for dtype in ("f32", "int8")]


@cache
def network(called: str) -> Network:
    """Of NAMES."""
    name, dtype = called.split()
    kind, shape, kib = KINDS[name]
    torch.manual_seed(5)
    exported = export(kind(), torch.randn(shape))
    x = torch.randn(shape).numpy()
    if dtype == "f32":
        return Network(called, import_model(exported).graph.print(), [x], 2 * kib)
    quantized = hetnn.quantize(exported, [(x,)], "int8", "minmax", adapt_rounding=False, equalize=False)
    return Network(called, quantized.graph.print(), [x], kib)


def compile_for(graph: str, spec: dict[str, Any], schedule: str | None = None) -> hetnn.Executable:
    """With all that the sheet has on the NPU."""
    return hetnn.compile(graph, spec, strategy="take-all", tune=False, schedule=schedule)
