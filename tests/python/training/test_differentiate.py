"""hetnn's own gradients of networks, against torch's, in f64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import hetnn
from hetnn import _core
from hetnn.importers.torch.graph import import_exported_program


class Image(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(2, 6, 3, padding=1), nn.GroupNorm(2, 6)
        self.second, self.turned = nn.Conv2d(6, 4, 3, stride=2, groups=2), nn.ConvTranspose2d(4, 3, 2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.max_pool2d(functional.silu(self.norm(self.first(x))), 2)
        x = functional.avg_pool2d(self.turned(functional.gelu(self.second(x))), 3, 2, 1)
        return x.flatten(1).amax(1).square()


class Text(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.log_softmax(self.head(self.layer(self.embed(x)).mean(1)), 1)[:, 0]


def volume() -> nn.Module:
    return nn.Sequential(nn.Conv3d(2, 3, 2, stride=2), nn.BatchNorm3d(3), nn.Tanh(), nn.AdaptiveAvgPool3d(1))


class Sequence(nn.Module):
    """A recurrent layer in both directions; what follows reads all that it gives."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.layer = kind(3, 4, num_layers=2, bidirectional=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, last = self.layer(x)
        last = last if isinstance(last, torch.Tensor) else torch.cat(last, 2)
        return torch.cat([(y * y).flatten(), last.sin().flatten()])


def line() -> nn.Module:
    return nn.Sequential(nn.Conv1d(4, 6, 3, dilation=2, groups=2), nn.PReLU(6), nn.InstanceNorm1d(6), nn.Linear(5, 2))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "image": (Image, lambda: torch.randn(2, 2, 8, 8)),
    "text": (Text, lambda: torch.randint(0, 11, (4, 6))),
    "volume": (volume, lambda: torch.randn(2, 2, 4, 5, 4)),
    "line": (line, lambda: torch.randn(2, 4, 9)),
    "lstm": (lambda: Sequence(nn.LSTM), lambda: torch.randn(5, 2, 3)),
    "gru": (lambda: Sequence(nn.GRU), lambda: torch.randn(5, 2, 3)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_of_a_network_are_torchs(name: str) -> None:
    torch.manual_seed(0)
    make, draw = NETWORKS[name]
    model, x = make().eval().double(), draw()
    x = x.double() if x.is_floating_point() else x
    for parameter in model.parameters():  # no two alike
        nn.init.normal_(parameter)
    names = {parameter.detach().numpy().tobytes(): name for name, parameter in model.named_parameters()}
    graph = import_exported_program(torch.export.export(model, (x,))).graph
    found = {value: names[array.tobytes()] for value, array in graph.constants().items() if array.tobytes() in names}
    whole = _core.differentiate(graph, graph.outputs[0][0], list(found))
    _, *gradients = hetnn.compile(whole)(x)
    model(x).sum().backward()
    assert len(set(found.values())) == len(names)
    total = {key: torch.zeros_like(value) for key, value in model.named_parameters()}
    for key, gradient in zip(found.values(), gradients, strict=True):
        total[key] += gradient.reshape(total[key].shape)
    for key, parameter in model.named_parameters():
        torch.testing.assert_close(total[key], parameter.grad, rtol=1e-9, atol=1e-9, msg=key)


def test_open_sizes_stay_open() -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 3, stride=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(2)).double()
    batch, height = torch.export.Dim("batch"), torch.export.Dim("height", min=12)
    x = torch.randn(2, 2, 13, 9, dtype=torch.float64)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: batch, 2: height},))
    graph = import_exported_program(program).graph
    exe = hetnn.compile(_core.differentiate(graph, graph.outputs[0][0], [graph.inputs[0][0]]))
    for size in ((1, 2, 12, 9), (3, 2, 17, 9)):
        x = torch.randn(*size, dtype=torch.float64, requires_grad=True)
        model(x).sum().backward()
        np.testing.assert_allclose(exe(x.detach())[1], x.grad, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("mode", "size"),
    [("bilinear", (4, 5)), ("nearest", (4, 5)), ("bicubic", (4, 5)), ("bilinear", (3, 4, 5)), ("bilinear", (1, 3))],
)
def test_places_of_a_grid(mode: str, size: tuple[int, ...], outside: str, aligned: bool) -> None:
    torch.manual_seed(0)
    operator = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}[mode]
    x = torch.randn(2, 3, *size, dtype=torch.float64, requires_grad=True)
    points = (2, 3, 4)[: len(size)]
    grid = (3 * torch.rand(2, *points, len(size), dtype=torch.float64) - 1.5).requires_grad_()
    of_x, of_grid, of_y = (f"f64[{','.join(map(str, shape))}]" for shape in (x.shape, grid.shape, (2, 3, *points)))
    attrs = f"{{mode = {operator}, outside = {outside}, align_corners = {str(aligned).lower()}}}"
    graph = _core.Graph.parse(
        f"graph @g {{stage = imported}} (%x: {of_x}, %grid: {of_grid}) -> (%y) {{\n"
        f"  %s = grid_sample(%x, %grid) {attrs} : {of_y}\n  %y = sin(%s) : {of_y}\n}}"
    )
    _, *found = hetnn.compile(_core.differentiate(graph, "y", ["x", "grid"]))(x.detach(), grid.detach())
    y = functional.grid_sample(x, grid, mode, outside, aligned)
    y.sin().sum().backward()
    for value, wanted in zip(found, (x.grad, grid.grad), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-8, atol=1e-8)


def test_values_that_the_graph_lacks_are_named() -> None:
    graph = _core.Graph.parse("graph @g {stage = imported} (%x: f32[2]) -> (%y) {\n  %y = neg(%x) : f32[2]\n}")
    with pytest.raises(hetnn.InvalidModel, match="the graph has no value 'z'"):
        _core.differentiate(graph, "y", ["z"])
