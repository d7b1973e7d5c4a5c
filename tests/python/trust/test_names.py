"""Names are the user's: those of inputs, of sizes, of modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn


class Joined(nn.Module):
    """Its input has the name of its buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("x", torch.ones(2))

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        return x + self.x + weight


def test_an_input_keeps_its_name() -> None:
    a, b = torch.randn(3, 2), torch.randn(3, 2)
    exe = hetnn.compile(torch.export.export(Joined(), (a, b), strict=False))
    assert [port.name for port in exe.inputs] == ["x", "weight"]
    torch.testing.assert_close(exe(weight=b, x=a), Joined()(a, b))


@pytest.fixture(scope="module")
def dynamic() -> hetnn.Executable:
    class Net(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return torch.cat([x, y]).relu()

    batch = torch.export.Dim("batch", min=2, max=64)
    sizes = ({0: batch}, {0: 2 * batch})
    program = torch.export.export(Net(), (torch.randn(3, 2), torch.randn(6, 2)), dynamic_shapes=sizes, strict=False)
    return hetnn.compile(program, shapes=[{"batch": 8}])


def test_a_size_is_called_as_its_author_called_it(dynamic: hetnn.Executable) -> None:
    assert [port.shape for port in dynamic.inputs] == [("batch", 2), ("2*batch", 2)]
    assert dynamic.outputs[0].shape == ("3*batch", 2)
    x, y = torch.randn(5, 2), torch.randn(10, 2)
    torch.testing.assert_close(dynamic(x, y), torch.cat([x, y]).relu())


@pytest.mark.parametrize(("first", "second"), [(5, 9), (5, 11), (65, 130), (1, 2)])
def test_a_wrong_size_is_told_with_input_and_name(dynamic: hetnn.Executable, first: int, second: int) -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"input '[xy]'.*batch|batch.*input '[xy]'"):
        dynamic(torch.randn(first, 2), torch.randn(second, 2))


class Folded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.layers = nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(self.bn1(self.conv1(x)))


@pytest.fixture(scope="module")
def folded() -> torch.export.ExportedProgram:
    return torch.export.export(Folded().eval(), (torch.randn(1, 3, 12, 12),), strict=False)


def test_a_folded_convolution_keeps_its_own_name(folded: torch.export.ExportedProgram) -> None:
    rows = hetnn.plan(folded).report("dict")["subgraphs"]
    names = [name for row in rows for name in row["nodes"]]
    assert "conv2d" in names
    assert not any("batch_norm" in name for name in names)


@pytest.mark.parametrize("name", ["conv1", "bn1", "conv2d", "layers.0", "layers.1"])
def test_what_was_folded_is_pinned_and_explained_by_any_of_its_names(
    folded: torch.export.ExportedProgram, name: str
) -> None:
    free = hetnn.plan(folded, "cpu+systolic-8x8", strategy="take-all").report("dict")["nodes_on"]
    pinned = hetnn.plan(folded, "cpu+systolic-8x8", strategy="take-all", pin={name: "cpu"})
    assert pinned.report("dict")["nodes_on"].get("cpu", 0) > free.get("cpu", 0)
    assert "pin" in str(pinned.why(name))


class Sized(nn.Module):
    def __init__(self, size: Callable[[Any], Any]) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        return x.new_zeros(self.size(x.shape[0])) + 1


@pytest.mark.parametrize(
    ("size", "shape"),
    [
        (lambda s: torch.sym_min(s, 1), (1,)),
        (lambda s: torch.sym_max(s, 1), ("batch",)),
        (lambda s: torch.sym_min(2 * s, 200), ("2*batch",)),
        (lambda s: torch.sym_max(s, 70), (70,)),
        (lambda s: torch.sym_min(s, 5), ("min(batch, 5)",)),
        (lambda s: torch.sym_max(torch.sym_min(s, 1000), 0) + 1, ("batch + 1",)),
    ],
    ids=["min(s, 1)", "max(s, 1)", "min(2*s, 200)", "max(s, 70)", "min(s, 5)", "nested"],
)
def test_extremes_of_sizes_simplify_by_their_range(size: Callable[[Any], Any], shape: tuple[int | str, ...]) -> None:
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(Sized(size), (torch.randn(3, 2),), dynamic_shapes=({0: batch},), strict=False)
    exe = hetnn.compile(program)
    assert exe.outputs[0].shape == shape
    for rows in (2, 3, 64):
        assert exe(torch.randn(rows, 2)).shape == (size(rows),)


def test_a_size_may_be_nothing_where_its_author_says_so() -> None:
    batch = torch.export.Dim("batch", min=0, max=64)

    class Net(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.relu()

    exe = hetnn.compile(torch.export.export(Net(), (torch.randn(3, 2),), dynamic_shapes=({0: batch},), strict=False))
    assert exe(torch.randn(0, 2)).shape == (0, 2)
