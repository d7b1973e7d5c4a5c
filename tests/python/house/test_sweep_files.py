"""The runner behind `make sweep-files`: files that are right leave no gap, and one that is not has its line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
from onnx import parser

TOOL = Path(__file__).parents[3] / "tools" / "sweep_files.py"


def _saved(folder: Path, name: str, text: str) -> Path:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : 1]>\n{text}')
    onnx.save(model, folder / name)
    return folder / name


def _sweep(*arguments: Any) -> tuple[int, str]:
    command = [sys.executable, str(TOOL), "--target", "cpu", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def test_files_that_are_right_leave_no_gap(tmp_path: Path) -> None:
    plain = _saved(
        tmp_path,
        "plain.onnx",
        "agraph (float[n,c,4] x, int64 k) => (float[n,c,4] y) { f = Cast<to = 1>(k) y = Mul(x, f) }",
    )
    ranks = _saved(
        tmp_path,
        "ranks.onnx",
        "agraph (float[batch,4] x) => (y) { r = ReduceSum<keepdims = 1>(x) s = Squeeze(x) y = Add(s, s) }",
    )
    records = _saved(
        tmp_path,
        "records.onnx",
        "agraph (float[n,3] x) => (y) { p = Sigmoid(x) y = ai.onnx.ml.ZipMap<classlabels_int64s = [0, 1, 2]>(p) }",
    )
    code, out = _sweep(plain, ranks, records)
    assert code == 0, out
    assert out.splitlines()[-1] == "3 of 3 are as their engines have them"
    assert "2x64x4 - ok" in out or "1x64x4 - ok" in out


def test_what_is_lacking_is_a_gap(tmp_path: Path) -> None:
    right = _saved(tmp_path, "right.onnx", "agraph (float[n] x) => (float[n] y) { y = Relu(x) }")
    told = 'coefficients = [0.5], intercepts = [0.3], classlabels_ints = [0, 1], post_transform = "PROBIT"'
    scores = f"agraph (float[2,1] x) => (l, s) {{ l, s = ai.onnx.ml.LinearClassifier<{told}>(x) }}"
    lacking = _saved(tmp_path, "lacking.onnx", scores)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    code, out = _sweep(right, lacking, broken)
    assert code == 1
    lines = out.splitlines()
    assert "1 of 2 are as their engines have them" in lines
    assert any(line.startswith("  ") and "lacking.onnx cpu: refused: Unsupported" in line for line in lines)
