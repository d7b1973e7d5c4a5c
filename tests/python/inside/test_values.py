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


class Loop(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def more(k: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return k < 3

        def body(k: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return k + 1, torch.sigmoid(x) * 2

        return torch.while_loop(more, body, (torch.tensor(0), x))[1]


class Branches(torch.nn.Module):
    """Layers are heavy, so that the branch that is not taken is not computed."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def positive(x: torch.Tensor) -> torch.Tensor:
            return self.left(x).sigmoid() * 2

        def negative(x: torch.Tensor) -> torch.Tensor:
            return self.right(x).tanh() - 1

        return torch.cond(x.sum() > 0, positive, negative, (x,)) + 1


@pytest.mark.parametrize("is_open", [False, True])
def test_a_value_within_a_loop_has_all_its_rounds(is_open: bool) -> None:
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    sizes = ({0: torch.export.Dim("n", min=1, max=9)},) if is_open else None
    exe = hetnn.compile(Loop(), args=(x,), dynamic_shapes=sizes)
    expected, now = [], x
    for _ in range(3):
        expected.append(now.sigmoid())
        now = expected[-1] * 2
    y, values = exe.run([x], also=["while_loop.sigmoid", "while_loop.mul"])
    torch.testing.assert_close(values["while_loop.sigmoid"], torch.stack(expected))
    torch.testing.assert_close(values["while_loop.mul"], torch.stack(expected) * 2)
    torch.testing.assert_close(y, now)


def test_values_of_several_loops_may_be_asked_for_in_any_order() -> None:
    class Two(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.loop = Loop()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.loop(self.loop(x))

    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    exe = hetnn.compile(Two(), args=(x,))
    names = [name for name, _, _ in exe._source.repeated if name.split(".")[-1] in ("sigmoid", "mul")]  # type: ignore[union-attr]
    assert len(names) == 4
    asked = [names[0], names[2], names[1], names[3], names[0]]
    y, values = exe.run([x], also=asked)
    torch.testing.assert_close(values[names[2]][0], values[names[1]][2].sigmoid())
    torch.testing.assert_close(values[names[3]][2], y)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_value_of_a_branch_is_there_where_it_is_taken(sign: int) -> None:
    x, net = torch.full((2, 3), 0.5 * sign), Branches().eval()
    exe = hetnn.compile(net, args=(x,))
    names = {name.rsplit(".", 1)[1]: name for name, _, _ in exe._source.repeated}  # type: ignore[union-attr]
    y, values = exe.run([x], also=[names["sigmoid"], names["tanh"]])
    expected = {"sigmoid": net.left(x).sigmoid(), "tanh": net.right(x).tanh()}
    taken, other = ("sigmoid", "tanh") if sign > 0 else ("tanh", "sigmoid")
    torch.testing.assert_close(values[names[taken]], expected[taken][None])
    assert values[names[other]].shape == (0, 2, 3)
    torch.testing.assert_close(y, net(x))


class Triangle(torch.nn.Module):
    """Round k of the outer loop has k rounds of the inner, of which odd ones take another branch."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.left, self.right = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        zero = torch.zeros((), dtype=torch.int64)

        def body(k: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            def inner(j: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
                z = torch.cond(j % 2 > 0, lambda y: self.left(y).sigmoid(), lambda y: self.right(y).tanh(), (y,))
                return j + 1, z * 2

            y = torch.while_loop(lambda j, y: j < k, inner, (zero, x))[1]
            return k + 1, y.cos()

        return torch.while_loop(lambda k, x: k < 5, body, (torch.tensor(0), x))[1]


@pytest.mark.parametrize("is_open", [False, True])
def test_values_of_loops_within_loops_are_in_the_order_of_their_rounds(is_open: bool) -> None:
    """Of any depth, and however often each round has rounds of its own."""
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    sizes = ({0: torch.export.Dim("n", min=1, max=9)},) if is_open else None
    net = Triangle().eval()
    exe = hetnn.compile(net, args=(x,), dynamic_shapes=sizes)
    expected: dict[str, list[torch.Tensor]] = {"tanh": [], "sigmoid": [], "mul": [], "cos": []}
    now = x
    for k in range(5):
        for j in range(k):
            name, layer = ("sigmoid", net.left) if j % 2 else ("tanh", net.right)
            expected[name].append(getattr(layer(now), name)())
            now = expected[name][-1] * 2
            expected["mul"].append(now)
        expected["cos"].append(now.cos())
        now = expected["cos"][-1]
    assert exe._source is not None
    names = {name.rsplit(".", 1)[1]: name for name, _, _ in exe._source.repeated}
    asked = [names[op] for op in ("cos", "sigmoid", "mul", "tanh")]
    assert sorted(name.count(".") for name in asked) == [1, 2, 3, 3]
    y, values = exe.run([x], also=asked)
    for op, rounds in expected.items():
        torch.testing.assert_close(values[names[op]], torch.stack(rounds))
    torch.testing.assert_close(y, now)
    assert exe.run([x], also=asked[3:])[-1].keys() == {asked[3]}
    found = exe.compare(None, (x,))
    assert found.first is None
    assert set(asked) <= {row["node"] for row in found.rows}


@pytest.mark.parametrize("net", [Loop(), Branches().eval()])
def test_a_comparison_looks_into_bodies(net: torch.nn.Module) -> None:
    x = torch.linspace(-1, 2, 6).reshape(2, 3)
    exe = hetnn.compile(net, args=(x,))
    found = exe.compare(None, (x,))
    assert found.first is None
    assert any(row["op"] == "sigmoid" for row in found.rows), str(found)


def test_a_loaded_file_has_no_values_of_bodies(tmp_path: Path) -> None:
    hetnn.compile(Loop(), args=(torch.zeros(2, 3),)).save(tmp_path / "loop.hetnn")
    exe = hetnn.load(tmp_path / "loop.hetnn")
    with pytest.raises(hetnn.Unsupported, match=r"'while_loop\.sigmoid' is within what '.*' repeats, and a file"):
        exe.run([torch.zeros(2, 3)], also=["while_loop.sigmoid"])
