"""Times of CPU nodes: the roofline of a data sheet, the cache that keeps it, measured times of nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import hetnn
from hetnn import calibration
from hetnn.cli import main
from hetnn.machine import cache_file, cpu_name
from models import nets

# One addition of 2 x 4 MB into 4 MB, and one function of 1000 elements.
ADD = "graph @g {stage = imported} (%x: f32[1024,1024]) -> (%y) {\n  %y = add(%x, %x) : f32[1024,1024]\n}\n"
TANH = "graph @g {stage = imported} (%x: f32[1000]) -> (%y) {\n  %y = tanh(%x) : f32[1000]\n}\n"


def speeds_file() -> Path:
    return cache_file(calibration.speeds_name())


def time_us(model: Any, sheet: Any) -> float:
    problem = hetnn.plan(model, "cpu", calibration=sheet).problem()
    (node,) = problem["nodes"]
    return float(node["time_us"]["cpu"])


def sheet(**figures: Any) -> dict[str, Any]:
    return {"schema": 2, **figures}


def both(speed: float) -> dict[str, float]:
    return {"one": speed, "all": speed}


FAST = both(1e15)
LEVELS = ("first_level", "second_level", "third_level", "memory")


def test_times_follow_from_figures_of_the_machine() -> None:
    moved_bytes = 3 * 4 * 1024 * 1024  # both operands count, though they are one tensor
    slow_memory = {**dict.fromkeys(LEVELS, FAST), "memory": both(1000)}
    caches = {"first_level": 1 << 10, "second_level": 1 << 12, "third_level": 1 << 20}
    figures = {"kernel_us": 7, "macs_per_us": FAST, "bytes_per_us": slow_memory}
    assert time_us(ADD, sheet(**figures, cache_bytes=caches)) == pytest.approx(7 + moved_bytes / 1000)
    assert time_us(ADD, sheet(**figures, cache_bytes={**caches, "third_level": 1 << 30})) == pytest.approx(7)
    fast_memory = {"kernel_us": 0, "bytes_per_us": dict.fromkeys(LEVELS, FAST)}
    once, twice = (time_us(TANH, sheet(**fast_memory, macs_per_us=both(speed))) for speed in (2000, 1000))
    assert twice == pytest.approx(2 * once)
    alone, together = (
        time_us(TANH, sheet(**fast_memory, macs_per_us={"one": 1000, "all": all}, threads=2)) for all in (1000, 2000)
    )
    assert alone == pytest.approx(2 * together, rel=0.02)


def test_kernels_are_chosen_for_the_machine() -> None:
    """Winograd's weights are four times as many as those of the windows."""
    net, x = torch.nn.Conv2d(64, 64, 3, padding=1), torch.zeros(1, 64, 28, 28)
    exported = torch.export.export(net, (x,), strict=False)

    def kernels(memory: float) -> set[str]:
        figures = {"bytes_per_us": {"memory": both(memory)}}
        exe = hetnn.compile(exported, "cpu", calibration=sheet(**figures))
        return {row["kernel"] for row in exe.profile(x)}

    assert "conv2d_winograd" in kernels(1e6)
    assert "conv2d_direct" in kernels(1)


def test_launches_come_from_the_sheet() -> None:
    assert hetnn.plan(ADD, "cpu", calibration=sheet(launch_us=123)).explain()["parts"]["launch_us"] == 123


def test_a_plan_depends_on_the_sheet_alone() -> None:
    exported = torch.export.export(*nets.tiny(), strict=False)
    slow = sheet(macs_per_us=both(10))
    texts = [
        hetnn.plan(exported, "cpu+relu-only", calibration=speeds).to_json() for speeds in ("off", slow, "off", slow)
    ]
    assert texts[0] == texts[2] != texts[1] == texts[3]


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({"schema": 1}, "the data sheet of cpu: schema must be 2; found 1"),
        ({"schema": 2, "speed": 3}, "has the unknown key 'speed'; known are schema, cpu, threads, kernel_us"),
        ({"schema": 2, "kernel_us": -1}, "kernel_us must be a finite number of at least 0; found -1"),
        ({"schema": 2, "cache_bytes": {"memory": 1}}, "has the unknown level 'memory'; known are first_level"),
        (
            {"schema": 2, "macs_per_us": {"one": 0, "all": 1}},
            "macs_per_us.one must be a finite number above 0; found 0",
        ),
        ({"schema": 2, "macs_per_us": 5}, "macs_per_us must be an object; found 5"),
        ({"schema": 2, "bytes_per_us": {"memory": {"one": 1}}}, "bytes_per_us.memory lacks 'all', of all threads"),
    ],
)
def test_sheets_that_make_no_sense(figures: dict[str, Any], message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.plan(ADD, "cpu", calibration=figures)


def test_where_speeds_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cached, other = sheet(launch_us=1), sheet(launch_us=2)
    file = speeds_file()
    assert file.parent == tmp_path / "hetnn"
    assert calibration.find_speeds() is None
    monkeypatch.delenv(calibration.SPEEDS_VARIABLE)
    assert calibration.find_speeds() is None, "there is none yet"
    file.parent.mkdir()
    file.write_text(json.dumps(cached))
    assert calibration.find_speeds() == cached
    assert calibration.speeds_name(3) != calibration.speeds_name(4), "speeds belong to a number of threads"
    (tmp_path / "other.json").write_text(json.dumps(other))
    monkeypatch.setenv(calibration.SPEEDS_VARIABLE, str(tmp_path / "other.json"))
    assert calibration.find_speeds() == other
    assert calibration.find_speeds(cached) == cached
    assert calibration.find_speeds("off") is None
    with pytest.raises(hetnn.InvalidModel, match=r"the calibration '.*none.json' cannot be read: No such file"):
        hetnn.plan(ADD, "cpu", calibration=tmp_path / "none.json")
    (tmp_path / "other.json").write_text("{")
    with pytest.raises(hetnn.InvalidModel, match=r"is no JSON: .* Write it anew with `hetnn calibrate`"):
        hetnn.plan(ADD, "cpu")
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(hetnn.InvalidModel, match="must be an object; got list"):
        hetnn.plan(ADD, "cpu")


def test_a_targets_own_sheet_goes_first() -> None:
    target = {"name": "cpu", "devices": [{"name": "cpu", "kind": "cpu", "spec": sheet(launch_us=9)}]}
    plan = hetnn.plan(ADD, target, calibration=sheet(launch_us=123))
    assert plan.explain()["parts"]["launch_us"] == 9


def test_this_machine_is_measured_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(calibration.SPEEDS_VARIABLE)
    assert main(["calibrate", "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert written.pop("output") == str(speeds_file())
    assert written == calibration.find_speeds()
    assert written["cpu"] == cpu_name()
    assert all(speed > 0 for speed in written["macs_per_us"].values())
    assert {"third_level", "memory"} <= set(written["bytes_per_us"]) <= set(LEVELS)
    # Plans find it by themselves.
    assert time_us(ADD, None) == time_us(ADD, written) != time_us(ADD, "off")
    assert [path.name for path in (tmp_path / "hetnn").iterdir()] == [speeds_file().name]


def test_measured_times_replace_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    exported = torch.export.export(*nets.tiny(), strict=False)
    plan = hetnn.plan(exported, "cpu+relu-only", calibrate=True, rewrite="off")
    report = plan.report(format="dict")
    assert report["measured_nodes"] == report["nodes"] > 5
    predicted = hetnn.plan(exported, "cpu+relu-only", rewrite="off").problem()["nodes"]
    for before, after in zip(predicted, plan.problem()["nodes"], strict=True):
        assert after["time_us"]["cpu"] != before["time_us"]["cpu"]
        assert after["time_us"].get("relu-only") == before["time_us"].get("relu-only")

    # The plan follows the times it is told.
    def all_take(us: float) -> Any:
        def measure(planned: Any, device: str, threads: int | None) -> dict[str, dict[str, float]]:
            names = [node["id"] for node in json.loads(planned.problem())["nodes"]]
            return {name: {device: us} for name in names}

        return measure

    for us, everything_on in ((1e-6, "cpu"), (1e6, "relu-only")):
        monkeypatch.setattr("hetnn.api.measure_nodes", all_take(us))
        placed = hetnn.plan(exported, "cpu+relu-only", calibrate=True, rewrite="off").report(format="dict")
        supported = {node["id"] for node in predicted if everything_on in node["time_us"]}
        assert {row["node"] for row in placed["graph"] if row["device"] == everything_on} >= supported


def test_nodes_of_one_launch_share_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2))
    planned = hetnn.plan(torch.export.export(net, (torch.randn(1, 3, 8, 8),), strict=False), "cpu", calibration="off")
    conv, relu, pool = (node["id"] for node in planned.problem()["nodes"])
    alone, fused = calibration._Measurement(), calibration._Measurement()
    alone.of_node = {conv: 10.0, relu: 30.0, pool: 5.0}
    fused.of_node = {conv: 12.0, pool: 4.0}

    def run(compilations: list[Any], threads: int | None) -> Any:
        assert len(compilations) == 2
        return [alone, fused]

    monkeypatch.setattr(calibration, "_run", run)
    measured = calibration.measure_nodes(planned._plan, "cpu")
    assert measured == {conv: {"cpu": 3.0}, relu: {"cpu": 9.0}, pool: {"cpu": 4.0}}


def test_a_model_compiled_with_measured_times_is_the_same_model() -> None:
    module, inputs = nets.tiny()
    executable = hetnn.compile(torch.export.export(module, inputs, strict=False), "cpu+relu-only", calibrate=True)
    assert executable.report(format="dict")["measured_nodes"] > 0
    with torch.no_grad():
        torch.testing.assert_close(executable(*inputs), module(*inputs), rtol=1e-5, atol=1e-6)


def test_a_target_without_a_cpu_cannot_be_measured() -> None:
    target = {"name": "null", "devices": [{"name": "null", "kind": "null"}]}
    with pytest.raises(hetnn.Unsupported, match="calibrate measures nodes on a general processor of kind cpu"):
        hetnn.plan(ADD, target, calibrate=True)


def test_the_command_measures_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "add.ir").write_text(ADD)
    assert main(["plan", str(tmp_path / "add.ir"), "--calibrate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["measured_nodes"] == 1
    (tmp_path / "sheet.json").write_text(json.dumps(sheet(launch_us=77)))
    assert main(["plan", str(tmp_path / "add.ir"), "--calibration", str(tmp_path / "sheet.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parts"]["launch_us"] == 77
