"""What reads feature maps one way and has to write them the other way: at a model's ends, and between devices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import hetnn

OPERATORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "group_norm": lambda x: F.group_norm(x, 3, torch.arange(6.0), torch.ones(6)),
    "instance_norm": F.instance_norm,
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "batch_norm": lambda x: F.batch_norm(x, torch.zeros(6), torch.arange(1.0, 7.0)),
    "softmax of channels": lambda x: F.softmax(x, 1),
    "softmax of rows": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, 1),
    "mean of pixels": lambda x: x.mean((2, 3), keepdim=True),
    "sum of channels": lambda x: x.sum(1, keepdim=True),
    "unary": torch.tanh,
    "binary": lambda x: x * torch.linspace(0, 1, 6 * 36).reshape(6, 6, 6),
    "where": lambda x: torch.where(x > 0.1, x, -2 * x),
    "cast": lambda x: x.to(torch.int32).to(torch.float32),
    "concat": lambda x: torch.cat([x, x + 1], 1),
    "slice": lambda x: x[:, 1:4],
    "pad": lambda x: F.pad(x, (1, 2, 0, 1)),
    "flip": lambda x: x.flip(1),
    "nearest": lambda x: F.interpolate(x, scale_factor=2.0),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "maximum of windows": lambda x: F.max_pool2d(x, 2),
    "cumsum": lambda x: x.cumsum(1),
    "permute": lambda x: x.permute(0, 1, 3, 2),
}


class Between(nn.Module):
    """An operator behind a convolution, or before one with a ReLU between, or both; its own values come out, too."""

    def __init__(self, op: Callable[[torch.Tensor], torch.Tensor], before: bool, behind: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.op, self.before, self.behind = op, before, behind
        self.first = nn.Conv2d(6, 6, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.op(self.first(x) if self.before else x)
        return (y, y.relu() + 1) if self.behind else (y,)


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
@pytest.mark.parametrize("name", OPERATORS)
def test_every_mixture(name: str, target: str) -> None:
    x = torch.randn(2, 6, 6, 6, generator=torch.Generator().manual_seed(1))
    for before, behind in ((True, False), (False, True), (True, True)):
        model = Between(OPERATORS[name], before, behind).eval()
        exe = hetnn.compile(model, target, args=(x,))
        got = exe(x.numpy())
        wanted = model(x)
        for mine, theirs in zip(got if isinstance(got, tuple) else (got,), wanted, strict=True):
            np.testing.assert_allclose(mine, theirs.detach().numpy(), rtol=2e-5, atol=2e-5)
