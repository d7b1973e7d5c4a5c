"""Backends in a process of their own: the same answers, and crashes and hangs that are theirs alone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from backends.crashing_backend import Crashing
from backends.text_backend import TextBackend
from hetnn.backends import registry
from hetnn.errors import InvalidModel, Unavailable

TEXT = (
    "graph @g {stage = imported} (%x: f32[2,12]) -> (%y) {\n  %a = relu(%x) : f32[2,12]\n"
    "  %b = sin(%a) : f32[2,12]\n  %y = relu(%b) : f32[2,12]\n}"
)
X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 12)
Y = np.maximum(np.sin(np.maximum(X, 0)), 0)
LIMITS = {"run_s": 0.5}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    before = dict(registry._given)
    hetnn.register_backend("crashing", Crashing)
    yield
    registry._given.clear()
    registry._given.update(before)


def target(isolate: Any = True, **spec: Any) -> dict[str, Any]:
    device = {"name": "t", "kind": "crashing", "spec": {"isolate": isolate, **spec}}
    return {"name": "mine", "devices": [{"name": "cpu", "kind": "cpu"}, device]}


def compiled(**spec: Any) -> hetnn.Executable:
    return hetnn.compile(TEXT, target(**spec), strategy="take-all")


def devices(exe: hetnn.Executable) -> set[str]:
    return {row["device"] for row in exe.report("dict")["subgraphs"]}


def test_it_computes_the_same_and_a_file_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    exe = compiled()
    assert devices(exe) == {"cpu", "t"}
    np.testing.assert_allclose(exe(X), Y, atol=1e-6)
    exe.save(tmp_path / "x.hetnn")
    np.testing.assert_array_equal(hetnn.load(tmp_path / "x.hetnn")(X), exe(X))
    assert "greeting" not in capfd.readouterr().out


def test_its_refusals_are_reasons(tmp_path: Path) -> None:
    exe = compiled(refuses="relu")
    assert devices(exe) == {"cpu"}
    assert "no room" in exe.report("json")
    assert "the text device has no sin" in exe.report("json")


@pytest.mark.parametrize(
    ("way", "sentence"),
    [("crash", "was ended by SIGSEGV while it compiled"), ("exit", "ended with 3"), ("raise", "ZeroDivisionError")],
)
def test_a_compiler_that_breaks_is_a_reason(way: str, sentence: str) -> None:
    exe = compiled(at="compile", way=way)
    assert devices(exe) == {"cpu"}
    assert sentence in exe.report("json")
    np.testing.assert_allclose(exe(X), Y, atol=1e-6)


def test_a_compiler_that_hangs_is_ended() -> None:
    exe = compiled(isolate={"compile_s": 3}, at="compile", way="hang")
    assert devices(exe) == {"cpu"}
    assert "did not answer within 3 s and was ended while it compiled" in exe.report("json")


@pytest.mark.parametrize(
    ("way", "sentence"),
    [
        ("crash", r"device 't': its process was ended by SIGSEGV in a run"),
        ("exit", r"device 't': its process ended with 3 in a run"),
        ("hang", r"device 't': its process did not answer within 0.5 s and was ended in a run"),
        ("raise", r"device 't': ZeroDivisionError"),
    ],
)
def test_a_run_that_breaks_is_unavailable_and_the_next_begins_anew(way: str, sentence: str, tmp_path: Path) -> None:
    exe = compiled(isolate=LIMITS, at="run", way=way, once=str(tmp_path / way))
    began = time.monotonic()
    with pytest.raises(Unavailable, match=sentence):
        exe(X)
    assert time.monotonic() - began < 20
    for _ in range(2):
        np.testing.assert_allclose(exe(X), Y, atol=1e-6)


def test_with_a_fallback_the_cpu_answers(tmp_path: Path) -> None:
    exe = hetnn.compile(TEXT, target(at="run", way="crash"), strategy="take-all", fallback="cpu")
    np.testing.assert_allclose(exe(X), Y, atol=1e-6)
    assert any(row["fallback"] for row in exe.last_times)


@pytest.mark.parametrize("at", ["make", "open"])
def test_what_cannot_begin_is_unavailable(at: str) -> None:
    with pytest.raises(Unavailable, match=r"device 't': its process was ended by SIGSEGV while it"):
        compiled(at=at, way="crash")


def test_its_process_ends_with_the_executable() -> None:
    exe = compiled(node_us=0.02)
    exe(X)
    (process,) = {one for one in _processes() if one.told}
    number = process._child.pid
    del exe, process
    until = time.monotonic() + 20
    while time.monotonic() < until and os.path.exists(f"/proc/{number}"):
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{number}")


def _processes() -> list[Any]:
    import gc

    from hetnn.backends import isolated

    gc.collect()
    return list(isolated._processes.values())


def test_a_factory_that_no_other_process_finds_is_refused() -> None:
    class Local(TextBackend):
        pass

    with pytest.raises(InvalidModel, match="must be importable there"):
        hetnn.register_backend("local", Local, isolate=True)
    with pytest.raises(InvalidModel, match=r"isolate is true, false, or seconds .* found 'yes'"):
        hetnn.register_backend("local", Local, isolate="yes")  # type: ignore[arg-type]


def test_a_kind_may_be_registered_so() -> None:
    hetnn.register_backend("text", TextBackend, isolate=True)
    exe = hetnn.compile(TEXT, "cpu+text", strategy="take-all")
    assert devices(exe) == {"cpu", "text"}
    np.testing.assert_allclose(exe(X), Y, atol=1e-6)
    assert any(one._made_of["kind"] == "text" for one in _processes())
