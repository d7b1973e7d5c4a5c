"""The protocol over gRPC as one generic handler for a server of grpc.aio."""

from __future__ import annotations

import asyncio
import hmac
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from hetnn.errors import Error, InternalError, InvalidModel, Unavailable, Unsupported
from hetnn.serve import tensors
from hetnn.serve.messages import (
    SHARED_KEYS,
    Answer,
    Input,
    Request,
    apply_parameters,
    describe_input,
    shared_place,
    wanted_output,
)
from hetnn.serve.proto import MESSAGES, PACKAGE
from hetnn.serve.service import Service
from hetnn.store import UnknownNetwork

SERVICE = f"{PACKAGE}.GRPCInferenceService"
OPTIONS = [
    ("grpc.max_receive_message_length", 2**31 - 1),
    ("grpc.max_send_message_length", 2**31 - 1),
    ("grpc.so_reuseport", 1),
]
_OPEN = {"ServerLive", "ServerReady", "ModelReady"}
_CONTENTS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
_LOG_KINDS = {bool: "bool_param", int: "uint32_param", str: "string_param"}
_M = MESSAGES
# Tags of fields of bytes, their numbers times eight plus how they are written.
_BYTES = 2
_ID, _RAW_INPUT, _RAW_OUTPUT, _STREAM_RESPONSE = (number << 3 | _BYTES for number in (3, 7, 6, 2))
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


def _split(data: bytes) -> tuple[bytes, bytes, list[memoryview]]:
    """A ModelInferRequest's other fields, its id, and its raw tensors where they lie. InvalidModel for what is none.

    Every field of the message is one of bytes: a tag, their number, and they themselves.
    """
    view, head, raw = memoryview(data), [], []
    id, at, size = b"", 0, len(data)
    try:
        while at < size:
            begin, tag = at, data[at]
            at += 1
            length = shift = 0
            while True:
                byte = data[at]
                at += 1
                length |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
            end = at + length
            if tag & 7 != _BYTES or tag >= 0x80 or end > size or shift > 63:
                raise IndexError
            if tag == _RAW_INPUT:
                raw.append(view[at:end])
            elif tag == _ID:
                id = data[at:end]
            else:
                head.append(data[begin:end])
            at = end
    except IndexError:
        raise InvalidModel("the message is no ModelInferRequest: its fields do not fill it.") from None
    return b"".join(head), id, raw


def _field(tag: int, content: bytes | memoryview) -> bytes:
    """A field of bytes, as messages have it."""
    size, length = bytearray([tag]), len(content)
    while length >= 0x80:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    size.append(length)
    return bytes(size) + content


@dataclass(frozen=True, slots=True)
class _Head:
    """A message without its id and raw tensors, read. `called` says how messages call an input that wants raw bytes."""

    request: Request
    inputs: list[tuple[Input, str | None]]
    typed: bool


# Clients repeat themselves: heads with nothing but raw tensors, and answers without their id and tensors.
_MOST_KEPT = 1024
_MOST_KEPT_BYTES = 2048
_heads: dict[bytes, _Head] = {}
_answer_heads: dict[tuple[Any, ...], bytes] = {}


def _parse_head(data: bytes, raw: bool) -> _Head:
    try:
        message = _M["ModelInferRequest"].FromString(data)
    except DecodeError as error:
        raise InvalidModel(f"the message is no ModelInferRequest: {error!s:.200}.") from None
    request = Request(message.model_name, message.model_version, binary=True)
    apply_parameters(request, {**_choices(message.parameters), "binary_data_output": True})
    inputs: list[tuple[Input, str | None]] = []
    for row in message.inputs:
        made, called = describe_input(row.name, row.datatype, list(row.shape))
        made.shared = shared_place(_choices(row.parameters), called)
        if made.shared is not None and row.HasField("contents"):
            raise InvalidModel(f"{called} has contents and a shared memory region; it must have one.")
        if made.shared is None and not raw:
            made.array = _typed(row, made.datatype, made.shape, made.elements, called)
        inputs.append((made, called if made.shared is None and raw else None))
    request.outputs = [wanted_output(row.name, _choices(row.parameters), True) for row in message.outputs]
    return _Head(request, inputs, any(row.HasField("contents") for row in message.inputs))


def read_request(data: bytes) -> Request:
    """The request in a ModelInferRequest; InvalidModel when contents disagree with what describes them."""
    text, id, contents = _split(data)
    head = _heads.get(text) if contents else None
    if head is None:
        head = _parse_head(text, bool(contents))
        if contents and len(text) <= _MOST_KEPT_BYTES and all(called is not None for _, called in head.inputs):
            if len(_heads) >= _MOST_KEPT:
                _heads.clear()
            _heads[text] = head
    if contents and head.typed:
        raise InvalidModel("inputs come as raw_input_contents or as typed contents, not as both.")
    request = replace(head.request, inputs=[], outputs=[*head.request.outputs])
    try:
        request.id = id.decode()
    except UnicodeDecodeError:
        raise InvalidModel("the request's id must be a text in UTF-8.") from None
    raw = iter(contents)
    for made, called in head.inputs:
        if called is None:
            request.inputs.append(made)
            continue
        part = next(raw, None)
        if part is None:
            raise InvalidModel(f"raw_input_contents has no bytes for {called}.")
        array = tensors.from_raw(part, made.datatype, made.shape, made.elements, called)
        request.inputs.append(Input(made.name, made.datatype, made.shape, made.elements, array))
    if next(raw, None) is not None:
        raise InvalidModel("raw_input_contents has more items than there are inputs that want one.")
    return request


def _typed(row: Any, datatype: str, shape: tuple[int, ...], elements: int, called: str) -> Any:
    key = _CONTENTS.get(datatype)
    if key is None:
        raise Unsupported(f"{called}: {datatype} has no typed contents. Send it as raw_input_contents.")
    if strange := [field.name for field, _ in row.contents.ListFields() if field.name != key]:
        raise InvalidModel(f"{called}: {datatype} comes as {key}; got {strange[0]}.")
    return tensors.from_values(list(getattr(row.contents, key)), datatype, shape, elements, called)


def write_answer(answer: Answer) -> bytes:
    """The ModelInferResponse of an answer; its tensors are raw."""
    key = (answer.model, answer.version, *((wanted, array.dtype, array.shape) for wanted, array in answer.outputs))
    head = _answer_heads.get(key)
    if head is None:
        head = _write_head(answer)
        if len(head) <= _MOST_KEPT_BYTES:
            if len(_answer_heads) >= _MOST_KEPT:
                _answer_heads.clear()
            _answer_heads[key] = head
    parts = [head]
    if answer.request.id:
        parts.append(_field(_ID, answer.request.id.encode()))
    for wanted, array in answer.outputs:
        parts.append(_field(_RAW_OUTPUT, tensors.to_raw(array) if wanted.shared is None else b""))
    return b"".join(parts)


def _write_head(answer: Answer) -> bytes:
    out = _M["ModelInferResponse"](model_name=answer.model, model_version=answer.version)
    for wanted, array in answer.outputs:
        row = out.outputs.add(name=wanted.name, datatype=tensors.datatype_of(array), shape=array.shape)
        if wanted.shared is not None:
            region, offset, size = SHARED_KEYS
            row.parameters[region].string_param = wanted.shared.region
            row.parameters[offset].int64_param = wanted.shared.offset
            row.parameters[size].int64_param = wanted.shared.byte_size
    return bytes(out.SerializeToString())


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
        return write_answer(await self._service.infer(read_request(request)))

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
            else self._service.trace_settings(request.model_name)
        )
        lists = {key: value if isinstance(value, list) else [value] for key, value in settings.items()}
        return _M["TraceSettingResponse"](settings={key: {"value": value} for key, value in lists.items()})

    async def LogSettings(self, request: Any) -> Any:  # noqa: N802
        given = _choices(request.settings)
        settings = await self._service.change("log", {"settings": given}) if given else self._service.log_settings()
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

        async def one(request: Request, before: asyncio.Task[Any] | None) -> bytes:
            if before is not None:
                await asyncio.wait([before])
            try:
                return _field(_STREAM_RESPONSE, write_answer(await service.infer(request)))
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
                        request = read_request(data)
                    except Exception as error:
                        await running.put(asyncio.ensure_future(unread(error)))
                        continue
                    key = (request.model, request.sequence) if request.sequence else None
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
