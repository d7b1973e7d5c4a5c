"""Modules and functions that come with what they are called with are exported by hetnn, in evaluation mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hetnn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.drop = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5)

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        return self.drop(self.norm(self.conv(x))) * scale


X = torch.randn(2, 3, 6, 6)


def test_a_module_is_exported_in_evaluation_mode_and_keeps_its_own() -> None:
    net = Net().train()
    net.norm.eval()
    exe = hetnn.compile(net, "cpu+relu-only", args=(X,))
    assert (net.training, net.conv.training, net.norm.training, net.drop.training) == (True, True, False, True)
    torch.testing.assert_close(exe(X), net.eval()(X), rtol=1e-4, atol=1e-5)


def test_arguments_go_by_keyword_and_sizes_may_be_dynamic() -> None:
    net = Net().eval()
    exe = hetnn.compile(net, kwargs={"x": X}, dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    assert exe.inputs[0].shape == ("batch", 3, 6, 6)
    for count in (1, 5):
        x = torch.randn(count, 3, 6, 6)
        torch.testing.assert_close(exe(x=x), net(x), rtol=1e-4, atol=1e-5)


def test_a_function_of_tensors_is_a_model() -> None:
    exe = hetnn.compile(lambda a, b: {"sum": a + b}, args=[torch.ones(3), torch.ones(3)])
    assert [port.name for port in exe.inputs] == ["a", "b"]
    np.testing.assert_array_equal(exe(np.ones(3, "f4"), np.ones(3, "f4"))["sum"], 2 * np.ones(3, "f4"))


@pytest.mark.parametrize("function", [torch.cos, torch.nn.functional.relu, torch.Tensor.exp])
def test_a_function_of_torch_is_a_model(function: Callable[[Tensor], Tensor]) -> None:
    torch.testing.assert_close(hetnn.compile(function, args=(X,))(X), function(X), rtol=1e-5, atol=1e-6)


def test_what_torch_compile_wraps_is_unwrapped() -> None:
    net = Net().eval()
    torch.testing.assert_close(hetnn.compile(torch.compile(net), args=(X,))(X), net(X), rtol=1e-4, atol=1e-5)


def test_plan_and_check_export_too() -> None:
    net = Net().eval()
    assert hetnn.plan(net, "cpu+relu-only", args=(X,)).report(format="dict")["nodes"] > 0
    assert hetnn.check(net, "cpu+relu-only", args=(X,)) == hetnn.check(torch.export.export(net, (X,)), "cpu+relu-only")


def branching(x: Tensor) -> Tensor:
    return x if x.sum() > 0 else -x


@pytest.mark.parametrize(
    ("model", "call", "message"),
    [
        (Net(), {}, "got the torch module Net without what it is called with: give that too, args=(example_input,)"),
        (Net(), {"args": X}, "args must be a tuple of the model's arguments; got Tensor. Write args=(x,)."),
        (Net(), {"kwargs": [X]}, "kwargs must be a dict of the model's arguments by name; got list."),
        (Net(), {"dynamic_shapes": {}}, "dynamic_shapes are those of example arguments; give them too: args=(x,)."),
        (Net(), {"args": (X, X, X)}, "torch.export cannot export Net: "),
        (branching, {"args": (X,)}, "torch.export cannot export branching: "),
        (3, {"args": (X,)}, "args, kwargs and dynamic_shapes are for a torch module or a function; got int."),
    ],
)
def test_calls_that_make_no_sense_are_refused(model: Any, call: dict[str, Any], message: str) -> None:
    with pytest.raises(hetnn.InvalidModel) as refused:
        hetnn.compile(model, **call)
    assert message in str(refused.value)


def test_a_program_that_is_exported_already_goes_in_alone() -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"got ExportedProgram\. What is exported already goes in alone"):
        hetnn.compile(torch.export.export(nn.ReLU(), (X,)), args=(X,))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_model_of_torch_jit_is_told_what_it_was_made_from() -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"torch\.jit has no Python to export; give the module"):
        hetnn.compile(torch.jit.trace(nn.ReLU(), X), args=(X,))
