"""Two replicas of Ray Serve in front of one device server: answers are those of the direct call, also after a loss."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn

pytest.importorskip("ray.serve")

NETWORK = """
graph @net {stage = imported} (%x: f32[1,3,8,8]) -> (%y) {
  %a = relu(%x) : f32[1,3,8,8]
  %y = erf(%a) : f32[1,3,8,8]
}
"""
X = np.linspace(-2, 2, 192, dtype=np.float32).reshape(1, 3, 8, 8)


def device_server(token_file: Path, port: int = 0) -> tuple[subprocess.Popen[str], int]:
    words = ["--device", "relu-only", "--listen", f"127.0.0.1:{port}", "--token-file", str(token_file)]
    command = [sys.executable, "-m", "hetnn", "device", "serve", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(json.loads(process.stdout.readline())["port"])


@pytest.fixture(scope="module")
def token_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("token") / "token"
    path.write_text("known to all\n")
    return path


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    import ray
    from ray import serve

    folder = str(Path(hetnn.__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": 18437})
    yield ray
    serve.shutdown()
    ray.shutdown()


def asked(values: np.ndarray) -> tuple[int, Any]:
    body = json.dumps(values.reshape(-1).tolist()).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:18437/", body), timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")


def test_two_replicas_share_a_device_elsewhere(ray: Any, token_file: Path, tmp_path: Path) -> None:
    from ray import serve

    exe = hetnn.compile(NETWORK, "cpu+relu-only", strategy="take-all")
    path = tmp_path / "net.hetnn"
    exe.save(path)
    process, port = device_server(token_file)
    place = {"at": f"127.0.0.1:{port}", "token_file": str(token_file), "timeout_s": 10}

    @serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 1})
    class Net:
        def __init__(self, path: str, place: dict[str, Any]) -> None:
            self.network = hetnn.load(path, devices={"relu-only": place})

        async def __call__(self, request: Any) -> dict[str, Any]:
            x = np.float32(await request.json()).reshape(1, 3, 8, 8)
            y = self.network.run([x])[0]
            at = sorted({row["at"] for row in self.network.last_times})
            return {"y": y.reshape(-1).tolist(), "at": at, "process": os.getpid()}

    serve.run(Net.bind(str(path), place))
    try:
        inputs = [X * k for k in range(1, 41)]
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(asked, inputs))
        assert {status for status, _ in answers} == {200}
        for x, (_, answer) in zip(inputs, answers, strict=True):
            np.testing.assert_array_equal(np.float32(answer["y"]).reshape(X.shape), exe.run([x])[0])
        assert {tuple(answer["at"]) for _, answer in answers} == {(f"127.0.0.1:{port}", "local")}
        assert len({answer["process"] for _, answer in answers}) == 2
        process.kill()
        process.wait()
        assert asked(X)[0] == 500  # Ray's answer to what its replica raises: Unavailable
        process, _ = device_server(token_file, port)
        assert {asked(X)[0] for _ in range(6)} == {200}
    finally:
        process.kill()
        process.wait()
