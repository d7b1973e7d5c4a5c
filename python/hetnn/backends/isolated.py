"""A backend in a process of its own: what crashes or hangs there ends that process, and is told as Unavailable."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hetnn import errors
from hetnn.backends.backend import Backend, Port, Reason, Run
from hetnn.element_types import numpy_type
from hetnn.errors import Error, InvalidModel, Unavailable
from hetnn.remote.wire import Closed, Wire

if TYPE_CHECKING:
    from hetnn import _core

_COMPILE_S, _RUN_S = 600.0, 30.0
_END_S = 5.0  # that a process has to end by itself


class Limits(NamedTuple):
    """Seconds after which a process is taken to hang: while it starts, compiles and opens code, and while it runs."""

    compile_s: float = _COMPILE_S
    run_s: float = _RUN_S


def limits_of(device: str, wanted: Any) -> Limits | None:
    """What `isolate` says: False or None, True, or an object of limits. InvalidModel for anything else."""
    if wanted is None or isinstance(wanted, bool):
        return Limits() if wanted else None
    if isinstance(wanted, Mapping) and set(wanted) <= set(Limits._fields) and all(map(_is_time, wanted.values())):
        return Limits(**wanted)
    raise InvalidModel(
        f"device '{device}': isolate is true, false, or seconds as {{'compile_s': {_COMPILE_S:g}, 'run_s': {_RUN_S:g}}}"
        f"; found {wanted!r}."
    )


def _is_time(s: Any) -> bool:
    return isinstance(s, (int, float)) and not isinstance(s, bool) and 0 < s < 1e6


def source_of(kind: str, factory: Callable[..., Any] | None) -> list[str]:
    """How another process finds the factory: module and name, nothing where an entry point says it. InvalidModel for
    one that no other process can import."""
    if factory is None:
        return []
    module, name = str(getattr(factory, "__module__", "")), str(getattr(factory, "__qualname__", ""))
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if module == "__main__" or found is not factory:
        raise InvalidModel(
            f"kind '{kind}': a backend in a process of its own must be importable there; found '{module}.{name}'. Put "
            "it into a module, or leave isolate out."
        )
    return [module, name]


class Isolated(Backend):
    """Stands for a backend, which another process makes and asks. Devices of the same name and spec share one."""

    def __init__(self, kind: str, name: str, spec: Mapping[str, Any], source: list[str], limits: Limits) -> None:
        super().__init__(name, spec)
        self._limits = limits
        self._process = _process(kind, name, spec, source, limits)
        self._told = self._process.told
        self.connected = bool(self._told["connected"])
        self.constant_budget_bytes = int(self._told["constant_budget_bytes"])
        self.measures = bool(self._told["measures"])
        self.images_last = bool(self._told["images_last"])

    @property
    def version(self) -> str:
        """The backend's."""
        return str(self._told["version"])

    @property
    def launch_us(self) -> float:
        """The backend's."""
        return float(self._ask("launch_us")[0]["value"])

    def reads(self, version: str) -> bool:
        """As the backend says."""
        return bool(self._ask("reads", version=version)[0]["value"])

    def supports(self, node: _core.Graph) -> Iterable[Reason | str]:
        """As the backend says."""
        reasons = self._ask("supports", _text(node))[0]["value"]
        return [reason if isinstance(reason, str) else Reason(*reason) for reason in reasons]

    def time_us(self, node: _core.Graph, macs: float, flops: float, bytes: int) -> float:
        """As the backend says."""
        return float(self._ask("time_us", _text(node), macs=macs, flops=flops, bytes=bytes)[0]["value"])

    def times_us(self, graph: _core.Graph, images: Sequence[str] = ()) -> Mapping[str, float] | None:
        """As the backend says."""
        times: Mapping[str, float] | None = self._ask("times_us", _text(graph), images=[*images])[0]["value"]
        return times

    def compile(self, graph: _core.Graph, images: Sequence[str] = ()) -> bytes:
        """As the backend does."""
        return bytes(self._ask("compile", _text(graph), images=[*images])[1])

    def open(self, code: bytes, inputs: Sequence[Port], outputs: Sequence[Port]) -> Run:
        """Opens it in the process, and again in the next one, should that end."""
        ports = {"inputs": inputs, "outputs": outputs}
        types = [np.dtype(numpy_type(port.dtype)) for port in inputs]
        opened: dict[int, int] = {}  # by number of the process: the number of the code there

        def number() -> int:
            self._process.begin_if_ended()
            at = self._process.number
            if at not in opened:
                answer, _ = self._ask("open", code, **ports)
                opened.clear()
                opened[self._process.number] = int(answer["value"])
            return opened[self._process.number]

        def run(arrays: list[Any]) -> Sequence[Any]:
            with self._process.lock:
                code_number = number()
                header = {"code": code_number, "shapes": [list(array.shape) for array in arrays]}
                header["dtypes"] = [dtype.str if dtype.isbuiltin else dtype.name for dtype in types]
                buffers = [
                    np.ascontiguousarray(array).reshape(-1).view(np.uint8).data for array in arrays if array.size
                ]
                answer, payload = self._process.ask({"do": "run", **header}, buffers, self._limits.run_s)
            out, offset = [], 0
            for name, shape in zip(answer["dtypes"], answer["shapes"], strict=True):
                dtype = dtype_of(name)
                count = int(np.prod(shape, dtype=np.int64))
                out.append(np.frombuffer(payload, dtype, count, offset).reshape(shape))
                offset += count * dtype.itemsize
            return out

        with self._process.lock:
            number()
        return run

    def _ask(self, do: str, payload: bytes = b"", **words: Any) -> tuple[dict[str, Any], memoryview]:
        return self._process.ask({"do": do, **words}, [memoryview(payload)], self._limits.compile_s)


def dtype_of(name: str) -> np.dtype[Any]:
    """The type that numpy, or ml_dtypes, calls so."""
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(numpy_type({"bfloat16": "bf16"}.get(name, name)))


def _text(graph: _core.Graph) -> bytes:
    return graph.print().encode()


class _Process:
    """Begun when it is first asked, and anew when it has ended. One call at a time."""

    def __init__(self, kind: str, name: str, spec: Mapping[str, Any], source: list[str], limits: Limits) -> None:
        self._device = name
        self._made_of = {"do": "make", "kind": kind, "name": name, "spec": dict(spec), "source": source}
        self._limits = limits
        self.lock = threading.RLock()
        self.number = 0  # counts those that were begun
        self._owner = 0
        self._wire: Wire | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], Any] = lambda: None
        self.told: dict[str, Any] = self.ask({"do": "tell"}, [], limits.compile_s)[0]

    def ask(
        self, header: dict[str, Any], buffers: Sequence[memoryview], seconds: float
    ) -> tuple[dict[str, Any], memoryview]:
        """The answer. Unavailable where the process ends or takes longer; the backend's own errors as they are."""
        with self.lock:
            self.begin_if_ended()
            return self._call(header, buffers, seconds)

    def begin_if_ended(self) -> None:
        """Afterwards there is a process; `number` says which."""
        child = self._child
        if self._wire is None or child is None or self._owner != os.getpid() or child.poll() is not None:
            self._begin()

    def _call(
        self, header: dict[str, Any], buffers: Sequence[memoryview], seconds: float
    ) -> tuple[dict[str, Any], memoryview]:
        assert self._wire is not None
        deadline = time.monotonic() + seconds
        try:
            self._wire.send(header, buffers, deadline)
            answer, payload = self._wire.receive(deadline)
        except (Closed, Error) as error:
            late = time.monotonic() >= deadline
            raise Unavailable(
                f"device '{self._device}': its process {self._fate(late, seconds)} {_doing(header)}."
            ) from error
        except BaseException:  # what was asked is not answered: the next answer would be another's
            self._stop()
            raise
        if answer.get("ok") is not True:
            kind = getattr(errors, str(answer.get("kind")), None)
            if isinstance(kind, type) and issubclass(kind, Error):
                raised = kind(str(answer.get("text")))
                if answer.get("node") is not None:
                    raised.node = answer["node"]  # type: ignore[attr-defined]
                raise raised
            raise Unavailable(f"device '{self._device}': {answer.get('kind')}: {answer.get('text')}")
        return answer, payload

    def _begin(self) -> None:
        self._stop()
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "hetnn.backends.process", str(theirs.fileno())]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        # What a vendor prints is no part of what this process prints.
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=[theirs.fileno()], env=environment
        )
        theirs.close()
        self._child, self._wire, self._owner = child, Wire(ours), os.getpid()
        self.number += 1
        self._end = weakref.finalize(self, _ended, child, self._wire, self._owner)
        try:
            self._call(self._made_of, [], self._limits.compile_s)
        except Error:
            self._stop()
            raise

    def _stop(self) -> None:
        self._end()
        self._wire = self._child = None

    def _fate(self, late: bool, seconds: float) -> str:
        child = self._child
        if child is not None and not late:
            with suppress(subprocess.TimeoutExpired):
                child.wait(_END_S)
        self._stop()
        if late or child is None or child.returncode is None:
            return f"did not answer within {seconds:g} s and was ended"
        code = child.returncode
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"


def _doing(header: Mapping[str, Any]) -> str:
    words = {
        "make": "while it was made",
        "compile": "while it compiled",
        "open": "while it opened code",
        "run": "in a run",
    }
    return words.get(str(header["do"]), f"while it was asked for {header['do']}")


def _ended(child: subprocess.Popen[bytes], wire: Wire, owner: int) -> None:
    if owner != os.getpid():
        return  # a fork: it is the parent's
    wire.close()
    child.kill()
    child.wait()


_processes: weakref.WeakValueDictionary[str, _Process] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def _process(kind: str, name: str, spec: Mapping[str, Any], source: list[str], limits: Limits) -> _Process:
    key = json.dumps([kind, name, dict(spec), source, limits], sort_keys=True)
    with _lock:
        found = _processes.get(key)
        if found is None:
            found = _processes[key] = _Process(kind, name, spec, source, limits)
        return found
