"""Weights that versions of a network share in a store: kept once, told apart, and never lost while one needs them."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import hetnn
from faults import ROUNDS
from hetnn import _runtime
from serve.server import serving
from store.test_store import WRITE, net, python


class Wide(torch.nn.Module):
    """Some 800 kB of weights, in front of what a second version adds."""

    def __init__(self, version: int) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(3)))
        self.version = version

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layers(x)
        return y if self.version == 1 else y.abs()


WIDE_X = np.linspace(-1, 1, 512, dtype=np.float32).reshape(2, 256)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Executables of both versions, with equal weights."""
    folder = tmp_path_factory.mktemp("wide")
    out = []
    for version in (1, 2):
        exported = torch.export.export(Wide(version).eval(), (torch.zeros(2, 256),), strict=False)
        out.append(folder / f"{version}.hetnn")
        hetnn.compile(exported, "cpu").save(out[-1])
    return out


def size_of(store: hetnn.Store) -> int:
    return sum(file.stat().st_size for file in (Path(store.path) / "files").iterdir())


def output(store: hetnn.Store, version: int) -> np.ndarray:
    (found,) = store.run("wide", {store.load("wide", version).inputs[0].name: WIDE_X}, version).values()
    return found


def test_versions_share_equal_weights(store: hetnn.Store, wide: list[Path]) -> None:
    store.add("wide", wide[0])
    alone = size_of(store)
    assert 0.9 * wide[0].stat().st_size < alone < 1.1 * wide[0].stat().st_size
    store.add("wide", wide[1])
    both = size_of(store)
    assert alone < both < 1.1 * alone
    assert store.list()["networks"] == [{"network": "wide", "versions": [1, 2], "bytes": both}]
    want = [np.asarray(hetnn.load(path)(WIDE_X)) for path in wide]
    np.testing.assert_array_equal(want[1], abs(want[0]))
    for version in (1, 2):
        np.testing.assert_array_equal(output(store, version), want[version - 1])
    store.add("other", wide[0])  # the same executable under another id is no byte
    assert size_of(store) == both
    assert store.verify() == {"ok": True, "damaged": []}
    for id, version in (("wide", 1), ("other", 1)):
        store.remove(id, version)
    assert store.gc()["bytes"] < 0.1 * alone
    np.testing.assert_array_equal(output(store, 2), want[1])
    assert store.verify()["ok"]
    store.remove("wide")
    store.gc()
    assert size_of(store) == 0


def test_an_executable_leaves_the_store_whole(store: hetnn.Store, wide: list[Path], tmp_path: Path) -> None:
    store.add("wide", wide[0])
    path = Path(store.find("wide")["path"])
    assert path.stat().st_size < 0.1 * wide[0].stat().st_size
    loaded = hetnn.load(path, copy=True)
    loaded.save(tmp_path / "whole.hetnn")
    assert (tmp_path / "whole.hetnn").read_bytes() == wide[0].read_bytes()
    again = pickle.loads(pickle.dumps(hetnn.load(path)))
    np.testing.assert_array_equal(again(WIDE_X), loaded(WIDE_X))
    assert store.add("wide", path, version=1) == 1  # it is the one that is there
    with pytest.raises(hetnn.InvalidModel, match="stand in a file of their own, which is sought beside the executable"):
        hetnn.Executable.from_image(path.read_bytes())


def parts(store: hetnn.Store) -> list[Path]:
    return sorted((Path(store.path) / "files").glob("*.weights"))


@pytest.mark.parametrize("damage", ["altered", "gone", "cut"])
def test_damaged_weights_are_named(store: hetnn.Store, wide: list[Path], damage: str) -> None:
    for path in wide:
        store.add("wide", path)
    part = max(parts(store), key=lambda path: path.stat().st_size)
    data = part.read_bytes()
    part.unlink()
    if damage != "gone":
        part.write_bytes(data[:-1] if damage == "cut" else data[:99] + bytes([data[99] ^ 4]) + data[100:])
    for version in (1, 2):
        with pytest.raises(hetnn.InvalidModel, match=f"its weights in '{part}'"):
            store.run("wide", {}, version)
    damaged = store.verify()["damaged"]
    assert [row["version"] for row in damaged] == [1, 2]
    assert all(part.name in row["what"] for row in damaged)
    store.add("mended", wide[0])  # brings them anew
    assert store.verify()["ok"]
    assert len(output(store, 2)) == 2


def old_image(path: Path) -> bytes:
    """The executable as it was written before weights were told apart: one blob, and format 3."""
    pieces = _runtime.take_apart(path.read_bytes())
    program = json.loads(pieces["program"])
    del program["blobs"]
    image = _runtime.put_together(**{**pieces, "program": json.dumps(program)})
    length = int.from_bytes(image[:8], "little")
    header = json.loads(image[8 : 8 + length])
    told = header["__metadata__"]
    told["format"] = "hetnn/3"
    texts = "".join(f"{key}:{len(value.encode())}:{value}" for key, value in told.items() if key != "metadata_hash")
    told["metadata_hash"] = hashlib.sha256(texts.encode()).hexdigest()
    written = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    assert len(written) <= length
    return image[:8] + written.ljust(length) + image[8 + length :]


def old_store(path: Path, image: bytes, document: str) -> None:
    """A store as it was before, with `wide` version 1."""
    (path / "files").mkdir(parents=True)
    hash = hashlib.sha256(image).hexdigest()
    (path / "files" / f"{hash}.hetnn").write_bytes(image)
    row = ["wide", 1, hash, "cpu", len(image)]
    row_hash = hashlib.sha256("\n".join(map(str, [*row, document])).encode()).hexdigest()
    code = (
        "import json, sqlite3, sys\n"
        "db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2])\n"
        "db.execute('INSERT INTO versions VALUES (?,?,?,?,?,?,?)', json.loads(sys.argv[3]))\n"
        "db.execute('INSERT INTO deployments VALUES (?,?,?)', ('wide', 1, 'cpu')); db.commit()\n"
    )
    schema = (
        "CREATE TABLE versions (network TEXT NOT NULL, version INTEGER NOT NULL, hash TEXT NOT NULL, target TEXT NOT "
        "NULL, bytes INTEGER NOT NULL, row_hash TEXT NOT NULL, document TEXT NOT NULL, UNIQUE (network, version));"
        "CREATE INDEX by_hash ON versions (hash);"
        "CREATE TABLE deployments (network TEXT NOT NULL, version INTEGER NOT NULL, device TEXT NOT NULL, UNIQUE "
        "(network, version, device), FOREIGN KEY (network, version) REFERENCES versions (network, version) ON DELETE "
        "CASCADE);"
        f"PRAGMA application_id = {0x6865746E}; PRAGMA user_version = 1;"
    )
    python(code, path / "index.sqlite", schema, json.dumps([*row, row_hash, document]))


def test_a_store_of_before_is_read_and_goes_on(tmp_path: Path, wide: list[Path]) -> None:
    model = hetnn.Store(tmp_path / "model")
    model.add("wide", wide[0])
    described = model.association("wide")
    document = {key: described[key] for key in ("nodes", "subgraphs")}
    for subgraph in document["subgraphs"]:
        del subgraph["deployed_on"]
    image = old_image(wide[0])
    old_store(tmp_path / "old", image, json.dumps(document, separators=(",", ":"), ensure_ascii=False))
    store = hetnn.Store(tmp_path / "old")
    want = np.asarray(hetnn.load(wide[0])(WIDE_X))
    np.testing.assert_array_equal(output(store, 1), want)
    assert [row["version"] for row in store.deployed()] == [1]
    assert store.verify() == {"ok": True, "damaged": []}
    (tmp_path / "old.hetnn").write_bytes(image)
    assert store.add("wide", tmp_path / "old.hetnn", version=1) == 1  # the one that is there
    assert store.add("wide", wide[1]) == 2
    assert store.list()["networks"][0]["versions"] == [1, 2]
    np.testing.assert_array_equal(output(store, 2), abs(want))
    store.remove("wide", 1)
    store.gc()
    np.testing.assert_array_equal(output(hetnn.Store(tmp_path / "old"), 2), abs(want))


@pytest.mark.slow
@pytest.mark.fault
@pytest.mark.parametrize("how", ["kill", "full", "moment"])
def test_a_publisher_that_ends_anywhere_leaves_the_shared_weights(tmp_path: Path, wide: list[Path], how: str) -> None:
    """As of writes above, of a version that shares weights with the one that stays."""
    path = tmp_path / "store"
    hetnn.Store(path).add("net", wide[0])
    first = sorted(os.listdir(path / "files"))
    want = np.asarray(hetnn.load(wide[0])(WIDE_X))
    publish = (
        "import sys, hetnn\nstore = hetnn.Store(sys.argv[1])\nprint('open', flush=True)\n"
        "while True:\n"
        "    version = store.add('net', sys.argv[2]); store.remove('net', version); store.gc()\n"
    )
    rng = random.Random(8)
    for _ in range(ROUNDS):
        if how == "moment":
            writer = subprocess.Popen([sys.executable, "-c", publish, path, wide[1]], stdout=subprocess.PIPE)
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"open\n"
            time.sleep(rng.random() * 0.1)
            writer.kill()
            writer.wait()
            writer.stdout.close()
        else:
            python(WRITE, path, wide[1], rng.randrange(1, 300_000), how, check=False)
        store = hetnn.Store(path)
        assert store.verify() == {"ok": True, "damaged": []}
        for version in store.list()["networks"][0]["versions"]:
            (found,) = store.run("net", {store.load("net").inputs[0].name: WIDE_X}, version).values()
            np.testing.assert_array_equal(found, want if version == 1 else abs(want))
            if version > 1:
                store.remove("net", version)
        store.gc()
        assert sorted(os.listdir(path / "files")) == first


def test_publishers_and_collectors_at_once_lose_nothing(tmp_path: Path, wide: list[Path]) -> None:
    path = tmp_path / "store"
    hetnn.Store(path).add("wide", wide[0])
    publish = (
        "import sys, hetnn\nstore = hetnn.Store(sys.argv[1])\n"
        "for _ in range(10):\n"
        "    store.remove('wide', store.add('wide', sys.argv[2])); store.gc(); store.add('wide', sys.argv[2])\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", publish, path, file], stderr=subprocess.PIPE) for file in wide[::-1]
    ]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    store = hetnn.Store(path)
    assert len(store.list()["networks"][0]["versions"]) == 21
    assert store.verify() == {"ok": True, "damaged": []}
    assert size_of(store) < 1.1 * wide[0].stat().st_size


def test_a_server_names_damaged_weights_and_serves_the_rest(store: hetnn.Store, wide: list[Path]) -> None:
    store.add("wide", wide[0])
    store.add("other", net(2))
    part = parts(store)[0]
    data = part.read_bytes()
    part.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with serving("--store", store.path) as server:
        status, error = server.error("POST", "/v2/models/wide/infer", {"inputs": []})
        assert (status, str(part) in error) == (500, True), error
        assert server.ask("GET", "/v2/models/other")[0] == 200
        part.write_bytes(data)
        assert server.ask("GET", "/v2/models/wide")[0] == 200
