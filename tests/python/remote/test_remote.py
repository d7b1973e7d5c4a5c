"""Devices behind a device server: same bits, kept code, and every way in which the other side can be gone or wrong."""

from __future__ import annotations

import hashlib
import json
import pickle
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hetnn
from faults import ROUNDS, paused
from hetnn import _core
from hetnn.backends import Backend
from hetnn.errors import Error, InvalidModel, Unavailable
from hetnn.remote.server import DeviceServer
from hetnn.remote.wire import Wire, begun, framed, proof
from hetnn.target import resolve_target

TOKEN = "a token that both sides know"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, torch.Tensor, torch.Tensor]:
    """A network of two NPU subgraphs around the CPU's sine, an input, and what it gives here."""
    torch.manual_seed(0)
    first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = first, nn.Conv2d(8, 4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.second(torch.sin(self.first(x))))

    x = torch.randn(1, 3, 16, 16)
    exe = hetnn.compile(torch.export.export(Net().eval(), (x,)), "cpu+relu-only", strategy="take-all")
    path = tmp_path_factory.mktemp("remote") / "net.hetnn"
    exe.save(path)
    assert [row["device"] for row in exe.report("dict")["subgraphs"]] == ["relu-only", "cpu", "relu-only"]
    return path, x, exe(x)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return path


@pytest.fixture
def server() -> Iterator[DeviceServer]:
    made = serving()
    yield made
    made.end()


def serving(port: int = 0, device: str = "relu-only", **options: Any) -> DeviceServer:
    devices = [row for row in resolve_target(device)["devices"] if row["kind"] != "cpu"]
    made = DeviceServer(devices, TOKEN, f"127.0.0.1:{port}", **options)
    threading.Thread(target=made.serve, daemon=True).start()
    return made


def loaded(path: Path, port: int, token_file: Path, **place: Any) -> hetnn.Executable:
    there = {"at": f"127.0.0.1:{port}", "token_file": token_file, "timeout_s": 20}
    return hetnn.load(path, devices={"relu-only": {**there, **place}})


def test_the_same_bits_and_where_they_were_computed(saved: Any, server: DeviceServer, token_file: Path) -> None:
    path, x, expected = saved
    exe = loaded(path, server.port, token_file)
    for _ in range(3):
        assert torch.equal(exe(x), expected)
    at = f"127.0.0.1:{server.port}"
    assert [(row["device"], row["at"]) for row in exe.last_times] == [
        ("relu-only", at),
        ("cpu", "local"),
        ("relu-only", at),
    ]
    again = pickle.loads(pickle.dumps(exe))
    assert torch.equal(again(x), expected)
    assert again.last_times[0]["at"] == at


def test_several_programs_at_once(saved: Any, server: DeviceServer, token_file: Path) -> None:
    path, x, expected = saved
    wrong: list[int] = []

    def work() -> None:
        exe = loaded(path, server.port, token_file)
        wrong.extend(k for k in range(10) if not torch.equal(exe(x), expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_a_server_that_comes_back_is_taken_up(saved: Any, token_file: Path) -> None:
    path, x, expected = saved
    server = serving()
    exe = loaded(path, server.port, token_file)
    for _ in range(ROUNDS):
        assert torch.equal(exe(x), expected)
        server.end()
        with pytest.raises(Unavailable, match=r"device 'relu-only' at 127\.0\.0\.1:\d+"):
            exe(x)
        server = serving(server.port)
    assert torch.equal(exe(x), expected)
    server.end()


def test_code_that_was_forgotten_is_sent_again(saved: Any, token_file: Path) -> None:
    path, x, expected = saved
    server = serving(most_code_bytes=12_000)  # one of the two subprograms
    exe = loaded(path, server.port, token_file)
    assert len(server._codes) == 1
    for _ in range(3):
        assert torch.equal(exe(x), expected)
    server.end()


def test_code_travels_once(saved: Any, server: DeviceServer, token_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has it is not sent it again, whoever asks."""
    path, x, expected = saved
    kept: list[str] = []
    keep = server._keep
    monkeypatch.setattr(server, "_keep", lambda hash, payload: (kept.append(hash), keep(hash, payload)))
    for _ in range(3):
        assert torch.equal(loaded(path, server.port, token_file)(x), expected)
    assert len(kept) == len(set(kept)) == 2  # of two subprograms


def test_a_token_that_is_no_longer_the_servers(saved: Any, token_file: Path) -> None:
    path, x, expected = saved
    server = serving()
    exe = loaded(path, server.port, token_file)
    assert torch.equal(exe(x), expected)
    server.end()
    devices = [row for row in resolve_target("relu-only")["devices"] if row["kind"] != "cpu"]
    server = DeviceServer(devices, "another", f"127.0.0.1:{server.port}")
    threading.Thread(target=server.serve, daemon=True).start()
    with pytest.raises(Unavailable, match="the token is not this device server's"):
        exe(x)
    token_file.write_text("another\n")
    assert torch.equal(exe(x), expected)
    server.end()


class _Waits(Backend):
    """Takes some time for the operator that is its variant."""

    version = "1"

    def supports(self, node: Any) -> list[str]:
        return [] if node.nodes()[-1]["op"] == self.spec["variant"] else ["other_op"]

    def compile(self, graph: Any) -> bytes:
        return bytes(graph.print(), "utf-8")

    def open(self, code: bytes, inputs: Any, outputs: Any) -> Any:
        graph = _core.Graph.parse(code.decode())

        def run(arrays: list[Any]) -> Any:
            time.sleep(0.4)
            return _core.interpret(graph, arrays)

        return run


@pytest.mark.parametrize("together", [False, True])
def test_devices_elsewhere_work_at_the_same_time(together: bool, token_file: Path, tmp_path: Path) -> None:
    """Two of one kind, behind a server each, or behind one."""
    text = "graph @g {stage = imported} (%x: f32[2,12]) -> (%z) {\n  %a = sin(%x) : f32[2,12]\n"
    text += "  %b = cos(%x) : f32[2,12]\n  %z = add(%a, %b) : f32[2,12]\n}"
    hetnn.register_backend("waits", _Waits)
    names = ["waits-sin", "waits-cos"]
    hetnn.compile(text, "cpu+waits-sin+waits-cos", strategy="take-all").save(tmp_path / "n")
    servers = [serving(device=device) for device in (["+".join(names)] if together else names)]
    ports = [servers[0].port, servers[-1].port]
    places = {
        name: {"at": f"127.0.0.1:{port}", "token_file": token_file} for name, port in zip(names, ports, strict=True)
    }
    exe = hetnn.load(tmp_path / "n", devices=places)
    x = np.ones((2, 12), np.float32)
    np.testing.assert_allclose(exe(x), np.sin(x) + np.cos(x), atol=1e-6)
    rows = exe.last_times[:2]
    assert {row["at"] for row in rows} == {place["at"] for place in places.values()}
    assert max(row["finish_us"] for row in rows) - min(row["start_us"] for row in rows) < 700_000
    [server.end() for server in servers]


@pytest.mark.parametrize(
    ("place", "error", "sentence"),
    [
        ({"at": "nowhere"}, InvalidModel, "HOST:PORT; found 'nowhere'"),
        ({"at": "127.0.0.1:70000"}, InvalidModel, "HOST:PORT"),
        ({"at": "127.0.0.1:1"}, Unavailable, "no connection.*hetnn device serve"),
        ({"timeout_s": 0}, InvalidModel, "timeout_s must be a positive number"),
        ({"tokens": "x"}, InvalidModel, "unknown tokens; known are at,"),
        ({"token_file": None}, InvalidModel, "name the file of the server's token"),
    ],
)
def test_a_place_that_is_none(saved: Any, token_file: Path, place: Any, error: type[Error], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        hetnn.load(saved[0], devices={"relu-only": {"at": "127.0.0.1:9", "token_file": token_file, **place}})


def test_a_wrong_token_and_an_unknown_device(saved: Any, server: DeviceServer, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("guess")
    with pytest.raises(Unavailable, match="the token is not this device server's"):
        loaded(saved[0], server.port, tmp_path / "wrong")
    (tmp_path / "token").write_text(TOKEN)
    with pytest.raises(InvalidModel, match=r"there is no device 'npu' in this executable; it has cpu, relu-only"):
        hetnn.load(saved[0], devices={"npu": {"at": f"127.0.0.1:{server.port}", "token_file": tmp_path / "token"}})


def test_another_device_than_the_code_is_for(saved: Any, token_file: Path) -> None:
    server = serving(device="relu-mul")
    with pytest.raises(hetnn.Unsupported, match="of kind 'npu' with another data sheet; this server has npu"):
        loaded(saved[0], server.port, token_file)
    server.end()


def impostor(answer: Callable[[socket.socket, Wire], None]) -> int:
    """A server that greets, keeps code, and answers runs as a test says."""
    listening = socket.create_server(("127.0.0.1", 0))

    def converse(connection: socket.socket) -> None:
        wire = Wire(connection)
        until = time.monotonic() + 20
        wire.send({"challenge": "c"}, [], until)
        wire.receive(until)
        wire.send({"ok": True}, [], until)
        try:
            while True:
                header, _ = wire.receive(time.monotonic() + 20)
                if header["want"] == "keep":
                    wire.send({"ok": True}, [], time.monotonic() + 20)
                else:
                    answer(connection, wire)
        except Exception:
            connection.close()

    def accept() -> None:
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=converse, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(listening.getsockname()[1])


def says(header: Any, payload: bytes = b"") -> Callable[[socket.socket, Wire], None]:
    return lambda _, wire: wire.send(header, [memoryview(payload)] if payload else [], time.monotonic() + 5)


def sends(raw: bytes) -> Callable[[socket.socket, Wire], None]:
    def answer(connection: socket.socket, _: Wire) -> None:
        connection.sendall(raw)
        connection.close()

    return answer


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda connection, _: time.sleep(3), "deadline passed"),
        (lambda connection, _: connection.close(), "ended|failed"),
        (sends(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 64), "another protocol"),
        (sends(struct.pack("<8sIQ", b"hetnn1\0\0", 2, 0) + b"{}" + bytes(64)), "found b'hetnn1.*expected b'hetnn2"),
        (sends(framed(bytes(1 << 21))), "2097152 bytes; at most 1048576"),
        (sends(framed(b'{"parts": [[4611686018427387904, ""]]}')), "4611686018427387904 bytes; at most"),
        (sends(framed(b"nope")), "is no JSON"),
        (sends(framed(b'{"parts": [[99, "0"]]}') + b"only"), "ended after 4 of 99"),
        (sends(framed(b'{"parts": [[4, "0"]]}') + b"else"), "a part of the payload of a message arrived altered"),
        (says({"ok": True}), "its answer makes no sense"),
        (says({"ok": True, "shapes": [[1, 8, 16, 16]]}, b"short"), "its answer makes no sense"),
        (says({"ok": False, "kind": "os.system", "text": "odd"}), "odd"),
    ],
)
def test_what_comes_back_late_cut_or_garbled(saved: Any, token_file: Path, answer: Any, sentence: str) -> None:
    port = impostor(answer)
    exe = loaded(saved[0], port, token_file, timeout_s=1)
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(Unavailable, match=sentence):
            exe(saved[1])
        assert time.monotonic() - began < 5


def test_outputs_of_another_shape_are_refused(saved: Any, token_file: Path) -> None:
    exe = loaded(saved[0], impostor(says({"ok": True, "shapes": [[4]]}, bytes(16))), token_file)
    with pytest.raises(InvalidModel, match=r"device 'relu-only' returned float32\(4,\)"):
        exe(saved[1])


def ask(port: int, messages: list[bytes]) -> bytes:
    """All that a server says to one who greets rightly and then sends these bytes."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        wire = Wire(connection)
        until = time.monotonic() + 10
        greeting, _ = wire.receive(until)
        wire.send({"proof": proof(TOKEN, greeting["challenge"])}, [], until)
        wire.receive(until)
        said = b""
        with suppress(OSError):  # it need not hear all of what it refuses
            for message in messages:
                connection.sendall(message)
            connection.shutdown(socket.SHUT_WR)
        connection.settimeout(10)
        with suppress(OSError):
            while piece := connection.recv(65536):
                said += piece
        return said


def message(header: Any, payload: bytes = b"") -> bytes:
    """With sums that fit."""
    if isinstance(header, dict):
        return begun(header, [memoryview(payload)]) + payload
    return framed(json.dumps(header).encode()) + payload


def test_altered_requests_are_refused_and_the_server_goes_on(
    saved: Any, server: DeviceServer, token_file: Path
) -> None:
    path, x, expected = saved
    exe = loaded(path, server.port, token_file)
    hash, (executable, _, _) = next(iter(server._codes.items()))
    shapes = [list(port.shape) for port in executable.inputs]
    payload = np.zeros(shapes[0], np.float32).tobytes()
    right = message({"want": "run", "hash": hash, "shapes": shapes}, payload)
    assert b'"ok": true' in ask(server.port, [right])
    odd: list[Any] = [None, 7, "x", [], {}, [[-1]], [[1 << 60]], [["3"]], [[1.5, 2]], [[1] * 9], shapes * 2]
    for shape in odd:
        said = ask(server.port, [message({"want": "run", "hash": hash, "shapes": shape}, payload)])
        assert b'"InvalidModel"' in said, shape
    wants: list[Any] = [
        {},
        {"want": "run"},
        {"hash": hash},
        {"want": "rm", "hash": hash},
        {"want": "keep", "hash": "0"},
    ]
    for header in wants:
        assert b'"InvalidModel"' in ask(server.port, [message(header, payload)]), header
    image = np.random.default_rng(0).bytes(2000)
    keep = {"want": "keep", "hash": hashlib.sha256(image).hexdigest()}
    assert b'"InvalidModel"' in ask(server.port, [message(keep, image)])
    draw = random.Random(0)
    for _ in range(60 * ROUNDS):
        altered = bytearray(right)
        for _ in range(draw.randint(1, 4)):
            altered[draw.randrange(min(len(altered), 400))] = draw.randrange(256)
        cut = draw.randrange(len(altered)) if draw.random() < 0.3 else len(altered)
        said = ask(server.port, [bytes(altered[:cut])])
        assert b'"ok": true' not in said or altered == right
    assert torch.equal(exe(x), expected)


def test_a_connection_without_the_token_is_ended(server: DeviceServer) -> None:
    for said in (b"", b"GET / HTTP/1.1\r\n\r\n", message({"proof": "0" * 64}), message({"want": "run"}), message([1])):
        with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
            connection.settimeout(10)
            with suppress(OSError):
                connection.sendall(said)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass


def started(token_file: Path, *more: str) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-c", "from hetnn.cli import console; console()", "device", "serve"]
    process = subprocess.Popen(
        [*command, "--device", "relu-only", "--token-file", str(token_file), *more], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    line = json.loads(process.stdout.readline())
    assert line["ready"] is True
    return process, int(line["port"])


def test_the_cpu_computes_while_a_device_is_gone(saved: Any, tmp_path: Path, token_file: Path) -> None:
    first = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).eval()
    x = torch.randn(1, 3, 16, 16)
    exported = torch.export.export(first, (x,))
    hetnn.compile(exported, "cpu+relu-only", strategy="take-all", fallback="cpu").save(tmp_path / "both.hetnn")
    server = serving()
    exe = loaded(tmp_path / "both.hetnn", server.port, token_file, timeout_s=2)
    expected = first(x).detach()
    for _ in range(ROUNDS):
        assert torch.allclose(exe(x), expected, atol=1e-5)
        assert [row["fallback"] for row in exe.last_times] == [False]
        server.end()
        for _ in range(2):
            assert torch.allclose(exe(x), expected, atol=1e-5)
            assert [row["fallback"] for row in exe.last_times] == [True]
        server = serving(server.port)
    assert torch.allclose(exe(x), expected, atol=1e-5)
    assert [row["fallback"] for row in exe.last_times] == [False]
    server.end()
    altered = impostor(sends(framed(b'{"ok": true, "shapes": [[1]], "parts": [[4, "0"]]}') + bytes(4)))
    exe = loaded(tmp_path / "both.hetnn", altered, token_file)
    assert torch.allclose(exe(x), expected, atol=1e-5)
    assert [row["fallback"] for row in exe.last_times] == [True]
    with pytest.raises(Unavailable, match="deadline"):
        exe.run_async([x], timeout_s=0).result(10)
    with pytest.raises(InvalidModel, match="fallback is 'relu-only'; only the general processor, 'cpu'"):
        hetnn.compile(exported, "cpu+relu-only", fallback="relu-only")


def test_the_command_in_a_process_of_its_own(saved: Any, token_file: Path) -> None:
    path, x, expected = saved
    process, port = started(token_file)
    exe = loaded(path, port, token_file, timeout_s=2)
    assert torch.equal(exe(x), expected)
    paused(process)
    with pytest.raises(Unavailable, match="deadline"):
        exe(x)
    process.send_signal(signal.SIGCONT)
    assert torch.equal(exe(x), expected)
    process.kill()
    process.wait(10)
    with pytest.raises(Unavailable):
        exe(x)
    process, _ = started(token_file, "--listen", f"127.0.0.1:{port}")
    assert torch.equal(exe(x), expected)
    run = [sys.executable, "-c", "from hetnn.cli import console; console()", "run", str(path), "--json"]
    elsewhere = ["--device", f"relu-only=127.0.0.1:{port}", "--token-file", str(token_file)]
    done = subprocess.run([*run, *elsewhere], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "outputs" in json.loads(done.stdout)
    process.terminate()
    assert process.wait(10) == 0


def test_a_size_that_no_input_tells_is_named(token_file: Path, tmp_path: Path) -> None:
    """Behind a pool there is half of it, rounded; a server has to be told sizes by shapes."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Conv2d(3, 4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.layer(torch.sin(nn.functional.max_pool2d(x, 2))))

    size = torch.export.Dim("size", min=8, max=64)
    exported = torch.export.export(Net().eval(), (torch.randn(1, 3, 16, 16),), dynamic_shapes=({3: size},))
    exe = hetnn.compile(exported, "cpu+relu-only", strategy="take-all")
    exe.save(tmp_path / "open.hetnn")
    assert "relu-only" in {row["device"] for row in exe.report("dict")["subgraphs"]}
    with pytest.raises(hetnn.Unsupported, match="which no input of it tells"):
        loaded(tmp_path / "open.hetnn", 1, token_file)


def test_over_tls(saved: Any, token_file: Path, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*make.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    process, port = started(token_file, "--tls-cert", str(certificate), "--tls-key", str(key))
    exe = loaded(saved[0], port, token_file, tls_ca=str(certificate))
    assert torch.equal(exe(saved[1]), saved[2])
    with pytest.raises(Unavailable, match="certificate"):
        loaded(saved[0], port, token_file, tls=True)
    process.terminate()
    assert process.wait(10) == 0
