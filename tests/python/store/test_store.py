"""The store: what is kept is found and runs the same; kills, damage, full disks and rivals cost nothing."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from faults import ROUNDS
from hetnn.cli import main

SIZES = (2, 3)
X = np.arange(6, dtype=np.float32).reshape(SIZES)


def net(factor: int) -> hetnn.Executable:
    """y = factor x, for x ≥ 0."""
    terms = [f"  %y{k} = add(%x, %y{k - 1}) : f32[2,3]\n" for k in range(1, factor)]
    body = "".join(["  %y0 = relu(%x) : f32[2,3]\n", *terms, f"  %y = relu(%y{factor - 1}) : f32[2,3]\n"])
    return hetnn.compile(f"graph @scale {{stage = imported}} (%x: f32[2,3]) -> (%y) {{\n{body}}}\n")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Executables that multiply by 1, 2 and 3."""
    folder = tmp_path_factory.mktemp("files")
    out = []
    for factor in (1, 2, 3):
        net(factor).save(folder / f"{factor}.hetnn")
        out.append(folder / f"{factor}.hetnn")
    return out


def call(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> tuple[int, Any]:
    capsys.readouterr()
    status = main(["store", *map(str, argv), "--json"])
    return status, json.loads(capsys.readouterr().out)


def python(code: str, *argv: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, argv)], check=check, capture_output=True, text=True, timeout=120
    )


def test_run_finds_the_version_and_answers_by_name(store: hetnn.Store, files: list[Path]) -> None:
    assert store.add("net", files[0]) == 1
    assert store.add("net", hetnn.load(files[1])) == 2
    np.testing.assert_array_equal(store.run("net", {"x": X})["y"], 2 * X)
    np.testing.assert_array_equal(store.run("net", {"x": X}, version=1)["y"], X)
    assert store.load("net") is store.load("net", 2)
    with pytest.raises(hetnn.InvalidModel, match="holds no network 'net' version 3"):
        store.run("net", {"x": X}, version=3)
    with pytest.raises(hetnn.InvalidModel, match="those by name must be x"):
        store.run("net", {"z": X})


def test_the_commands_print_what_the_class_returns(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, files: list[Path]
) -> None:
    path = tmp_path / "store"
    status, added = call(capsys, "--path", path, "add", "net", files[0], "--version", "4")
    assert (status, added["version"], added["target"]) == (0, 4, "cpu")
    store = hetnn.Store(path)
    status, listed = call(capsys, "--path", path, "list")
    assert listed == store.list() == {"networks": [{"network": "net", "versions": [4], "bytes": added["bytes"]}]}
    status, deployed = call(capsys, "--path", path, "deploy", "net:4", "cpu")
    status, shown = call(capsys, "--path", path, "show", "net")
    assert deployed == shown == store.association("net")
    assert list(shown) == ["network", "version", "hash", "target", "nodes", "subgraphs"]
    assert [list(node) for node in shown["nodes"]] == [["node", "op", "depth", "supports", "depends_on"]]
    assert shown["subgraphs"] == [
        {
            "index": 0,
            "device": "cpu",
            "supports": ["cpu"],
            "nodes": [node["node"] for node in shown["nodes"]],
            "depends_on": [],
            "deployed_on": ["cpu"],
        }
    ]
    call(capsys, "--path", path, "undeploy", "net")
    assert store.association("net")["subgraphs"][0]["deployed_on"] == []
    assert call(capsys, "--path", path, "verify") == (0, {"ok": True, "damaged": []})
    status, failed = call(capsys, "--path", path, "show", "net:5")
    assert (status, failed["error"]["kind"]) == (2, "InvalidModel")
    assert call(capsys, "--path", path, "rm", "net:4")[0] == 0
    assert call(capsys, "--path", path, "gc")[1] == {"files": 1, "bytes": added["bytes"]}
    assert call(capsys, "--path", path, "show", "net:x")[1]["error"]["message"].startswith("a version is a number")


def test_the_deployed_version_is_the_one_that_runs(store: hetnn.Store, files: list[Path]) -> None:
    for file in files:
        store.add("net", file)
    assert store.find("net")["version"] == 3
    store.deploy("net", version=1)
    np.testing.assert_array_equal(store.run("net", {"x": X})["y"], X)
    np.testing.assert_array_equal(store.run("net", {"x": X}, version=2)["y"], 2 * X)
    assert store.association("net")["version"] == 1
    store.deploy("net", ["cpu"], version=2)
    assert [row["version"] for row in store.deployed()] == [2]
    store.deploy("net")
    assert [row["version"] for row in store.deployed()] == [3]
    store.undeploy("net")
    assert [*store.deployed()] == []


def test_a_network_is_deployed_whole(store: hetnn.Store) -> None:
    text = "graph @r {stage = imported} (%x: f32[1,3,8,8]) -> (%y) {\n  %a = relu(%x) : f32[1,3,8,8]\n"
    text += "  %y = erf(%a) : f32[1,3,8,8]\n}\n"
    store.add("r", hetnn.compile(text, "cpu+relu-only", strategy="take-all"))
    known = {row["device"] for row in store.association("r")["subgraphs"]}
    assert known == {"cpu", "relu-only"}
    for devices in (["cpu"], ["relu-only"], ["tpu"], ["cpu", "relu-only", "tpu"]):
        with pytest.raises(hetnn.InvalidModel, match=r"runs on cpu, relu-only; got .*is deployed whole"):
            store.deploy("r", devices)
    assert [*store.deployed()] == []
    store.deploy("r", known)
    assert {row["deployed_on"][0] for row in store.association("r")["subgraphs"]} == known


def test_sizes_may_depend_on_values(store: hetnn.Store) -> None:
    """Such a subgraph is several subprograms, of which the association tells as of one."""
    text = "graph @g {stage = imported, symbols = [u: 0..9 = 4]} (%x: f32[9]) -> (%y) {\n"
    text += (
        "  %i = nonzero(%x) {count = u} : i64[u,1]\n  %r = arange() {end = u} : i64[u]\n  %y = relu(%r) : i64[u]\n}\n"
    )
    store.add("found", hetnn.compile(text, "cpu"))
    (subgraph,) = store.association("found")["subgraphs"]
    assert subgraph["depends_on"] == []
    assert {"i", "r", "y"} <= set(subgraph["nodes"])
    x = np.array([0, 3, 0, 1, 0, 0, 2, 0, 0], np.float32)
    np.testing.assert_array_equal(store.run("found", {"x": x})["y"], [0, 1, 2])


def test_a_model_is_compiled_for_the_target(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = tmp_path / "net.ir"
    model.write_text("graph @r {stage = imported} (%x: f32[1,3,8,8]) -> (%y) {\n  %y = relu(%x) : f32[1,3,8,8]\n}\n")
    status, added = call(capsys, "--path", tmp_path / "store", "add", "r", model, "--target", "cpu+relu-only")
    assert (status, added["target"]) == (0, "cpu+relu-only")


@pytest.mark.slow
@pytest.mark.fault
def test_damage_in_any_byte_is_no_wrong_answer(store: hetnn.Store, files: list[Path], tmp_path: Path) -> None:
    for file in files:
        store.add("net", file)
    store.deploy("net")
    kept = store.association("net")
    path = Path(store.path)
    # Without the copy in this process, which holds the log.
    python("import hetnn, sys; hetnn.Store(sys.argv[1]).gc()", path)
    del store
    code = (
        "import sys, json, numpy, hetnn\n"
        "store, out = hetnn.Store(sys.argv[1]), []\n"
        "x = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)\n"
        "for ask in (lambda: store.association('net'), lambda: store.run('net', {'x': x}, 1)['y'].tolist(),\n"
        "            lambda: store.verify()['ok']):\n"
        "    try: out.append(ask())\n"
        "    except hetnn.Error as error: out.append(None)\n"
        "print(json.dumps(out))\n"
    )
    rng = random.Random(5)
    wrong = []
    places = [path / "index.sqlite"] * (3 * ROUNDS) + [path / "files" / f"{kept['hash']}.hetnn"] * ROUNDS
    for number, file in enumerate(places):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(path, copy)
        target = copy / file.relative_to(path)
        data = bytearray(target.read_bytes())
        at = rng.randrange(len(data))
        data[at] ^= 1 << rng.randrange(8)
        target.write_bytes(data)
        done = python(code, copy, check=False)
        if done.returncode != 0:
            assert "hetnn.errors." in done.stderr, done.stderr  # refused when it was opened
            shutil.rmtree(copy)
            continue
        association, answer, ok = json.loads(done.stdout)
        if association not in (None, kept) or answer not in (None, X.tolist()):
            wrong.append((file.name, at))
        if file.suffix == ".hetnn":
            assert ok is False
        shutil.rmtree(copy)
    assert wrong == []


WRITE = (
    "import resource, signal, sys, hetnn\n"
    "store = hetnn.Store(sys.argv[1])\n"
    "signal.signal(signal.SIGXFSZ, signal.SIG_DFL if sys.argv[4] == 'kill' else signal.SIG_IGN)\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)\n"
    "try:\n"
    "    store.add('net', sys.argv[2]); store.deploy('net')\n"
    "except hetnn.DoesNotFit as error: sys.exit(f'DoesNotFit: {error}')\n"
)


def leave_the_first(path: Path) -> None:
    """Every version is whole; all but the first go."""
    store = hetnn.Store(path)
    assert store.verify() == {"ok": True, "damaged": []}
    versions = store.list()["networks"][0]["versions"]
    np.testing.assert_array_equal(store.run("net", {"x": X}, 1)["y"], X)
    for version in versions[1:]:
        np.testing.assert_array_equal(store.run("net", {"x": X}, version)["y"], 2 * X)
        store.remove("net", version)
    store.gc()
    assert len(os.listdir(path / "files")) == 1


@pytest.mark.slow
@pytest.mark.fault
@pytest.mark.parametrize("how", ["kill", "full"])
def test_a_write_that_ends_anywhere_leaves_what_was_there(tmp_path: Path, files: list[Path], how: str) -> None:
    """A limit on the size of files ends the process, or the write, at that byte of whichever file reaches it."""
    path = tmp_path / "store"
    hetnn.Store(path).add("net", files[0])
    size = files[1].stat().st_size
    codes = set()
    rng = random.Random(6)
    limits = [1, size // 2, size - 1, 8000, 30000, 60000, 90000, 200000]
    for limit in limits + [rng.randrange(1, 120_000) for _ in range(ROUNDS - len(limits))]:
        done = python(WRITE, path, files[1], limit, how, check=False)
        codes.add(done.returncode)
        if how == "full" and done.returncode != 0:
            assert "DoesNotFit" in done.stderr, done.stderr
        leave_the_first(path)
    assert len(codes) > 1, "no limit let a write through, or none stopped one"


@pytest.mark.slow
@pytest.mark.fault
def test_a_writer_that_is_killed_at_any_moment_leaves_what_was_there(tmp_path: Path, files: list[Path]) -> None:
    path = tmp_path / "store"
    hetnn.Store(path).add("net", files[0])
    write = (
        "import sys, hetnn\nstore = hetnn.Store(sys.argv[1])\nprint('open', flush=True)\n"
        "while True:\n"
        "    version = store.add('net', sys.argv[2]); store.deploy('net'); store.remove('net', version); store.gc()\n"
    )
    rng = random.Random(7)
    for _ in range(ROUNDS):
        command = [sys.executable, "-c", write, str(path), str(files[1])]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        time.sleep(rng.random() * 0.05)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        leave_the_first(path)


def test_a_store_of_a_newer_hetnn_is_refused(tmp_path: Path, files: list[Path]) -> None:
    path = tmp_path / "store"
    code = (
        "import sys, sqlite3\n"
        "db = sqlite3.connect(sys.argv[1] + '/index.sqlite'); db.execute('PRAGMA user_version = 99'); db.commit()\n"
    )
    python("import sys, hetnn; hetnn.Store(sys.argv[1]).add('net', sys.argv[2])", path, files[0])
    python(code, path)
    with pytest.raises(hetnn.Unsupported, match="is of version 99; this hetnn knows versions up to"):
        hetnn.Store(path).list()


def test_two_writers_take_turns_while_others_read(tmp_path: Path, files: list[Path]) -> None:
    path = tmp_path / "store"
    hetnn.Store(path).add("net", files[0])
    write = "import sys, hetnn\nstore = hetnn.Store(sys.argv[1])\nfor _ in range(20): store.add('net', sys.argv[2])\n"
    read = (
        "import sys, hetnn, numpy\nstore, seen = hetnn.Store(sys.argv[1]), 0\n"
        "x = numpy.ones((2, 3), numpy.float32)\n"
        "while seen < 41:\n"
        "    now = len(store.list()['networks'][0]['versions'])\n"
        "    assert now >= seen; seen = now\n"
        "    assert store.run('net', {'x': x})['y'][0, 0] in (1, 2, 3)\n"
    )
    argv = [[write, path, files[1]], [write, path, files[2]], [read, path]]
    running = [subprocess.Popen([sys.executable, "-c", *map(str, row)], stderr=subprocess.PIPE) for row in argv]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    assert hetnn.Store(path).list()["networks"][0]["versions"] == list(range(1, 42))


def test_a_store_works_on_both_sides_of_a_fork(store: hetnn.Store, files: list[Path]) -> None:
    store.add("net", files[0])
    child = os.fork()
    if child == 0:
        try:
            store.add("net", files[1])
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert store.list()["networks"][0]["versions"] == [1, 2]


def test_ten_thousand_networks_are_listed_and_found(store: hetnn.Store, files: list[Path]) -> None:
    store.add("a", files[0])
    # Rows of one executable, as adding 10,000 would leave them.
    code = (
        "import sqlite3, sys\n"
        "db = sqlite3.connect(sys.argv[1] + '/index.sqlite')\n"
        "row = db.execute('SELECT hash, target, bytes, row_hash, document FROM versions').fetchone()\n"
        "rows = [(f'n{k}', 1, *row) for k in range(10000)]\n"
        "db.executemany('INSERT INTO versions VALUES (?,?,?,?,?,?,?)', rows); db.commit()\n"
    )
    python(code, store.path)
    assert len(store.list()["networks"]) == 10001
    with pytest.raises(hetnn.InvalidModel, match="the store's row of 'n5' is damaged"):
        store.association("n5")
