"""Functions of tensors as modules, which is what torch exports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn


class Function(nn.Module):
    """Calls `function`, in evaluation mode."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.eval()

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)
