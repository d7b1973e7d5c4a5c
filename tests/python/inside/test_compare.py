"""Executables against references: the first node beyond its bound, noise, NaN and overflow, and the smallest part."""

from __future__ import annotations

import copy
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hetnn
from hetnn.inside.compare import Comparison
from hetnn.inside.replay import read_part
from inside import nets

X = torch.linspace(-2, 2, 3 * 14 * 14).reshape(1, 3, 14, 14).sin()
NET = nets.residual()
TARGETS = ["cpu", "cpu+relu-only"]
# By module whose weights are wrong: its node.
WRONG = {
    "stem": "conv2d",
    "layer1.0.bn1": "batch_norm",
    "layer1.1.conv1": "conv2d_2",
    "layer1.1.act": "prelu_1",
    "fc": "linear",
}


def with_a_fault(place: str) -> torch.nn.Module:
    net = copy.deepcopy(NET)
    with torch.no_grad():
        net.get_submodule(place).weight[3] *= 1.5  # type: ignore[union-attr]
    return net


@pytest.fixture(scope="module", params=TARGETS)
def exe(request: pytest.FixtureRequest) -> hetnn.Executable:
    return hetnn.compile(NET, request.param, args=(X,))


def test_a_right_executable_has_no_first(exe: hetnn.Executable) -> None:
    for reference in (NET, torch.export.export(NET, (X,)), None, hetnn.compile(NET, "cpu", args=(X,))):
        found = exe.compare(reference, (X,))
        assert found.first is None
        assert len(found.rows) == 12
        assert all(row["noise_db"] > 100 for row in found.rows)
        assert "all within their bounds" in str(found)
        assert repr(found) == str(found)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("place", "node"), WRONG.items())
def test_the_first_node_that_is_wrong_is_found_wherever_it_runs(target: str, place: str, node: str) -> None:
    """Also within what was fused, folded or rewritten, and within an NPU's subgraph."""
    found = hetnn.compile(with_a_fault(place), target, args=(X,)).compare(NET, (X,))
    assert found.first is not None
    assert found.first.difference > found.first.bound == 1e-3
    assert found.first.node == node
    before = found.rows[: [row["node"] for row in found.rows].index(node)]
    assert all(row["noise_db"] > 100 for row in before)
    assert f"the first beyond its bound is '{node}'" in str(found)


def test_the_bound_is_the_callers_or_that_of_the_type(exe: hetnn.Executable) -> None:
    assert exe.compare(NET, (X,), bound=0.0).first is not None
    assert exe.compare(NET, (X,), bound=1e-3).first is None
    with pytest.raises(hetnn.InvalidModel, match=r"bound must be a number of at least 0; found -1"):
        exe.compare(NET, (X,), bound=-1)


def test_a_comparison_shows_itself(exe: hetnn.Executable) -> None:
    found = exe.compare(NET, (X,))
    page = found._repr_html_()
    assert page.count("<rect") == 12
    assert "<table" in page
    assert "<style" not in page
    assert found.to_csv().startswith("node,op,device,module,loc,subgraph,into,difference,noise_db")


def test_a_loaded_file_is_compared_by_what_it_has(tmp_path: Path) -> None:
    hetnn.compile(NET, "cpu", args=(X,)).save(tmp_path / "net.hetnn")
    found = hetnn.load(tmp_path / "net.hetnn").compare(NET, (X,))
    assert found.first is None
    assert {row["source"] for row in found.rows} == {"own"}
    assert f"({12 - len(found.rows)} of its have no counterpart)" in str(found)
    with pytest.raises(hetnn.InvalidModel, match=r"a loaded executable has no model to be compared with"):
        hetnn.load(tmp_path / "net.hetnn").compare(None, (X,))


def onnx_bytes(net: torch.nn.Module) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "net.onnx"
        hetnn.export(torch.export.export(net, (X,)), file)
        return file.read_bytes()


@pytest.mark.parametrize("by_onnxruntime", [True, False])
def test_onnx_models_are_compared_with_onnx_runtime_or_by_meaning(
    by_onnxruntime: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_onnxruntime:
        pytest.importorskip("onnxruntime")
    else:
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
    model, wrong = onnx_bytes(NET), onnx_bytes(with_a_fault("layer1.1.conv1"))
    found = hetnn.compile(model, "cpu+relu-only").compare(model, (X.numpy(),))
    assert found.first is None
    assert found.reference == ("ONNX Runtime" if by_onnxruntime else "the reference by its meaning")
    assert len(found.rows) >= 10
    first = hetnn.compile(wrong, "cpu+relu-only").compare(model, (X.numpy(),)).first
    assert first is not None
    assert first.row["op"] == "conv2d"


def test_onnx_tensors_go_by_their_names_where_nodes_are_called_otherwise() -> None:
    """As exporters of PyTorch write them: a node has a name, and what it gives another."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    rows = [
        ("Relu", "node_relu", "x", "relu"),
        ("Identity", "node_same", "relu", "same"),
        ("Exp", "node_exp", "same", "y"),
    ]
    nodes = [onnx.helper.make_node(op, [read], [given], name=name) for op, name, read, given in rows]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in ("x", "y")]
    opset = [onnx.helper.make_opsetid("", 20)]
    made = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=opset)
    made.ir_version = 10
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    exe = hetnn.compile(made)
    found = exe.compare(made, (x,))
    assert found.first is None
    assert found.reference == "ONNX Runtime"
    assert [row["node"] for row in found.rows] == ["node_relu", "node_same", "node_exp"]
    *_, values = exe.run([x], also=["relu", "same", "node_relu", "y"])
    for name in ("relu", "same", "node_relu"):
        np.testing.assert_array_equal(values[name], np.maximum(x, 0))


def text(body: str, dtype: str = "f32") -> str:
    return f"graph @g {{stage = imported}} (%x: {dtype}[4]) -> (%y) {{\n{body}\n}}\n"


def compared(ours: str, theirs: str, x: Any) -> Comparison:
    return hetnn.compile(ours, "cpu").compare(theirs, (x,))


def test_nan_and_infinities_are_found() -> None:
    x = np.array([1, 2, 3, 4], np.float32)
    sound = text("%a = mul(%x, %x) : f32[4]\n%y = relu(%a) : f32[4]")
    nan = text("%s = sub(%x, %x) : f32[4]\n%a = div(%s, %s) : f32[4]\n%y = relu(%a) : f32[4]")
    found = compared(nan, sound, x)
    assert found.first is not None
    assert (found.first.node, found.first.difference, found.first.row["nan"]) == ("a", np.inf, 4)
    assert "4 numbers are NaN" in str(found)
    inf = text("%s = sub(%x, %x) : f32[4]\n%a = div(%x, %s) : f32[4]\n%y = relu(%a) : f32[4]")
    first = compared(inf, sound, x).first
    assert first is not None
    assert (first.row["inf"], first.row["what"]) == (4, "4 numbers are infinite")
    shape = text("%a = reshape(%x) {shape = [2,2]} : f32[2,2]\n%y = relu(%a) : f32[2,2]")
    first = compared(shape, sound, x).first
    assert first is not None
    assert first.row["what"] == "of another shape: [2, 2] instead of [4]"


def test_executables_without_a_value_in_common_are_refused() -> None:
    other = text("%z = relu(%x) : f32[4]").replace("(%y)", "(%z)")
    with pytest.raises(hetnn.InvalidModel, match=r"the reference by its meaning has no value that is called as one of"):
        compared(text("%y = relu(%x) : f32[4]"), other, np.ones(4, np.float32))


@pytest.mark.parametrize("target", TARGETS)
def test_the_smallest_part_that_is_wrong_is_a_file_that_replays_it(target: str, tmp_path: Path) -> None:
    wrong = hetnn.compile(with_a_fault("layer1.1.conv1"), target, args=(X,))
    found = wrong.bisect(NET, (X,), tmp_path / "part.npz")
    assert found is not None
    assert found.nodes == ["conv2d_2"]
    assert "beyond the bound by itself, 1 node: conv2d_2" in str(found)
    again = hetnn.replay(tmp_path / "part.npz")
    assert again.first is not None
    assert again.first.node == "conv2d_2"
    assert again.first.row["device"] == ("cpu" if target == "cpu" else "relu-only")
    part = read_part(tmp_path / "part.npz")
    assert part.graph.count(" = conv2d(") == 1
    assert hetnn.compile(NET, target, args=(X,)).bisect(NET, (X,), tmp_path / "none.npz") is None
    assert not (tmp_path / "none.npz").exists()


def test_files_that_are_no_part_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros(3))
    (tmp_path / "y.npz").write_bytes(b"nothing")
    for name in ("x.npz", "y.npz"):
        with pytest.raises(hetnn.InvalidModel, match=r"is no file of exe\.bisect"):
            read_part(tmp_path / name)


class Pooled(torch.nn.Module):
    """Twice the first of a sequence: each `select` becomes a slice and a reshape."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(10, 6), torch.nn.Linear(6, 6)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden = self.embed(ids) * mask[:, :, None]
        return torch.tanh(self.head(hidden[:, 0])) + hidden[:, 1]


@pytest.mark.parametrize("is_open", [False, True])
def test_a_node_that_became_several_is_compared_by_its_result(is_open: bool) -> None:
    torch.manual_seed(0)
    net, x = Pooled().eval(), (torch.randint(0, 10, (2, 7)), torch.ones(2, 7))
    n = torch.export.Dim("n", min=2, max=64)
    exe = hetnn.compile(net, args=x, dynamic_shapes=({1: n}, {1: n}) if is_open else None)
    found = exe.compare(net, x)
    assert found.first is None, str(found)
    assert [row["op"] for row in found.rows if "select" in row["node"]] == ["reshape", "reshape"]
