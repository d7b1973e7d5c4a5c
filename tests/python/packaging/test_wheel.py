"""The wheel of `make wheel` is complete, self-contained, and runs where there is no torch."""

from __future__ import annotations

import base64
import csv
import hashlib
import shlex
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from serve.from_c import answer_where_there_is_no_python, save_services

ROOT = Path(__file__).resolve().parents[3]
MOST_BYTES = 8_000_000


@pytest.fixture(scope="module")
def wheel() -> Path:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheels = sorted((ROOT / "dist").glob(f"hetnn-*-{python}-{python}-*.whl"))
    assert wheels, f"dist/ holds no wheel of {python}; `make wheel` (or `make test`) makes it"
    return wheels[-1]


@pytest.fixture(scope="module")
def fresh_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that holds the wheel and what it requires, nothing else."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", str(wheel)], check=True)
    return python


def run(python: Path, code: str, *args: str) -> str:
    done = subprocess.run([python, "-c", code, *args], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_the_package_and_nothing_of_the_build(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"hetnn/__init__.py", "hetnn/py.typed", "hetnn/_core.pyi", "hetnn/_runtime.pyi", "hetnn/_store.pyi"} <= set(
        names
    )
    modules = [
        name
        for name in names
        if name.startswith(("hetnn/_core.", "hetnn/_runtime.", "hetnn/_store.")) and name.endswith(".so")
    ]
    assert len(modules) == 3
    strangers = [n for n in names if not n.startswith(("hetnn/", "hetnn.libs/", "hetnn-"))]
    assert strangers == []
    built = [n for n in names if n.endswith((".cpp", ".h", ".cmake")) and not n.startswith("hetnn/lib/")]
    headers = ["backend.h", "hetnn.h", "store.h"]
    assert built == ["hetnn/backends/ethos_u/sources/hetnn_ethos.h", *(f"hetnn/include/hetnn/{h}" for h in headers)]
    assert {"hetnn/lib/libhetnn_runtime.so.1", "hetnn/lib/cmake/hetnn/hetnn-config.cmake"} <= set(names)


def test_the_archive_that_few_link_lies_apart(wheel: Path) -> None:
    assert [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".a")] == []
    assert (wheel.parent / "apart" / "libhetnn_runtime.a").exists()
    assert wheel.stat().st_size < MOST_BYTES


def test_symbols_lie_apart_where_debuggers_look_for_them(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        libraries = [name for name in opened.namelist() if name.startswith("hetnn/") and ".so" in Path(name).suffixes]
        opened.extractall(tmp_path, libraries)
    assert len(libraries) == 5
    for name in libraries:
        notes = subprocess.run(["readelf", "-SWn", tmp_path / name], check=True, capture_output=True, text=True).stdout
        number = notes.partition("Build ID: ")[2].split()[0]
        assert ".symtab" not in notes
        apart = wheel.parent / "apart" / "debug" / ".build-id" / number[:2] / f"{number[2:]}.debug"
        kept = subprocess.run(["readelf", "-SWn", apart], check=True, capture_output=True, text=True).stdout
        assert ".symtab" in kept
        assert f"Build ID: {number}" in kept


def test_licences_of_all_that_is_linked_come_along(wheel: Path) -> None:
    texts = {
        "eigen": "Mozilla Public License",
        "highway": "Apache",
        "nlohmann-json": "Permission is hereby granted, free of charge",
        "openssl": "Apache",
        "pybind11": "Wenzel Jakob",
        "sqlite": "public domain",
    }
    with zipfile.ZipFile(wheel) as opened:
        names = [name for name in opened.namelist() if "/licenses/third_party/" in name]
        found = {Path(name).stem: opened.read(name).decode() for name in names}
        stated = opened.read(next(n for n in opened.namelist() if n.endswith(".dist-info/METADATA"))).decode()
    assert found.keys() >= texts.keys()
    assert [name for name, words in texts.items() if words not in found[name]] == []
    assert [name for name in found if f"License-File: third_party/{name}.txt" not in stated] == []


def test_the_record_names_every_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        record = next(name for name in opened.namelist() if name.endswith(".dist-info/RECORD"))
        rows = csv.reader(opened.read(record).decode().splitlines())
        sums = {name: digest for name, digest, _ in rows}
        held = {name for name in opened.namelist() if not name.endswith("/")}
        assert {name for name in sums if not name.endswith("/")} == held
        for name in held - {record}:
            digest = base64.urlsafe_b64encode(hashlib.sha256(opened.read(name)).digest()).rstrip(b"=").decode()
            assert sums[name] == f"sha256={digest}", name


@pytest.mark.slow
def test_it_is_uninstalled_without_a_rest(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path, with_pip=True)
    pip = [tmp_path / "bin" / "python", "-m", "pip", "-q"]
    subprocess.run([*pip, "install", "--no-deps", str(wheel)], check=True)
    assert list(tmp_path.glob("lib/python*/site-packages/hetnn*"))
    subprocess.run([*pip, "uninstall", "-y", "hetnn"], check=True)
    assert list(tmp_path.glob("lib/python*/site-packages/hetnn*")) == []
    assert not (tmp_path / "bin" / "hetnn").exists()


def test_the_wheel_is_self_contained(wheel: Path) -> None:
    """auditwheel names a manylinux platform only when every library is inside or is part of any Linux."""
    assert "manylinux" in wheel.name
    inside = [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("hetnn.libs/lib")]
    # Threads are hetnn's own: a second OpenMP in a process would spin against torch's.
    assert not [name for name in inside if "omp" in name]


@pytest.mark.slow
def test_it_imports_without_torch(fresh_python: Path) -> None:
    code = "import importlib.util, hetnn._core, hetnn._runtime, hetnn._store; print(importlib.util.find_spec('torch'))"
    assert run(fresh_python, code) == "None\n"


@pytest.mark.slow
def test_the_command_is_installed(fresh_python: Path) -> None:
    done = subprocess.run([fresh_python.parent / "hetnn", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == "hetnn 0.1.0\n"


def modules_after(code: str) -> set[str]:
    """The modules that a new process of this interpreter holds after `code`."""
    done = run(Path(sys.executable), f"import sys\n{code}\nprint(*sys.modules)")
    return set(done.split())


def test_importing_hetnn_loads_neither_compiler_nor_torch() -> None:
    loaded = modules_after("import hetnn")
    assert not loaded & {"torch", "numpy", "hetnn._core", "hetnn._runtime"}


def test_the_runtime_does_not_bring_the_compiler() -> None:
    loaded = modules_after("import hetnn._runtime")
    assert "hetnn._runtime" in loaded
    assert not loaded & {"torch", "hetnn._core", "hetnn.api"}


def test_programs_built_from_the_wheel_run_the_services(fresh_python: Path, tmp_path: Path) -> None:
    def config(flag: str) -> str:
        asked = [fresh_python, "-m", "hetnn", "config", flag]
        return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()

    build, source = tmp_path / "build", ROOT / "tests" / "installed"
    subprocess.run(["cmake", "-S", source, "-B", build, f"-Dhetnn_DIR={config('--cmakedir')}"], check=True)
    subprocess.run(["cmake", "--build", build], check=True)
    by_flags = tmp_path / "by_flags"
    flags = [*shlex.split(config("--includes")), *shlex.split(config("--libs"))]
    subprocess.run(["cc", "-std=c99", source / "service.c", *flags, "-o", by_flags], check=True)
    for name, case in save_services(tmp_path).items():
        for program in (build / "service_c", build / "service_cpp", by_flags):
            assert answer_where_there_is_no_python(program, case, tmp_path) == case.answers, (name, program)
