"""A compiler written in C, built outside the tree against the installed headers: planned with, run, saved, refused."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from backends import c_vendor
from hetnn.backends import Library, registry
from hetnn.errors import InvalidModel, Unavailable

TEXT = (
    "graph @g {stage = imported} (%x: f32[n,12]) -> (%y) {\n  %a = relu(%x) : f32[n,12]\n"
    "  %b = sin(%a) : f32[n,12]\n  %y = relu(%b) : f32[n,12]\n}"
)
X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 12)
Y = np.maximum(np.sin(np.maximum(X, 0)), 0)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("vendor") / "libvendor.so"
    told = subprocess.run([sys.executable, "-m", "hetnn", "config", "--includes"], capture_output=True, text=True)
    words = ["gcc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", *shlex.split(told.stdout)]
    subprocess.run([*words, str(Path(__file__).with_name("vendor.c")), "-o", str(out)], check=True)
    return out


@pytest.fixture(autouse=True)
def registered(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = dict(registry._given)
    monkeypatch.setenv("HETNN_TEST_VENDOR", str(built))
    monkeypatch.setattr(c_vendor.Vendor, "path", str(built))
    hetnn.register_backend("vendor", c_vendor.Vendor)
    yield
    registry._given.clear()
    registry._given.update(before)


def compiled(text: str = TEXT.replace("[n,", "[2,"), **spec: Any) -> hetnn.Executable:
    devices = [{"name": "cpu", "kind": "cpu"}, {"name": "v", "kind": "vendor", "spec": spec}]
    return hetnn.compile(text, {"name": "mine", "devices": devices}, strategy="take-all")


def devices(exe: hetnn.Executable) -> list[str]:
    return [row["device"] for row in exe.report("dict")["subgraphs"]]


@pytest.mark.parametrize("isolate", [False, True])
def test_it_compiles_runs_and_is_kept(isolate: bool, tmp_path: Path) -> None:
    exe = compiled(isolate=isolate)
    assert devices(exe) == ["v", "cpu", "v"]
    np.testing.assert_allclose(exe(X), Y, atol=1e-6)
    assert "it has relu alone" in exe.report("json")
    exe.save(tmp_path / "x.hetnn")
    np.testing.assert_array_equal(hetnn.load(tmp_path / "x.hetnn")(X), exe(X))


def test_sizes_may_stay_open() -> None:
    text = TEXT.replace("{stage = imported}", "{stage = imported, symbols = [n: 1..9 = 2]}")
    exe = compiled(text)
    for rows in (1, 2, 7):
        x = np.resize(X, (rows, 12))
        np.testing.assert_allclose(exe(x), np.maximum(np.sin(np.maximum(x, 0)), 0), atol=1e-6)


def test_what_it_refuses_is_a_reason() -> None:
    exe = compiled(**{"break": "compile"})
    assert devices(exe) == ["cpu"]
    assert "one in, one out" in exe.report("json")


@pytest.mark.parametrize(
    ("at", "error", "sentence"),
    [
        ("run", Unavailable, "device 'v': the cable is out"),
        ("shape", InvalidModel, r"returned float32\(2,\) as"),
    ],
)
def test_what_fails_in_a_run_ends_it(at: str, error: type[Exception], sentence: str) -> None:
    exe = compiled(**{"break": at})
    with pytest.raises(error, match=sentence):
        exe(X)


def test_what_cannot_begin_says_why() -> None:
    with pytest.raises(Unavailable, match="device 'v': the board is not plugged in"):
        compiled(**{"break": "make"})


def test_a_crash_is_its_own() -> None:
    exe = compiled(isolate=True, **{"break": "crash"})
    with pytest.raises(Unavailable, match="its process was ended by SIGSEGV in a run"):
        exe(X)


def test_what_is_no_such_library_says_so(tmp_path: Path) -> None:
    other = tmp_path / "libother.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", str(other)], check=True)

    class Absent(Library):
        path = tmp_path / "libabsent.so"

    class Other(Library):
        path = other

    for kind, made, sentence in (
        ("absent", Absent, "cannot open"),
        ("other", Other, "must export hetnn_backend_entry"),
    ):
        hetnn.register_backend(kind, made)
        with pytest.raises(Unavailable, match=sentence):
            hetnn.compile(TEXT.replace("[n,", "[2,"), f"cpu+{kind}")
