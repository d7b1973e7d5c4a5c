"""`hetnn compile --quantize`: the same as hetnn.quantize, from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hetnn
from hetnn.cli import main
from quantize import trained


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """net.pt2, and samples.npz with what it sees."""
    folder = tmp_path_factory.mktemp("quantize")
    images = trained.digits(20, 1)[0]
    torch.manual_seed(0)
    module = trained.Classifier().eval()
    torch.export.save(torch.export.export(module, (torch.from_numpy(images[:1]),)), folder / "net.pt2")
    np.savez(folder / "samples.npz", x=images)
    return folder


def call(capsys: pytest.CaptureFixture[str], folder: Path, *more: str) -> tuple[int, Any]:
    capsys.readouterr()
    status = main(["compile", str(folder / "net.pt2"), "-o", str(folder / "net.hetnn"), "--json", *more])
    return status, json.loads(capsys.readouterr().out)


def test_quantizes_as_the_function_does(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    samples = str(folder / "samples.npz")
    words = ["--quantize", "int8", "--samples", samples, "--calibrator", "minmax", "--keep-float", "dense"]
    status, answer = call(capsys, folder, *words)
    assert status == 0
    want = hetnn.quantize(folder / "net.pt2", samples, "int8", "minmax", "cpu", keep_float=["dense"])
    assert answer["quantization"] == want.quantization.as_dict()
    image = trained.digits(1, 2)[0]
    np.testing.assert_array_equal(hetnn.load(folder / "net.hetnn")(image), want(image))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--quantize", "int8"], "give them with --samples"),
        (["--samples", "x.npz"], "go with --quantize SCHEME"),
        (["--quantize", "int8", "--samples", "x.npz"], "there is no file or folder 'x.npz' with samples"),
        (["--quantize", "int9", "--samples", "x.npz"], "there is no scheme 'int9'"),
    ],
)
def test_bad_use(capsys: pytest.CaptureFixture[str], folder: Path, words: list[str], said: str) -> None:
    status, answer = call(capsys, folder, *words)
    assert status == 2
    assert said in answer["error"]["message"]
