"""A device server: runs subprograms for executables elsewhere, on the devices of this machine, without the compiler."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import ssl
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from hetnn.element_types import numpy_type
from hetnn.errors import Error, InvalidModel, Unavailable, Unsupported
from hetnn.executable import Executable, Port
from hetnn.remote.wire import MOST_MEASURED_BYTES, MOST_PAYLOAD_BYTES, Closed, Refused, Wire, address_of, proof

_GREETING_S = 20.0  # in which a connection must show its token
_IDLE_S = 600.0  # that a connection may be silent
_MESSAGE_S = 120.0  # in which an answer must be taken
_ATTENTION_S = 0.5  # after which a thread that waits for connections sees signals that another one was woken by
_MOST_GREETING_BYTES = 4096
_MOST_CONNECTIONS = 256


class DeviceServer:
    """Serves the devices of a list, as targets describe them: {"name", "kind", "spec"?}. Each connection has a thread;
    runs of one device follow one another.

    token: what clients must know. listen: HOST:PORT, port 0 for any that is free. most_code_bytes: of subprograms kept;
    those used least are forgotten, and sent again when they are wanted.
    """

    def __init__(
        self,
        devices: Sequence[Mapping[str, Any]],
        token: str,
        listen: str = "127.0.0.1:0",
        *,
        tls: ssl.SSLContext | None = None,
        threads: int | None = None,
        most_code_bytes: int = MOST_PAYLOAD_BYTES,
    ) -> None:
        if not token:
            raise InvalidModel("a device server needs a token. Give a file with one line of text.")
        self._devices = [(str(device["kind"]), device.get("spec")) for device in devices]
        self._turns = [threading.Lock() for _ in self._devices]
        self._token, self._tls, self._threads, self._most_code_bytes = token, tls, threads, most_code_bytes
        # Each with its device's turn and its bytes.
        self._codes: OrderedDict[str, tuple[Executable, threading.Lock, int]] = OrderedDict()
        self._lock = threading.Lock()
        self._wires: set[Wire] = set()
        self._ending = threading.Event()
        host, port = address_of(listen)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._listening = socket.create_server((host, port), family=family, backlog=64)
        except OSError as error:
            raise Unavailable(f"cannot listen on {listen}: {error.strerror or error}.") from error
        self._listening.settimeout(_ATTENTION_S)
        self.port: int = self._listening.getsockname()[1]

    def serve(self) -> None:
        """Serves until `end` is called."""
        while not self._ending.is_set():
            try:
                connection, _ = self._listening.accept()
            except TimeoutError:
                continue
            except OSError:
                if self._ending.is_set():
                    return
                time.sleep(0.05)  # too many files are open
                continue
            with self._lock:
                full = len(self._wires) >= _MOST_CONNECTIONS
            if full:
                connection.close()
                continue
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def end(self) -> None:
        """Takes no more connections and ends those there are."""
        self._ending.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._lock:
            wires = list(self._wires)
        for wire in wires:
            wire.close()

    def _converse(self, connection: socket.socket) -> None:
        connection.settimeout(_GREETING_S)
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        wire = Wire(connection)
        with self._lock:
            self._wires.add(wire)
        try:
            self._greet(wire)
            self._serve_requests(wire)
        except Closed:
            pass
        except Error as error:
            if isinstance(error, Unavailable) and not isinstance(error, Refused):
                return  # who asked has gone
            with suppress(Error):
                wire.send(_failure(error), [], time.monotonic() + _GREETING_S)
        finally:
            wire.close()
            with self._lock:
                self._wires.discard(wire)

    def _serve_requests(self, wire: Wire) -> None:
        while True:
            header, payload = wire.receive(time.monotonic() + _IDLE_S)
            answer, arrays = self._answer(header, payload)
            wire.send(answer, [_bytes_of(array) for array in arrays], time.monotonic() + _MESSAGE_S)

    def _greet(self, wire: Wire) -> None:
        until = time.monotonic() + _GREETING_S
        challenge = secrets.token_hex(32)
        wire.send({"challenge": challenge}, [], until)
        header, _ = wire.receive(until, _MOST_GREETING_BYTES)
        shown = header.get("proof")
        if not isinstance(shown, str) or not hmac.compare_digest(
            shown.encode(errors="replace"), proof(self._token, challenge).encode()
        ):
            raise InvalidModel("the token is not this device server's. Give the file with its token as token_file.")
        wire.send({"ok": True}, [], until)

    def _answer(self, header: dict[str, Any], payload: memoryview) -> tuple[dict[str, Any], list[Any]]:
        try:
            hash, want = header.get("hash"), header.get("want")
            if not isinstance(hash, str):
                raise InvalidModel(f"a request names its code by hash; found {hash!r}.")
            if want == "keep" and payload.nbytes > 0:
                self._keep(hash, payload)
                return {"ok": True}, []
            if want == "measure":
                return {"ok": True}, [np.zeros(_answered_bytes(header.get("answer_bytes")), np.uint8)]
            if want not in ("keep", "run"):
                raise InvalidModel(f"a request wants keep, run or measure; found {want!r}.")
            with self._lock:
                found = self._codes.get(hash)
                if found is not None:
                    self._codes.move_to_end(hash)
            if found is None:
                return {"ok": False, "missing": True}, []
            if want == "keep":
                return {"ok": True}, []
            executable, turn, _ = found
            inputs = _arrays_of(executable.inputs, header.get("shapes"), payload)
            with turn:
                outputs = executable.run(inputs)
            times = [{"cycles": row["cycles"]} for row in executable.last_times]
            return {"ok": True, "shapes": [list(array.shape) for array in outputs], "times": times}, outputs
        except Error as error:
            return _failure(error), []
        except Exception as error:  # of a device of somebody else's
            return _failure(Unavailable(f"{type(error).__name__}: {error}")), []

    def _keep(self, hash: str, payload: memoryview) -> None:
        found = hashlib.sha256(payload).hexdigest()
        if found != hash:
            raise InvalidModel(f"the code that arrived has the hash {found}; {hash} was announced. Send it again.")
        if payload.nbytes > self._most_code_bytes:
            raise Unavailable(f"code of {payload.nbytes} bytes; this server keeps {self._most_code_bytes} in all.")
        executable = Executable.from_image(bytes(payload), self._threads)
        (kind,) = set(executable._engine.code_kinds)
        (name,) = set(executable._engine.devices)
        spec = next((device.get("spec") for device in executable.target["devices"] if device["name"] == name), None)
        if (kind, spec) not in self._devices:
            served = ", ".join(kind for kind, _ in self._devices)
            same = any(kind == other for other, _ in self._devices)
            raise Unsupported(
                f"the code is for a device of kind '{kind}'{' with another data sheet' if same else ''}; this server "
                f"has {served}. Compile for the device that stands here."
            )
        with self._lock:
            self._codes[hash] = (executable, self._turns[self._devices.index((kind, spec))], payload.nbytes)
            while sum(bytes for _, _, bytes in self._codes.values()) > self._most_code_bytes:
                self._codes.popitem(last=False)


def _answered_bytes(wanted: Any) -> int:
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 0 <= wanted <= MOST_MEASURED_BYTES:
        raise InvalidModel(f"answer_bytes must be a number from 0 to {MOST_MEASURED_BYTES}; found {wanted!r}.")
    return wanted


def _arrays_of(ports: Sequence[Port], shapes: Any, payload: memoryview) -> list[Any]:
    if not isinstance(shapes, list) or len(shapes) != len(ports):
        raise InvalidModel(f"a run has {len(ports)} inputs; found the shapes {shapes!r:.80}.")
    out, offset = [], 0
    for port, shape in zip(ports, shapes, strict=True):
        if not isinstance(shape, list) or not all(type(size) is int and 0 <= size < 1 << 48 for size in shape):
            raise InvalidModel(f"input '{port.name}': a shape is a list of sizes; found {shape!r:.80}.")
        dtype = np.dtype(numpy_type(port.dtype))
        count = 1
        for size in shape:
            count *= size
        if len(shape) > 8 or count * dtype.itemsize > payload.nbytes - offset:
            raise InvalidModel(f"input '{port.name}': {payload.nbytes - offset} bytes are left for the shape {shape}.")
        out.append(np.frombuffer(payload, dtype, count, offset).reshape(shape))
        offset += count * dtype.itemsize
    if offset != payload.nbytes:
        raise InvalidModel(f"a run of {offset} bytes of inputs; {payload.nbytes} arrived.")
    return out


def _bytes_of(array: Any) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _failure(error: Error) -> dict[str, Any]:
    print(f"hetnn device: {error.kind}: {error}", file=sys.stderr)
    return {"ok": False, "kind": error.kind, "text": str(error)}
