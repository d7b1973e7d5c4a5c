"""`hetnn export`: what it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

import hetnn
from hetnn.cli import main
from models import nets


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tiny.pt2, a network with a PReLU."""
    module, inputs = nets.tiny()
    path = tmp_path_factory.mktemp("export") / "tiny.pt2"
    torch.export.save(torch.export.export(module, inputs, strict=False), path)
    return path


def call(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> tuple[int, Any]:
    """The exit code, and the one JSON document on stdout."""
    capsys.readouterr()
    status = main([*map(str, argv), "--json"])
    return status, json.loads(capsys.readouterr().out)


def operators(path: Path) -> set[str]:
    return {node.op_type for node in onnx.load(path).graph.node}


def test_a_model_as_it_is_and_for_a_device(capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path) -> None:
    plain, rewritten = tmp_path / "plain.onnx", tmp_path / "rewritten.onnx"
    assert call(capsys, "export", model, "-o", plain) == (0, {"output": str(plain), "bytes": plain.stat().st_size})
    assert "PRelu" in operators(plain)
    status, _ = call(capsys, "export", model, "--target", "cpu+relu-only", "--rewrite", "always", "-o", rewritten)
    assert status == 0
    assert "PRelu" not in operators(rewritten)


def test_a_subgraph_of_a_plan(capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path) -> None:
    out, options = tmp_path / "part.onnx", ["--target", "cpu+relu-only", "--strategy", "topological"]
    parts = hetnn.plan(model, "cpu+relu-only", strategy="topological")._plan.subgraphs()
    name, graph = next((part["name"], part["graph"]) for part in parts if part["device"] == "relu-only")
    assert call(capsys, "export", model, *options, "--subgraph", name, "-o", out)[0] == 0
    assert [port.name for port in onnx.load(out).graph.output] == graph.output_names
    status, answer = call(capsys, "export", model, *options, "--subgraph", "npu.9", "-o", out)
    assert status == 2
    assert f"no subgraph 'npu.9'; it has {parts[0]['name']}, " in answer["error"]["message"]
    status, answer = call(capsys, "export", model, "--subgraph", name, "-o", out)
    assert (status, answer["error"]["kind"]) == (2, "InvalidModel")
    assert "name the target that it is planned for" in answer["error"]["message"]
    status, answer = call(capsys, "export", model, "--rewrite", "always", "-o", out)
    assert (status, answer["error"]["kind"]) == (2, "InvalidModel")
    assert "'rewrite' is an option of a plan; name the target" in answer["error"]["message"]


def test_what_cannot_be_written(capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path) -> None:
    packed = tmp_path / "tiny.hetnn"
    hetnn.compile(model).save(packed)
    status, answer = call(capsys, "export", packed, "-o", tmp_path / "out.onnx")
    assert (status, answer["error"]["kind"]) == (2, "InvalidModel")
    assert "holds no graph. Compile the model with keep_graph=True" in answer["error"]["message"]
    status, answer = call(capsys, "export", model, "-o", tmp_path / "out.xyz")
    assert (status, answer["error"]["kind"]) == (3, "Unsupported")
    assert "Name a file that ends in .onnx or .tosa" in answer["error"]["message"]
    factors = "graph @g {stage = imported} (%x: f32[3,3]) -> (%q) {\n %q, %r = qr(%x) : f32[3,3], f32[3,3]\n}"
    with pytest.raises(hetnn.Unsupported, match=r"1 of 1 nodes have no form in ONNX.*\n.*has no factors of matrices"):
        hetnn.export(factors, tmp_path / "out.onnx")
