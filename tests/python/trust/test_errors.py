"""Mistakes of a newcomer: each is told by a typed error that says what it was, with exit code 2, and never a bug."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hetnn
from hetnn.cli import main

RELU = "graph @g {stage = imported} (%a: f32[4]) -> (%y) {\n  %y = relu(%a) : f32[4]\n}\n"
X = torch.randn(2, 4, 8, 8)


def exported(module: nn.Module, *inputs: Tensor) -> torch.export.ExportedProgram:
    return torch.export.export(module, inputs or (X,), strict=False)


class Autocast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(4, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            y: Tensor = self.layer(x)
            return y.float()


class SparseWeight(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.eye(8).to_sparse())

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.to_dense()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: exported(nn.Sequential(nn.Conv2d(4, 4, 3), nn.Dropout(0.5))), "call model.eval() before"),
        (lambda: exported(nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4))), "call model.eval() before"),
        (lambda: exported(nn.Conv2d(4, 4, 3, device="meta").eval(), X.to("meta")), "on the meta device"),
        (lambda: exported(SparseWeight().eval()), "sparse"),
    ],
    ids=["dropout", "batch norm", "meta", "sparse weight"],
)
def test_models_that_were_exported_wrong(make: Callable[[], Any], message: str) -> None:
    try:
        program = make()
    except Exception as error:  # what torch itself refuses cannot reach hetnn
        pytest.skip(f"torch does not export it: {type(error).__name__}")
    with pytest.raises((hetnn.InvalidModel, hetnn.Unsupported), match=re.escape(message)):
        hetnn.compile(program)


def test_a_region_of_autocast_computes_in_its_type() -> None:
    module = Autocast().eval()
    try:
        exe = hetnn.compile(exported(module))
    except hetnn.Unsupported as error:
        assert "bf16" in str(error)  # noqa: PT017
        return
    with torch.no_grad():
        want = module(X)
    torch.testing.assert_close(exe(X), want, rtol=1e-2, atol=1e-2)


def test_a_function_of_a_layer_without_a_line_of_the_users_own_names_its_module() -> None:
    program = exported(nn.Sequential(nn.Conv2d(4, 4, 3), nn.Sequential(nn.ELU(), nn.Mish())).eval())
    for node in program.graph.nodes:
        node.meta["stack_trace"] = None
    rows = hetnn.check(program, "cpu+relu-only")
    assert {row["loc"] for row in rows} <= {"0", "1.0", "1.1"}
    assert rows


INPUTS: dict[str, tuple[Callable[[], Any], str]] = {
    "sparse": (
        lambda: torch.ones(4).to_sparse(),
        "input 'a' is a sparse tensor; hetnn takes dense ones. Call .to_dense()",
    ),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(2)]), "is a nested tensor"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8), "is a quantized tensor"),
    "meta": (lambda: torch.ones(4, device="meta"), "lies on the device 'meta'"),
    "a list": (lambda: [1.0, 2.0, 3.0, 4.0], "must be a tensor or an array; got list"),
    "None": (lambda: None, "must be a tensor or an array; got NoneType"),
    "objects": (lambda: np.array([1, 2, 3, None]), "arrays of object are not supported"),
    "complex": (lambda: np.ones(4, np.complex64), "arrays of complex64 are not supported"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", INPUTS)
def test_inputs_that_are_no_plain_arrays(name: str) -> None:
    make, message = INPUTS[name]
    with pytest.raises(hetnn.InvalidModel, match=re.escape(message)):
        hetnn.compile(RELU)(make())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": "2"}, 'threads must be an integer in [0, 4096]; found "2"'),
        ({"memory_budget": 5}, "memory_budget must be an object; found 5"),
        ({"pin": "conv1"}, 'found "conv1"'),
        ({"pin": {"conv1": "cpu"}}, "pin 'conv1' matches no node"),
    ],
)
def test_options_of_another_kind(options: dict[str, Any], message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=re.escape(message)):
        hetnn.compile(RELU, **options)


def archive(*names: str) -> bytes:
    path = Path(os.environ["PYTEST_TMP"]) / "made.zip"
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, b"?")
    return path.read_bytes()


FILES: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "hetnn": ("m.hetnn", lambda: b"\x00" * 100, "is compiled already"),
    "pt": ("m.pt", lambda: archive("m/data.pkl", "m/version"), "is a checkpoint of torch.save"),
    "old pt": ("m.pt", lambda: b"\x80\x02}q\x00.", "is a pickle, as torch.save wrote it"),
    "TorchScript": ("m.pt", lambda: archive("m/data.pkl", "m/code/x.py"), "is TorchScript"),
    "damaged tflite": ("m.tflite", lambda: b"\x1c\x00\x00\x00TFL3" + bytes(40), "m.tflite"),
    "no tflite": ("m.tflite", lambda: b"nothing of the kind", "no TFLite model"),
    "safetensors": ("m.safetensors", lambda: b"\x02" + bytes(7) + b"{}", "is a safetensors file"),
    "damaged pt2": ("m.pt2", lambda: b"PK\x03\x04 and nothing else", "could not read"),
    "pt2 of nothing": ("m.pt2", lambda: archive("m/models/model.json", "m/version"), "could not read"),
    "empty": ("m.onnx", lambda: b"", "is empty"),
    "damaged onnx": ("m.onnx", lambda: b"\x08\x07 nothing", "m.onnx"),
    "text": ("m.txt", lambda: b"hello", "which is no model"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_no_models(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTEST_TMP", str(tmp_path))
    file, content, message = FILES[name]
    path = tmp_path / file
    path.write_bytes(content())
    for spelled in (path, str(path)):
        with pytest.raises(hetnn.InvalidModel, match=re.escape(message)):
            hetnn.compile(spelled)
    status = main(["compile", str(path), "-o", str(tmp_path / "out.hetnn")])
    err = capsys.readouterr().err
    assert status == 2
    assert message in err
    assert "bug in hetnn" not in err


@pytest.mark.parametrize("path", ["", ".", "absent.onnx", "a\0b"])
def test_paths_that_name_no_file(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"empty|Is a directory|there is no file"):
        hetnn.compile(path)
    if "\0" not in path:  # no argument of a command can hold one
        assert main(["compile", path, "-o", "out.hetnn"]) == 2
        assert "bug in hetnn" not in capsys.readouterr().err


def test_a_model_of_torch_where_torch_is_absent(tmp_path: Path) -> None:
    torch.export.save(exported(nn.ReLU()), tmp_path / "m.pt2")
    code = f"import sys; sys.modules['torch'] = None; import hetnn; hetnn.compile({str(tmp_path / 'm.pt2')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Unsupported: reading" in done.stderr
    assert "Install hetnn[torch]" in done.stderr


@pytest.mark.parametrize(
    ("file", "write", "message"),
    [
        ("x.npy", lambda path: np.save(path, np.array([{}])), "is no .npy file"),
        ("x.npz", lambda path: path.write_bytes(b"hello"), "is no .npz file"),
        ("x.npz", lambda path: np.savez(path, b=np.ones(3)), "must"),
        ("x.npz", lambda path: np.savez(path, a=np.array([{}])), "is no .npz file"),
    ],
    ids=["npy", "text", "shape", "objects"],
)
def test_inputs_in_files_that_are_none(
    file: str, write: Callable[[Path], Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.ir").write_text(RELU)
    write(tmp_path / file)
    status = main(["run", str(tmp_path / "m.ir"), "--inputs", str(tmp_path / file), "--json"])
    error = json.loads(capsys.readouterr().out)["error"]
    assert (status, error["kind"]) == (2, "InvalidModel")
    assert message in error["message"]
