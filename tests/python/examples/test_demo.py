"""The demo finds the face, writes its pictures, and says so when the face is not where it should be."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mtcnn import cascade, demo


@pytest.mark.slow
def test_the_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--output", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "as published: box within 0.00" in out
    for name in ("P-Net: 10 runs", "R-Net: 1 runs", "O-Net: 1 runs"):
        assert name in out
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    shown = readme.split("P-Net: 10 runs, ")[1].split("```")[0].splitlines()[1:]
    assert [line for line in shown if line != "..." and line not in out] == []
    assert Image.open(tmp_path / "face.png").size == (512, 512)
    picture = (tmp_path / "plan.svg").read_text()
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert "relu-only" in picture


def faces(*boxes: list[float], probability: float = 0.9999977) -> cascade.Faces:
    count = len(boxes)
    return cascade.Faces(
        np.array(boxes, np.float32).reshape(-1, 4),
        np.full(count, probability, np.float32),
        np.zeros((count, 5, 2), np.float32),
    )


@pytest.mark.parametrize(
    ("found", "status", "said"),
    [
        (faces(list(demo.BOX)), 0, "as published"),
        (faces([181.05, 62.16, 267.75, 172.60]), 1, "not as published: box within 0.550 pixels"),
        (faces(list(demo.BOX), probability=0.99), 1, "probability within 1.0e-02"),
        (faces(), 1, "found 0 faces; expected one"),
        (faces(list(demo.BOX), list(demo.BOX)), 1, "found 2 faces; expected one"),
    ],
)
def test_the_verdict(found: cascade.Faces, status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.judge(found) == status
    assert said in capsys.readouterr().out


@pytest.mark.slow
def test_the_demo_with_its_device_in_another_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "token").write_text("known to both\n")
    words = ["--device", "relu-only", "--token-file", str(tmp_path / "token")]
    server = subprocess.Popen(
        [sys.executable, "-m", "hetnn", "device", "serve", *words], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    at = f"127.0.0.1:{json.loads(server.stdout.readline())['port']}"
    there = ["--device", f"relu-only={at}", "--token-file", str(tmp_path / "token")]
    assert demo.main(["--output", str(tmp_path), *there]) == 0
    out = capsys.readouterr().out
    assert "as published: box within 0.00" in out
    assert out.count(f"subgraphs ran at {at}, local") == 3
    server.terminate()
    assert server.wait(20) == 0
    server.stdout.close()
