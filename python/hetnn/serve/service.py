"""What a server answers, without a socket: inference with its queue, limits and sequences, and everything around it."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import hetnn
from hetnn import _runtime
from hetnn.errors import DoesNotFit, Error, InternalError, InvalidModel, Unavailable, Unsupported
from hetnn.serve.networks import Networks
from hetnn.serve.runner import ClientGone, Job, Result, Runner
from hetnn.serve.settings import Settings
from hetnn.serve.tensors import Tensor
from hetnn.store import DamagedNetwork, UnknownNetwork

EXTENSIONS = [
    "binary_tensor_data",
    "statistics",
    "model_repository",
    "model_configuration",
    "sequence",
    "system_shared_memory",
    "parameters",
    "trace",
    "logging",
]
_WATCH_S = 0.02


Inference = _runtime.Inference
# An answer's bytes, and how many of them are JSON where raw tensors follow.
Answer = tuple[bytes, int | None]


class Slots(Protocol):
    """How many requests each worker holds: one number each, which all of them see."""

    def __getitem__(self, index: int, /) -> int: ...
    def __setitem__(self, index: int, value: int, /) -> None: ...
    def __len__(self) -> int: ...


class Peers(Protocol):
    """The other workers of one server."""

    async def broadcast(self, action: str, arguments: Mapping[str, Any]) -> list[Any]:
        """Does the action in each of them and returns what they answered."""
        ...

    def owner(self, sequence: int | str) -> int | None:
        """Who keeps a sequence; None for this worker."""
        ...

    async def forward(self, request: Inference, owner: int) -> Answer:
        """Has the worker `owner` answer a request. Unavailable where that worker is gone."""

    def pids(self) -> list[int]:
        """Of all workers, this one among them, by their numbers."""
        ...


@dataclass(frozen=True)
class Limits:
    """`queue`: requests that wait or run, of all workers together; `slot`: this worker's number."""

    queue: int = 256
    slot: int = 0


class Service:
    """One worker's share of a server. For the event loop's thread alone."""

    def __init__(
        self,
        networks: Networks,
        limits: Limits,
        *,
        slots: Slots | None = None,
        peers: Peers | None = None,
        allow_compile: bool = False,
        target: str = "cpu",
    ) -> None:
        self.networks = networks
        self.regions = _runtime.Regions()
        self.ready = False
        self._limits = limits
        self._slots: Slots = [0] if slots is None else slots
        self._peers = peers
        self._allow_compile = allow_compile
        self._target = target
        self._sequences = _runtime.Sequences()
        self.settings = Settings()

    async def start(self) -> None:
        """Begins to answer, on the running loop: what is deployed is opened first."""
        if self.ready:
            return
        self.networks.deliver_to(asyncio.get_running_loop())
        await self.networks.open_deployed()
        self._watching = asyncio.ensure_future(self._watch_for_ever())
        self.ready = True

    async def stop(self) -> None:
        """Says that it is not ready, waits for what it has, and ends."""
        self.ready = False
        while self._slots[self._limits.slot] > 0:
            await asyncio.sleep(0.005)
        self._watching.cancel()
        self.networks.close()

    def workers(self) -> list[dict[str, Any]]:
        """Every worker of the server: its process, and the requests it holds."""
        pids = [os.getpid()] if self._peers is None else self._peers.pids()
        return [{"pid": pid, "pending": self._slots[k]} for k, pid in enumerate(pids)]

    # Inference.

    @property
    def pending(self) -> int:
        """Requests that wait or run now, of all workers together."""
        slots = self._slots
        return slots[0] if len(slots) == 1 else sum(slots[k] for k in range(len(slots)))

    @property
    def is_full(self) -> bool:
        """As many requests as may are there already."""
        return self.pending >= self._limits.queue

    def full(self) -> Unavailable:
        """What those are told that come then."""
        return Unavailable(f"{self._limits.queue} requests wait or run already, as many as may. Try again later.")

    def admit(self) -> None:
        """Unavailable when as many requests as may are there already."""
        if self.is_full:
            raise self.full()

    def ask(self, request: Inference, answered: Callable[[Answer | Exception], None]) -> Callable[[], None]:
        """Begins one request; `answered` gets the answer or an error, once, now or later. What it returns is called
        when the client has left, and frees the request's place."""
        runner = None if request.sequence is not None else self.networks.opened(request.model, request.version)
        if runner is None:
            return self.ask_apart(self.infer(request), answered)
        self.admit()
        begun_ns = time.perf_counter_ns()

        def ended(result: Result | Exception) -> None:
            self._slots[self._limits.slot] -= 1
            answered(self._answer(job, result))

        try:
            job = self._job(request, runner, ended, begun_ns)
            if not runner.submit(job):
                return self.ask_apart(self.infer(request), answered)
        except Exception as error:
            runner.counters.refused(begun_ns, _outcome(error))
            raise
        self._slots[self._limits.slot] += 1
        return job.leave

    def ask_apart(
        self, answer: Coroutine[Any, Any, Answer], answered: Callable[[Answer | Exception], None]
    ) -> Callable[[], None]:
        """As `ask`, of an answer that may have to wait before it can be begun."""
        task = asyncio.ensure_future(answer)

        def ended(task: asyncio.Task[Answer]) -> None:
            error = ClientGone() if task.cancelled() else task.exception()
            answered(task.result() if error is None else error if isinstance(error, Exception) else ClientGone())

        task.add_done_callback(ended)

        def leave() -> None:
            task.cancel()

        return leave

    async def infer(self, request: Inference, receive: Any = None, local: bool = False) -> Answer:
        """Answers one request. Where `receive` says that the client has left, its place is freed."""
        begun_ns = time.perf_counter_ns()
        name = request.sequence
        if name is not None and self._peers is not None and not local:
            owner = self._peers.owner(name)
            if owner is not None:
                return await self._peers.forward(request, owner)
        self.admit()
        slot = self._limits.slot
        self._slots[slot] += 1
        future: asyncio.Future[Result | Exception] = asyncio.get_running_loop().create_future()
        runner: Runner | None = None
        job: Job | None = None
        try:
            sequence = None
            if name is not None and not request.sequence_start:
                sequence = self._sequences.find(request, time.perf_counter_ns())
            for _ in range(3):  # a runner may close between being found and being asked
                runner = sequence.runner if sequence else await self.networks.runner(request.model, request.version)
                made = self._job(request, runner, partial(_settle, future), begun_ns)
                if name is not None and request.sequence_start:
                    engine, now_ns = runner.executable._engine, time.perf_counter_ns()
                    sequence = self._sequences.begin(request, runner, runner.version, engine, now_ns)
                made.sequence, made.receive = sequence, receive
                if runner.submit(made):
                    job = made
                    break
            else:
                raise Unavailable(f"the network '{request.model}' is being replaced. Try again.")
            try:
                result = await future
            except BaseException:
                runner.drop(job)
                raise
            finally:
                if request.sequence_end:
                    self._sequences.end(request)
        except BaseException as error:
            if runner is not None:
                runner.counters.refused(begun_ns, _outcome(error))
            raise
        finally:
            self._slots[slot] -= 1
        answer = self._answer(job, result)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _job(
        self, request: Inference, runner: Runner, ended: Callable[[Result | Exception], None], begun_ns: int
    ) -> Job:
        self.regions.read_inputs(request)
        deadline_ns = begun_ns + request.timeout_us * 1000 if request.timeout_us else 0
        return Job(request, runner.signature.bind(request), runner, ended, begun_ns, deadline_ns)

    def _answer(self, job: Job, result: Result | Exception) -> Answer | Exception:
        """What the client is told; counted."""
        counters = job.runner.counters
        try:
            if isinstance(result, Exception):
                raise result
            self.regions.write_outputs(job.bound, result.outputs)
            answer = job.request.write(job.runner.version, job.bound, result.outputs)
        except Exception as error:
            counters.refused(job.begun_ns, _outcome(error))
            return error
        counters.answered(job.begun_ns, result.started_ns - job.begun_ns, result.run_ns, job.rows)
        if self.settings.is_traced(job.request.model):
            self.settings.write_trace(job, result)
        return answer

    async def _watch_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_S)
            self._watch()

    def _watch(self) -> None:
        """Ends waits whose deadline passed, looks for clients that left, forgets
        sequences that nobody continues."""
        now = time.perf_counter_ns()
        for job in self.networks.jobs():
            if job.deadline_ns and now > job.deadline_ns:
                job.give_up(Unavailable("the request's timeout passed before it was answered. Try again."))
            elif job.receive is not None and not job.done:
                watching = asyncio.ensure_future(_give_up_when_gone(job.receive, job))
                job.receive = None
                job.ended = partial(_ended_and_watched, job.ended, watching)
        self._sequences.forget_idle(now)

    # Description.

    def server_metadata(self) -> dict[str, Any]:
        """The protocol's description of the server: `name`, `version`, `extensions`."""
        return {"name": "hetnn", "version": hetnn.__version__, "extensions": EXTENSIONS}

    async def metadata(self, name: str, version: str) -> dict[str, Any]:
        """The protocol's description of a network: versions, inputs and outputs. UnknownNetwork where it is none."""
        runner = await self.networks.runner(name, version)

        def rows(tensors: list[Tensor]) -> list[dict[str, Any]]:
            return [{"name": one.name, "datatype": one.datatype, "shape": one.shape} for one in tensors]

        versions = await self.networks.versions(name)
        return {
            "name": name,
            "versions": versions if runner.version in versions else [*versions, runner.version],
            "platform": "hetnn",
            "inputs": rows(runner.tensors.inputs),
            "outputs": rows(runner.tensors.outputs),
        }

    async def config(self, name: str, version: str) -> dict[str, Any]:
        """The network's configuration in the form of Triton's clients. UnknownNetwork where it is none."""
        runner = await self.networks.runner(name, version)
        batches = self.networks.batching.most if runner.batches else 0

        def row(tensor: Tensor) -> dict[str, Any]:
            kind = "STRING" if tensor.spans is not None else tensor.datatype
            return {"name": tensor.name, "data_type": f"TYPE_{kind}", "dims": tensor.shape[1 if batches else 0 :]}

        out: dict[str, Any] = {
            "name": name,
            "platform": "hetnn",
            "backend": "hetnn",
            "version_policy": {"latest": {"num_versions": 1}},
            "max_batch_size": batches,
            "input": [row(tensor) for tensor in runner.tensors.inputs],
            "output": [row(tensor) for tensor in runner.tensors.outputs],
        }
        if batches:
            out["dynamic_batching"] = {"max_queue_delay_microseconds": self.networks.batching.delay_us}
        if runner.stateful:
            out["sequence_batching"] = {"max_sequence_idle_microseconds": _runtime.Sequences.idle_us}
        return out

    async def model_ready(self, name: str, version: str) -> bool:
        """Whether requests for a network are answered now; opens it where it is not open yet."""
        try:
            await self.networks.runner(name, version)
        except UnknownNetwork:
            return False
        return self.ready

    # Statistics.

    def counted(self) -> list[tuple[tuple[str, str], _runtime.Counted]]:
        """Network and version, and what was counted here."""
        return [((runner.name, runner.version), runner.counters.counted()) for runner in self.networks.runners()]

    async def _counted_everywhere(self) -> dict[tuple[str, str], _runtime.Counted]:
        answers = await self._peers.broadcast("counted", {}) if self._peers else []
        totals: dict[tuple[str, str], _runtime.Counted] = {}
        for key, counted in [*self.counted(), *(row for answer in answers for row in answer)]:
            totals.setdefault(key, _runtime.Counted()).add(counted)
        return totals

    async def statistics(self, name: str, version: str) -> dict[str, Any]:
        """The statistics extension's rows, of all workers together; an empty name or version takes all."""
        if name:
            await self.networks.runner(name, version)
        rows = sorted((await self._counted_everywhere()).items(), key=lambda row: row[0])
        return {
            "model_stats": [
                json.loads(counted.statistics_json(*key))
                for key, counted in rows
                if name in ("", key[0]) and version in ("", key[1])
            ]
        }

    async def metrics(self) -> str:
        """All counts in Prometheus' text format, of all workers together."""
        return _runtime.prometheus(await self._counted_everywhere(), self.pending)

    # What changes the server: done here, then by the other workers.

    async def change(self, action: str, arguments: Mapping[str, Any]) -> Any:
        """Does an action of `apply` in every worker; the answer is this one's."""
        if action == "load" and arguments.get("parameters"):
            await self._take_network(str(arguments["name"]), arguments["parameters"])
            arguments = {"name": arguments["name"]}
        answer = await self.apply(action, arguments)
        if self._peers is not None:
            await self._peers.broadcast(action, arguments)
        return answer

    async def apply(self, action: str, arguments: Mapping[str, Any]) -> Any:
        """Does an action in this worker alone."""
        if action == "load":
            return await self.networks.load(arguments["name"])
        if action == "unload":
            await self.networks.unload(arguments["name"])
            self._sequences.forget(arguments["name"])
            return None
        if action == "register":
            return self.regions.register(**arguments)
        if action == "unregister":
            return self.regions.unregister(arguments["name"])
        if action == "trace":
            return self.settings.change_trace(arguments["name"], arguments["settings"])
        if action == "log":
            return self.settings.change_log(arguments["settings"])
        if action == "counted":
            return self.counted()
        if action == "state":
            return self.state()
        raise InternalError(f"there is no action '{action}'.")

    def state(self) -> dict[str, Any]:
        """What changes made of this worker, for one that starts later."""
        return {
            "regions": self.regions.status(""),
            "unloaded": self.networks.unloaded(),
            "settings": self.settings.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes over what clients changed before this worker began: regions, unloaded networks, settings."""
        for row in state["regions"]:
            try:
                self.regions.register(**row)
            except InvalidModel:  # the client has removed it; its next use says so
                continue
        self.networks.restore_unloaded(state["unloaded"])
        self.settings.restore(state["settings"])

    async def _take_network(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Compiles and keeps the network that a client sent: one parameter `file:…` with its bytes."""
        files = {key: value for key, value in parameters.items() if key.startswith("file:")}
        if not files:
            if "config" in parameters:
                raise Unsupported("a network's configuration follows from its executable and cannot be replaced.")
            return
        if not self._allow_compile:
            raise Unsupported("this server takes no networks from clients. Start it with --allow-compile.")
        store = self.networks.store
        if store is None:
            raise Unsupported("a network from a client is kept in a store. Start the server with --store.")
        if len(files) != 1:
            raise InvalidModel(f"a network is one file; got {len(files)}.")
        ((key, content),) = files.items()
        hetnn._store.check_id(name)
        if isinstance(content, str):
            try:
                content = base64.b64decode(content, validate=True)
            except (binascii.Error, ValueError):
                raise InvalidModel(f"'{key:.100}' must be base64.") from None
        with tempfile.TemporaryDirectory() as folder:
            suffix = os.path.splitext(key)[1] if key.isascii() else ""
            path = os.path.join(folder, f"network{suffix if suffix.isalnum() or suffix[1:].isalnum() else ''}")
            with open(path, "wb") as file:
                file.write(content)
            with open(path, "rb") as file:
                compiled = file.read(9)[8:9] == b"{"
            # A process of its own: the compiler and what reads models stay out of the server.
            command = [sys.executable, "-m", "hetnn", "store", "--path", store.path, "add", name, path, "--json"]
            process = await asyncio.create_subprocess_exec(
                *command,
                *([] if compiled else ["--target", self._target]),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            said, _ = await process.communicate()
        try:
            answer = json.loads(said)
        except ValueError:
            answer = {"error": {"kind": "InternalError", "message": f"compiling '{name}' ended with no answer."}}
        if "error" in answer:
            kinds = {"Unsupported": Unsupported, "DoesNotFit": DoesNotFit, "InternalError": InternalError}
            raise kinds.get(answer["error"]["kind"], InvalidModel)(answer["error"]["message"])
        await asyncio.to_thread(store.deploy, name, (), answer["version"])


def _settle(future: asyncio.Future[Result | Exception], result: Result | Exception) -> None:
    if not future.done():
        future.set_result(result)


def _ended_and_watched(
    ended: Callable[[Result | Exception], None], watching: asyncio.Task[None], result: Result | Exception
) -> None:
    watching.cancel()
    ended(result)


async def _give_up_when_gone(receive: Any, job: Job) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    job.leave()


def _outcome(error: BaseException) -> str:
    if isinstance(error, Unavailable):
        return "unavailable"
    if isinstance(error, (ClientGone, asyncio.CancelledError)):
        return "cancelled"
    if isinstance(error, DamagedNetwork):
        return "failed"
    return "invalid" if isinstance(error, Error) and not isinstance(error, InternalError) else "failed"
