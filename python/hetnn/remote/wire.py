"""What passes between a device server and who uses it: messages of a JSON header and bytes, over one connection.

A message is the word `hetnn2`, the header's length and sum, the sum of these three, the header, the payload. The header
has the lengths and sums of the payload's parts, so that no byte that was altered on its way is taken for what was sent.
Whoever connects answers the server's challenge first, so that the token itself never passes. Nothing that arrives is
run but executables, which loading proves sound.
"""

from __future__ import annotations

import hmac
import json
import socket
import ssl
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from hetnn._runtime import quick_sum
from hetnn.errors import InvalidModel, Unavailable

PROTOCOL = 2
WORD = f"hetnn{PROTOCOL}".encode().ljust(8, b"\0")
_BEGIN = struct.Struct("<8sI16s")
_SUM_BYTES = 16
MOST_HEADER_BYTES = 1 << 20
MOST_PAYLOAD_BYTES = 4 << 30
MOST_MEASURED_BYTES = 64 << 20  # of an answer to who measures the way
_PIECE_BYTES = 1 << 20
_MOST_BUFFERS = 512  # that one call of the system takes


class Closed(Exception):
    """The other side ended the connection between two messages."""


class Refused(Unavailable):
    """What arrived is not taken: it was altered on its way, is of another protocol, or there is no room for it. Nothing
    behind it on the connection is a message."""

    @property
    def kind(self) -> str:
        """To whom it is told it is one of hetnn's errors."""
        return Unavailable.__name__


class Wire:
    """One end of a connection. Each call has a deadline; Unavailable and InvalidModel say what broke it."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        """Ends the connection; may be called twice, and from another thread."""
        with suppress(OSError):  # it has ended already
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def send(self, header: Mapping[str, Any], buffers: Sequence[memoryview], deadline: float) -> None:
        """One message; the buffers are its payload, one behind the other."""
        parts = [buffer for buffer in buffers if buffer.nbytes]
        pieces = [memoryview(begun(header, parts)), *parts]
        try:
            while pieces:
                self._wait_until(deadline)
                if isinstance(self._socket, ssl.SSLSocket):
                    sent = self._socket.send(pieces[0][:_PIECE_BYTES])
                else:
                    sent = self._socket.sendmsg(pieces[:_MOST_BUFFERS])
                while pieces and sent >= pieces[0].nbytes:
                    sent -= pieces.pop(0).nbytes
                if sent:
                    pieces[0] = pieces[0][sent:]
        except OSError as error:
            raise _broken(error) from error

    def receive(self, deadline: float, most_bytes: int = MOST_PAYLOAD_BYTES) -> tuple[dict[str, Any], memoryview]:
        """The next message. Closed where the other side has ended the connection before it."""
        begin = self._read(_BEGIN.size + _SUM_BYTES, deadline, may_end=True)
        word, header_bytes, header_sum = _BEGIN.unpack_from(begin)
        if word != WORD:
            raise Refused(
                f"the other side speaks another protocol: found {word!r}, expected {WORD!r}. Install the same version "
                "of hetnn on both."
            )
        _check_sum("the beginning", begin[: _BEGIN.size], bytes(begin[_BEGIN.size :]))
        if header_bytes > MOST_HEADER_BYTES:
            raise Refused(f"a header of {header_bytes} bytes; at most {MOST_HEADER_BYTES} are taken.")
        told = self._read(header_bytes, deadline)
        _check_sum("the header", told, header_sum)
        header, parts = _read_header(bytes(told))
        payload_bytes = sum(size for size, _ in parts)
        if payload_bytes > most_bytes:
            raise Refused(f"a payload of {payload_bytes} bytes; at most {most_bytes} are taken.")
        payload = self._read(payload_bytes, deadline)
        at = 0
        for size, sum_sent in parts:
            _check_sum("a part of the payload", payload[at : at + size], sum_sent.encode(errors="replace"))
            at += size
        return header, payload

    def _read(self, count: int, deadline: float, may_end: bool = False) -> memoryview:
        # Memory that nothing is written to yet costs nothing, so that a length alone does not.
        try:
            out = np.empty(count, np.uint8).data
        except MemoryError as error:
            raise Refused(f"there is no memory for {count} bytes of a message.") from error
        filled = 0
        try:
            while filled < count:
                self._wait_until(deadline)
                got = self._socket.recv_into(out[filled:])
                if got == 0:
                    if may_end and filled == 0:
                        raise Closed
                    raise Unavailable(f"the connection ended after {filled} of {count} bytes.")
                filled += got
        except OSError as error:
            if may_end and filled == 0 and isinstance(error, ConnectionResetError):
                raise Closed from error
            raise _broken(error) from error
        return out

    def _wait_until(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)


def begun(header: Mapping[str, Any], parts: Sequence[memoryview]) -> bytes:
    """A message of these parts up to where its payload begins."""
    return framed(json.dumps({**header, "parts": [[part.nbytes, quick_sum(part)] for part in parts]}).encode())


def framed(told: bytes) -> bytes:
    """A header with what stands before it."""
    begin = _BEGIN.pack(WORD, len(told), quick_sum(told).encode())
    return begin + quick_sum(begin).encode() + told


def _read_header(told: bytes) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    """The header, and the lengths and sums of the parts behind it."""
    try:
        header = json.loads(told)
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"the header of a message is no JSON: {error}") from error
    if not isinstance(header, dict):
        raise InvalidModel(f"the header of a message must be an object; found {type(header).__name__}.")
    parts = header.pop("parts", None)
    if not isinstance(parts, list) or not all(_is_part(part) for part in parts):
        raise InvalidModel(f"the parts of a payload are [bytes, sum] each; found {parts!r:.80}.")
    return header, [(size, told) for size, told in parts]


def _is_part(part: Any) -> bool:
    return isinstance(part, list) and [type(each) for each in part] == [int, str] and part[0] >= 0


def _check_sum(what: str, data: memoryview, told: bytes) -> None:
    found = quick_sum(data).encode()
    if found != told:
        raise Refused(f"{what} of a message arrived altered: its sum is {found!r}, and {told!r} was sent with it.")


def _broken(error: OSError) -> Unavailable:
    late = isinstance(error, TimeoutError)
    return Unavailable("the deadline passed." if late else f"the connection failed: {error.strerror or error}.")


def proof(token: str, challenge: str) -> str:
    """What shows that one has the token, for this connection alone."""
    return hmac.new(token.encode(), challenge.encode(), "sha256").hexdigest()


def address_of(at: str) -> tuple[str, int]:
    """HOST:PORT, of which the host may be in brackets. InvalidModel for anything else."""
    host, colon, port = at.rpartition(":")
    if not colon or not host or not port.isdecimal() or not port.isascii() or int(port) > 65535:
        raise InvalidModel(f"a device stands at HOST:PORT; found '{at}'.")
    return host.removeprefix("[").removesuffix("]"), int(port)


def read_token(path: str) -> str:
    """The token in a file. InvalidModel where there is none."""
    from hetnn.files import read_text

    token = read_text(path).strip()
    if not token:
        raise InvalidModel(f"'{path}' holds no token. Write one line of text that both sides know.")
    return token
