"""A C++ program of a user, built against the installed components, runs networks by their ids."""

from __future__ import annotations

import subprocess
from pathlib import Path

import hetnn

ROOT = Path(__file__).resolve().parents[3]


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def test_a_program_runs_a_network_by_its_id(tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    for component in ("runtime", "store"):
        run("cmake", "--install", ROOT / "build/release", "--prefix", prefix, "--component", component)
    (config,) = prefix.rglob("hetnn-config.cmake")
    build = tmp_path / "build"
    run("cmake", "-S", ROOT / "tests/installed_store", "-B", build, f"-Dhetnn_DIR={config.parent}")
    run("cmake", "--build", build)
    text = "graph @d {stage = imported} (%x: f32[2]) -> (%y) {\n  %y = add(%x, %x) : f32[2]\n}\n"
    hetnn.Store(tmp_path / "store").add("double", hetnn.compile(text))
    assert run(build / "run_by_id", tmp_path / "store", "double") == "2\n2\n"
    missing = run(build / "run_by_id", tmp_path / "store", "nobody")
    assert missing.startswith("InvalidModel: the store holds no network 'nobody'")
    (library,) = prefix.rglob("libhetnn_store.so.1")
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    exported = {line.split()[2].split("@")[0] for line in lines if line.split()[1] != "A"}
    assert exported == {"hetnn_store_open", "hetnn_store_find", "hetnn_store_close"}
