"""The workers of one server among each other: sequences find their worker, changes reach all of them.

Each worker listens on a socket of a folder that only this server's user may enter, so what comes in is a worker's own.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import struct
import zlib
from collections.abc import Mapping
from typing import Any

from hetnn.errors import Error, InternalError, Unavailable
from hetnn.serve.service import Answer, Inference, Service

_LENGTH = struct.Struct("<Q")


class Shared:
    """One number a worker that all of them see: how many requests each holds, or its process."""

    def __init__(self, memory: memoryview, begin: int, count: int) -> None:
        self._values = memory.cast("q")[begin : begin + count]

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int, /) -> int:
        return self._values[index]

    def __setitem__(self, index: int, value: int, /) -> None:
        self._values[index] = value


class UnixPeers:
    """Worker `index` of `count`, on sockets in `folder`."""

    def __init__(self, folder: str, index: int, count: int, processes: Shared) -> None:
        self._folder = folder
        self._index = index
        self._count = count
        self._processes = processes

    def _path(self, index: int) -> str:
        return os.path.join(self._folder, f"worker-{index}")

    def pids(self) -> list[int]:
        """Of all workers, this one among them, by their numbers."""
        return [self._processes[k] for k in range(self._count)]

    def owner(self, sequence: int | str) -> int | None:
        """The worker that keeps a sequence, by its name; None where that is this one."""
        found = zlib.crc32(str(sequence).encode()) % self._count
        return None if found == self._index else found

    async def broadcast(self, action: str, arguments: Mapping[str, Any]) -> list[Any]:
        """Has all other workers do an action; answers of those that are there."""
        others = [k for k in range(self._count) if k != self._index]
        answers = await asyncio.gather(*(self._call(k, action, arguments) for k in others), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, (OSError, EOFError)):
                raise answer
        return [answer for answer in answers if not isinstance(answer, BaseException)]

    async def forward(self, request: Inference, owner: int) -> Answer:
        """Has the worker `owner` answer a request. Unavailable where that worker is gone."""
        try:
            answer: Answer = await self._call(owner, "infer", {"request": request})
        except (OSError, EOFError):
            raise Unavailable("the worker that keeps this sequence is gone. Begin the sequence again.") from None
        return answer

    async def _call(self, index: int, action: str, arguments: Mapping[str, Any]) -> Any:
        reader, writer = await asyncio.open_unix_connection(self._path(index))
        try:
            await _write(writer, (action, dict(arguments)))
            answer = await _read(reader)
        finally:
            writer.close()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def serve(self, service: Service) -> asyncio.AbstractServer:
        """Answers the other workers."""

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                action, arguments = await _read(reader)
                result: Any
                try:
                    if action == "infer":
                        result = await service.infer(arguments["request"], local=True)
                    else:
                        result = await service.apply(action, arguments)
                except Error as error:
                    result = error
                except Exception as error:
                    result = InternalError(f"{type(error).__name__}: {error}")
                await _write(writer, result)
            except (OSError, EOFError):
                pass
            finally:
                writer.close()

        path = self._path(self._index)
        if os.path.exists(path):
            os.unlink(path)
        return await asyncio.start_unix_server(answer, path)


async def _write(writer: asyncio.StreamWriter, value: Any) -> None:
    data = pickle.dumps(value, protocol=5)
    writer.write(_LENGTH.pack(len(data)) + data)
    await writer.drain()


async def _read(reader: asyncio.StreamReader) -> Any:
    (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return pickle.loads(await reader.readexactly(size))
