"""The commands on a saved network: what they print, write, and end with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hetnn
from hetnn.cli import main
from models import nets


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tiny.pt2, its input x.npz and torch's answer want.npz, and tiny.hetnn compiled from it for cpu+relu-only."""
    folder = tmp_path_factory.mktemp("tiny")
    save_case(folder, "tiny")
    arguments = ["--target", "cpu+relu-only", "--strategy", "topological", "--rewrite", "always"]
    assert main(["compile", str(folder / "tiny.pt2"), "-o", str(folder / "tiny.hetnn"), *arguments]) == 0
    return folder


def save_case(folder: Path, name: str) -> None:
    module, inputs = nets.NETS[name]()
    exported = torch.export.export(module, inputs, strict=False)
    torch.export.save(exported, folder / f"{name}.pt2")
    with torch.no_grad():
        np.savez(folder / "want.npz", module(*inputs).numpy())
    np.savez(folder / "x.npz", *(value.numpy() for value in inputs))


def call(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> tuple[int, Any]:
    """The exit code, and the one JSON document on stdout."""
    capsys.readouterr()
    status = main([*map(str, argv), "--json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_a_saved_mobilenet_equals_torch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    save_case(tmp_path, "mobilenet_v2")
    packed = tmp_path / "net.hetnn"
    status, answer = call(capsys, "compile", tmp_path / "mobilenet_v2.pt2", "-o", packed)
    assert (status, answer["bytes"]) == (0, packed.stat().st_size)
    arrays = ["--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz", "--expect", tmp_path / "want.npz"]
    status, answer = call(capsys, "run", packed, *arrays)
    assert status == 0
    assert answer["difference"] < 1e-4
    with np.load(tmp_path / "y.npz") as got, np.load(tmp_path / "want.npz") as want:
        np.testing.assert_allclose(next(iter(got.values())), next(iter(want.values())), rtol=0, atol=1e-3)


def test_compile_answers_with_the_report(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    status, answer = call(capsys, "compile", folder / "tiny.pt2", "-o", folder / "again.hetnn")
    assert status == 0
    assert answer["report"]["target"] == "cpu"
    assert answer["report"]["strategy"] == "cost"


def test_run_compares(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    arguments = ["run", folder / "tiny.hetnn", "--inputs", folder / "x.npz", "--expect"]
    status, answer = call(capsys, *arguments, folder / "want.npz")
    assert status == 0
    assert answer["difference"] < 1e-5
    np.savez(folder / "other.npz", np.zeros((1, 5), np.float32) + 0.3)
    status, answer = call(capsys, *arguments, folder / "other.npz")
    assert status == 1
    assert answer["difference"] > 1e-2


def test_run_names_inputs_it_does_not_know(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    np.savez(folder / "two.npz", np.zeros(1), np.zeros(1))
    status, answer = call(capsys, "run", folder / "tiny.hetnn", "--inputs", folder / "two.npz")
    assert status == 2
    assert "two.npz' holds arr_0, arr_1; the model's inputs are" in answer["error"]["message"]


def test_run_refuses_what_can_no_longer_change(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    status, answer = call(capsys, "run", folder / "tiny.hetnn", "--target", "cpu")
    assert (status, answer["error"]["kind"]) == (2, "BadUse")
    assert "is compiled already; only --threads can still be given" in answer["error"]["message"]


def test_plan_and_report_have_the_same_keys(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    arguments = ["--target", "cpu+relu-only", "--strategy", "topological", "--rewrite", "always"]
    status, planned = call(capsys, "plan", folder / "tiny.pt2", *arguments)
    assert status == 0
    status, report = call(capsys, "report", folder / "tiny.hetnn")
    assert status == 0
    assert set(planned) == set(report)
    assert planned["subgraphs"] == report["subgraphs"]


def test_report_writes_a_page(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    page = folder / "report.html"
    status, _ = call(capsys, "report", folder / "tiny.pt2", "--target", "cpu+relu-only", "-o", page)
    assert status == 0
    assert '"what_if":[' in page.read_text()
    status, answer = call(capsys, "report", folder / "tiny.pt2", "--target", "cpu+relu-only", "--run", "-o", page)
    assert status == 0
    assert '"timeline":[' in page.read_text()
    assert any("measured_us" in row for row in answer["graph"])
    status, answer = call(capsys, "report", folder / "tiny.hetnn", "-o", folder / "report.pdf")
    assert status == 2
    assert "--output ends in one of .html, .svg, .json, .txt" in answer["error"]["message"]


def test_check_lists_everything_with_reasons(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    status, answer = call(capsys, "check", folder / "tiny.pt2", "--target", "cpu+relu-only")
    assert status == 1
    found = {row["op"]: row for row in answer["unsupported"]}
    assert {"prelu", "softmax"} <= set(found)
    assert all(row["reasons"] for row in answer["unsupported"])
    assert "nets.py" in found["prelu"]["loc"]


def test_bench_measures(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    status, answer = call(capsys, "bench", folder / "tiny.hetnn", "--seconds", "0.05")
    assert status == 0
    whole = {"first_us", "mean_us", "median_us", "min_us", "max_us", "p90_us", "p95_us", "p99_us"}
    counts = {"runs", "runs_per_s", "streams", "threads", "inputs", "compile_s", "peak_bytes", "arena_bytes"}
    assert set(answer) == whole | counts | {"cpu_us", "npu_us", "simulating_us"}
    assert 0 < answer["cpu_us"] < answer["median_us"]
    assert 0 < answer["npu_us"] < answer["simulating_us"] < answer["median_us"]
    assert main(["bench", str(folder / "tiny.hetnn"), "--seconds", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("CPU, measured: ")
    assert lines[1].startswith("NPU, simulated, by its clock: ")
    assert lines[2].startswith("simulating the NPU took: ")
    assert lines[3].startswith("whole run here, simulating included: median ")
    assert 0 < answer["min_us"] <= answer["median_us"] <= answer["p90_us"] <= answer["p95_us"] <= answer["p99_us"]
    assert answer["p99_us"] <= answer["max_us"]
    assert answer["arena_bytes"] > 0
    assert answer["runs"] >= 5


def test_bench_runs_several_at_a_time_on_the_files_of_a_folder(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path
) -> None:
    (port,) = hetnn.load(folder / "tiny.hetnn").inputs
    for k in range(3):
        np.save(tmp_path / f"{k}.npy", np.full([int(size) for size in port.shape], k, np.float32))
    command = ["bench", folder / "tiny.hetnn", "--inputs", tmp_path, "--streams", "3", "--runs", "10", "--threads", "1"]
    status, answer = call(capsys, *command)
    assert status == 0
    assert [answer[key] for key in ("runs", "streams", "inputs", "threads")] == [10, 3, 3, 1]
    assert answer["runs_per_s"] > 0
    status, answer = call(capsys, "bench", folder / "tiny.hetnn", "--streams", "0")
    assert (status, answer["error"]["message"]) == (2, "--streams takes a number from 1 to 1024; got 0")
    (tmp_path / "none").mkdir()
    status, answer = call(capsys, "bench", folder / "tiny.hetnn", "--inputs", tmp_path / "none")
    assert status == 2
    assert "has no file of inputs; they end in .png, " in answer["error"]["message"]


def test_nothing_half_written_stays(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    status, answer = call(capsys, "compile", folder / "tiny.pt2", "--target", "cpu+nonsense", "-o", folder / "no.hetnn")
    assert status == 2
    assert "nonsense" in answer["error"]["message"]
    assert not (folder / "no.hetnn").exists()


def test_a_switch_that_turns_off_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Its text is the option's, which says what is done without the flag."""
    assert main(["plan", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "--no-fusion turn off: join elementwise nodes" in told
    assert "--no-tune turn off: measure on this machine" in told
    assert "--deterministic what is joined" in told
