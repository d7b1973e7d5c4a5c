"""The reference device: a whole model by the operators' meanings, saved and loaded like any other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import hetnn
from models import nets


def exported() -> tuple[torch.export.ExportedProgram, torch.nn.Module, torch.Tensor]:
    module, inputs = nets.TinyNet().eval(), (torch.randn(1, 3, 16, 16),)
    return torch.export.export(module, inputs, strict=False), module, inputs[0]


@pytest.mark.parametrize("target", ["reference", "reference+relu-only"])
def test_it_runs_and_shares_a_model_with_an_npu(target: str, tmp_path: Path) -> None:
    program, module, x = exported()
    exe = hetnn.compile(program, target)
    with torch.no_grad():
        want = module(x)
    assert torch.allclose(exe(x), want, rtol=1e-5, atol=1e-6)
    exe.save(tmp_path / "model.hetnn")
    assert torch.equal(hetnn.load(tmp_path / "model.hetnn")(x), exe(x))
    assert exe.report(format="dict")["nodes_on"]["reference"] > 0


def test_it_needs_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, _, x = exported()
    made = hetnn.compile(program, "reference")
    made.save(tmp_path / "model.hetnn")
    exe = hetnn.load(tmp_path / "model.hetnn")
    monkeypatch.setitem(sys.modules, "hetnn._core", None)
    monkeypatch.delattr(hetnn, "_core", raising=False)
    assert torch.equal(exe(x), made(x))
