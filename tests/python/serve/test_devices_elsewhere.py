"""One server in front of several device servers: requests run where their network was deployed, or say what is gone."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from serve.server import Server, serving

TEXT = (
    "graph @r {stage = imported} (%x: f32[1,3,8,8]) -> (%y) {\n  %a = relu(%x) : f32[1,3,8,8]\n"
    "  %y = erf(%a) : f32[1,3,8,8]\n}\n"
)
X = np.linspace(-2, 2, 192, dtype=np.float32).reshape(1, 3, 8, 8)


@contextlib.contextmanager
def device_server(token_file: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process, and the port that it listens on."""
    words = ["--device", "relu-only", "--listen", f"127.0.0.1:{port}", "--token-file", str(token_file)]
    command = [sys.executable, "-m", "hetnn", "device", "serve", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())["port"]
    finally:
        process.kill()
        process.wait()


def asked(server: Server, name: str) -> tuple[int, Any]:
    tensor = {"name": "x", "datatype": "FP32", "shape": [*X.shape], "data": X.reshape(-1).tolist()}
    status, _, body = server.ask("POST", f"/v2/models/{name}/infer", {"inputs": [tensor]})
    document = json.loads(body)
    return status, document["outputs"][0]["data"] if status == 200 else document["error"]


def test_requests_run_where_their_network_was_deployed(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("known to all\n")
    store = hetnn.Store(tmp_path / "store")
    exe = hetnn.compile(TEXT, "cpu+relu-only", strategy="take-all")
    expected = np.asarray(exe.run([X])[0])
    with device_server(token_file) as (left, left_port), device_server(token_file) as (_, right_port):
        for name, port in (("left", left_port), ("right", right_port)):
            store.add(name, exe)
            place = f"relu-only=127.0.0.1:{port}"
            words = ["--path", store.path, "deploy", name, place, "--token-file", str(token_file), "--timeout", "10"]
            done = subprocess.run([sys.executable, "-m", "hetnn", "store", *words], capture_output=True, text=True)
            assert f"relu-only at 127.0.0.1:{port}" in done.stdout, done.stderr
        assert store.association("left")["at"] == {"relu-only": f"127.0.0.1:{left_port}"}
        assert store.load("right").last_times == []
        np.testing.assert_array_equal(store.run("right", {"x": X})["y"], expected)
        assert {row["at"] for row in store.load("right").last_times} == {"local", f"127.0.0.1:{right_port}"}
        with serving("--store", store.path) as server:
            for name in ("left", "right"):
                status, data = asked(server, name)
                assert status == 200
                np.testing.assert_array_equal(np.float32(data).reshape(X.shape), expected)
            left.send_signal(signal.SIGKILL)
            left.wait()
            status, why = asked(server, "left")
            assert status == 503
            assert f"device 'relu-only' at 127.0.0.1:{left_port}" in why
            assert asked(server, "right")[0] == 200
            with device_server(token_file, left_port):
                assert asked(server, "left")[0] == 200
            # Deployed here again: the next load takes it up.
            store.deploy("left")
            assert store.find("left")["places"] == {}
            server.ask("POST", "/v2/repository/models/left/load")
            assert asked(server, "left")[0] == 200


def test_a_server_begins_without_its_device_servers(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("known to all\n")
    with device_server(token_file) as (_, port):
        pass
    store = hetnn.Store(tmp_path / "store")
    store.add("net", hetnn.compile(TEXT, "cpu+relu-only", strategy="take-all"))
    store.deploy("net", places={"relu-only": {"at": f"127.0.0.1:{port}", "token_file": token_file, "timeout_s": 10}})
    with serving("--store", store.path) as server:
        assert asked(server, "net")[0] == 503
        with device_server(token_file, port):
            assert asked(server, "net")[0] == 200


def test_what_is_no_place_of_the_network_is_refused(tmp_path: Path) -> None:
    store = hetnn.Store(tmp_path / "store")
    store.add("net", hetnn.compile(TEXT, "cpu+relu-only", strategy="take-all"))
    place = {"at": "board:7070", "token_file": "token"}
    for places, sentence in (
        ({"tpu": place}, "runs on cpu, relu-only; got a place of 'tpu'"),
        ({"relu-only": {**place, "at": "board"}}, "a device stands at HOST:PORT; found 'board'"),
    ):
        with pytest.raises(hetnn.InvalidModel, match=sentence):
            store.deploy("net", places=places)
    assert [*store.deployed()] == []
