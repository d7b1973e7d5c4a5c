"""What long work says while it lasts: each pass, and the time that is left."""

from __future__ import annotations

import io
import itertools
import sys
import time
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
import torch

import hetnn
from hetnn import progress as steps
from hetnn.cli import progress
from hetnn.cli.progress import Progress
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
    assert list(dict.fromkeys(told)) == ["import", "calibrate", "quantize"]


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
