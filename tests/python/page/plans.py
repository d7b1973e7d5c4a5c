"""Plans whose pages the tests open: a long chain, many blocks, a network with rewrites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

import hetnn

TARGET = "cpu+relu-only"


def chain(nodes: int, folder: Path) -> hetnn.Plan:
    """Of a chain of operators that no rule joins."""
    lines = [f"graph @chain {{stage = imported}} (%x: f32[1,8,4,4]) -> (%v{nodes - 1}) {{"]
    for k in range(nodes):
        op, before = ("relu", "sigmoid", "tanh")[k % 3], f"%v{k - 1}" if k else "%x"
        lines.append(f"  %v{k} = {op}({before}) : f32[1,8,4,4]")
    path = folder / f"chain{nodes}.ir"
    path.write_text("\n".join([*lines, "}"]))
    return hetnn.plan(path, TARGET)


class Deep(nn.Module):
    """Blocks of a convolution, a gate and a sum."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(4, 4, 1), nn.Sigmoid(), nn.Conv2d(4, 4, 1)) for _ in range(blocks)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + block(x)
        return x


def small() -> tuple[nn.Module, tuple[Any, ...]]:
    """Rewrites, two devices, a node that none but the CPU takes."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.PReLU(), nn.Conv2d(8, 8, 3), nn.Hardswish(), nn.Conv2d(8, 4, 3))
    return layers.eval(), (torch.randn(1, 3, 32, 32),)
