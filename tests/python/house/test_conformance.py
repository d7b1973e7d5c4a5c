"""The runner behind `make conformance`: a part of both sets passes, and what is wrong or dies is counted as that."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[3] / "tools"


def _run(*arguments: str) -> str:
    command = [sys.executable, str(TOOLS / "conformance.py"), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout


def test_scores_count_what_ran() -> None:
    names = "test_add,test_sequence_map_identity_1_sequence_1_tensor,test_if_seq"
    assert "ONNX: 3 of 3 pass" in _run("onnx", "--names", names, "--jobs", "1")


def test_sizes_of_inputs_are_left_open() -> None:
    names = "test_add,test_matmul_2d,test_resnet50,test_affine_grid_2d"
    out = _run("onnx-open", "--names", names, "--jobs", "1")
    assert "test_affine_grid_2d: unsupported" in out
    assert "ONNX with open sizes: 3 of 4 pass" in out


def test_operators_that_draw_are_not_counted() -> None:
    pytest.importorskip("expecttest")
    out = _run("--names", "test_add,eq,svd,rand_like", "--samples", "1", "--jobs", "1")
    assert "ONNX: 1 of 1 pass" in out
    assert "svd float32: unsupported: sample 0:" in out
    assert "OpInfo: 3 of 4 pass" in out


def test_a_process_that_dies_or_hangs_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    from forked import Result, run_forked

    def job(name: str) -> Result:
        if name == "dies":
            os._exit(3)
        if name == "hangs":
            time.sleep(60)
        if name == "raises":
            raise ValueError("no")
        return "ok", name

    told: list[str] = []
    results = run_forked(job, ["dies", "hangs", "raises", "works"], 2, 2.0, lambda name, _: told.append(name))
    assert results == {
        "dies": ("crash", "exit code 3"),
        "hangs": ("timeout", "after 2 s"),
        "raises": ("error", "ValueError: no"),
        "works": ("ok", "works"),
    }
    assert sorted(told) == sorted(results)
