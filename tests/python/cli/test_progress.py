"""What long work says while it lasts: each pass, and the time that is left."""

from __future__ import annotations

import io
import itertools
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import hetnn
from hetnn import progress as steps
from hetnn.cli import main, progress
from hetnn.cli.progress import Progress
from hetnn.inside import bench, bisect
from hetnn.progress import Step


def chain(convolutions: int) -> str:
    body, before = "", "x"
    for k in range(convolutions):
        body += f"  %a{k} = conv2d(%{before}, %w) {{padding = [1,1]}} : f32[1,8,8,8]\n"
        body += f"  %b{k} = relu(%a{k}) : f32[1,8,8,8]\n"
        before = f"b{k}"
    return f"graph @chain {{stage = imported}} (%x: f32[1,8,8,8], %w: f32[8,8,3,3]) -> (%{before}) {{\n{body}}}\n"


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_every_pass_is_told_in_order(target: str) -> None:
    told: list[str] = []
    exe = hetnn.compile(chain(4), target, progress=told.append)
    assert list(dict.fromkeys(told)) == ["import", *(row["name"] for row in exe.passes), "load"]


def test_what_is_left_is_predicted_and_ends_at_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """By shares: half of the whole after three seconds leaves three."""
    clock = iter([0.0, 0.1, 3.0, 6.0])
    monkeypatch.setattr(steps.time, "monotonic", lambda: next(clock))
    told: list[Step] = []
    telling = steps.Telling(told.append)  # type: ignore[arg-type]
    for done in (0.1, 0.5, 1.0):
        telling("lower", done)
    assert [step.left_s for step in told] == [None, 3.0, 0.0]
    assert told == ["lower"] * 3


@pytest.mark.parametrize(("target", "long"), [("cpu", "lower"), ("cpu+relu-only", "choose_rewrites")])
def test_a_long_step_is_told_again_with_what_is_left(target: str, long: str) -> None:
    """Steps that last for more than 100 ms, which here is what telling of them takes."""
    told: list[tuple[str, float | None]] = []

    def tell(step: str) -> None:
        told.append((str(step), step.left_s))  # type: ignore[attr-defined]
        if step == long:
            time.sleep(0.11)

    hetnn.compile(chain(4), target, progress=tell)
    assert len([name for name, _ in told if name == long]) > 2
    left = [left for name, left in told if name == long and left is not None]
    assert left
    assert min(left) >= 0


def test_nodes_of_a_model_file_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_TOLD_EVERY_S", 0.0)
    monkeypatch.setattr(steps, "_AT_LEAST_S", 0.0)
    names = [f"v{k}" for k in range(6)]
    nodes = [onnx.helper.make_node("Relu", [a], [b]) for a, b in itertools.pairwise(names)]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in (names[0], names[-1])]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:]))
    module = torch.nn.Sequential(*[torch.nn.ReLU() for _ in range(5)])
    for given in (model, torch.export.export(module, (torch.zeros(2),))):
        told: list[Step] = []
        hetnn.compile(given, progress=told.append)  # type: ignore[arg-type]
        assert len([step for step in told if step == "import" and step.left_s is not None]) >= 4


def test_samples_of_a_calibration_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_TOLD_EVERY_S", 0.0)
    monkeypatch.setattr(steps, "_AT_LEAST_S", 0.0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4)).eval()
    samples = [(torch.randn(2, 4),) for _ in range(6)]
    told: list[Step] = []
    hetnn.quantize(net, samples, args=samples[0], progress=told.append)  # type: ignore[arg-type]
    left = [step.left_s for step in told if step == "calibrate"]
    assert left[0] is None
    assert len([seconds for seconds in left if seconds is not None]) >= 5
    assert list(dict.fromkeys(told)) == ["import", "calibrate", "round weights", "measure the noise"]


@pytest.fixture
def of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is told of however short it is."""
    monkeypatch.setattr(steps, "_TOLD_EVERY_S", 0.0)
    monkeypatch.setattr(steps, "_AT_LEAST_S", 0.0)


def test_all_that_quantizing_does_tells_how_long_it_still_takes(of_any_length: None) -> None:
    told: list[Step] = []
    net = torch.nn.Sequential(*[layer for _ in range(4) for layer in (torch.nn.Linear(4, 4), torch.nn.ReLU())]).eval()
    samples = [(torch.randn(2, 4),) for _ in range(6)]
    hetnn.quantize(net, samples, args=samples[0], keep_float="auto", at_least_db=10, progress=told.append)  # type: ignore[arg-type]
    names = list(dict.fromkeys(map(str, told)))
    assert names[-4:] == ["round weights", "measure each layer", "choose layers to keep", "measure the noise"]
    assert {str(step) for step in told if step.left_s is not None} >= set(names[1:])


@contextmanager
def slow_runs() -> Iterator[None]:
    """Runs tell of themselves every 100 ms, which here is what telling takes."""
    tell = steps._Counter.tell

    def slowly(self: Any, share: float) -> None:
        tell(self, share)
        if self._step in ("reference", "run"):
            time.sleep(0.11)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps._Counter, "tell", slowly)
        yield


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_comparing_and_bisecting_tell_how_long_they_still_take(
    target: str, of_any_length: None, tmp_path: Path
) -> None:
    told: list[Step] = []
    x, w = np.ones((1, 8, 8, 8), np.float32), np.ones((8, 8, 3, 3), np.float32) / 50
    exe = hetnn.compile(chain(3), target)
    other = hetnn.compile(chain(3).replace("%b2 = relu(%a2)", "%b2 = neg(%a2)"))
    with slow_runs():
        exe.compare(None, (x, w), progress=told.append)  # type: ignore[arg-type]
    assert told[0] == "reference"
    assert {str(step) for step in told if step.left_s is not None} >= {"reference", "run", "compare", "lower"}
    found = exe.bisect(other, (x, w), tmp_path / "part.npz", progress=told.append)  # type: ignore[arg-type]
    assert found is not None
    assert found.nodes == ["b2"]


def test_halving_and_leaving_out_are_counted(of_any_length: None) -> None:
    """Of a part that is wrong with two of its nodes alone."""
    told: list[Step] = []
    nodes = [f"n{k}" for k in range(20)]
    found = bisect._fewest(nodes, lambda kept: {"n13", "n19"} <= set(kept), told.append)  # type: ignore[arg-type]
    assert found == ["n13", "n19"]
    for name in ("halve", "leave out"):
        left = [step.left_s for step in told if step == name]
        assert left[0] is None
        assert len([seconds for seconds in left if seconds is not None]) >= 3


@pytest.mark.parametrize("command", ["run", "profile", "trace", "bench", "report", "compare", "plan", "check"])
def test_every_command_that_may_take_long_says_how_long(
    command: str,
    of_any_length: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As it is told where nothing is too short to be told of."""
    monkeypatch.setattr(Progress, "_SHORT_S", 0.0)
    monkeypatch.setattr(Progress, "_EVERY_S", 0.0)
    monkeypatch.setattr(bench, "_TOLD_EVERY_S", 0.0)
    (tmp_path / "net.ir").write_text(chain(3))
    more = {"trace": ["-o", str(tmp_path / "t.json")], "report": ["--run"], "bench": ["--runs", "300"]}.get(command, [])
    with slow_runs():
        main([command, str(tmp_path / "net.ir"), "--target", "cpu+relu-only", *more])
    told = capsys.readouterr().err
    wanted = {"plan": "place", "check": "", "bench": "measure", "compare": "compare"}.get(command, "run")
    assert f"{command}: done in" in told
    assert not wanted or f"{command}: {wanted}, about" in told, told


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError])
def test_what_is_raised_ends_the_work(kind: type[BaseException]) -> None:
    def stop(step: str) -> None:
        if step == "lower":
            raise kind("enough")

    with pytest.raises(kind, match="enough"):
        hetnn.compile(chain(3), progress=stop)
    x, w = np.ones((1, 8, 8, 8), np.float32), np.ones((8, 8, 3, 3), np.float32)
    assert hetnn.compile(chain(3))(x, w).shape == x.shape


class Terminal(io.StringIO):
    def __init__(self, is_one: bool) -> None:
        super().__init__()
        self._is_one = is_one

    def isatty(self) -> bool:
        return self._is_one


def written(monkeypatch: pytest.MonkeyPatch, on_terminal: bool, rows: list[tuple[float, str, float | None]]) -> str:
    """What is on stderr of steps that are told at these seconds."""
    clock: Iterator[float] = iter(())
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock, now))
    stream = Terminal(on_terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("compile") as told:
        for at_s, name, left_s in rows:
            now = at_s
            told(Step(name, left_s))
    return stream.getvalue()


ROWS = [(0.0, "import", None), (0.5, "place", 0.4), (1.0, "lower", 9.0), (2.0, "lower", 75.2), (9.0, "lower", 3.0)]


def test_a_terminal_shows_what_is_left_of_what_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    text = written(monkeypatch, True, ROWS)
    assert "place ...\r" in text  # 0.9 s in all
    assert "lower ..., about 9 s left\r" in text
    assert "lower ..., about 1 min 15 s left\r" in text
    assert text.endswith("compile: done in 9.0 s\n")


def test_elsewhere_it_is_told_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    text = written(monkeypatch, False, [*ROWS, (14.0, "lower", 2.0)])
    assert text.splitlines() == [
        "compile: lower, about 9 s left",
        "compile: lower, about 2 s left",
        "compile: lower 13.0 s",
        "compile: done in 14.0 s",
    ]
