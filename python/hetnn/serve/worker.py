"""One worker of a server: a process with the HTTP, gRPC and metrics sockets, answering until it is told to end.

Started by `supervisor` with its settings as one argument, and told its number on stdin when it is needed; says on a
pipe that it is ready, and ends when the pipe from the supervisor closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import mmap
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import grpc.aio
import uvicorn

from hetnn.errors import Error
from hetnn.serve.connection import KEEP_ALIVE_S, Connection, InferenceConnection
from hetnn.serve.grpc import OPTIONS, servicer
from hetnn.serve.http import Application, Front, HttpLimits
from hetnn.serve.networks import Networks
from hetnn.serve.peers import Shared, UnixPeers
from hetnn.serve.runner import Batching
from hetnn.serve.service import Limits, Service
from hetnn.store import Store

_SWEEP_S = 1.0


class _Server(uvicorn.Server):
    """uvicorn's, whose process has signals of its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _http_server(app: Application, connection: Callable[..., Connection], settings: dict[str, Any]) -> _Server:
    config = uvicorn.Config(
        app,
        interface="asgi3",
        proxy_headers=False,
        loop="asyncio",
        http=connection,  # type: ignore[arg-type]  # it is called as a class is
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="error",
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(settings["grace_s"]) + 1,
        ssl_certfile=settings["tls_cert"],
        ssl_keyfile=settings["tls_key"],
    )
    return _Server(config)


async def _sweep(servers: list[_Server]) -> None:
    while True:
        await asyncio.sleep(_SWEEP_S)
        now_s = asyncio.get_running_loop().time()
        for server in servers:
            for connection in [*server.server_state.connections]:
                if isinstance(connection, Connection):
                    connection.sweep(now_s)


def _service(settings: dict[str, Any]) -> tuple[Service, UnixPeers | None]:
    count, index = settings["workers"], settings["index"]
    shared = memoryview(mmap.mmap(settings["memory_fd"], 16 * count)).cast("B")
    processes = Shared(shared, count, count)
    processes[index] = os.getpid()
    slots = Shared(shared, 0, count)
    slots[index] = 0
    peers = UnixPeers(settings["folder"], index, count, processes) if count > 1 else None
    store = Store(settings["store"]) if settings["store"] else None
    networks = Networks(store, settings["models"], Batching(settings["max_batch"], settings["batch_delay_us"]))
    service = Service(
        networks,
        Limits(settings["queue"], index),
        slots=slots,
        peers=peers,
        allow_compile=settings["allow_compile"],
        target=settings["target"],
    )
    return service, peers


async def _grpc_server(service: Service, settings: dict[str, Any]) -> grpc.aio.Server:
    server = grpc.aio.server(options=OPTIONS)
    server.add_generic_rpc_handlers((servicer(service, tuple(settings["tokens"])),))
    host = f"[{settings['host']}]" if ":" in settings["host"] else settings["host"]
    address = f"{host}:{settings['grpc_port']}"
    if settings["tls_cert"]:
        with open(settings["tls_key"], "rb") as key, open(settings["tls_cert"], "rb") as chain:
            server.add_secure_port(address, grpc.ssl_server_credentials([(key.read(), chain.read())]))
    else:
        server.add_insecure_port(address)
    await server.start()
    return server


async def _run(settings: dict[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    ending = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    loop.add_reader(settings["parent_fd"], ending.set)  # the supervisor is gone

    service, peers = _service(settings)
    if peers is not None:
        for state in (await peers.broadcast("state", {}))[:1]:
            service.restore(state)
    await service.start()
    front = Front(service, HttpLimits(tokens=tuple(settings["tokens"])))
    servers = [
        _http_server(front.protocol, partial(InferenceConnection, front), settings),
        _http_server(front.metrics, Connection, settings),
    ]
    sockets = [socket.socket(fileno=settings[name]) for name in ("http_fd", "metrics_fd")]
    among_workers = await peers.serve(service) if peers is not None else None
    remote_calls = await _grpc_server(service, settings)
    running = [asyncio.ensure_future(server.serve(sockets=[one])) for server, one in zip(servers, sockets, strict=True)]
    sweeping = asyncio.ensure_future(_sweep(servers))
    while not all(server.started for server in servers):
        if any(task.done() for task in running):
            raise OSError("the HTTP server did not start")
        await asyncio.sleep(0.002)
    gc.freeze()  # what was imported is never garbage
    os.write(settings["ready_fd"], b"ready\n")

    await ending.wait()
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(service.stop(), settings["grace_s"])
    for server in servers:
        server.should_exit = True
    await remote_calls.stop(0.1)
    sweeping.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    if among_workers is not None:
        among_workers.close()


def main() -> int:
    """Serves with the settings of the first argument once stdin gives it a number; exit code 1 where it cannot."""
    settings = json.loads(sys.argv[1])
    index = sys.stdin.readline()
    if not index:  # not needed, or the supervisor is gone
        return 0
    settings["index"] = int(index)
    try:
        asyncio.run(_run(settings))
    except (Error, OSError) as error:
        os.write(settings["ready_fd"], f"{type(error).__name__}: {error}\n".encode())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
