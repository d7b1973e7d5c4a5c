"""Names are the user's: those of inputs, of sizes, of modules."""

from __future__ import annotations

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
