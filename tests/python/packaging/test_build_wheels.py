"""`make wheels` finds an interpreter of each version by itself, or says which it did not get."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import build_wheels


def program(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a Python: nothing on the path, in pyenv, or that uv has got."""
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    return tmp_path


def test_a_name_on_the_path_that_does_not_run_hides_none_behind_it(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{bare / 'shims'}:{bare / 'bin'}")
    for version in ("3.10", "3.11", "3.12", "3.13", "3.14"):
        program(bare / "shims" / f"python{version}", "echo 'python: command not found' >&2; exit 127")
    found = [
        program(bare / "bin" / "python3.10", "echo 3.10"),
        program(bare / "pyenv" / "versions" / "3.12.1" / "bin" / "python", "echo 3.12"),
        program(bare / "uv" / "cpython-3.13.2-linux-x86_64-gnu" / "bin" / "python", "echo 3.13"),
    ]
    pythons, missing = build_wheels.pythons_here()
    assert pythons == found
    assert [sentence.partition(":")[0] for sentence in missing] == [
        "no wheel for Python 3.11",
        "no wheel for Python 3.14",
    ]
    assert "uv, which fetches interpreters, is not installed" in missing[0]


def test_uv_is_asked_for_what_is_missing(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{bare / 'shims'}:/bin:/usr/bin")
    monkeypatch.setattr(build_wheels, "VERSIONS", ("3.95", "3.96"))
    made = bare / "uv" / "cpython-3.95.0-linux" / "bin"
    script = f"""
test "$1 $2 $3" = "python install 3.95" || {{ echo 'error: no download of 3.96' >&2; exit 2; }}
mkdir -p {made} && printf '#!/bin/sh\\necho 3.95\\n' > {made}/python && chmod +x {made}/python"""
    program(bare / "shims" / "uv", script)
    pythons, missing = build_wheels.pythons_here()
    assert pythons == [str(made / "python")]
    assert missing == [
        "no wheel for Python 3.96: it is not here, and cannot be fetched (uv: error: no download of 3.96)"
    ]


def test_the_interpreter_at_work_is_of_its_version() -> None:
    assert build_wheels.version_of(sys.executable) == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert subprocess.run([sys.executable, build_wheels.__file__, "--help"], capture_output=True).returncode == 0


def test_all_are_built_by_one_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what has no Python in it is compiled again for each: builds take the names that their Python has for it."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("CXX", "clang++")
    monkeypatch.setattr(build_wheels.sysconfig, "get_config_var", {"CC": "gcc -pthread"}.get)
    assert build_wheels.compilers() == {"CC": "gcc", "CXX": "clang++"}
