"""The runner behind `make sweep-architectures`: a small sample is right; what is not is a finding or set apart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from sweep_architectures import chosen, difference

TOOL = Path(__file__).parents[3] / "tools" / "sweep_architectures.py"
SAMPLE = "timm/starnet/1", *(f"transformers/{kind}" for kind in ("bert", "wav2vec2"))


def _sweep(*arguments: str) -> tuple[int, list[str]]:
    done = subprocess.run([sys.executable, str(TOOL), *arguments], capture_output=True, text=True, timeout=600)
    return done.returncode, (done.stdout + done.stderr).splitlines()


@pytest.mark.slow
def test_a_sample_is_as_torch_has_it() -> None:
    code, lines = _sweep("--only", f"^({'|'.join(SAMPLE)})$")
    assert code == 0, lines
    assert [line.split()[:2] for line in lines[1 : 1 + len(SAMPLE)]] == [[unit, "ok"] for unit in sorted(SAMPLE)]
    assert "3 of 3 are as torch has them" in lines


@pytest.mark.slow
def test_what_torch_does_not_build_is_set_apart_and_what_is_refused_is_a_finding() -> None:
    code, lines = _sweep("--only", "^transformers/(bert|decision_transformer)$", "--targets", "cpu,nothing")
    assert code == 1, lines
    assert "0 of 1 are as torch has them" in lines
    assert "1 not built" in lines
    assert lines[-2:-1] == ["1 findings"]
    assert lines[-1].startswith("  transformers/bert BertModel: refused: nothing: ")


def test_a_sample_is_drawn_by_its_seed() -> None:
    units = [f"{package}/{k:03}" for package in ("timm", "transformers") for k in range(100)]
    assert chosen(units, "^timm/.*7", None, 0) == [unit for unit in units if unit.startswith("timm") and "7" in unit]
    assert len(set(chosen(units, "", 20, 3))) == 20
    assert chosen(units, "", 20, 3) == chosen(units, "", 20, 3) != chosen(units, "", 20, 4)
    assert chosen(units, "", 500, 3) == units


def test_what_is_beyond_the_tolerance_is_told() -> None:
    wanted = torch.tensor([1.0, -2.0, 0.0, torch.inf, torch.nan])
    assert difference([wanted.clone()], [wanted]) == (0, "")
    near = wanted + torch.tensor([1e-3, 1e-3, 1e-4, 0, 0])
    assert 0.4 < difference([near], [wanted])[0] <= 1
    assert difference([wanted + 0.01], [wanted])[1].startswith("output 0 [5] is ")
    assert "finite" in difference([torch.nan_to_num(wanted)], [wanted])[1]
    assert "not torch.float32[5]" in difference([wanted.double()], [wanted])[1]
    assert difference([], [wanted])[1] == "0 outputs, not 1"
