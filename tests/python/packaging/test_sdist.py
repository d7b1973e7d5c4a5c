"""The source as it is published: it has what a build needs, and asks for nothing that is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pybind11
import pytest

ROOT = Path(__file__).resolve().parents[3]
SDIST = "import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    done = subprocess.run([sys.executable, "-c", SDIST, folder], cwd=ROOT, check=True, capture_output=True, text=True)
    with tarfile.open(folder / done.stdout.split()[-1]) as opened:
        opened.extractall(folder, filter="data")
    (tree,) = folder.glob("hetnn-*/")
    return tree


def test_it_has_what_a_build_needs_and_no_more(source: Path) -> None:
    names = {path.name for path in source.iterdir()}
    assert {"CMakeLists.txt", "LICENSE", "PKG-INFO", "README.md", "bindings", "cmake", "cpp", "python"} <= names
    assert not names & {".ci", ".git", ".venv", "build", "dist", "notebooks", "tests"}
    assert [path.name for path in (source / "docs").iterdir()] == ["report-schema.json"]
    assert {path.name for path in (source / "cpp" / "hetnn").iterdir()} >= {"base", "compiler", "ops", "store"}


def test_it_is_configured_without_a_net(source: Path, tmp_path: Path) -> None:
    """By installed packages alone. What would be fetched would be looked for at a proxy that is not there."""
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")
    settings = [f"-Dpybind11_DIR={pybind11.get_cmake_dir()}", f"-DPython_EXECUTABLE={sys.executable}"]
    configure = ["cmake", "-S", source, "-B", tmp_path, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *settings]
    done = subprocess.run(configure, env=os.environ | nowhere, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "_deps").exists()
    planned = subprocess.run(["ninja", "-C", tmp_path, "-n", "_core", "_store"], capture_output=True, text=True)
    assert planned.returncode == 0, planned.stdout
