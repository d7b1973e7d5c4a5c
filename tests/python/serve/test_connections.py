"""Requests on one connection as bytes: whole, in pieces, several at once, and left by their client."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from serve.server import Server, serving

TWO = {
    "inputs": [
        {"name": "a", "datatype": "FP32", "shape": [2, 3], "data": [1, 2, 3, 4, 5, 6]},
        {"name": "b", "datatype": "FP32", "shape": [2, 3], "data": [2] * 6},
    ]
}
_JSON = "application/json"
SUMS = [3, 4, 5, 6, 7, 8]
LIVE = b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n"


def post(body: Any, *headers: str, network: str = "two", version: str = "1.1") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST /v2/models/{network}/infer HTTP/{version}", "Host: h", f"Content-Length: {len(data)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


class Client:
    """A connection, and the answers on it in turn."""

    def __init__(self, server: Server) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.ready["http"]), timeout=30)
        self._file = self.socket.makefile("rb")

    def answer(self) -> tuple[int, dict[str, str], Any]:
        status = int(self._file.readline().split()[1])
        headers = {}
        while line := self._file.readline().strip().decode():
            key, _, value = line.partition(": ")
            headers[key.lower()] = value
        content = self._file.read(int(headers["content-length"]))
        return status, headers, json.loads(content) if content and headers["content-type"] == _JSON else content

    def sums(self) -> Any:
        status, _, answer = self.answer()
        assert status == 200, answer
        return answer["outputs"][0]["data"]

    def is_closed(self) -> bool:
        return self._file.read(1) == b""


@contextlib.contextmanager
def connected(server: Server) -> Iterator[Client]:
    client = Client(server)
    with client.socket:
        client.socket.sendall(post(TWO))  # from the second on, a route is known
        assert client.sums() == SUMS
        yield client


def test_one_after_another(server: Server) -> None:
    with connected(server) as client:
        for k in range(20):
            client.socket.sendall(post({**TWO, "id": str(k)}))
            status, headers, answer = client.answer()
            assert (status, headers["content-type"], answer["id"]) == (200, _JSON, str(k))


@pytest.mark.parametrize("size", [1, 7, 100])
def test_in_pieces(server: Server, size: int) -> None:
    message = post(TWO)
    with connected(server) as client:
        for k in range(0, len(message), size):
            client.socket.sendall(message[k : k + size])
            time.sleep(0.0005)
        assert client.sums() == SUMS


def test_many_at_once_are_answered_in_turn(server: Server) -> None:
    bad = post({"inputs": []})
    with connected(server) as client:
        client.socket.sendall((post(TWO) + LIVE + bad + post(TWO, "Accept-Encoding: identity")) * 5 + post(TWO))
        for _ in range(5):
            assert client.sums() == SUMS
            assert client.answer()[0] == 200
            assert client.answer()[0] == 400
            assert client.sums() == SUMS
        assert client.sums() == SUMS


def test_a_head_that_comes_again_is_taken_with_its_own_body(server: Server) -> None:
    """Between others, behind cut ones, and several in a piece."""
    asked = [post({**TWO, "id": f"{k:03}"}) for k in range(12)]
    head = len(asked[0]) - len(json.dumps({**TWO, "id": "000"}))
    assert len({message[:head] for message in asked}) == 1
    cut = head - 9
    pieces = [
        asked[0], asked[1],                                 # one by one
        LIVE, asked[2], asked[3],                           # behind another request
        asked[4] + asked[5][:cut], asked[5][cut:],          # a head that is cut behind a message
        asked[6] + asked[7][:cut], asked[7][cut:],          # and again
        asked[8], asked[9][: head + 5], asked[9][head + 5 :],  # a body that is cut
        asked[10] + asked[11],
    ]  # fmt: skip
    ids = iter(f"{k:03}" for k in range(12))
    with connected(server) as client:
        for piece in pieces:
            client.socket.sendall(piece)
            for _ in range(piece.count(b'"id"') if b'"id"' in piece else int(piece is LIVE)):
                status, _, answer = client.answer()
                assert status == 200
                assert piece is LIVE or answer["id"] == next(ids)
            time.sleep(0.02)
    assert next(ids, None) is None


def test_errors_name_themselves_and_the_connection_goes_on(server: Server) -> None:
    with connected(server) as client:
        client.socket.sendall(post(b"{"))
        status, headers, answer = client.answer()
        assert (status, headers["content-type"]) == (400, _JSON)
        assert "not JSON" in answer["error"]
        client.socket.sendall(post(TWO))
        assert client.sums() == SUMS


def test_raw_tensors_in_and_out(server: Server) -> None:
    data = np.arange(6, dtype=np.float32).tobytes()
    rows = [
        {"name": name, "datatype": "FP32", "shape": [2, 3], "parameters": {"binary_data_size": 24}} for name in "ab"
    ]
    head = json.dumps({"inputs": rows, "parameters": {"binary_data_output": True}}).encode()
    with connected(server) as client:
        client.socket.sendall(post(head + data + data, f"Inference-Header-Content-Length: {len(head)}"))
        status, headers, _ = client.answer()
        assert (status, headers["content-type"]) == (200, "application/octet-stream")
        assert int(headers["content-length"]) - int(headers["inference-header-content-length"]) == 48


@pytest.mark.parametrize(
    "message", [post(TWO, "Connection: close"), post(TWO, version="1.0")], ids=["Connection: close", "HTTP/1.0"]
)
def test_a_connection_ends_where_its_client_says_so(server: Server, message: bytes) -> None:
    with connected(server) as client:
        client.socket.sendall(message)
        assert client.sums() == SUMS
        assert client.is_closed()


def test_a_client_that_asked_to_continue_is_told_to(server: Server) -> None:
    head, _, body = post(TWO, "Expect: 100-continue").partition(b"\r\n\r\n")
    with connected(server) as client:
        client.socket.sendall(head + b"\r\n\r\n")
        assert client.socket.recv(100).startswith(b"HTTP/1.1 100 Continue")
        client.socket.sendall(body)
        assert client.sums() == SUMS


def test_a_client_that_leaves_frees_its_place(networks: dict[str, Path]) -> None:
    quick = {"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 16], "data": [0.5] * 16}]}
    with serving("--model", f"mlp={networks['mlp']}", "--queue", "2", "--batch-delay-us", "1500000") as server:
        for _ in range(3):  # one waits for others to share its run with; its client leaves
            clients = [Client(server) for _ in range(2)]
            for client in clients:
                client.socket.sendall(post(quick, network="mlp"))
            time.sleep(0.1)
            for client in clients:
                client.socket.close()
                client._file.close()
            time.sleep(0.1)
        assert server.ask("POST", "/v2/models/mlp/infer", quick)[0] == 200
        counted = json.loads(server.ask("GET", "/v2/models/mlp/stats")[2])
        assert counted["model_stats"][0]["inference_stats"]["success"]["count"] == 1


def test_an_end_waits_for_what_was_asked(networks: dict[str, Path]) -> None:
    quick = {"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 16], "data": [0.5] * 16}]}
    with serving("--model", f"mlp={networks['mlp']}", "--batch-delay-us", "500000") as server:
        client = Client(server)
        with client.socket:
            for _ in range(2):
                client.socket.sendall(post(quick, network="mlp"))
                time.sleep(0.1)
                assert client.answer()[0] == 200
            client.socket.sendall(post(quick, network="mlp"))
            time.sleep(0.1)
            assert server.end() == 0
            assert client.answer()[0] == 200
            assert client.is_closed()


def test_long_bodies(tmp_path: Path) -> None:
    hetnn.compile(
        "graph @l {stage = imported, symbols = [n: 1..4194304 = 4]} (%x: f32[n]) -> (%y) {\n"
        "  %y = relu(%x) : f32[n]\n}\n"
    ).save(tmp_path / "relu.hetnn")
    x = np.linspace(-1, 1, 300_000, dtype=np.float32)
    row = {"name": "x", "datatype": "FP32", "shape": x.shape}
    head = json.dumps({"inputs": [{**row, "parameters": {"binary_data_size": x.nbytes}}]}).encode()
    raw = post(head + x.tobytes(), f"Inference-Header-Content-Length: {len(head)}", network="relu")
    written = post({"inputs": [{**row, "data": x.tolist()}]}, network="relu")
    with serving("--model", f"relu={tmp_path / 'relu.hetnn'}") as server:
        client = Client(server)
        with client.socket:
            for message in (raw, raw, written, LIVE + raw + LIVE):  # from the second on, the route is known
                client.socket.sendall(message)
                answers = [client.answer() for _ in range(3 if message.startswith(LIVE) else 1)]
                assert [status for status, _, _ in answers] == [200] * len(answers)
                got = answers[len(answers) // 2][2]["outputs"][0]["data"]
                np.testing.assert_array_equal(np.float32(got), np.maximum(x, 0))
            client.socket.sendall(
                post(head + x[:-1].tobytes(), f"Inference-Header-Content-Length: {len(head)}", network="relu")
            )
            status, _, answer = client.answer()
            assert (status, "bytes" in answer["error"]) == (400, True)
