"""Wrong models, inputs, targets and files: a typed error that names what was found and what was expected."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hetnn
from models import nets


@pytest.fixture(scope="module")
def exported() -> torch.export.ExportedProgram:
    module, inputs = nets.tiny()
    return torch.export.export(module, inputs, strict=False)


@pytest.fixture(scope="module")
def executable(exported: torch.export.ExportedProgram) -> hetnn.Executable:
    return hetnn.compile(exported, "cpu+relu-only")


@pytest.fixture(scope="module")
def image(executable: hetnn.Executable, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("image") / "net.hetnn"
    executable.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("model", [nn.ReLU(), 3, None, ["graph"]], ids=["module", "int", "none", "list"])
def test_a_model_that_is_none(model: Any) -> None:
    with pytest.raises(hetnn.InvalidModel, match=type(model).__name__):
        hetnn.compile(model)


def test_text_that_is_no_graph() -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"nonsense|graph"):
        hetnn.compile("graph nonsense")


class Exotic(nn.Module):
    """Two operators that hetnn lacks."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvals(x).real + torch.histogramdd(x, [2, 2, 2]).hist.sum()


def test_every_unsupported_operator_is_named_at_once_with_its_line() -> None:
    exported = torch.export.export(Exotic(), (torch.randn(3, 3),), strict=False)
    with pytest.raises(hetnn.Unsupported) as raised:
        hetnn.compile(exported)
    text = str(raised.value)
    assert "linalg_eig" in text
    assert "histogramdd" in text
    assert "test_bad_input.py" in text


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda run: run(), ["1", "0"]),
        (lambda run: run(*[np.zeros((1, 3, 17, 21), np.float32)] * 2), ["1", "2"]),
        (lambda run: run(np.zeros((1, 3, 17, 22), np.float32)), ["21", "22"]),
        (lambda run: run(np.zeros((3, 17, 21), np.float32)), ["[1,3,17,21]", "[3,17,21]"]),
        (lambda run: run(np.zeros((1, 3, 17, 21), np.float64)), ["f32", "f64"]),
        (lambda run: run(torch.zeros(1, 3, 17, 21, dtype=torch.float16)), ["f32", "f16"]),
        (lambda run: run("a picture"), ["str"]),
        (lambda run: run(picture=np.zeros((1, 3, 17, 21), np.float32)), ["picture"]),
        (lambda run: run(torch.zeros(1, 3, 17, 21, device="meta")), ["meta"]),
    ],
    ids=["none", "too many", "size", "rank", "f64", "f16", "type", "name", "device"],
)
def test_wrong_inputs(executable: hetnn.Executable, call: Callable[[Any], Any], parts: list[str]) -> None:
    with pytest.raises(hetnn.InvalidModel) as raised:
        call(executable)
    text = str(raised.value).replace(", ", ",")
    assert [part for part in parts if part not in text] == [], text


def test_an_unknown_target_names_those_there_are(exported: torch.export.ExportedProgram) -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"relu-onyl.*relu-only"):
        hetnn.compile(exported, "cpu+relu-onyl")


def relu_only_spec() -> dict[str, Any]:
    text = (Path(hetnn.__file__).parent / "targets" / "relu-only.json").read_text()
    spec: dict[str, Any] = json.loads(text)
    return spec


def test_a_data_sheet_with_an_unknown_key(exported: torch.export.ExportedProgram, tmp_path: Path) -> None:
    path = tmp_path / "npu.json"
    path.write_text(json.dumps({**relu_only_spec(), "clock_mhz": 500}))
    with pytest.raises(hetnn.InvalidModel, match="clock_mhz"):
        hetnn.compile(exported, f"cpu+{path}")


def test_a_data_sheet_that_is_no_json(exported: torch.export.ExportedProgram, tmp_path: Path) -> None:
    path = tmp_path / "npu.json"
    path.write_text("{'name': 1}")
    with pytest.raises(hetnn.InvalidModel, match=r"npu\.json"):
        hetnn.compile(exported, str(path))


def test_an_unknown_strategy_names_those_there_are(exported: torch.export.ExportedProgram) -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"greedy.*topological"):
        hetnn.compile(exported, "cpu+relu-only", strategy="greedy")


def load_altered(image: bytes, path: Path) -> None:
    path.write_bytes(image)
    hetnn.load(path)


@pytest.mark.parametrize("keep", [0, 1, 7, 8, 9, 100, 0.5, -1], ids=str)
def test_a_truncated_file(image: bytes, tmp_path: Path, keep: float) -> None:
    size = int(len(image) * keep) if isinstance(keep, float) else keep
    with pytest.raises(hetnn.InvalidModel, match=r"net\.hetnn"):
        load_altered(image[:size], tmp_path / "net.hetnn")


@pytest.mark.parametrize("where", [0, 0.05, 0.25, 0.5, 0.75, 0.999])
def test_an_altered_byte(image: bytes, tmp_path: Path, where: float) -> None:
    at = int(len(image) * where)
    altered = image[:at] + bytes([image[at] ^ 0x20]) + image[at + 1 :]
    with pytest.raises(hetnn.InvalidModel, match=r"net\.hetnn"):
        load_altered(altered, tmp_path / "net.hetnn")


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04 a zip archive of some kind",
        b"\x80\x04\x95 a pickle",
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 1 << 62) + b"{",
        struct.pack("<Q", 40) + b'{"__metadata__": {"format": "pt", "a": ""}}',
        bytes(1000),
    ],
    ids=["zip", "pickle", "empty", "huge", "safetensors", "zeros"],
)
def test_a_file_that_is_no_executable(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"net\.hetnn"):
        load_altered(content, tmp_path / "net.hetnn")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"absent\.hetnn.*No such file"):
        hetnn.load(tmp_path / "absent.hetnn")


def test_saving_where_it_cannot_be_leaves_nothing(executable: hetnn.Executable, tmp_path: Path) -> None:
    with pytest.raises(hetnn.Error, match="No such file or directory"):
        executable.save(tmp_path / "absent" / "net.hetnn")
    assert list(tmp_path.iterdir()) == []
