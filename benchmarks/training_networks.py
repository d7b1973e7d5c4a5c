"""Networks whose steps of training are measured, what is taught, and torch's own training of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

CLASSES = 10
LEARNING_RATE = 1e-3
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        layers = [nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)]
        self.inner = nn.Sequential(*layers, nn.ReLU(), *copy.deepcopy(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.inner(x))


class Words(nn.Module):
    """Two layers of a transformer over embedded words."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
        self.embed, self.layers = nn.Embedding(1000, 128), nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embed(x)).mean(1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def lenet() -> nn.Module:
    first = [nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)]
    rest = [nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    return nn.Sequential(*first, nn.Flatten(), *rest)


def resnet() -> nn.Module:
    body = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), Residual(16), Residual(16)]
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


# The network, and a batch of inputs; of each there are ten classes.
NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)),
        lambda: torch.randn(32, 64),
    ),
    "lenet": (lenet, lambda: torch.randn(32, 1, 28, 28)),
    "resnet": (resnet, lambda: torch.randn(16, 3, 32, 32)),
    "transformer": (Words, lambda: torch.randint(0, 1000, (8, 32))),
    "sentence head": (
        lambda: nn.Sequential(nn.Linear(384, 128), nn.GELU(), nn.Linear(128, 10)),
        lambda: torch.randn(32, 384),
    ),
    "lstm": (Recurrent, lambda: torch.randn(16, 20, 32)),
}


class Teacher:
    """What is to be learnt: of an input the class whose sum over its elements, or over its words, is the largest."""

    def __init__(self, x: torch.Tensor) -> None:
        rows = x[0].numel() if x.is_floating_point() else 1000
        self._sums = torch.randn(rows, CLASSES, generator=torch.Generator().manual_seed(1))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        sums = x.flatten(1) @ self._sums if x.is_floating_point() else self._sums[x].sum(1)
        return sums.argmax(1)


class Trained:
    """A copy of a network, trained by torch's own optimizer; `call` computes what the network does."""

    def __init__(
        self, model: nn.Module, optimizer: str, wrap: Callable[[nn.Module], Any] = lambda model: model
    ) -> None:
        self._model = copy.deepcopy(model).train()
        self._call = wrap(self._model)
        self._optimizer = OPTIMIZERS[optimizer](self._model.parameters(), lr=LEARNING_RATE)

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> float:
        loss = functional.cross_entropy(self._call(x), y)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        return float(loss)


class Exact(Trained):
    """The same in f64."""

    def __init__(self, model: nn.Module, optimizer: str) -> None:
        super().__init__(copy.deepcopy(model).double(), optimizer)

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> float:
        return super().__call__(x.double() if x.is_floating_point() else x, y)
