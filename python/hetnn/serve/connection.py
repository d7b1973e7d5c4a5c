"""Connections of HTTP clients: uvicorn's, bounded, and with a short way for plain inferences past its applications."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hetnn.errors import InvalidModel
from hetnn.serve.http import Front, Route

KEEP_ALIVE_S = 75
_HEAD_BYTES = 1 << 16
_HEAD_S = 20.0
_CONNECTIONS = 4096
_HEADERS = 256
_KEPT_HEAD_BYTES = 1 << 12


class Connection(HttpToolsProtocol):
    """uvicorn's, with bounds on the bytes and the time of a request's head and on the number of connections."""

    _heads = 0  # that were read to their end
    _head_bytes = 0  # of one that was not
    _in_body = False
    _begun_s = 0.0  # when the connection, or the last request, began

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Counts the connection, and ends it where there are too many."""
        super().connection_made(transport)
        self._begun_s = self.loop.time()
        if len(self.connections) > _CONNECTIONS:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Reads bytes; ends the connection where a head is longer than it may be."""
        if self._in_body:
            return super().data_received(data)
        if self._head_bytes == 0:
            self._begun_s = self.loop.time()
        heads = self._heads
        super().data_received(data)
        if self._heads == heads:
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_BYTES:
                self.transport.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Takes a header; ends the connection where there are too many or it is too long."""
        if len(self.headers) >= _HEADERS or len(name) + len(value) > _HEAD_BYTES:
            self.transport.abort()
            return
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """From here on bytes are those of the body."""
        self._in_body = True
        self._heads += 1
        self._head_bytes = 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """From here on bytes are those of the next head."""
        self._in_body = False
        super().on_message_complete()

    def sweep(self, now_s: float) -> None:
        """Ends it where a head has been on its way for too long, or a new connection has said nothing."""
        silent = self._head_bytes == 0 and self.cycle is None
        if (silent or (self._head_bytes > 0 and not self._in_body)) and now_s - self._begun_s > _HEAD_S:
            self.transport.abort()


class _Ask:
    """An inference that went the short way: what uvicorn wants to know of a connection's request."""

    def __init__(self) -> None:
        self.response_complete = True
        self.disconnected = False
        self.keep_alive = True
        self.more_body = False
        self.message_event = asyncio.Event()
        self.route = Route("", "", 0, None)
        self.body: bytes | bytearray = b""
        self.got = 0  # of the body
        self.leave: Callable[[], None] | None = None


class InferenceConnection(Connection):
    """Inferences that ask for nothing unusual are begun as soon as their bytes are there, and answered in one piece."""

    def __init__(self, front: Front, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._front = front
        self._ask = _Ask()
        self._short = False  # the request that is read, or was read last
        self._head: bytes | None = None  # of the last message, where it went the short way and came in one piece

    def data_received(self, data: bytes) -> None:
        """Reads bytes; a head that is the last one again is known without being parsed."""
        head, ask = self._head, self._ask
        if head is not None:
            # Clients ask again and again with the same head, which need not be parsed to be known.
            if (
                len(data) == len(head) + ask.route.length
                and data.startswith(head)
                and self.cycle is ask  # type: ignore[comparison-overlap]  # as in `on_headers_complete`
                and ask.response_complete
                and not self.flow.write_paused
            ):
                self._begun_s = self.loop.time()
                ask.response_complete = False
                return self._begin(data[len(head) :])
            self._head = None
        heads = self._heads if self._head_bytes == 0 and not self._in_body else -1
        super().data_received(data)
        if self._short and not self._in_body and self._heads == heads + 1 and data.startswith(b"POST "):
            length = len(data) - ask.route.length
            if data.find(b"\r\n\r\n", 0, _KEPT_HEAD_BYTES) + 4 == length:  # one message, and nothing behind it
                self._head = data[:length]

    def connection_lost(self, exc: Exception | None) -> None:
        """Tells a request that runs that nobody waits for it."""
        leave, self._ask.leave = self._ask.leave, None
        super().connection_lost(exc)
        if leave is not None:
            leave()

    # What the parser finds. A scope is made for the application alone.

    def on_message_begin(self) -> None:
        """Forgets the head before."""
        self.url = b""
        self.headers = []
        self.expect_100_continue = False

    def on_headers_complete(self) -> None:
        """Decides whether the request goes the short way, without the application."""
        self._short = self._goes_short()
        if self._short:
            self._in_body = True
            self._heads += 1
            self._head_bytes = 0
            self.cycle = self._ask  # type: ignore[assignment]  # all that uvicorn asks a cycle for
            return
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers.extend(headers)
        super().on_headers_complete()

    def _goes_short(self) -> bool:
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy or self.flow.write_paused or self.parser.get_method() != b"POST":
            return False
        route = self._front.route(self.url, self.headers)
        if route is None or not self.parser.should_keep_alive() or self.parser.get_http_version() != "1.1":
            return False
        ask = self._ask
        ask.route, ask.got, ask.response_complete, ask.keep_alive = route, 0, False, True
        return True

    def on_body(self, body: bytes) -> None:
        """Takes a part of the body."""
        if not self._short:
            return super().on_body(body)
        ask = self._ask
        if len(body) == ask.route.length:
            ask.body = body
        else:
            if ask.got == 0:
                ask.body = bytearray(ask.route.length)
            ask.body[ask.got : ask.got + len(body)] = body  # type: ignore[index]
        ask.got += len(body)

    def on_message_complete(self) -> None:
        """Begins the request once its body is there."""
        if not self._short:
            return super().on_message_complete()
        ask = self._ask
        self._in_body = False
        body, ask.body = ask.body if ask.got else b"", b""
        self._begin(body)

    def _begin(self, body: bytes | bytearray) -> None:
        ask = self._ask
        ask.leave = self._front.ask(ask.route, body, self._answered)
        if ask.response_complete:
            ask.leave = None

    def _answered(self, response: bytes) -> None:
        ask = self._ask
        ask.leave, ask.response_complete = None, True
        if self.transport.is_closing():
            return
        if ask.keep_alive:
            self.transport.write(response)
        else:  # the server is ending
            self.transport.write(response.replace(b"\r\n", b"\r\nconnection: close\r\n", 1))
            self.transport.close()
        if self.pipeline:
            self.on_response_complete()
        else:
            self.server_state.total_requests += 1

    def sweep(self, now_s: float) -> None:
        """Also ends it where a body is late, and where nothing has come since an inference for as long as uvicorn waits
        after others."""
        super().sweep(now_s)
        if not self._short:
            return
        if self._in_body:
            if now_s - self._begun_s > self._front.body_s:
                late = InvalidModel(f"the body did not arrive within {self._front.body_s:g} s.")
                self._ask.keep_alive = False
                self._answered(self._front.failed(late))
        elif self._ask.response_complete and self._head_bytes == 0 and now_s - self._begun_s > KEEP_ALIVE_S:
            self.transport.close()
