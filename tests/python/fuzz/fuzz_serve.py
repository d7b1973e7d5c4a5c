"""Damaged requests for the server, without a socket: the answer is right or a typed error, never a bug.

    python tests/python/fuzz/fuzz_serve.py [--requests 1000000] [--seed 0]

Half of the requests are HTTP bodies and headers, half messages of gRPC: sound ones whose bytes, numbers and texts are
changed, cut, doubled or mixed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import grpc
import numpy as np

import hetnn
from hetnn.serve.grpc import code_of
from hetnn.serve.http import HttpLimits, application
from hetnn.serve.networks import Networks
from hetnn.serve.proto import MESSAGES
from hetnn.serve.runner import Batching
from hetnn.serve.service import Inference, Limits, Service

TEXT = "graph @two {stage = imported} (%a: f32[2,3], %b: f32[2,3]) -> (%y) {\n  %y = add(%a, %b) : f32[2,3]\n}\n"
EXPECTED = {200, 400, 404, 405, 501, 503}
ODD: list[Any] = [
    -1, 0, 1, 2.5, 1 << 31, 1 << 63, 1e308, True, None, "", "a", "a" * 5000, [], {}, [[]], "\0", "../x", "FP32", "INT64"
]  # fmt: skip
_SOUND = {
    "id": "1",
    "parameters": {"sequence_id": 0, "priority": 1, "timeout": 0, "binary_data_output": True},
    "inputs": [
        {"name": "a", "datatype": "FP32", "shape": [2, 3], "data": [1, 2, 3, 4, 5, 6]},
        {"name": "b", "datatype": "FP32", "shape": [2, 3], "parameters": {"binary_data_size": 24}},
    ],
    "outputs": [{"name": "y", "parameters": {"binary_data": False}}],
}


def changed_value(value: Any, rng: random.Random) -> Any:
    """The value with one place of it replaced, removed or doubled."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice([*value])
        rest = {k: v for k, v in value.items() if k != key}
        return rest if rng.random() < 0.1 else {**rest, key: changed_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        if rng.random() < 0.2:
            return value + value[at : at + 1]
        return [*value[:at], changed_value(value[at], rng), *value[at + 1 :]]
    return rng.choice(ODD)


def changed_bytes(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        if out and rng.random() < 0.7:
            out[rng.randrange(len(out))] = rng.randrange(256)
        elif rng.random() < 0.5:
            del out[rng.randrange(len(out) + 1) :]
        else:
            out[rng.randrange(len(out) + 1) :] = rng.randbytes(rng.randrange(32))
    return bytes(out)


async def ask_http(app: Any, rng: random.Random) -> tuple[int, bytes]:
    """One changed request; the status and the body."""
    head = json.dumps(changed_value(_SOUND, rng) if rng.random() < 0.7 else _SOUND).encode()
    body = head + bytes(24)
    if rng.random() < 0.4:
        body = changed_bytes(body, rng)
    length = len(head) if rng.random() < 0.9 else rng.choice([0, 1, len(body), len(body) + 1])
    headers = [(b"inference-header-content-length", str(length).encode())]
    if rng.random() < 0.05:
        headers.append((b"content-encoding", rng.choice([b"gzip", b"deflate", b"x"])))
    path = b"/v2/models/two/infer"
    if rng.random() < 0.05:
        path = b"/" + changed_bytes(path[1:], rng).translate(None, b" ?#\r\n")
    got: list[Any] = []
    sent = False

    async def receive() -> Any:
        nonlocal sent
        if sent:
            await asyncio.Event().wait()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        got.append(message)

    scope = {"type": "http", "method": "POST", "raw_path": path, "path": path.decode("latin-1"), "headers": headers}
    await app(scope, receive, send)
    return got[0]["status"], got[1]["body"]


def sound_message() -> Any:
    message = MESSAGES["ModelInferRequest"](model_name="two")
    for name in "ab":
        message.inputs.add(name=name, datatype="FP32", shape=[2, 3])
        message.raw_input_contents.append(np.ones(6, np.float32).tobytes())
    return message


async def ask_grpc(service: Service, data: bytes, rng: random.Random) -> str | None:
    """One changed message; the text of a bug, if it met one."""
    try:
        await service.infer(Inference.from_grpc(changed_bytes(data, rng)))
    except Exception as error:
        if code_of(error) == grpc.StatusCode.INTERNAL:
            return f"{type(error).__name__}: {error}"
    return None


async def fuzz(requests: int, seed: int) -> list[str]:
    """What went wrong, one line each."""
    rng, wrong = random.Random(seed), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "two.hetnn"
        hetnn.compile(TEXT).save(path)
        service = Service(Networks(None, {"two": str(path)}, Batching()), Limits())
        await service.start()
        app, data = application(service, HttpLimits(body_bytes=1 << 20)), sound_message().SerializeToString()
        for number in range(requests):
            begun = time.process_time()
            if number % 2:
                status, body = await asyncio.wait_for(ask_http(app, rng), 600)
                if status not in EXPECTED:
                    wrong.append(f"request {number}: {status} {bytes(body)[:300]!r}")
            elif bug := await asyncio.wait_for(ask_grpc(service, data, rng), 600):
                wrong.append(f"request {number}: {bug}")
            if time.process_time() - begun > 10:
                wrong.append(f"request {number} took {time.process_time() - begun:.1f} s of work")
        if service.pending:
            wrong.append(f"{service.pending} requests are still pending")
        await service.stop()
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    wrong = asyncio.run(fuzz(args.requests, args.seed))
    print("\n".join(wrong[:20]) or f"{args.requests} requests, nothing wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
