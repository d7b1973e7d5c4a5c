"""The protocol over gRPC as one generic handler for a server of grpc.aio."""

from __future__ import annotations

import asyncio
import hmac
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import grpc

from hetnn.errors import Error, InternalError, Unavailable, Unsupported
from hetnn.serve.proto import MESSAGES, PACKAGE
from hetnn.serve.service import Inference, Service
from hetnn.store import DamagedNetwork, UnknownNetwork

SERVICE = f"{PACKAGE}.GRPCInferenceService"
OPTIONS = [
    ("grpc.max_receive_message_length", 2**31 - 1),
    ("grpc.max_send_message_length", 2**31 - 1),
    ("grpc.so_reuseport", 1),
]
_OPEN = {"ServerLive", "ServerReady", "ModelReady"}
_LOG_KINDS = {bool: "bool_param", int: "uint32_param", str: "string_param"}
_M = MESSAGES
_STREAM_RESPONSE = 2 << 3 | 2  # the tag of a stream's field with an answer, which is one of bytes
_APART_BYTES = 1 << 20  # of a message that is read beside the event loop
# A stream's requests that are answered at once; of a sequence, one after another.
_MOST_AT_ONCE = 64


def code_of(error: BaseException) -> grpc.StatusCode:
    """The status for an error."""
    if isinstance(error, UnknownNetwork):
        return grpc.StatusCode.NOT_FOUND
    if isinstance(error, Unavailable):
        return grpc.StatusCode.UNAVAILABLE
    if isinstance(error, Unsupported):
        return grpc.StatusCode.UNIMPLEMENTED
    if isinstance(error, DamagedNetwork):
        return grpc.StatusCode.DATA_LOSS
    known = isinstance(error, Error) and not isinstance(error, InternalError)
    return grpc.StatusCode.INVALID_ARGUMENT if known else grpc.StatusCode.INTERNAL


def _text_of(error: Exception) -> str:
    if isinstance(error, Error):
        return str(error)
    traceback.print_exception(error, file=sys.stderr)
    return f"{type(error).__name__}: {error}. This is a bug in hetnn; please report it."


def _choice(message: Any) -> Any:
    """The value of a parameter, None when it has none."""
    name = message.WhichOneof("parameter_choice")
    return None if name is None else getattr(message, name)


def _choices(messages: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _choice(value) for key, value in messages.items()}


async def _read(message: bytes) -> Inference:
    """The request in a ModelInferRequest; typed contents of a large one take long."""
    if len(message) < _APART_BYTES:
        return Inference.from_grpc(message)
    return await asyncio.to_thread(Inference.from_grpc, message)


def _field(tag: int, content: bytes) -> bytes:
    """A field of bytes, as messages have it."""
    size, length = bytearray([tag]), len(content)
    while length >= 0x80:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    size.append(length)
    return bytes(size) + content


class _Methods:
    """One method for each of the service's, by its name; each takes the request's message and returns the answer's."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def ServerLive(self, request: Any) -> Any:  # noqa: N802 - the protocol's names
        return _M["ServerLiveResponse"](live=True)

    async def ServerReady(self, request: Any) -> Any:  # noqa: N802
        return _M["ServerReadyResponse"](ready=self._service.ready)

    async def ModelReady(self, request: Any) -> Any:  # noqa: N802
        return _M["ModelReadyResponse"](ready=await self._service.model_ready(request.name, request.version))

    async def ServerMetadata(self, request: Any) -> Any:  # noqa: N802
        return _M["ServerMetadataResponse"](**self._service.server_metadata())

    async def ModelMetadata(self, request: Any) -> Any:  # noqa: N802
        return _M["ModelMetadataResponse"](**await self._service.metadata(request.name, request.version))

    async def ModelConfig(self, request: Any) -> Any:  # noqa: N802
        return _M["ModelConfigResponse"](config=await self._service.config(request.name, request.version))

    async def ModelStatistics(self, request: Any) -> Any:  # noqa: N802
        return _M["ModelStatisticsResponse"](**await self._service.statistics(request.name, request.version))

    async def ModelInfer(self, request: bytes) -> bytes:  # noqa: N802
        return (await self._service.infer(await _read(request)))[0]

    async def RepositoryIndex(self, request: Any) -> Any:  # noqa: N802
        rows = await self._service.networks.index()
        shown = [row for row in rows if not request.ready or row["state"] == "READY"]
        return _M["RepositoryIndexResponse"](models=shown)

    async def RepositoryModelLoad(self, request: Any) -> Any:  # noqa: N802
        arguments = {"name": request.model_name, "parameters": _choices(request.parameters)}
        await self._service.change("load", arguments)
        return _M["RepositoryModelLoadResponse"]()

    async def RepositoryModelUnload(self, request: Any) -> Any:  # noqa: N802
        await self._service.change("unload", {"name": request.model_name})
        return _M["RepositoryModelUnloadResponse"]()

    async def SystemSharedMemoryStatus(self, request: Any) -> Any:  # noqa: N802
        rows = self._service.regions.status(request.name)
        return _M["SystemSharedMemoryStatusResponse"](regions={row["name"]: row for row in rows})

    async def SystemSharedMemoryRegister(self, request: Any) -> Any:  # noqa: N802
        places = {"offset": request.offset, "byte_size": request.byte_size}
        await self._service.change("register", {"name": request.name, "key": request.key, **places})
        return _M["SystemSharedMemoryRegisterResponse"]()

    async def SystemSharedMemoryUnregister(self, request: Any) -> Any:  # noqa: N802
        await self._service.change("unregister", {"name": request.name})
        return _M["SystemSharedMemoryUnregisterResponse"]()

    async def _no_cuda(self, request: Any) -> Any:
        raise Unsupported("CUDA shared memory is not served: no network runs on a CUDA device here.")

    CudaSharedMemoryStatus = CudaSharedMemoryRegister = CudaSharedMemoryUnregister = _no_cuda

    async def TraceSetting(self, request: Any) -> Any:  # noqa: N802
        if request.model_name:
            await self._service.networks.runner(request.model_name)
        given = {key: list(value.value) for key, value in request.settings.items()}
        arguments = {"name": request.model_name, "settings": given}
        settings = (
            await self._service.change("trace", arguments)
            if given
            else self._service.settings.trace(request.model_name)
        )
        lists = {key: value if isinstance(value, list) else [value] for key, value in settings.items()}
        return _M["TraceSettingResponse"](settings={key: {"value": value} for key, value in lists.items()})

    async def LogSettings(self, request: Any) -> Any:  # noqa: N802
        given = _choices(request.settings)
        settings = await self._service.change("log", {"settings": given}) if given else self._service.settings.log()
        out = _M["LogSettingsResponse"]()
        for key, value in settings.items():
            setattr(out.settings[key], _LOG_KINDS[type(value)], value)
        return out


class _Guard:
    """Tokens and errors, around every method."""

    def __init__(self, tokens: tuple[str, ...]) -> None:
        self._tokens = [token.encode() for token in tokens]

    async def check(self, name: str, context: Any) -> None:
        if not self._tokens or name in _OPEN:
            return
        given = b""
        for key, value in context.invocation_metadata() or ():
            if key == "authorization" and isinstance(value, str) and value[:7].lower() == "bearer ":
                given = value[7:].strip().encode()
        right = [hmac.compare_digest(given, token) for token in self._tokens]
        if not any(right):
            await context.abort(
                grpc.StatusCode.UNAUTHENTICATED,
                "this server answers those with its token alone: send authorization: Bearer TOKEN.",
            )

    def unary(self, name: str, method: Callable[[Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
        async def answer(request: Any, context: Any) -> Any:
            await self.check(name, context)
            try:
                return await method(request)
            except Exception as error:
                if isinstance(error, Unavailable):
                    context.set_trailing_metadata((("retry-after", "1"),))
                await context.abort(code_of(error), _text_of(error))

        return answer

    def stream(self, service: Service) -> Callable[[AsyncIterator[Any], Any], AsyncIterator[Any]]:
        """ModelStreamInfer: answers in the order of the requests, which run at once but for those of one sequence."""

        async def one(request: Inference, before: asyncio.Task[Any] | None) -> bytes:
            if before is not None:
                await asyncio.wait([before])
            try:
                return _field(_STREAM_RESPONSE, (await service.infer(request))[0])
            except Exception as error:
                return refused(request.id, error)

        def refused(id: str, error: Exception) -> bytes:
            out = _M["ModelStreamInferResponse"](error_message=_text_of(error))
            out.infer_response.id = id
            return bytes(out.SerializeToString())

        async def unread(error: Exception) -> bytes:
            return refused("", error)

        async def answers(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            await self.check("ModelStreamInfer", context)
            running: asyncio.Queue[asyncio.Task[bytes] | None] = asyncio.Queue(_MOST_AT_ONCE)

            async def read() -> None:
                last: dict[Any, asyncio.Task[bytes]] = {}
                async for data in requests:
                    try:
                        request = await _read(data)
                    except Exception as error:
                        await running.put(asyncio.ensure_future(unread(error)))
                        continue
                    key = None if request.sequence is None else (request.model, request.sequence)
                    task = asyncio.ensure_future(one(request, last.get(key) if key else None))
                    if key:
                        last[key] = task
                        task.add_done_callback(lambda t, k=key: last.pop(k) if last.get(k) is t else None)  # type: ignore[misc]
                    await running.put(task)
                await running.put(None)

            reading = asyncio.ensure_future(read())
            task = None
            try:
                while (task := await running.get()) is not None:
                    yield await task
            finally:
                reading.cancel()
                if task is not None:
                    task.cancel()
                while not running.empty():
                    left = running.get_nowait()
                    if left is not None:
                        left.cancel()

        return answers


def servicer(service: Service, tokens: tuple[str, ...] = ()) -> grpc.GenericRpcHandler:
    """The handler of a started service, for `grpc.aio.Server.add_generic_rpc_handlers`."""
    methods, guard = _Methods(service), _Guard(tokens)
    handlers = {}
    for name in (name for name in dir(_Methods) if not name.startswith("_")):
        handlers[name] = grpc.unary_unary_rpc_method_handler(
            guard.unary(name, getattr(methods, name)),
            request_deserializer=_M[f"{name}Request"].FromString,
            response_serializer=_M[f"{name}Response"].SerializeToString,
        )
    # Inference takes and gives bytes.
    handlers["ModelInfer"] = grpc.unary_unary_rpc_method_handler(guard.unary("ModelInfer", methods.ModelInfer))
    handlers["ModelStreamInfer"] = grpc.stream_stream_rpc_method_handler(guard.stream(service))
    return grpc.method_handlers_generic_handler(SERVICE, handlers)
