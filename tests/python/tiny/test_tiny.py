"""The whole way in a few seconds: a small network exported, compiled, run, saved, loaded, on each target."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import hetnn
from models import nets

TARGETS = ["cpu", "cpu+relu-only"]


@pytest.fixture(scope="module")
def case() -> tuple[torch.export.ExportedProgram, torch.Tensor, torch.Tensor]:
    """An exported network, its input, and what torch makes of it."""
    module, (x,) = nets.tiny()
    with torch.no_grad():
        return torch.export.export(module, (x,), strict=False), x, module(x)


Case = tuple[torch.export.ExportedProgram, torch.Tensor, torch.Tensor]


@pytest.mark.parametrize("target", TARGETS)
def test_torch_in_torch_out(case: Case, target: str) -> None:
    exported, x, want = case
    got = hetnn.compile(exported, target)(x)
    assert isinstance(got, torch.Tensor)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_numpy_in_numpy_out_with_the_same_bits(case: Case, target: str) -> None:
    exported, x, _ = case
    executable = hetnn.compile(exported, target)
    got = executable(x.numpy())
    assert isinstance(got, np.ndarray)
    np.testing.assert_array_equal(got, executable(x).numpy())


@pytest.mark.parametrize("target", TARGETS)
def test_compiling_twice_gives_the_same_bytes(case: Case, target: str, tmp_path: Path) -> None:
    for name in ("a.hetnn", "b.hetnn"):
        hetnn.compile(case[0], target).save(tmp_path / name)
    assert (tmp_path / "a.hetnn").read_bytes() == (tmp_path / "b.hetnn").read_bytes()


@pytest.mark.parametrize("target", TARGETS)
def test_a_saved_executable_runs_without_torch_and_compiler(case: Case, target: str, tmp_path: Path) -> None:
    exported, x, _ = case
    executable = hetnn.compile(exported, target)
    executable.save(tmp_path / "net.hetnn")
    np.save(tmp_path / "x.npy", x.numpy())
    code = (
        "import sys, numpy, hetnn\n"
        "y = hetnn.load('net.hetnn')(numpy.load('x.npy'))\n"
        "numpy.save('y.npy', y)\n"
        "assert not {'torch', 'hetnn._core'} & set(sys.modules), 'torch or the compiler was imported'\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), executable(x.numpy()))


def test_the_report_places_the_network(case: Case) -> None:
    report = hetnn.compile(case[0], "cpu+relu-only", strategy="topological", rewrite="always").report(format="dict")
    assert sum(report["nodes_on"].values()) == report["nodes"]
    assert report["nodes_on"]["relu-only"] > report["nodes_on"]["cpu"] > 0
    assert [row["op"] for row in report["not_on_preferred"]].count("softmax") == 1
    assert report["rewrites"], "the PReLU is rewritten"


def test_ir_text_compiles() -> None:
    text = "graph @double {stage = imported} (%x: f32[2,3]) -> (%y) {\n  %y = add(%x, %x) : f32[2,3]\n}\n"
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(hetnn.compile(text)(x), 2 * x)
