"""A server in a process of its own for the tests, and small networks for it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

import hetnn


class Accumulator(nn.Module):
    """y = the sum of all x so far."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total * 1.0


def save_networks(folder: Path) -> dict[str, Path]:
    """`mlp` for any batch, `sum` with a state, `two` with two inputs and outputs, `slow` that takes some 50 ms."""
    torch.manual_seed(1)
    mlp = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4)).eval()
    batch = torch.export.Dim("batch", min=1, max=64)
    slow = nn.Sequential(*(nn.Linear(512, 512) for _ in range(4))).eval()

    class Two(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return a + b, a * b

    cases: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...], Any]] = {
        "mlp": (mlp, (torch.randn(2, 16),), ({0: batch},)),
        "sum": (Accumulator(), (torch.ones(2),), None),
        "two": (Two(), (torch.ones(2, 3), torch.ones(2, 3)), None),
        "slow": (slow, (torch.randn(2048, 512),), None),
    }
    out = {}
    for name, (module, inputs, dynamic) in cases.items():
        exported = torch.export.export(module, inputs, dynamic_shapes=dynamic, strict=False)
        out[name] = folder / f"{name}.hetnn"
        hetnn.compile(exported, "cpu").save(out[name])
    return out


@dataclass
class Server:
    """A running server: its process and the line that it wrote when it was ready."""

    process: subprocess.Popen[str]
    ready: dict[str, Any]

    @property
    def http(self) -> str:
        return f"127.0.0.1:{self.ready['http']}"

    @property
    def grpc(self) -> str:
        return f"127.0.0.1:{self.ready['grpc']}"

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, port: str = "http"
    ) -> tuple[int, dict[str, str], bytes]:
        """One raw HTTP request: the status, the headers by lower-case names, and the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ready[port], timeout=60)
        with contextlib.closing(connection):
            data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
            connection.request(method, path, data, headers or {})
            answer = connection.getresponse()
            return answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read()

    def error(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, str]:
        """The status and the text of the error of a request that fails."""
        status, _, content = self.ask(method, path, body, headers)
        return status, json.loads(content)["error"]

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@contextlib.contextmanager
def serving(*arguments: str | Path) -> Iterator[Server]:
    """`hetnn serve` with ports of its choice."""
    ports = [f"--{name}-port=0" for name in ("http", "grpc", "metrics")]
    command = [sys.executable, "-m", "hetnn", "serve", *map(str, arguments), *ports, "--json"]
    environment = {**os.environ, "HETNN_VERIFY": "0"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, f"the server ended with {process.wait()}"
        yield Server(process, json.loads(line))
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            finally:
                process.kill()
        process.stdout.close()
