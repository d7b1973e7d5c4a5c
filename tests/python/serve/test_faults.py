"""Faults while a server answers: nothing hangs, nothing wrong is answered, nothing else fails."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc

import hetnn
from faults import ROUNDS
from serve.server import Server, serving
from serve.test_server import ONES, scaled

pytestmark = pytest.mark.fault

ECHO = "graph @e {stage = imported} (%x: f32[n]) -> (%y) {\n  %y = relu(%x) : f32[n]\n}\n"


def pending(server: Server) -> int:
    rows = json.loads(server.ask("GET", "/v2/hetnn/workers")[2])["workers"]
    return sum(row["pending"] for row in rows)


def wait_for(what: Callable[[], bool], seconds: float) -> None:
    ends = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < ends, f"not within {seconds} s"
        time.sleep(0.005)


def raw_request(model: str, values: np.ndarray, name: str = "x") -> tuple[bytes, bytes]:
    """The head and the body of an inference whose answer is raw."""
    row = {"name": name, "datatype": "FP32", "shape": values.shape, "parameters": {"binary_data_size": values.nbytes}}
    head = json.dumps({"inputs": [row], "parameters": {"binary_data_output": True}}).encode()
    body = head + values.tobytes()
    lines = [
        f"POST /v2/models/{model}/infer HTTP/1.1",
        "Host: localhost",
        f"Content-Length: {len(body)}",
        f"Inference-Header-Content-Length: {len(head)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n", body


def test_a_worker_is_killed_in_mid_request(networks: dict[str, Path]) -> None:
    """Its requests fail within a second, whoever waits for them; a new worker answers within two."""
    slow = np.zeros((2048, 512), np.float32)
    head, body = raw_request("slow", slow, hetnn.load(networks["slow"]).inputs[0].name)
    begun: list[float] = []

    def ask(server: Server) -> tuple[float, bytes]:
        """When the connection ended, and the status line where an answer came before that."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.ready["http"])) as connection:
            connection.settimeout(20)
            connection.sendall(head + body)
            return time.monotonic(), connection.recv(12)
        return time.monotonic(), b""

    asked: list[Future[tuple[float, bytes]]] = []

    def are_seen(server: Server, pool: ThreadPoolExecutor) -> bool:
        if all(one.done() for one in asked):  # they may come and go between two looks
            asked[:] = [pool.submit(ask, server) for _ in range(3)]
        return pending(server) > 0

    with serving("--model", f"slow={networks['slow']}") as server, ThreadPoolExecutor(3) as pool:
        took = []
        for _ in range(ROUNDS):
            (worker,) = [row["pid"] for row in json.loads(server.ask("GET", "/v2/hetnn/workers")[2])["workers"]]
            asked.clear()
            wait_for(lambda: are_seen(server, pool), 30)
            os.kill(worker, signal.SIGKILL)
            killed = time.monotonic()
            for one in asked:
                ended, answer = one.result()
                # What came in too late for the old worker is the new one's.
                assert answer in (b"", b"HTTP/1.1 200")
                if not answer:
                    assert ended - killed < 1
            status, *_ = server.ask("GET", "/v2/health/ready")
            assert status == 200
            answer_of = ask(server)[1]
            took.append(time.monotonic() - killed)
            assert answer_of == b"HTTP/1.1 200"
            begun.append(killed)
        assert sorted(took)[len(took) // 2] < 2, took


def test_a_client_leaves_in_mid_body_or_mid_answer(tmp_path: Path) -> None:
    hetnn.compile(ECHO.replace("stage = imported", "stage = imported, symbols = [n: 1..4194304 = 4]")).save(
        tmp_path / "echo.hetnn"
    )
    values = np.arange(1 << 20, dtype=np.float32)
    head, body = raw_request("echo", values)
    rng = random.Random(0)
    with serving("--model", f"echo={tmp_path / 'echo.hetnn'}") as server:
        (worker,) = server.ready["workers"]
        address = ("127.0.0.1", server.ready["http"])
        rounds, files = max(ROUNDS, 4), 0
        for k in range(rounds):
            with socket.create_connection(address) as connection:
                if k % 2:  # resets, instead of saying farewell
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if k % 4 < 2:
                    connection.sendall((head + body)[: rng.randrange(1, len(head) + len(body))])
                else:
                    connection.sendall(head + body)
                    connection.recv(rng.randrange(1, 100_000))
            channel = grpc.insecure_channel(server.grpc)
            call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer").future(b"\n\4echo" + body)
            time.sleep(rng.random() * 0.01)
            call.cancel()
            channel.close()
            wait_for(lambda: pending(server) == 0, 5)
            status, _, answer = server.ask("POST", "/v2/models/echo/infer", body, _length(head))
            assert status == 200
            assert answer.endswith(values.tobytes())
            if k == 3:
                files = len(os.listdir(f"/proc/{worker}/fd"))
        wait_for(lambda: len(os.listdir(f"/proc/{worker}/fd")) <= files + 2, 5)
        assert json.loads(server.ask("GET", "/v2/hetnn/workers")[2])["workers"][0]["pid"] == worker


def _length(head: bytes) -> dict[str, str]:
    return {"Inference-Header-Content-Length": head.split(b"Inference-Header-Content-Length: ")[1].split()[0].decode()}


def test_versions_roll_over_and_back_under_load(tmp_path: Path) -> None:
    """No request is lost, and each is answered by one version alone, over HTTP and gRPC, by two workers."""
    store = hetnn.Store(tmp_path / "store")
    store.add("s", scaled(1))
    images = {2: scaled(2), 3: scaled(3)}
    with serving("--store", tmp_path / "store", "--workers", 2) as server:
        stop = threading.Event()
        seen: set[tuple[str, float, float]] = set()
        failures: list[Any] = []
        counts = [0, 0]

        def ask_http() -> None:
            while not stop.is_set():
                status, _, body = server.ask("POST", "/v2/models/s/infer", ONES)
                if status != 200:
                    failures.append(body)
                    continue
                answer = json.loads(body)
                seen.add((answer["model_version"], *answer["outputs"][0]["data"]))
                counts[0] += 1

        def ask_grpc() -> None:
            given = tritonclient.grpc.InferInput("x", [2], "FP32")
            given.set_data_from_numpy(np.ones(2, np.float32))
            with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
                while not stop.is_set():
                    try:
                        answer = client.infer("s", [given])
                    except Exception as error:
                        failures.append(error)
                        continue
                    seen.add((answer.get_response().model_version, *answer.as_numpy("y").tolist()))
                    counts[1] += 1

        threads = [threading.Thread(target=ask) for ask in (ask_http, ask_http, ask_grpc)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(ROUNDS):
                for version in (2, 3):
                    store.add("s", images[version], version)
                    assert server.ask("POST", "/v2/repository/models/s/load")[0] == 200
                for version in (3, 2):
                    store.remove("s", version)
                    assert server.ask("POST", "/v2/repository/models/s/load")[0] == 200
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert failures == []
        assert seen <= {("1", 1, 1), ("2", 2, 2), ("3", 3, 3)}
        assert min(counts) > ROUNDS
