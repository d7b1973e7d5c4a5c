"""Requests a second of `hetnn serve` beside Triton and a bare uvicorn around ONNX Runtime.

    python benchmarks/serve.py [--seconds 3] [--connections 8] [--rounds 3] [--triton PYTHON] [--json FILE]

The network is an MLP 16→64→4 on one thread; the client is a process of its own that keeps every connection busy with
binary tensors. Servers are asked in turns, and a figure is the best over rounds, since other work only takes away.
`--triton` names the Python of an environment with Triton (`benchmarks/triton.txt`); without it no ratios are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from triton_server import Absent, Triton

NAME = "mlp"
_BARS = [("hetnn http, workers 1", "Triton http", 1.5), ("hetnn grpc, workers 2", "Triton grpc", 1.0)]
_BARE = """
import json, sys
import numpy, onnxruntime, uvicorn
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options)
name = session.get_inputs()[0].name

async def app(scope, receive, send):
    body = b""
    while True:
        message = await receive()
        body += message["body"]
        if not message.get("more_body"):
            break
    y = session.run(None, {name: numpy.frombuffer(body[-64:], numpy.float32).reshape(1, 16)})[0]
    head = json.dumps({"outputs": [{"name": "y", "shape": list(y.shape)}]}).encode()
    length = str(len(head) + y.nbytes).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": head + y.tobytes()})

uvicorn.run(app, port=int(sys.argv[2]), http="httptools", loop="asyncio", log_level="error", access_log=False)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def save_networks(folder: Path) -> str:
    """The network for both runtimes; the name of its input."""
    import torch
    from torch import nn

    import hetnn

    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4)).eval()
    x = torch.randn(1, 16)
    executable = hetnn.compile(torch.export.export(module, (x,)), "cpu", threads=1)
    executable.save(folder / "mlp.hetnn")
    if importlib.util.find_spec("onnxruntime") is not None:
        import onnx
        from onnx import helper, numpy_helper

        weights = [numpy_helper.from_array(v.detach().numpy(), k) for k, v in module.state_dict().items()]
        nodes = [
            helper.make_node("Gemm", ["input", "0.weight", "0.bias"], ["h"], transB=1),
            helper.make_node("Relu", ["h"], ["r"]),
            helper.make_node("Gemm", ["r", "2.weight", "2.bias"], ["y"], transB=1),
        ]
        ends = [helper.make_tensor_value_info(n, 1, ["n", k]) for n, k in (("input", 16), ("y", 4))]
        graph = helper.make_graph(nodes, NAME, ends[:1], ends[1:], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, folder / "mlp.onnx")
    return executable.inputs[0].name


def request(name: str, array: npt.NDArray[np.float32], network: str = NAME) -> bytes:
    """One inference as bytes on a connection."""
    data = array.tobytes()
    row = {"name": name, "datatype": "FP32", "shape": array.shape, "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"inputs": [row], "parameters": {"binary_data_output": True}}).encode()
    lines = [
        f"POST /v2/models/{network}/infer HTTP/1.1",
        "Host: localhost",
        f"Content-Length: {len(head) + len(data)}",
        f"Inference-Header-Content-Length: {len(head)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + head + data


class _Asker(asyncio.Protocol):
    """Keeps one connection busy: the next request leaves when an answer is whole."""

    def __init__(self, message: bytes) -> None:
        self.message, self.answers, self.got = message, 0, b""
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(self.message)

    def data_received(self, data: bytes) -> None:
        self.got += data
        head, ended, body = self.got.partition(b"\r\n\r\n")
        if not ended:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"the server answered {self.got[:300]!r}")
        length = int(head.lower().split(b"content-length: ")[-1].split(b"\r\n")[0])
        if len(body) >= length:
            self.answers += 1
            self.got = b""
            self.transport.write(self.message)


async def _rate(asker: Any, port: int, connections: int, seconds: float) -> float:
    """Answers a second on connections that are all kept busy."""
    loop = asyncio.get_running_loop()
    made = [await loop.create_connection(asker, "127.0.0.1", port) for _ in range(connections)]
    await asyncio.sleep(0.3)
    before, begun = sum(asker.answers for _, asker in made), time.perf_counter()
    await asyncio.sleep(seconds)
    rate = (sum(asker.answers for _, asker in made) - before) / (time.perf_counter() - begun)
    for transport, _ in made:
        transport.close()
    return rate


async def _ask_http(port: int, name: str, connections: int, seconds: float) -> float:
    message = request(name, np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 16))
    return await _rate(lambda: _Asker(message), port, connections, seconds)


class _GrpcAsker(asyncio.Protocol):
    """As _Asker for gRPC: HTTP/2 by hand, since a gRPC client in Python takes as much time as the server."""

    _SETTINGS_ACK, _PING_ACK = b"\0\0\0\4\1\0\0\0\0", b"\0\0\x08\6\1\0\0\0\0"

    def __init__(self, headers: bytes, message: bytes) -> None:
        self.headers, self.message, self.answers, self.got = headers, message, 0, b""
        self.stream, self.unacknowledged, self.answered = -1, 0, False
        self.transport: Any = None

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload

    def _ask(self) -> None:
        self.stream += 2
        self.answered = False
        headers = self._frame(1, 4, self.stream, self.headers)
        self.transport.write(headers + self._frame(0, 1, self.stream, self.message))

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        # No table of headers, so that every answer's are whole.
        settings = b"\0\1" + (0).to_bytes(4, "big") + b"\0\4" + (1 << 24).to_bytes(4, "big")
        transport.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self._frame(4, 0, 0, settings))
        self._ask()

    def data_received(self, data: bytes) -> None:
        self.got += data
        at = 0
        while len(self.got) - at >= 9:
            size = int.from_bytes(self.got[at : at + 3], "big")
            if len(self.got) - at < 9 + size:
                break
            kind, flags = self.got[at + 3], self.got[at + 4]
            payload = self.got[at + 9 : at + 9 + size]
            at += 9 + size
            if kind == 4 and not flags & 1:
                self.transport.write(self._SETTINGS_ACK)
            elif kind == 6 and not flags & 1:
                self.transport.write(self._PING_ACK + payload)
            elif kind == 0:
                self.unacknowledged += size
                self.answered = True
                if self.unacknowledged > 1 << 14:
                    self.transport.write(self._frame(8, 0, 0, self.unacknowledged.to_bytes(4, "big")))
                    self.unacknowledged = 0
            elif kind in (3, 7):
                raise SystemExit(f"the server ended the stream: {payload!r}")
            elif kind == 1 and flags & 1:  # the trailers
                if not self.answered:
                    raise SystemExit(f"the server answered no message but {payload!r}")
                self.answers += 1
                self._ask()
        self.got = self.got[at:]


def _literal(name: bytes, value: bytes) -> bytes:
    """A header that no table keeps."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


async def _ask_grpc(port: int, name: str, connections: int, seconds: float) -> float:
    from hetnn.serve.proto import MESSAGES

    message = MESSAGES["ModelInferRequest"](model_name=NAME)
    message.inputs.add(name=name, datatype="FP32", shape=[1, 16])
    message.raw_input_contents.append(np.linspace(-1, 1, 16, dtype=np.float32).tobytes())
    data = message.SerializeToString()
    data = b"\0" + len(data).to_bytes(4, "big") + data
    fields = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/inference.GRPCInferenceService/ModelInfer"),
        (b":authority", b"localhost"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
    ]
    headers = b"".join(_literal(*field) for field in fields)
    return await _rate(lambda: _GrpcAsker(headers, data), port, connections, seconds)


@contextlib.contextmanager
def running(command: list[str], port: int, environment: dict[str, str] | None = None) -> Iterator[None]:
    """A server's process, from when its port answers."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True, env=environment)
    try:
        for _ in range(1200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.1):
                break
            if process.poll() is not None:
                raise SystemExit(f"{command[:4]} ended with {process.returncode}")
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def measure(folder: Path, name: str, triton: Triton | None, connections: int, seconds: float) -> dict[str, float]:
    """One round: every server and protocol in turn."""

    def ask(kind: str, port: int, input_name: str) -> float:
        client = [sys.executable, __file__, "--ask", kind, str(port), input_name, str(connections), str(seconds)]
        return float(subprocess.run(client, check=True, capture_output=True, text=True).stdout)

    out: dict[str, float] = {}
    for workers in (1, 2):
        http, remote, metrics = free_port(), free_port(), free_port()
        command = [sys.executable, "-m", "hetnn", "serve", "--model", f"{NAME}={folder / 'mlp.hetnn'}"]
        command += ["--workers", str(workers), f"--http-port={http}", f"--grpc-port={remote}"]
        with running([*command, f"--metrics-port={metrics}"], http):
            out[f"hetnn http, workers {workers}"] = ask("http", http, name)
            out[f"hetnn grpc, workers {workers}"] = ask("grpc", remote, name)
    onnx = str(folder / "mlp.onnx")
    if importlib.util.find_spec("onnxruntime") is not None:
        port = free_port()
        with running([sys.executable, "-c", _BARE, onnx, str(port)], port):
            out["uvicorn around ONNX Runtime"] = ask("http", port, "input")
    if triton is not None:
        port, remote = free_port(), free_port()
        with running(triton.command(port, remote), port, triton.environment):
            out["Triton http"] = ask("http", port, "input")
            out["Triton grpc"] = ask("grpc", remote, "input")
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--triton", type=Path, metavar="PYTHON")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--ask", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ask is not None:
        kind, port, name, connections, seconds = args.ask
        asking = _ask_http if kind == "http" else _ask_grpc
        print(asyncio.run(asking(int(port), name, int(connections), float(seconds))))
        return 0
    os.environ["HETNN_VERIFY"] = "0"
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        name = save_networks(folder)
        triton = None
        try:
            triton = Triton(args.triton, folder / "mlp.onnx", folder / "triton", NAME)
        except Absent as why:
            print(f"not beside Triton: {why}", file=sys.stderr)
        rounds = [measure(folder, name, triton, args.connections, args.seconds) for _ in range(args.rounds)]
    result = {key: max(row[key] for row in rounds) for key in rounds[0]}
    for key, rate in result.items():
        print(f"{key:<45} {rate:>10,.0f} requests/s")
    if triton is not None:
        for ours, theirs, bar in _BARS:
            ratio = result[f"{ours} / {theirs}"] = result[ours] / result[theirs]
            print(f"{f'{ours} / {theirs}':<45} {ratio:>10.2f}   >= {bar:g}")
    if args.json is not None:
        args.json.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
