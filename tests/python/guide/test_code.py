"""What the guide shows as code runs: pages from top to bottom, and each block of the others in a place made for it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hetnn
from hetnn.targets import load_spec

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str = "python") -> list[str]:
    return [code for kind, code in _BLOCK.findall(page.read_text()) if kind == language]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with the command `hetnn` at hand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return tmp_path


def test_the_first_ten_minutes(folder: Path) -> None:
    names: dict[str, Any] = {}
    for kind, code in _BLOCK.findall((ROOT / "docs/start.md").read_text()):
        if kind == "python":
            exec(compile(code, "docs/start.md", "exec"), names)
        else:
            subprocess.run(["bash", "-euo", "pipefail", "-c", code], check=True, stdout=subprocess.DEVNULL)


class Net(nn.Module):
    """A convolution that an NPU runs, what it lacks, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.conv3 = nn.Conv2d(3, 8, 3)
        self.act = nn.PReLU(8)
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.act(self.conv3(x)).mean((2, 3)))


def network(folder: Path) -> dict[str, Any]:
    """The names that the guide takes for granted: a model, what it is called with, and files of it."""
    torch.manual_seed(0)
    model, x = Net().eval(), torch.randn(2, 3, 12, 12)
    hetnn.export(model, folder / "model.onnx", args=(x,))
    (folder / "npu.json").write_text(json.dumps(load_spec("relu-only")))
    targets = torch.tensor([1, 2])
    exported = torch.export.export(model, (x,))
    return {
        "hetnn": hetnn,
        "torch": torch,
        "model": exported,
        "module": model,
        "x": x,
        "y": targets,
        "samples": [(np.ones((2, 3, 12, 12), np.float32) * k,) for k in range(2)],
        "other": hetnn.plan(model, "cpu+relu-only", args=(x,), strategy="topological"),
        "loader": [(x, targets)],
        "loss": nn.functional.cross_entropy,
    }


def as_module(names: dict[str, Any]) -> dict[str, Any]:
    return names | {"model": names["module"]}


def as_problem(names: dict[str, Any]) -> dict[str, Any]:
    problem = json.loads(json.dumps(hetnn.generate_problem("chain", 8, 1)).replace('"n3"', '"conv3"'))
    for node in problem["nodes"]:
        node["op"] = "conv2d" if "npu" in node["time_us"] else "sort"
    return names | {"problem": problem, "other": hetnn.plan_problem(problem, "topological")}


def as_arrays(names: dict[str, Any]) -> dict[str, Any]:
    return names | {"x": names["x"].numpy(), "y": names["y"].numpy()}


# Page and number of the block -> what it is given. What is in none of these tables is not accounted for, and fails.
GIVEN = {
    ("npu.md", 0): dict,
    ("onnxruntime.md", 0): as_arrays,
    ("partitioning.md", 0): dict,
    ("partitioning.md", 1): as_problem,
    ("quantize.md", 0): dict,
    ("torch-compile.md", 0): as_module,
    ("training.md", 0): as_module,
    ("training.md", 1): as_arrays,
}
ELSEWHERE = {
    ("README.md", 0): "test_the_readme",
    ("devices.md", 0): "backends/test_backends.py",
    ("devices.md", 1): "backends/test_ethos_u.py, on files of TFLite",
    ("serving.md", 0): "engines/test_mlflow.py",
    ("devices.md", 2): "remote/test_remote.py, with a device server",
}


def test_every_block_is_accounted_for() -> None:
    found = {(page.name, k) for page in PAGES if page.name != "start.md" for k, _ in enumerate(blocks(page))}
    assert found == GIVEN.keys() | ELSEWHERE.keys()


@pytest.mark.slow
@pytest.mark.parametrize(("page", "number"), list(GIVEN), ids=lambda part: str(part))
def test_block_runs(page: str, number: int, folder: Path) -> None:
    names = GIVEN[page, number](network(folder))
    exec(compile(blocks(ROOT / "docs" / page)[number], page, "exec"), names)
