"""The ways to device servers: measured into a target, and taken by plans."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from hetnn.cli import main
from hetnn.errors import Unavailable
from hetnn.remote.client import measure_link
from hetnn.remote.server import DeviceServer
from hetnn.target import resolve_target

TOKEN = "a token that both sides know"
TEXT = "graph @g {stage = imported} (%x: f32[1,3,64,64]) -> (%y) {\n  %y = relu(%x) : f32[1,3,64,64]\n}"


@pytest.fixture
def port() -> Iterator[int]:
    server = DeviceServer(resolve_target("relu-only")["devices"][1:], TOKEN, "127.0.0.1:0")
    threading.Thread(target=server.serve, daemon=True).start()
    yield server.port
    server.end()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return path


def test_a_way_is_measured_and_plans_take_it(
    port: int, token_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "there.json"
    words = ["--device", f"relu-only=127.0.0.1:{port}", "--token-file", str(token_file), "-o", str(out), "--json"]
    assert main(["calibrate", *words]) == 0
    answer = json.loads(capsys.readouterr().out)
    target = json.loads(out.read_text())
    assert answer == {"output": str(out), **target}
    assert [(row["from"], row["to"]) for row in target["links"]] == [("cpu", "relu-only"), ("relu-only", "cpu")]
    for row in target["links"]:
        assert 1 < row["latency_us"] < 1e6
        assert 1 < row["bytes_per_us"] < 1e6

    def problem(links: list[dict[str, Any]]) -> dict[str, Any]:
        return hetnn.plan(TEXT, {**target, "links": links}).problem()

    assert problem(target["links"])["links"] == target["links"]
    # The same network: on the device over a way that costs nothing, here over one that costs a second.
    report = {}
    for latency_us in (0.0, 1e6):
        links = [{**row, "latency_us": latency_us, "bytes_per_us": 1e9} for row in target["links"]]
        report[latency_us] = hetnn.plan(TEXT, {**target, "links": links}).report("dict")["predicted_us"]
    assert report[0.0] <= report[1e6] < 1e6


def test_a_target_file_says_where_a_device_stands(
    port: int, token_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is compiled for it runs there, what is saved runs wherever it is loaded."""
    out, at = tmp_path / "there.json", f"127.0.0.1:{port}"
    assert main(["calibrate", "--device", f"relu-only={at}", "--token-file", str(token_file), "-o", str(out)]) == 0
    x = np.linspace(-1, 1, 3 * 64 * 64, dtype=np.float32).reshape(1, 3, 64, 64)
    exe = hetnn.compile(TEXT, out, strategy="take-all")
    again = pickle.loads(pickle.dumps(exe))
    exe.save(tmp_path / "net.hetnn")
    here, there = hetnn.load(tmp_path / "net.hetnn"), hetnn.load(tmp_path / "net.hetnn", devices=out)
    for executable, place in ((exe, at), (again, at), (there, at), (here, "local")):
        np.testing.assert_array_equal(executable(x), np.maximum(x, 0))
        assert [(row["device"], row["at"]) for row in executable.last_times] == [("relu-only", place)]
    # What was loaded is saved with the device's own code, too, as long as that is known.
    copied = hetnn.load(tmp_path / "net.hetnn", devices=out, copy=True)
    for executable in (there, copied):
        executable.save(tmp_path / "again.hetnn")
        assert (tmp_path / "again.hetnn").read_bytes() == (tmp_path / "net.hetnn").read_bytes()
    store = hetnn.Store(tmp_path / "store")
    store.add("net", there)
    np.testing.assert_array_equal(store.load("net")(x), np.maximum(x, 0))
    assert store.load("net").last_times[0]["at"] == "local"
    assert store.load("net")._engine.code_kinds == ["npu"]
    (tmp_path / "gone.hetnn").write_bytes((tmp_path / "net.hetnn").read_bytes())
    there = hetnn.load(tmp_path / "gone.hetnn", devices=out)
    (tmp_path / "gone.hetnn").unlink()
    with pytest.raises(hetnn.InvalidModel, match="the file that this was loaded from is not there any more"):
        there.save(tmp_path / "again.hetnn")
    (tmp_path / "net.ir").write_text(TEXT)
    np.savez(tmp_path / "x.npz", x=x)
    for words in (
        [tmp_path / "net.hetnn", "--device", out],
        [tmp_path / "net.ir", "--target", out],
        [tmp_path / "net.ir", "--target", "cpu+relu-only", "--device", f"relu-only={at}", "--token-file", token_file],
    ):
        capsys.readouterr()
        assert main(["run", *map(str, words), "--inputs", str(tmp_path / "x.npz"), "--json"]) == 0
        assert "outputs" in json.loads(capsys.readouterr().out)
    target = json.loads(out.read_text())
    target["devices"][1]["at"] = "127.0.0.1:9"
    out.write_text(json.dumps(target))
    with pytest.raises(Unavailable, match="no connection"):
        hetnn.compile(TEXT, out, strategy="take-all")
    (tmp_path / "plain.json").write_text(json.dumps(resolve_target("cpu+relu-only")))
    with pytest.raises(hetnn.InvalidModel, match="does not say where a device stands"):
        hetnn.load(tmp_path / "net.hetnn", devices=tmp_path / "plain.json")


def test_a_way_that_is_not_there_says_so(token_file: Path) -> None:
    with pytest.raises(Unavailable, match="no connection"):
        measure_link("relu-only", {"at": "127.0.0.1:9", "token_file": token_file, "timeout_s": 2})


def test_what_is_missing_is_said(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--device", f"relu-only=127.0.0.1:{port}"]) == 2
    assert "--device needs --token-file" in capsys.readouterr().err


def test_no_more_is_sent_back_than_is_bounded(port: int, token_file: Path) -> None:
    from hetnn.remote import client

    asked = client._Conversation("d", {"at": f"127.0.0.1:{port}", "token_file": token_file}, b"")
    with pytest.raises(hetnn.InvalidModel, match="answer_bytes must be a number from 0 to"):
        asked.measure([], 1 << 40)
