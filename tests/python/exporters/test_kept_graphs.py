"""Executables that keep their graph: it is exported from them as from the model, and costs nothing unasked."""

from __future__ import annotations

import base64
import json
import pickle
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import hetnn
from exporters.exported import assert_equal, by_runtime
from hetnn import _core, _runtime
from hetnn.cli import main
from importers.test_onnx_quantized import Network, integers_only
from models import nets
from mtcnn import networks

# A layer whose weights are not packed, a size that stays open, and a state.
KEEPS = """graph @net {stage = imported, symbols = [n: 1..64 = 4]} (%x: f32[n,20], %sum: f32[20]) -> (%y, %next) {
  %w = constant() {value = f32[20] {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}} : f32[20]
  %a = add(%x, %w) : f32[n,20]
  %y = mul(%a, %sum) : f32[n,20]
  %z = sum(%x) {axes = [0]} : f32[20]
  %next = add(%z, %sum) : f32[20]
}
"""


def written(tmp_path: Path, model: Any, **told: Any) -> bytes:
    path = tmp_path / "written.onnx"
    hetnn.export(model, path, **told)
    return path.read_bytes()


def kept(executable: hetnn.Executable) -> _core.Graph:
    graph = _core.kept_graph(executable._engine)
    assert graph is not None
    return graph


def named(executable: hetnn.Executable, device: str) -> str:
    """The name of a device's first subgraph."""
    rows = json.loads(_runtime.take_apart(executable._engine.image())["program"])["subprograms"]
    return next(str(row["name"]) for row in rows if row["device"] == device)


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_it_is_the_planned_graph_wherever_the_executable_goes(tmp_path: Path, target: str) -> None:
    module, inputs = nets.tiny()
    exported = torch.export.export(module, inputs, strict=False)
    plain = hetnn.compile(exported, target)
    executable = hetnn.compile(exported, target, keep_graph=True)
    wanted = written(tmp_path, exported, target=target)
    file, again = tmp_path / "net.hetnn", tmp_path / "again.hetnn"
    executable.save(file)
    loaded = hetnn.load(file)
    loaded.save(again)
    assert again.read_bytes() == file.read_bytes()
    store = hetnn.Store(tmp_path / "store")
    store.add("net", executable)
    everywhere = [executable, file, str(again), loaded, pickle.loads(pickle.dumps(executable)), store.load("net")]
    assert {written(tmp_path, each) for each in everywhere} == {wanted}
    loaded.export(tmp_path / "by_method.onnx")
    assert (tmp_path / "by_method.onnx").read_bytes() == wanted
    with torch.no_grad():
        expected = [module(*inputs).numpy()]
    assert_equal(by_runtime(onnx.load_from_string(wanted), [x.numpy() for x in inputs]), expected, 1e-5, "exported")
    assert_equal([loaded(*inputs).numpy()], [plain(*inputs).numpy()], 0, "with a graph")


def test_subgraphs_have_the_names_of_the_report(tmp_path: Path) -> None:
    module, inputs = nets.tiny()
    exported = torch.export.export(module, inputs, strict=False)
    options: dict[str, Any] = {"target": "cpu+relu-only", "strategy": "topological"}
    executable = hetnn.compile(exported, keep_graph=True, **options)
    names = [f"{row['device']}.{k}" for k, row in enumerate(executable.report("dict")["subgraphs"])]
    assert len(names) > 1
    for name in names:
        assert written(tmp_path, executable, subgraph=name) == written(tmp_path, exported, subgraph=name, **options)
    with pytest.raises(hetnn.InvalidModel, match=rf"no subgraph 'npu.7'; it has {names[0]}, "):
        executable.export(tmp_path / "out.onnx", subgraph="npu.7")


def test_what_rules_rewrote_is_in_it(tmp_path: Path) -> None:
    exported = networks.export_networks()["P-Net"]
    executable = hetnn.compile(exported, "cpu+relu-only", rewrite="always", keep_graph=True)
    model = onnx.load_from_string(written(tmp_path, executable))
    assert all(node.op_type != "PRelu" for node in model.graph.node)
    x = np.random.default_rng(0).standard_normal((1, 3, 48, 37)).astype(np.float32)
    assert_equal(by_runtime(model, [x]), executable.run([x]), 1e-5, "open sizes")


def test_integers_as_tosa(tmp_path: Path) -> None:
    model, options = Network(signed=True, shared_bias=False).model, {"target": integers_only(), "fix": {"n": 2}}
    executable = hetnn.compile(model, keep_graph=True, **options)
    file, wanted, got = tmp_path / "net.hetnn", tmp_path / "wanted.tosa", tmp_path / "got.tosa"
    executable.save(file)
    name = named(executable, "npu")
    hetnn.export(model, wanted, subgraph=name, **options)
    hetnn.export(file, got, subgraph=name)
    assert got.read_bytes() == wanted.read_bytes()


def test_states_are_as_runs_left_them(tmp_path: Path) -> None:
    executable = hetnn.compile(KEEPS, states={"sum": "next"}, keep_graph=True)
    executable.run([np.ones((3, 20), np.float32)])
    file = tmp_path / "net.hetnn"
    executable.save(file)
    loaded = hetnn.load(file)
    loaded.run([np.ones((2, 20), np.float32)])
    for each, sums in ((executable, 3), (loaded, 5)):
        assert f'from f32[20] "{_base64(np.full(20, sums, np.float32))}"' in kept(each).print()
        assert kept(each).symbols == [("n", 1, 64, 4)]


def _base64(array: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(array.tobytes()).decode()


def test_a_file_grows_only_when_asked_and_holds_equal_bytes_once(tmp_path: Path) -> None:
    """What a kernel packs is kept as it was written, too; what it reads as it is stands there once."""
    weight = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    bytes_of = {}
    for operator in ("add", "matmul"):
        builder = _core.GraphBuilder("g")
        x = builder.add_input("x", "f32", [300, 300])
        builder.output(*builder.create(operator, [x, builder.constant(weight)]))
        graph = builder.finish()
        for keeps in (False, True):
            pieces = _runtime.take_apart(hetnn.compile(graph, keep_graph=keeps)._engine.image())
            assert (pieces["graph"] is None) is not keeps
            bytes_of[operator, keeps] = len(pieces["weights"])
    assert bytes_of["add", True] == bytes_of["add", False]
    assert bytes_of["matmul", True] == bytes_of["matmul", False] + weight.nbytes


def test_old_readers_read_files_without_a_graph() -> None:
    def format_of(image: bytes) -> str:
        (length,) = struct.unpack("<Q", image[:8])
        return str(json.loads(image[8 : 8 + length])["__metadata__"]["format"])

    images = [hetnn.compile(KEEPS, keep_graph=keeps)._engine.image() for keeps in (False, True)]
    assert list(map(format_of, images)) == ["hetnn/4", "hetnn/5"]
    odd = images[1].replace(b'"hetnn/5"', b'"hetnn/4"')
    with pytest.raises(hetnn.InvalidModel, match="altered or damaged"):
        hetnn.Executable.from_image(odd)


def test_altered_bytes_are_refused(tmp_path: Path) -> None:
    module, inputs = nets.tiny()
    executable = hetnn.compile(torch.export.export(module, inputs, strict=False), keep_graph=True)
    image, file = executable._engine.image(), tmp_path / "net.hetnn"
    pieces = _runtime.take_apart(image)
    place = re.search(r"at \d+\}", pieces["graph"])[0]  # type: ignore[index]
    for part in ("constant()", place):
        at = image.index(part.encode())
        file.write_bytes(image[:at] + bytes([image[at] ^ 1]) + image[at + 1 :])
        with pytest.raises(hetnn.InvalidModel, match="metadata_hash does not fit"):
            hetnn.export(file, tmp_path / "out.onnx")
    for old, new, told in (
        (place, place.replace("}", "1}"), "its graph has a constant of .* bytes at .*1, where none are"),
        (place, "at 64000000}", "bytes at 64000000, where none are"),
        ("conv2d(", "konv2d(", "konv2d"),
        ("graph @main", "grapple", "IR text, line 1"),
    ):
        assert old in pieces["graph"]
        file.write_bytes(_runtime.put_together(**{**pieces, "graph": pieces["graph"].replace(old, new, 1)}))
        with pytest.raises(hetnn.InvalidModel, match=told):
            hetnn.export(file, tmp_path / "out.onnx")
        assert main(["verify", str(file)]) == 2
    pieces = _runtime.take_apart(hetnn.compile(KEEPS, states={"sum": "next"}, keep_graph=True)._engine.image())
    file.write_bytes(
        _runtime.put_together(**{**pieces, "graph": pieces["graph"].replace('mutates "sum"', 'mutates "x"')})
    )
    with pytest.raises(hetnn.InvalidModel, match="its graph keeps 'x', which is no state"):
        hetnn.export(file, tmp_path / "out.onnx")


def test_what_is_compiled_has_its_plan(tmp_path: Path) -> None:
    executable = hetnn.compile(KEEPS, keep_graph=True)
    with pytest.raises(hetnn.InvalidModel, match="'target' is for models"):
        hetnn.export(executable, tmp_path / "out.onnx", target="cpu")
    with pytest.raises(hetnn.InvalidModel, match="'rewrite' is for models"):
        hetnn.export(executable, tmp_path / "out.onnx", rewrite="always")
    with pytest.raises(
        hetnn.InvalidModel, match=r"the executable holds no graph. Compile the model with keep_graph=True"
    ):
        hetnn.compile(KEEPS).export(tmp_path / "out.onnx")


def test_a_text_that_leaves_values_out_is_no_model_alone() -> None:
    text = _runtime.take_apart(hetnn.compile(KEEPS, states={"sum": "next"}, keep_graph=True)._engine.image())["graph"]
    assert "kept" in text
    with pytest.raises(hetnn.InvalidModel, match="the values stand elsewhere, in the file that this text was kept in"):
        _core.Graph.parse(text)


def test_devices_of_any_name(tmp_path: Path) -> None:
    target = {"devices": [{"kind": "cpu", "name": "host (big)"}, {"kind": "reference", "name": 'the "other"'}]}
    executable = hetnn.compile(KEEPS, target, keep_graph=True, pin={"y": 'the "other"'})
    graph = kept(executable)
    assert {row["device"] for row in graph.nodes()} == {"host (big)", 'the "other"'}
    name = named(executable, 'the "other"')
    executable.export(tmp_path / "part.onnx", subgraph=name)


def test_commands_unpack_pack_and_export(tmp_path: Path) -> None:
    model, file, again = tmp_path / "net.ir", tmp_path / "net.hetnn", tmp_path / "again.hetnn"
    model.write_text(KEEPS)
    assert main(["compile", str(model), "-o", str(file), "--keep-graph"]) == 0
    assert main(["unpack", str(file), str(tmp_path / "folder")]) == 0
    assert (tmp_path / "folder" / "graph.ir").read_text().startswith("graph @net {stage = cut")
    assert main(["pack", str(tmp_path / "folder"), "-o", str(again)]) == 0
    assert again.read_bytes() == file.read_bytes()
    assert main(["verify", str(again)]) == 0
    assert main(["export", str(again), "-o", str(tmp_path / "net.onnx")]) == 0
    onnx.checker.check_model(onnx.load(tmp_path / "net.onnx"), full_check=True)
