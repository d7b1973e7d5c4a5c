"""What passes between a device server and who uses it: messages of a JSON header and bytes, over one connection.

A message is the word `hetnn1`, the lengths of header and payload, the header, the payload. Whoever connects answers the
server's challenge first, so that the token itself never passes. Nothing that arrives is run but executables, which
loading proves sound.
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

from hetnn.errors import InvalidModel, Unavailable

PROTOCOL = 1
_WORD = b"hetnn1\0\0"
_PREFIX = struct.Struct("<8sIQ")
MOST_HEADER_BYTES = 1 << 20
MOST_PAYLOAD_BYTES = 4 << 30
MOST_MEASURED_BYTES = 64 << 20  # of an answer to who measures the way
_PIECE_BYTES = 1 << 20
_MOST_BUFFERS = 512  # that one call of the system takes


class Closed(Exception):
    """The other side ended the connection between two messages."""


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
        told = json.dumps(header).encode()
        bytes = sum(buffer.nbytes for buffer in buffers)
        pieces = [memoryview(_PREFIX.pack(_WORD, len(told), bytes) + told), *(b for b in buffers if b.nbytes)]
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
        prefix = self._read(_PREFIX.size, deadline, may_end=True)
        word, header_bytes, payload_bytes = _PREFIX.unpack(prefix)
        if word != _WORD:
            raise InvalidModel(f"the other side speaks another protocol: found {word!r}, expected {_WORD!r}.")
        if header_bytes > MOST_HEADER_BYTES or payload_bytes > most_bytes:
            raise InvalidModel(
                f"a message of {header_bytes} and {payload_bytes} bytes; at most {MOST_HEADER_BYTES} and {most_bytes} "
                "are taken."
            )
        try:
            header = json.loads(bytes(self._read(header_bytes, deadline)))
        except (ValueError, RecursionError) as error:
            raise InvalidModel(f"the header of a message is no JSON: {error}") from error
        if not isinstance(header, dict):
            raise InvalidModel(f"the header of a message must be an object; found {type(header).__name__}.")
        return header, self._read(payload_bytes, deadline)

    def _read(self, count: int, deadline: float, may_end: bool = False) -> memoryview:
        # As much memory as has arrived, so that a length alone costs nothing.
        out = bytearray(min(count, _PIECE_BYTES))
        filled = 0
        try:
            while filled < count:
                if filled == len(out):
                    out.extend(bytes(min(count - filled, max(len(out), _PIECE_BYTES))))
                self._wait_until(deadline)
                with memoryview(out) as view:
                    got = self._socket.recv_into(view[filled:])
                if got == 0:
                    if may_end and filled == 0:
                        raise Closed
                    raise Unavailable(f"the connection ended after {filled} of {count} bytes.")
                filled += got
        except OSError as error:
            if may_end and filled == 0 and isinstance(error, ConnectionResetError):
                raise Closed from error
            raise _broken(error) from error
        return memoryview(out)

    def _wait_until(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)


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
