"""The protocol over HTTP as one ASGI application: routes, bodies, compression, tokens, errors."""

from __future__ import annotations

import asyncio
import gzip
import hmac
import json
import re
import sys
import traceback
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from hetnn.errors import Error, InternalError, InvalidModel, Unavailable, Unsupported
from hetnn.serve.runner import ClientGone
from hetnn.serve.service import Answer, Inference, Service
from hetnn.store import DamagedNetwork, UnknownNetwork

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = Mapping[bytes, bytes]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
Answering = Callable[..., Awaitable[tuple[int, Any]]]

_JSON = (b"content-type", b"application/json")
_RAW = (b"content-type", b"application/octet-stream")
_ANY = "*"  # of a route that answers every method
_MOST_ROUTES = 4096
# Headers of requests that are more than a body.
_UNUSUAL = frozenset((b"accept-encoding", b"content-encoding", b"transfer-encoding", b"expect", b"upgrade"))
# The longest body that is gathered before anything else is done.
_SHORT_BYTES = 1 << 24
# What takes longer than this is read, packed and unpacked beside the event loop.
_APART_BYTES = 1 << 16


@dataclass(frozen=True)
class HttpLimits:
    """What a client may ask of the server before a network sees it."""

    body_bytes: int = 1 << 30
    body_s: float = 60.0
    tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """Where an inference goes, and how long its body and the JSON in it are."""

    model: str
    version: str
    length: int
    head_bytes: int | None  # None: all of the body


class NotFound(InvalidModel):
    """A path that the protocol does not have."""


class NotAllowed(InvalidModel):
    """A method that the protocol does not have for a path; `allow` are those that it has."""

    def __init__(self, method: str, path: str, allow: Iterable[str]) -> None:
        self.allow = ", ".join(allow)
        super().__init__(f"{method:.20} {path:.200} is not answered here; ask by {self.allow}.")


class _Refused(Exception):
    """A client without a token."""


def status_of(error: BaseException) -> int:
    """The HTTP status for an error."""
    if isinstance(error, (UnknownNetwork, NotFound)):
        return 404
    if isinstance(error, NotAllowed):
        return 405
    if isinstance(error, Unavailable):
        return 503
    if isinstance(error, Unsupported):
        return 501
    if isinstance(error, _Refused):
        return 401
    if isinstance(error, DamagedNetwork):
        return 500
    return 400 if isinstance(error, Error) and not isinstance(error, InternalError) else 500


def application(service: Service, limits: HttpLimits | None = None, *, metrics_only: bool = False) -> Application:
    """The ASGI application of a started service."""
    front = Front(service, limits or HttpLimits())
    return front.metrics if metrics_only else front.protocol


class Front:
    """What answers HTTP: two ASGI applications, and a short way for plain inferences."""

    def __init__(self, service: Service, limits: HttpLimits) -> None:
        self._service = service
        self._limits = limits
        self._tokens = [token.encode() for token in limits.tokens]
        self._infer_routes: dict[bytes, tuple[str, str]] = {}
        self._router = Router(self._routes())
        self._full = self.failed(service.full())  # made once: what costs most of a refusal else

    async def protocol(self, scope: Message, receive: Receive, send: Send) -> None:
        """The ASGI application of the protocol."""
        if scope["type"] != "http":
            return await self._other(scope, receive, send)
        headers = dict(scope["headers"])
        extra: list[tuple[bytes, bytes]] = []
        try:
            raw_path = scope.get("raw_path") or scope["path"].encode()
            place = self._infer_routes.get(raw_path)
            if place is None:
                path = raw_path.decode("latin-1")
                place = _infer_place(path)
                if place is not None and len(self._infer_routes) < _MOST_ROUTES:
                    self._infer_routes[raw_path] = place
            if place is not None:
                self._check_token(headers)
                return await self._infer(place, scope, headers, receive, send)
            if path != "/v2/health/live" and not path.endswith("/ready"):
                self._check_token(headers)
            body = await self._body(headers, receive)
            status, document = await self._answer(scope["method"], path, body)
            content = b"" if document is None else json.dumps(document, allow_nan=False).encode()
        except Exception as error:
            status, content, extra = self._failure(error)
        await _send(send, status, [_JSON, *extra], content)

    def route(self, path: bytes, headers: Iterable[tuple[bytes, bytes]]) -> Route | None:
        """What `ask` takes for a POST that asks for an inference and nothing unusual; None for what the applications
        answer."""
        place = self._infer_routes.get(path)
        if place is None or self._tokens:
            return None
        head_bytes, length = None, None
        for name, value in headers:
            if name in _UNUSUAL:
                return None
            if name == b"content-length":
                length = int(value)
            elif name == b"inference-header-content-length":
                if not value.isdigit():
                    return None
                head_bytes = int(value[:18])
        if length is None or length > min(_SHORT_BYTES, self._limits.body_bytes):
            return None
        return Route(*place, length, head_bytes)

    def ask(self, route: Route, body: bytes | bytearray, answered: Callable[[bytes], None]) -> Callable[[], None]:
        """Begins an inference; `answered` gets the response's bytes, once. What it returns is called when the client
        has left."""
        if self._service.is_full:
            answered(self._full)
            return _nothing

        def wrap(answer: Answer | Exception) -> None:
            answered(self.failed(answer) if isinstance(answer, Exception) else _answered(*answer))

        try:
            if (route.length if route.head_bytes is None else route.head_bytes) < _APART_BYTES:
                request = Inference.from_http(body, route.model, route.version, route.head_bytes)
                return self._service.ask(request, wrap)
            return self._service.ask_apart(self._infer_apart(route, body), wrap)
        except Exception as error:
            wrap(error)
            return _nothing

    async def _infer_apart(self, route: Route, body: bytes | bytearray) -> Answer:
        self._service.admit()
        request = await asyncio.to_thread(Inference.from_http, body, route.model, route.version, route.head_bytes)
        return await self._service.infer(request)

    def failed(self, error: Exception) -> bytes:
        """The whole response."""
        status, content, extra = self._failure(error)
        lines = b"".join(b"%b: %b\r\n" % header for header in (_JSON, *extra))
        phrase = HTTPStatus(status).phrase.encode()
        return b"HTTP/1.1 %d %b\r\n%bcontent-length: %d\r\n\r\n%b" % (status, phrase, lines, len(content), content)

    @property
    def body_s(self) -> float:
        """How long a body may take to arrive."""
        return self._limits.body_s

    async def metrics(self, scope: Message, receive: Receive, send: Send) -> None:
        """An application with `/metrics` alone, for a port of its own."""
        if scope["type"] != "http":
            return await self._other(scope, receive, send)
        try:
            self._check_token(dict(scope["headers"]))
            if scope["path"] != "/metrics":
                raise NotFound(f"there is nothing at {scope['path']!r:.100}; ask for /metrics.")
            if scope["method"] != "GET":
                raise NotAllowed(scope["method"], "/metrics", ["GET"])
            content = (await self._service.metrics()).encode()
        except Exception as error:
            status, content, extra = self._failure(error)
            return await _send(send, status, [_JSON, *extra], content)
        return await _send(send, 200, [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")], content)

    async def _other(self, scope: Message, receive: Receive, send: Send) -> None:
        """Where another server mounts the application, its lifespan is the service's."""
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close"})
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self._service.start()
                    await send({"type": "lifespan.startup.complete"})
                except Exception as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
            else:
                await self._service.stop()
                return await send({"type": "lifespan.shutdown.complete"})

    def _check_token(self, headers: Headers) -> None:
        if not self._tokens:
            return
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        # Every token is compared, so that the time tells nothing.
        right = [hmac.compare_digest(given.strip(), token) for token in self._tokens]
        if kind.lower() != b"bearer" or not any(right):
            raise _Refused

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        """The whole body, unpacked; InvalidModel when it is too long or takes too long."""
        most = self._limits.body_bytes
        try:
            declared = int(headers.get(b"content-length", b"0"))
        except ValueError:
            raise InvalidModel("Content-Length must be a number.") from None
        if declared > most:
            raise InvalidModel(f"the body has {declared} bytes; this server takes {most}.")
        message = await receive()
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            body = await self._rest(body, most, receive)
        elif message["type"] == "http.disconnect":
            raise ClientGone
        encoding = headers.get(b"content-encoding", b"identity")
        if encoding == b"identity":
            return body
        if encoding not in (b"gzip", b"deflate"):
            raise Unsupported(f"Content-Encoding {encoding.decode('latin-1')!r:.50} is unknown; send gzip or deflate.")
        if len(body) < _APART_BYTES:
            unpacked = _unpacked(body, encoding, min(most, 16 * _APART_BYTES))
            if unpacked is not None:
                return unpacked
        return await asyncio.to_thread(_unpacked_whole, body, encoding, most)

    async def _rest(self, begin: bytes, most: int, receive: Receive) -> bytes:
        parts, size = [begin], len(begin)
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._limits.body_s
        while True:
            try:
                message = await asyncio.wait_for(receive(), ends - loop.time())
            except asyncio.TimeoutError:
                raise InvalidModel(f"the body did not arrive within {self._limits.body_s:g} s.") from None
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise InvalidModel(f"the body has more than the {most} bytes that this server takes.")
            if not message.get("more_body"):
                return b"".join(parts)

    async def _infer(
        self, place: tuple[str, str], scope: Message, headers: Headers, receive: Receive, send: Send
    ) -> None:
        extra: list[tuple[bytes, bytes]] = []
        try:
            if scope["method"] != "POST":
                raise NotAllowed(scope["method"], scope["path"], ["POST"])
            self._service.admit()
            body = await self._body(headers, receive)
            given = headers.get(b"inference-header-content-length")
            if given is not None and not given.isdigit():
                raise InvalidModel("Inference-Header-Content-Length must be a number.")
            length = None if given is None else int(given[:18])
            if (len(body) if length is None else length) < _APART_BYTES:
                request = Inference.from_http(body, *place, length)
            else:
                request = await asyncio.to_thread(Inference.from_http, body, *place, length)
            content, head_bytes = await self._service.infer(request, receive)
            status = 200
            if head_bytes is not None:
                extra.append((b"inference-header-content-length", str(head_bytes).encode()))
            accepted = headers.get(b"accept-encoding")
            if accepted is not None:
                content, encoding = await _packed(content, accepted)
                if encoding:
                    extra.append((b"content-encoding", encoding))
            extra.append(_JSON if head_bytes is None else _RAW)
        except ClientGone:
            return
        except Exception as error:
            status, content, extra = self._failure(error)
            extra.append(_JSON)
        await _send(send, status, extra, content)

    def _failure(self, error: Exception) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
        status = status_of(error)
        extra: list[tuple[bytes, bytes]] = []
        text = str(error)
        if isinstance(error, NotAllowed):
            extra.append((b"allow", error.allow.encode()))
        elif status == 503:
            extra.append((b"retry-after", b"1"))
        elif status == 401:
            extra.append((b"www-authenticate", b"Bearer"))
            text = "this server answers those with its token alone: send Authorization: Bearer TOKEN."
        elif isinstance(error, ClientGone):
            text = "the client left."
        elif status == 500 and not isinstance(error, Error):
            traceback.print_exception(error, file=sys.stderr)
            text = f"{type(error).__name__}: {error}. This is a bug in hetnn; please report it."
        return status, json.dumps({"error": text}).encode(), extra

    async def _answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        """Everything but inference: the status and the document."""
        found = self._router.find(path)
        if found is None:
            raise NotFound(f"{method:.20} {path:.200} is not answered here.")
        answers, values = found
        answer = answers.get(method) or answers.get(_ANY)
        if answer is None:
            raise NotAllowed(method, path, answers)
        return await answer(body, **values)

    def _routes(self) -> Iterable[tuple[str, str, Answering]]:
        """Every method and path with what answers it. Inferences take a way of their own, `_infer`."""
        service = self._service
        regions = service.regions

        async def live(body: bytes) -> tuple[int, Any]:
            return 200, None

        async def ready(body: bytes) -> tuple[int, Any]:
            return (200 if service.ready else 400), None

        async def server(body: bytes) -> tuple[int, Any]:
            return 200, service.server_metadata()

        async def workers(body: bytes) -> tuple[int, Any]:
            return 200, {"workers": service.workers()}

        async def metadata(body: bytes, name: str, version: str = "") -> tuple[int, Any]:
            return 200, await service.metadata(name, version)

        async def model_ready(body: bytes, name: str, version: str = "") -> tuple[int, Any]:
            return (200 if await service.model_ready(name, version) else 404), None

        async def config(body: bytes, name: str, version: str = "") -> tuple[int, Any]:
            return 200, await service.config(name, version)

        async def statistics(body: bytes, name: str = "", version: str = "") -> tuple[int, Any]:
            return 200, await service.statistics(name, version)

        async def trace(body: bytes, name: str = "") -> tuple[int, Any]:
            if name:
                await service.networks.runner(name)
            return 200, service.settings.trace(name)

        async def change_trace(body: bytes, name: str = "") -> tuple[int, Any]:
            if name:
                await service.networks.runner(name)
            return 200, await service.change("trace", {"name": name, "settings": _json_object(body)})

        async def log(body: bytes) -> tuple[int, Any]:
            return 200, service.settings.log()

        async def change_log(body: bytes) -> tuple[int, Any]:
            return 200, await service.change("log", {"settings": _json_object(body)})

        async def index(body: bytes) -> tuple[int, Any]:
            rows = await service.networks.index()
            only = _json_object(body).get("ready", False)
            return 200, [row for row in rows if not only or row["state"] == "READY"]

        async def load(body: bytes, name: str) -> tuple[int, Any]:
            return 200, await service.change("load", {"name": name, "parameters": _parameters(body)})

        async def unload(body: bytes, name: str) -> tuple[int, Any]:
            _parameters(body)
            return 200, await service.change("unload", {"name": name})

        async def shared(body: bytes, name: str = "") -> tuple[int, Any]:
            return 200, regions.status(name)

        async def unregister(body: bytes, name: str = "") -> tuple[int, Any]:
            return 200, await service.change("unregister", {"name": name})

        async def register(body: bytes, name: str) -> tuple[int, Any]:
            given = _json_object(body)
            key = given.get("key")
            if not isinstance(key, str):
                raise InvalidModel(f"the key of a shared memory region must be a text; got {key!r:.100}.")
            offset, size = (_size(given.get(k, 0), k) for k in ("offset", "byte_size"))
            arguments = {"name": name, "key": key, "offset": offset, "byte_size": size}
            return 200, await service.change("register", arguments)

        async def no_cuda(body: bytes, rest: str = "") -> tuple[int, Any]:
            raise Unsupported("CUDA shared memory is not served: no network runs on a CUDA device here.")

        return (
            ("GET", "/v2", server),
            ("GET", "/v2/", server),
            ("GET", "/v2/health/live", live),
            ("GET", "/v2/health/ready", ready),
            ("GET", "/v2/hetnn/workers", workers),
            ("GET", "/v2/models/stats", statistics),
            ("GET", "/v2/models/{name}[/versions/{version}]", metadata),
            ("GET", "/v2/models/{name}[/versions/{version}]/ready", model_ready),
            ("GET", "/v2/models/{name}[/versions/{version}]/config", config),
            ("GET", "/v2/models/{name}[/versions/{version}]/stats", statistics),
            ("GET", "/v2/models/{name}/trace/setting", trace),
            ("POST", "/v2/models/{name}/trace/setting", change_trace),
            ("GET", "/v2/trace/setting", trace),
            ("POST", "/v2/trace/setting", change_trace),
            ("GET", "/v2/logging", log),
            ("POST", "/v2/logging", change_log),
            ("POST", "/v2/repository/index", index),
            ("POST", "/v2/repository/models/{name}/load", load),
            ("POST", "/v2/repository/models/{name}/unload", unload),
            ("GET", "/v2/systemsharedmemory/status", shared),
            ("POST", "/v2/systemsharedmemory/unregister", unregister),
            # Clients leave a slash in a region's name as it is.
            ("GET", "/v2/systemsharedmemory/region/{name+}/status", shared),
            ("POST", "/v2/systemsharedmemory/region/{name+}/register", register),
            ("POST", "/v2/systemsharedmemory/region/{name+}/unregister", unregister),
            (_ANY, "/v2/cudasharedmemory[/{rest+}]", no_cuda),
        )


class Router:
    """Paths and what answers each of their methods. In a path `{x}` is one segment, `{x+}` one or more, and what stands
    in brackets may be absent. The first path that fits counts."""

    def __init__(self, routes: Iterable[tuple[str, str, Answering]]) -> None:
        answers: dict[str, dict[str, Answering]] = {}
        for method, path, answer in routes:
            answers.setdefault(path, {})[method] = answer
        self._rows = [(_pattern(path), methods) for path, methods in answers.items()]

    def find(self, path: str) -> tuple[dict[str, Answering], dict[str, str]] | None:
        """What answers the methods of a path as a client sent it, and the values in it, unquoted; None for no path."""
        for pattern, methods in self._rows:
            found = pattern.fullmatch(path)
            if found is not None:
                values = {k: unquote(value, errors="replace") for k, value in found.groupdict().items() if value}
                return methods, values
        return None


def _pattern(path: str) -> re.Pattern[str]:
    absent = path.replace("[", "(?:").replace("]", ")?")
    several = re.sub(r"\{(\w+)\+\}", r"(?P<\1>.+)", absent)
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", several))


def _parameters(body: bytes) -> dict[str, Any]:
    """Those of a request to load or unload."""
    parameters = _json_object(body).get("parameters") or {}
    if not isinstance(parameters, dict):
        raise InvalidModel("the request's parameters must be an object.")
    return parameters


_INFER = _pattern("/v2/models/{name}[/versions/{version}]/infer")


def _infer_place(path: str) -> tuple[str, str] | None:
    """The network and version of a path that takes inferences."""
    found = _INFER.fullmatch(path)
    if found is None:
        return None
    return unquote(found["name"], errors="replace"), unquote(found["version"] or "", errors="replace")


def _json_object(body: bytes) -> dict[str, Any]:
    """The object in a body; an empty body is an empty object."""
    try:
        document = json.loads(body) if body else {}
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"the request is no JSON: {error!s:.200}.") from None
    if not isinstance(document, dict):
        raise InvalidModel(f"the request must be an object; got {type(document).__name__}.")
    return document


def _size(value: Any, called: str) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise InvalidModel(f"{called} must be an integer that is not negative; got {value!r:.100}.")
    return value


def _unpacked(body: bytes, encoding: bytes, most: int) -> bytes | None:
    """The body unpacked; None when it has more than `most` bytes."""
    reader = zlib.decompressobj(zlib.MAX_WBITS | 16 if encoding == b"gzip" else zlib.MAX_WBITS)
    try:
        out = reader.decompress(body, most)
    except zlib.error as error:
        raise InvalidModel(f"the body is no {encoding.decode()}: {error}.") from None
    if reader.unconsumed_tail:
        return None
    if not reader.eof:
        raise InvalidModel(f"the body's {encoding.decode()} is cut short.")
    return out


def _unpacked_whole(body: bytes, encoding: bytes, most: int) -> bytes:
    out = _unpacked(body, encoding, most)
    if out is None:
        raise InvalidModel(f"the body unpacks to more than the {most} bytes that this server takes.")
    return out


async def _packed(content: bytes, accepted: bytes) -> tuple[bytes, bytes]:
    """The content in an encoding that the client accepts, and its name, empty for none."""
    names = {part.split(b";")[0].strip() for part in accepted.split(b",") if b"q=0" not in part.replace(b"q=0.", b"")}
    pack: Callable[[bytes, int], bytes]
    if b"gzip" in names:
        pack, encoding = gzip.compress, b"gzip"
    elif b"deflate" in names:
        pack, encoding = zlib.compress, b"deflate"
    else:
        return content, b""
    apart = len(content) >= _APART_BYTES
    return (await asyncio.to_thread(pack, content, 1) if apart else pack(content, 1)), encoding


async def _send(send: Send, status: int, headers: list[tuple[bytes, bytes]], content: bytes | memoryview) -> None:
    headers.append((b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def _nothing() -> None:
    pass


def _answered(content: bytes, head_bytes: int | None) -> bytes:
    kind = b"content-type: application/json\r\n"
    if head_bytes is not None:
        kind = b"inference-header-content-length: %d\r\ncontent-type: application/octet-stream\r\n" % head_bytes
    return b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (kind, len(content), content)
