"""C and C++ programs of users, built against what `cmake --install` puts down, run saved files."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import hetnn
from serve.from_c import answer_where_there_is_no_python, save_services

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build" / "release"
PROGRAMS = ROOT / "tests" / "installed"
# Of the stripped runtime library: half a million are factors of matrices, by Eigen, 0.15 million products of integers
# for four instruction sets, 50 thousand n-ary steps in f32, f16 and bf16, 60 thousand products with weights in blocks
# and of f16 and bf16, 8 thousand subtractions that multiply nothing, 45 thousand integers in blocks, maxima of regions,
# conditions that a run must fulfil and sums behind integer layers, 60 thousand tiles of evenly spaced rows, 25
# thousand convolutions of narrow groups, 53 thousand the sentences in which kernels refuse calls, 44 thousand
# comparisons, logic and operations on bits, 8 thousand a table of element types and what is asked of scales, 120
# thousand elementwise functions of a product's tiles and depthwise tiles of two rows, 25 thousand products of bytes
# by tiles, 17 thousand those of bf16, 41 thousand layers by their device's clock, values out of a program and the
# report's further keys, 102 thousand norms over batches, gradients of pools and thresholds, 201 thousand what the
# compiler's module uses of the floors that it no longer has itself, 12 thousand sums of bytes that stay real, 4
# thousand bodies that are written and loops that append, 4 thousand images as a device in C takes them, 20 thousand
# what is written in the place of what it is computed from and what is computed again for gradients, 20 thousand
# channels in another order and movements that are left out, 61 thousand convolutions over the planes of an image and
# permutations of pixels' channels, 37 thousand slopes among the registers of other convolutions and transpositions of
# few columns, 17 thousand tiles of Winograd's that are summed directly, 133 thousand products and convolutions of bf16
# by pairs, 21 thousand their sums and first layers, 58 thousand depthwise tiles of seven pixels, 11 thousand softmaxes
# of rows with masks, 21 thousand sums of halves by four vectors, 3 thousand pixels of bytes and of halves
# from planes, 8 thousand a file's texts, 22 thousand convolutions each of whose algorithms says what it serves and
# takes, and what else could have run, 88 thousand Winograd's transforms and products of bytes, 45 thousand
# comparisons, choices and truth values within launches, 230 thousand 34 special functions, each a row with all that
# comes of it and half of them in vectors, and the functions of f64 on all threads, 29 thousand batches in blocks and
# what products, attention and moves take, 6 thousand nan_to_num; an operator on texts or paths is some 6000.
MOST_BYTES = 6_756_000


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def exported_symbols(library: Path) -> list[str]:
    lines = run("nm", "-DC", "--defined-only", library).splitlines()
    return [line.split(" ", 2)[2].split("@")[0] for line in lines]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prefix with the component `runtime`, moved after it was installed."""
    folder = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", folder / "first", "--component", "runtime")
    return Path(shutil.move(folder / "first", folder / "moved"))


@pytest.fixture(scope="module")
def cmake_dir(prefix: Path) -> Path:
    (found,) = prefix.rglob("hetnn-config.cmake")
    return found.parent


@pytest.fixture(scope="module")
def programs(cmake_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    run("cmake", "-S", PROGRAMS, "-B", folder, f"-Dhetnn_DIR={cmake_dir}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", folder)
    return folder


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5), nn.Sigmoid()).eval()
    path = tmp_path_factory.mktemp("network") / "network.hetnn"
    exported = torch.export.export(model, (torch.zeros(1, 3, 8, 8),))
    hetnn.compile(exported, "cpu+relu-only", strategy="take-all", threads=1).save(path)
    return path


def expected(network: Path) -> np.ndarray:
    x = np.arange(192, dtype=np.float32).reshape(1, 3, 8, 8) / 8
    return np.asarray(hetnn.load(network, threads=1)(x)).ravel()


def printed(text: str) -> np.ndarray:
    return np.array([float(line) for line in text.split()], np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("program", ["run_c", "run_cpp", "run_static"])
def test_a_program_runs_a_saved_file(programs: Path, network: Path, program: str) -> None:
    np.testing.assert_array_equal(printed(run(programs / program, network, env={})), expected(network))


@pytest.mark.slow
def test_programs_run_the_services_where_there_is_no_python(programs: Path, tmp_path: Path) -> None:
    for name, case in save_services(tmp_path).items():
        for program in ("service_c", "service_cpp"):
            assert answer_where_there_is_no_python(programs / program, case, tmp_path) == case.answers, (name, program)


def for_another_device(path: Path, kind: str) -> None:
    """Makes a file of one subprogram a file for a device of that kind, with hashes that fit."""
    image = path.read_bytes()
    length = int.from_bytes(image[:8], "little")
    header, data = json.loads(image[8 : 8 + length]), image[8 + length :]
    texts = header["__metadata__"]
    program = json.loads(texts["program"])
    (part,) = program["subprograms"]
    part |= {"device": f"{kind}0", "kind": kind, "version": 1}
    texts["program"] = json.dumps(program, separators=(",", ":"))
    hashed = "".join(f"{k}:{len(v.encode())}:{v}" for k, v in texts.items() if k != "metadata_hash")
    texts["metadata_hash"] = hashlib.sha256(hashed.encode()).hexdigest()
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-(8 + len(text)) % 64)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


@pytest.mark.slow
def test_a_vendor_adds_a_device_in_c(programs: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.hetnn"
    hetnn.compile(torch.export.export(nn.ReLU(), (torch.zeros(2, 3),)), "cpu").save(path)
    for_another_device(path, "doubler")
    assert printed(run(programs / "run_device", path)).tolist() == [0, 2, 4, 6, 8, 10]
    with pytest.raises(hetnn.InvalidModel, match="its code is for a device of kind 'doubler'; the kinds that run here"):
        hetnn.load(path)


@pytest.mark.slow
def test_a_program_is_told_what_is_wrong(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "none.hetnn").write_bytes(b"nonsense")
    for program in ("run_c", "run_cpp"):
        done = subprocess.run([programs / program, tmp_path / "none.hetnn"], capture_output=True, text=True)
        assert done.returncode == 1
        assert "none.hetnn" in done.stderr


def compiled(name: str, prefix: Path, folder: Path) -> Path:
    """A C program of tests/installed, built with what pkg-config says."""
    (found,) = prefix.rglob("hetnn-runtime.pc")
    env = {**os.environ, "PKG_CONFIG_PATH": str(found.parent)}
    flags = run("pkg-config", "--cflags", "--libs", "hetnn-runtime", env=env).split()
    run("cc", "-std=c99", "-Wall", "-Werror", PROGRAMS / f"{name}.c", *flags, "-o", folder / name)
    return folder / name


def test_pkg_config_finds_the_library(prefix: Path, network: Path, tmp_path: Path) -> None:
    program = compiled("run", prefix, tmp_path)
    np.testing.assert_array_equal(printed(run(program, network, env={})), expected(network))


@pytest.mark.parametrize("optimizer", ["momentum", "adamw"])
def test_a_c_program_trains(prefix: Path, tmp_path: Path, optimizer: str) -> None:
    """Its losses fall and are Python's bit for bit, as are the weights that it reads, and those in its file."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
    step = hetnn.compile_training(model, (torch.zeros(12, 8),), loss="mse", optimizer=optimizer, lr=1.0, threads=1)
    step.save(tmp_path / "step.hetnn")
    told = (tmp_path / "step.hetnn", "model.2.weight", "30", "0.02", tmp_path / "learnt.hetnn")
    got = printed(run(compiled("train", prefix, tmp_path), *told, env={}))

    x = ((7 * np.arange(96) % 23).astype(np.float32) / np.float32(23) - np.float32(0.5)).reshape(12, 8)
    y = np.repeat(np.add.accumulate(x, axis=1)[:, -1:] / np.float32(8), 2, axis=1)
    step.learning_rate = 0.02
    losses = np.array([step(x, y) for _ in range(30)], np.float32)
    np.testing.assert_array_equal(got[:30], losses)
    assert got[29] < got[0] / 2
    np.testing.assert_array_equal(got[30:].reshape(2, 16), step.parameters()["2.weight"])
    learnt = hetnn.load(tmp_path / "learnt.hetnn", threads=1)
    for name, value in step.state_dict().items():
        np.testing.assert_array_equal(learnt.state(name), value, err_msg=name)
    assert float(learnt(x, y)) == step(x, y)


def test_the_library_exports_only_its_own_names(prefix: Path) -> None:
    (library,) = prefix.rglob("libhetnn_runtime.so.1")
    names = exported_symbols(library)
    assert "hetnn_run" in names
    own = ("hetnn_", "hetnn::", "typeinfo for hetnn::", "typeinfo name for hetnn::", "vtable for hetnn::")
    assert [name for name in names if not name.startswith(own)] == []


def test_the_library_needs_little(prefix: Path) -> None:
    (library,) = prefix.rglob("libhetnn_runtime.so.1")
    needed = [line.split("[")[1].rstrip("]") for line in run("readelf", "-d", library).splitlines() if "NEEDED" in line]
    allowed = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
    assert set(needed) <= allowed


def test_the_library_is_small(prefix: Path, tmp_path: Path) -> None:
    (library,) = prefix.rglob("libhetnn_runtime.so.1")
    run("strip", "-o", tmp_path / "stripped", library)
    assert (tmp_path / "stripped").stat().st_size <= MOST_BYTES


def test_the_guides_program_builds_as_it_stands(cmake_dir: Path, tmp_path: Path) -> None:
    """With the compiler's own default of the language: the library says which one its header needs."""
    page = (Path(__file__).parents[3] / "docs" / "cpp.md").read_text(encoding="utf-8")
    program, lines = (page.split(f"```{kind}\n", 1)[1].split("```")[0] for kind in ("cpp", "cmake"))
    (tmp_path / "my_program.cpp").write_text(program)
    head = "cmake_minimum_required(VERSION 3.22)\nproject(x LANGUAGES CXX)\nadd_executable(my_program my_program.cpp)\n"
    for library in ("runtime", "runtime_static"):
        text = lines.replace("hetnn::runtime)", f"hetnn::{library})")
        (tmp_path / "CMakeLists.txt").write_text(head + text)
        run("cmake", "-S", tmp_path, "-B", tmp_path / library, f"-Dhetnn_DIR={cmake_dir}")
        run("cmake", "--build", tmp_path / library)
        done = subprocess.run([tmp_path / library / "my_program"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1
        assert "network.hetnn" in done.stderr  # there is none


def test_an_absent_component_is_named(cmake_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(x LANGUAGES CXX)\n"
        "find_package(hetnn REQUIRED COMPONENTS nothing)\n"
    )
    done = subprocess.run(
        ["cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-Dhetnn_DIR={cmake_dir}"], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "installed here without the component 'nothing'" in done.stderr.replace("\n", " ").replace("  ", " ")


@pytest.mark.slow
def test_components_together_are_the_python_package(tmp_path: Path) -> None:
    for component in ("runtime", "python"):
        run("cmake", "--install", BUILD, "--prefix", tmp_path, "--component", component)
    (package,) = tmp_path.rglob("hetnn/__init__.py")
    assert not [*package.parent.glob("_core.*.so")]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{package.parents[1]}:{Path(np.__file__).parents[1]}"}
    code = "import hetnn, sys; print(hetnn.__file__, hetnn.load(sys.argv[1]).outputs)"
    text = "graph @d {stage = imported} (%x: f32[2]) -> (%y) {\n  %y = add(%x, %x) : f32[2]\n}\n"
    hetnn.compile(text).save(tmp_path / "double.hetnn")
    assert str(package) in run(sys.executable, "-S", "-c", code, tmp_path / "double.hetnn", env=env)
    run("cmake", "--install", BUILD, "--prefix", tmp_path, "--component", "compiler")
    code = "import hetnn, numpy, sys; print(hetnn.compile(sys.argv[1]).run([numpy.ones(2, 'f4')]))"
    assert "2." in run(sys.executable, "-S", "-c", code, text, env=env)
