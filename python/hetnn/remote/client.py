"""The side of an executable whose device stands elsewhere: a kind of device like any other, whose code is an image."""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hetnn import errors
from hetnn.backends.backend import Backend, Port, Run
from hetnn.backends.code import with_header
from hetnn.element_types import numpy_type
from hetnn.errors import Error, InvalidModel, Unavailable
from hetnn.remote.wire import PROTOCOL, Closed, Refused, Wire, address_of, proof, read_token
from hetnn.target import PLACE_KEYS

KIND = "remote"
_DEFAULT_TIMEOUT_S = 30.0
_MEASURED_CALLS, _MEASURED_BYTES = 30, 4 << 20


def check_place(device: str, place: Any) -> dict[str, Any]:
    """Where a device stands: {"at": HOST:PORT, "token_file": F, "timeout_s"?, "tls"?, "tls_ca"?}; or InvalidModel."""
    if not isinstance(place, Mapping) or not isinstance(place.get("at"), str):
        raise InvalidModel(f"device '{device}': say where it stands, as {{'at': 'HOST:PORT', 'token_file': F}}.")
    unknown = sorted(set(map(str, place)) - PLACE_KEYS)
    if unknown:
        raise InvalidModel(
            f"device '{device}': unknown {', '.join(unknown)}; known are {', '.join(sorted(PLACE_KEYS))}."
        )
    address_of(place["at"])
    if not isinstance(place.get("token_file"), (str, os.PathLike)):
        raise InvalidModel(f"device '{device}': name the file of the server's token as token_file.")
    timeout_s = place.get("timeout_s", _DEFAULT_TIMEOUT_S)
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not 0 < timeout_s < 1e6:
        raise InvalidModel(f"device '{device}': timeout_s must be a positive number of seconds; found {timeout_s!r}.")
    return {**place, "token_file": os.path.abspath(os.fspath(place["token_file"])), "timeout_s": float(timeout_s)}


def code_elsewhere(place: Mapping[str, Any], image: bytes) -> bytes:
    """Code of the kind `remote`: where to run the image of a subprogram, and the image."""
    return with_header(Remote.version, place, image)


def measure_link(device: str, place: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The way to a device server, {"to" and "from": {"latency_us", "bytes_per_us"}}, as a target's `links` has them: a
    visit pays half of an empty round trip each way, and for its bytes. Unavailable where there is no server."""
    conversation = _Conversation(device, place, b"")
    data = memoryview(bytes(_MEASURED_BYTES))
    empty_us = _median_us(lambda: conversation.measure([], 0))
    there_us = _median_us(lambda: conversation.measure([data], 0))
    back_us = _median_us(lambda: conversation.measure([], _MEASURED_BYTES))
    conversation.end()
    return {
        way: {"latency_us": empty_us / 2, "bytes_per_us": _MEASURED_BYTES / max(us - empty_us, 1e-3 * us)}
        for way, us in (("to", there_us), ("from", back_us))
    }


def _median_us(call: Callable[[], None]) -> float:
    """The median of some calls after a first one."""
    call()
    times = []
    for _ in range(_MEASURED_CALLS):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1e6)
    return statistics.median(times)


class Remote(Backend):
    """A device behind a device server. The spec is a place (check_place)."""

    version = str(PROTOCOL)

    def compile(self, graph: Any) -> bytes:
        """Nothing is compiled for a place: another device's code is run there."""
        raise errors.Unsupported("compile for the device itself; say where it stands when the file is loaded.")

    def open(self, code: bytes, inputs: Sequence[Port], outputs: Sequence[Port]) -> Run:
        """Connects, and has the server keep the code."""
        conversation = _Conversation(self.name, self.spec, code)
        conversation.keep()
        types = [np.dtype(numpy_type(port.dtype)) for port in outputs]

        def run(arrays: list[Any]) -> Sequence[Any]:
            return conversation.run(arrays, types)

        return run


class _Conversation:
    """One connection, made again when it is gone. Calls follow one another."""

    def __init__(self, device: str, place: Mapping[str, Any], image: bytes) -> None:
        self._device, self._place = device, check_place(device, place)
        self._image, self._hash = image, hashlib.sha256(image).hexdigest()
        self._wire: Wire | None = None
        self._process = os.getpid()
        self._lock = threading.Lock()

    def keep(self) -> None:
        """Sends the code where the server does not have it, which it knows by its hash."""
        deadline = self._deadline()
        with self._lock:
            answer, _ = self._call({"want": "keep"}, [], deadline)
            if answer.get("missing"):
                self._call({"want": "keep"}, [memoryview(self._image)], deadline)

    def run(self, arrays: list[Any], types: Sequence[np.dtype[Any]]) -> list[Any]:
        """The outputs for these inputs."""
        header = {"want": "run", "shapes": [list(array.shape) for array in arrays]}
        buffers = [array.reshape(-1).view(np.uint8).data for array in arrays if array.size]
        deadline = self._deadline()
        with self._lock:
            answer, payload = self._call(header, buffers, deadline)
            if answer.get("missing"):  # it was started anew, or keeps what is used more
                self._call({"want": "keep"}, [memoryview(self._image)], deadline)
                answer, payload = self._call(header, buffers, deadline)
        try:
            out, offset = [], 0
            for dtype, shape in zip(types, answer["shapes"], strict=True):
                count = int(np.prod(shape, dtype=np.int64))
                out.append(np.frombuffer(payload, dtype, count, offset).reshape(shape))
                offset += count * dtype.itemsize
        except (KeyError, TypeError, ValueError) as error:
            raise Unavailable(f"{self._called}: its answer makes no sense: {error}") from error
        return out

    def measure(self, buffers: Sequence[memoryview], answer_bytes: int) -> None:
        """Sends bytes and takes some."""
        with self._lock:
            self._call({"want": "measure", "answer_bytes": answer_bytes}, buffers, self._deadline())

    def end(self) -> None:
        """Ends the connection; the next call makes another."""
        with self._lock:
            self._end()

    @property
    def _called(self) -> str:
        return f"device '{self._device}' at {self._place['at']}"

    def _deadline(self) -> float:
        return time.monotonic() + float(self._place["timeout_s"])

    def _call(
        self, header: dict[str, Any], buffers: Sequence[memoryview], deadline: float
    ) -> tuple[dict[str, Any], memoryview]:
        if self._wire is not None and self._process != os.getpid():
            self._wire = None  # a fork's connection is its parent's
        fresh = self._wire is None
        try:
            wire = self._wire = self._wire or self._connect(deadline)
            try:
                wire.send({**header, "hash": self._hash}, buffers, deadline)
                answer, payload = wire.receive(deadline)
            except (Closed, Unavailable) as error:
                # A connection that was kept may have ended while nobody used it.
                if fresh or isinstance(error, Refused) or time.monotonic() >= deadline:
                    raise
                self._end()
                wire = self._wire = self._connect(deadline)
                wire.send({**header, "hash": self._hash}, buffers, deadline)
                answer, payload = wire.receive(deadline)
        except Closed as error:
            self._end()
            raise Unavailable(f"{self._called} ended the connection.") from error
        except Error as error:
            self._end()
            raise Unavailable(f"{self._called}: {error}") from error
        if answer.get("ok") is not True and not answer.get("missing"):
            kind = getattr(errors, str(answer.get("kind")), Unavailable)
            known = kind if isinstance(kind, type) and issubclass(kind, Error) else Unavailable
            raise known(f"{self._called}: {answer.get('text')}")
        return answer, payload

    def _connect(self, deadline: float) -> Wire:
        host, port = address_of(self._place["at"])
        try:
            connection = socket.create_connection((host, port), max(deadline - time.monotonic(), 0.001))
            if self._place.get("tls") or self._place.get("tls_ca"):
                context = ssl.create_default_context(cafile=self._place.get("tls_ca"))
                connection = context.wrap_socket(connection, server_hostname=host)
        except OSError as error:
            raise Unavailable(f"no connection: {error}. Is `hetnn device serve` running there?") from error
        self._process = os.getpid()
        wire = Wire(connection)
        try:
            greeting, _ = wire.receive(deadline)
            token = read_token(str(self._place["token_file"]))
            wire.send({"proof": proof(token, str(greeting.get("challenge")))}, [], deadline)
            answer, _ = wire.receive(deadline)
            if answer.get("ok") is not True:
                raise InvalidModel(str(answer.get("text")))
        except (Closed, Error) as error:
            wire.close()
            raise Unavailable(str(error) or "it ended the connection") from error
        return wire

    def _end(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None
