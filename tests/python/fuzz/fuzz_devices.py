"""Altered messages to a device server: each is answered, or refused with one of hetnn's errors, and the device goes on.

`python tests/python/fuzz/fuzz_devices.py --messages 1000000 [--seed N]`. Messages go through the server's own reading
and answering, over memory in place of sockets. What differs is printed with its seed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import hashlib
import json
import random
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import hetnn
from hetnn import _runtime, errors
from hetnn.remote.server import DeviceServer
from hetnn.remote.wire import Closed, Wire, framed
from hetnn.target import resolve_target

TEXT = "graph @g {stage = imported} (%x: f32[1,3,4,4]) -> (%y) {\n  %y = relu(%x) : f32[1,3,4,4]\n}"
X = np.linspace(-1, 1, 48, dtype=np.float32).reshape(1, 3, 4, 4)
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1 << 31,
    1 << 63,
    1 << 200,
    1.5,
    1e308,
    "",
    "run",
    "x" * 300,
    [],
    {},
    [[]],
    [[1, -3]],
]
ODD += [[[1] * 30], {"hash": {}}, "\ud800", "00" * 32, [[1, 3, 4, 4], [1]], [["1", 3, 4, 4]], [[1 << 40, 1 << 40]]]
TYPED = {name for name in dir(errors) if isinstance(getattr(errors, name), type)} - {"InternalError"}


class Memory:
    """Stands for a socket: what is read from it is given, what is written to it is kept."""

    family = socket.AF_UNIX

    def __init__(self, given: bytes) -> None:
        self._given, self._at, self.said = given, 0, bytearray()

    def settimeout(self, _: float) -> None:
        pass

    def recv_into(self, buffer: memoryview) -> int:
        piece = self._given[self._at : self._at + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def sendmsg(self, pieces: list[memoryview]) -> int:
        for piece in pieces:
            self.said += piece
        return sum(piece.nbytes for piece in pieces)


class Silent:
    """Where a server's notices go."""

    def write(self, _: str) -> int:
        return 0

    def flush(self) -> None:
        pass


def image_of_relu() -> bytes:
    """What a client sends: the subprogram as an executable."""
    found: list[bytes] = []

    def keep(image: bytes) -> Any:
        found.append(bytes(image))
        raise KeyError("seen")

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "x.hetnn")
        hetnn.compile(TEXT, "cpu+relu-only", strategy="take-all").save(path)
        with contextlib.suppress(Exception):
            _runtime.Executable.load(path, 1, False, {"relu-only": keep})
    return found[0]


def message(header: Any, payload: bytes, draw: random.Random, odd: float = 0.02) -> bytes:
    """With sums that fit, so that what is altered is met; some headers are odd."""
    told = json.dumps({"parts": [[len(payload), _runtime.quick_sum(payload)]], **header}).encode()
    if draw.random() < odd:
        told = draw.choice(
            [told[:-1], told + b"}", b"[" * 5000, b"\xff" + told, b"NaN", b"{}", b'{"want":"run","want":1}']
        )
    return framed(told) + payload


class Fuzz:
    """One server, and messages from a seed."""

    def __init__(self, seed: int) -> None:
        devices = [row for row in resolve_target("relu-only")["devices"] if row["kind"] != "cpu"]
        self.server = DeviceServer(devices, "token", "127.0.0.1:0", threads=1, most_code_bytes=1 << 20)
        self.image = image_of_relu()
        self.hash = hashlib.sha256(self.image).hexdigest()
        self.seed = seed
        self.findings: list[str] = []
        self.counts: dict[str, int] = {}

    def seeds(self) -> list[tuple[dict[str, Any], bytes]]:
        return [
            ({"want": "run", "hash": self.hash, "shapes": [[1, 3, 4, 4]]}, X.tobytes()),
            ({"want": "keep", "hash": self.hash}, self.image),
            ({"want": "measure", "hash": "", "answer_bytes": 64}, b"1234"),
            ({"want": "keep", "hash": self.hash}, b""),  # asks whether it is there
        ]

    def altered(self, draw: random.Random) -> bytes:
        """One message, or several, of which something is altered."""
        header, payload = draw.choices(self.seeds(), (6, 3, 1, 1))[0]
        header = copy.deepcopy(header)
        way = draw.random()
        if way < 0.4:
            self._alter_header(header, draw)
        elif way < 0.8:
            payload = self._alter_bytes(payload, draw)
            if header["want"] == "keep" and draw.random() < 0.8:
                header["hash"] = hashlib.sha256(payload).hexdigest()
        said = message(header, payload, draw)
        if way >= 0.8:
            said = self._alter_bytes(said, draw, most_at=120)
        return said * draw.choice([1, 1, 1, 2])

    def _alter_header(self, header: dict[str, Any], draw: random.Random) -> None:
        for _ in range(draw.randint(1, 2)):
            key = draw.choice([*header, "extra", "parts"])
            if draw.random() < 0.15:
                header.pop(key, None)
            elif key == "shapes" and isinstance(header[key], list) and header[key] and draw.random() < 0.5:
                header[key] = copy.deepcopy(header[key])
                if isinstance(header[key][0], list) and header[key][0]:
                    header[key][0][draw.randrange(len(header[key][0]))] = draw.choice(ODD)
            else:
                header[key] = draw.choice(ODD)

    def _alter_bytes(self, data: bytes, draw: random.Random, most_at: int = 1 << 30) -> bytes:
        out = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(min(len(out), most_at)) if out else 0
            way = draw.random()
            if way < 0.6 and out:
                out[at] = draw.choice([0, 1, 127, 128, 255, draw.randrange(256), out[at] ^ (1 << draw.randrange(8))])
            elif way < 0.75:
                del out[at:]
            elif way < 0.9:
                out[at:at] = draw.randbytes(draw.randint(1, 16))
            else:
                out[at : at + 8] = draw.choice([b"\xff" * 8, b"\0" * 8, struct.pack("<q", draw.choice([-1, 1 << 40]))])
        return bytes(out)

    def meet(self, said: bytes, number: int) -> None:
        """What the server makes of these bytes."""
        memory = Memory(said)
        try:
            self.server._serve_requests(Wire(memory))  # type: ignore[arg-type]
        except (Closed, errors.Error) as error:
            self._count(type(error).__name__)
        except BaseException as error:
            self.find(number, f"{type(error).__name__}: {error}")
            return
        answers = Wire(Memory(bytes(memory.said)))  # type: ignore[arg-type]
        while True:
            try:
                header, _ = answers.receive(time.monotonic() + 60)
            except Closed:
                break
            self._count("answered" if header["ok"] else str(header.get("kind", "missing")))
            if header["ok"] or header.get("missing"):
                continue
            words = str(header.get("text"))
            if header.get("kind") not in TYPED or words.split(":")[0].endswith("Error"):
                self.find(number, f"{header}")

    def check(self, number: int) -> None:
        """The right messages are answered as ever."""
        run, keep, *_ = (message(*seed, random.Random(0), odd=0) for seed in self.seeds())
        if not self.answers(keep + run).endswith(np.maximum(X, 0).tobytes()):
            self.find(number, "the right messages are not answered any more")

    def answers(self, said: bytes) -> bytes:
        """All that the server says to these messages."""
        memory = Memory(said)
        with contextlib.suppress(Closed):
            self.server._serve_requests(Wire(memory))  # type: ignore[arg-type]
        return bytes(memory.said)

    def find(self, number: int, what: str) -> None:
        self.findings.append(f"seed {self.seed}, message {number}: {what}")

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def fuzz(messages: int, seed: int, progress: int = 0) -> tuple[list[str], dict[str, int]]:
    """Findings, and how often what came back."""
    made = Fuzz(seed)
    warm_mb, warm = 0.0, min(20_000, messages // 2)
    began = time.monotonic()
    with contextlib.redirect_stderr(Silent()):  # type: ignore[type-var]
        made.check(0)
        for number in range(messages):
            made.meet(made.altered(random.Random(seed * (1 << 32) + number)), number)
            if number % 10_000 == 9_999:
                made.check(number)
            if number == warm:
                warm_mb = resident_mb()
            if progress and number % progress == progress - 1:
                print(f"{number + 1} messages, {time.monotonic() - began:.0f} s, {made.counts}", flush=True)
        made.check(messages)
    if resident_mb() - warm_mb > 200:
        made.find(messages, f"memory grew from {warm_mb:.0f} to {resident_mb():.0f} MB")
    made.server.end()
    return made.findings, made.counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    findings, counts = fuzz(args.messages, args.seed, progress=50_000)
    print(json.dumps(counts, sort_keys=True))
    for finding in findings[:50]:
        print(finding)
    print(f"{args.messages} messages, {len(findings)} findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
