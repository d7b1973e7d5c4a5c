"""Values from inside a run: the executable's own, and those that the model is compiled once more for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import hetnn
from hetnn import _runtime
from hetnn.inside.values import values_of
from inside import nets

X = torch.linspace(-2, 2, 3 * 14 * 14).reshape(1, 3, 14, 14).sin()
NET = nets.residual()
PLACES = ["stem", "layer1.0.conv1", "layer1.0.bn1", "layer1.0.act", "layer1.0", "layer1.1.conv1", "layer1", "fc"]


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_values_go_by_the_modules_names(target: str) -> None:
    exe = hetnn.compile(NET, target, args=(X,))
    *outputs, values = exe.run([X], also=PLACES)
    torch.testing.assert_close(outputs, exe.run([X]), rtol=0, atol=0)
    assert list(values) == PLACES
    for name, value in values.items():
        torch.testing.assert_close(value, nets.hooked(NET, name, X), rtol=1e-5, atol=1e-5)


def test_values_go_by_nodes_and_values_too_and_numpy_gives_numpy() -> None:
    exe = hetnn.compile(NET, "cpu", args=(X,))
    _, values = exe.run([X.numpy()], also=["conv2d", "add_1"])
    assert all(type(value) is np.ndarray for value in values.values())
    np.testing.assert_allclose(values["add_1"], nets.hooked(NET, "layer1", X).numpy(), rtol=1e-5, atol=1e-5)


def test_what_has_a_buffer_is_the_executables_own() -> None:
    exe = hetnn.compile(NET, "cpu", args=(X,))
    _, found = values_of(exe, [X.numpy()], ["relu", "add", "conv2d_1"])
    assert {name: one.source for name, one in found.items()} == {"relu": "own", "add": "own", "conv2d_1": "apart"}


def test_a_folded_node_is_not_taken_for_what_was_folded_into_it() -> None:
    """`conv2d` of the program has the value of the batch norm behind it."""

    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.norm(self.conv(x))
            return y.relu().sum() + y.abs().sum()

    torch.manual_seed(1)
    net = Twice().eval()
    net.norm.running_mean.uniform_(-1, 1)
    exe = hetnn.compile(net, "cpu", args=(X,))
    assert "conv2d" in _runtime.exposable(exe._engine)
    _, found = values_of(exe, [X.numpy()], ["conv", "norm"])
    assert {name: one.source for name, one in found.items()} == {"conv": "apart", "norm": "own"}
    for name, one in found.items():
        np.testing.assert_allclose(one.array, nets.hooked(net, name, X).numpy(), rtol=1e-5, atol=1e-5)


def test_a_loaded_file_has_its_own_values_and_says_which_it_lacks(tmp_path: Path) -> None:
    exe = hetnn.compile(NET, "cpu", args=(X,))
    exe.save(tmp_path / "net.hetnn")
    loaded = hetnn.load(tmp_path / "net.hetnn")
    _, values = loaded.run([X], also=["add_1"])
    torch.testing.assert_close(values["add_1"], nets.hooked(NET, "layer1", X), rtol=1e-5, atol=1e-5)
    with pytest.raises(hetnn.Unsupported, match=r"no buffer for the value of 'layer1\.0\.conv1'.* in this process"):
        loaded.run([X], also=["layer1.0.conv1"])


def test_names_that_are_none_are_told_with_what_is_like_them() -> None:
    exe = hetnn.compile(NET, "cpu", args=(X,))
    with pytest.raises(hetnn.InvalidModel, match=r"no node, value or module 'layer1\.0\.conv'.*layer1\.0\.conv1"):
        exe.run([X], also=["layer1.0.conv"])
    with pytest.raises(hetnn.InvalidModel, match=r"also must be a list of names; got the text 'stem'"):
        exe.run([X], also="stem")
    with pytest.raises(hetnn.InvalidModel, match=r"also goes with neither out nor session"):
        exe.run([X], [torch.zeros(1, 5)], also=["stem"])


@pytest.mark.parametrize("fusion", [True, False])
def test_values_of_open_sizes(fusion: bool) -> None:
    graph = """graph @g {stage = imported, symbols = [n: 1..9 = 4]} (%x: f32[n,3]) -> (%y) {
      %a = mul(%x, %x) : f32[n,3]
      %y = exp(%a) : f32[n,3]
    }
    """
    x = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
    _, values = hetnn.compile(graph, "cpu", fusion=fusion).run([x], also=["a"])
    np.testing.assert_allclose(values["a"], x * x)


def test_integers_are_the_numbers_that_they_stand_for() -> None:
    graph = """graph @g {stage = imported} (%x: f32[1,8]) -> (%y) {
      %q = quantize(%x) {q_scale = [0.5], q_zero = -4} : i8{0.5:-4}[1,8]
      %r = relu(%q) {q_scale = [0.5], q_zero = -4} : i8{0.5:-4}[1,8]
      %y = dequantize(%r) : f32[1,8]
    }
    """
    x = np.linspace(-3, 3, 8, dtype=np.float32)[None]
    _, values = hetnn.compile(graph, "cpu").run([x], also=["q", "r"])
    np.testing.assert_array_equal(values["q"], np.rint(x / 0.5) * 0.5)
    np.testing.assert_array_equal(values["r"], np.maximum(values["q"], 0))


class Counter(torch.nn.Module):
    """Adds the number of the calls before to what a layer gives."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.calls: torch.Tensor
        self.register_buffer("calls", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x).relu() + self.calls
        self.calls.add_(1)
        return y.tanh() * 2


def test_values_of_a_model_with_states_are_those_of_this_run() -> None:
    net, x = Counter().eval(), torch.ones(2, 4)
    exe = hetnn.compile(net, args=(x,))
    inner = net.layer(x).relu()
    for calls in range(3):
        out, values = exe.run([x], also=["add", "relu"])
        torch.testing.assert_close(values["relu"], inner)
        torch.testing.assert_close(values["add"], inner + calls)
        torch.testing.assert_close(out, (inner + calls).tanh() * 2)
    kept = exe.state_dict()
    assert exe.compare(None, (x,)).first is None
    np.testing.assert_equal(exe.state_dict(), kept)


def test_a_value_within_a_loop_is_told_to_be_one() -> None:
    class Loop(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            def more(k: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
                return k < 3

            def body(k: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
                return k + 1, torch.sigmoid(x) * 2

            return torch.while_loop(more, body, (torch.tensor(0), x))[1]

    exe = hetnn.compile(Loop(), args=(torch.zeros(2, 3),))
    with pytest.raises(
        hetnn.Unsupported, match=r"'while_loop\.sigmoid' is within what '.*' repeats, and has a value in each round"
    ):
        exe.run([torch.zeros(2, 3)], also=["while_loop.sigmoid"])
