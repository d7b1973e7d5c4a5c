"""The kinds of device that are written in Python: given here, or named by an installed package's entry points."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from hetnn import _runtime
from hetnn.backends.backend import Backend, Port, Reason, Run
from hetnn.backends.code import taken_apart, with_header
from hetnn.errors import InvalidModel, Unavailable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from hetnn import _core

Factory = Callable[[str, Mapping[str, Any]], Backend]
GROUP = "hetnn.backends"
_KIND = re.compile(r"[a-z][a-z0-9_]*(-[a-z0-9_]+)*")
_OWN_KINDS = frozenset(_runtime.device_kinds())
_given: dict[str, Factory] = {}
_isolated: dict[str, Any] = {}  # of those given: what `isolate` says where a spec does not
_told: set[str] = set()  # those that the compiler knows


def register_backend(kind: str, factory: Factory, *, isolate: bool | Mapping[str, float] = False) -> None:
    """Makes a kind of device known to this process, or replaces it.

    factory: a class derived from Backend, or a function of a device's name and spec that gives one.
    isolate: its compiler and its runs have a process of their own, which may crash or hang: that is Unavailable, here.
        {"compile_s": 600, "run_s": 30} says after how many seconds it is taken to hang. `isolate` in a device's spec
        says the same of that device. Another process must be able to import the factory.
    InvalidModel for a name that is none, or that of a kind of hetnn's own.
    """
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise InvalidModel(f"a kind of device is a name of small letters, digits, - and _; found {kind!r}.")
    if not callable(factory):
        raise InvalidModel(f"kind '{kind}': the factory must be a class or a function; got {type(factory).__name__}.")
    if kind in _OWN_KINDS:
        raise InvalidModel(f"'{kind}' is a kind of device of hetnn's own; give yours another name.")
    if isolate is not False:
        from hetnn.backends.isolated import limits_of, source_of

        if limits_of(kind, isolate) is not None:
            source_of(kind, factory)
    _given[kind] = factory
    _isolated[kind] = isolate


def backend_kinds() -> list[str]:
    """The kinds of device that were registered here or that installed packages name."""
    return sorted({*_given, *_installed()})


def told_kinds() -> frozenset[str]:
    """Those of them that the compiler knows already."""
    return frozenset(_told)


def device_of(name: str) -> dict[str, Any] | None:
    """The device that a target names as KIND or KIND-VARIANT; None where there is no such kind."""
    ends = [len(name), *(k for k in range(len(name) - 1, 0, -1) if name[k] == "-")]
    kind = next((name[:end] for end in ends if name[:end] in _given or name[:end] in _installed()), None)
    if kind is None:
        return None
    variant = name[len(kind) + 1 :]
    return {"name": name, "kind": kind, "spec": {"variant": variant} if variant else {}}


def prepare_to_compile(kind: str) -> None:
    """Tells the compiler of a kind, where it is one of these. Those of hetnn's own come first."""
    from hetnn import _core

    if kind in _told or kind in _OWN_KINDS or not (kind in _given or kind in _installed()):
        return
    if kind in _core.device_kinds():
        raise InvalidModel(f"'{kind}' is a kind of device of hetnn's own; register yours under another name.")
    _core.register_backend(kind, lambda name, spec_json: Compiler(kind, name, json.loads(spec_json or "{}")))
    _told.add(kind)


def all_measure(target: Mapping[str, Any]) -> bool:
    """Whether times on all devices of a target but the first are to be measured (Backend.measures)."""
    others = target["devices"][1:]
    known = [device for device in others if isinstance(device, Mapping) and str(device.get("kind")) in _told]
    return bool(others) and len(known) == len(others) and all(_measures(device) for device in known)


def _measures(device: Mapping[str, Any]) -> bool:
    return bool(_made(str(device["kind"]), str(device["name"]), device.get("spec") or {}).measures)


class Compiler:
    """What the compiler asks of a backend: checked, and with a header around its code."""

    def __init__(self, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        self._spec = spec
        self._backend = _made(kind, name, spec)
        self.launch_us = float(self._backend.launch_us)
        self.connected = bool(self._backend.connected)
        self.constant_budget_bytes = int(self._backend.constant_budget_bytes)
        self._images_last = bool(self._backend.images_last)

    def supports(self, node: _core.Graph) -> list[tuple[str, str, str, str] | str]:
        """The reasons of the backend, of the types that the compiler takes."""
        reasons = self._backend.supports(node)
        if isinstance(reasons, (str, Reason)):
            reasons = [reasons]
        if not isinstance(reasons, Iterable):
            raise TypeError(f"supports must give reasons, none where the node is taken; it gave {reasons!r}")
        return [_plain(reason) for reason in reasons]

    def time_us(self, node: _core.Graph, macs: float, flops: float, bytes: int) -> float:
        """The backend's prediction."""
        return _time(self._backend.time_us(node, macs, flops, bytes))

    def times_us(self, graph: _core.Graph, images: list[str]) -> dict[str, float] | None:
        """The backend's measurement; `images` lie channels last."""
        times: Mapping[str, float] | None = self._asked("times_us", graph, images)
        return None if times is None else {str(node): _time(us) for node, us in times.items()}

    def compile(self, graph: _core.Graph, images: list[str]) -> bytes:
        """The backend's code behind a header that says what opens it; `images` lie channels last."""
        code = self._asked("compile", graph, images)
        if not isinstance(code, (bytes, bytearray, memoryview)):
            raise TypeError(f"compile must give bytes; it gave {type(code).__name__}")
        return with_header(self._backend.version, self._spec, code)

    def _asked(self, name: str, graph: _core.Graph, images: list[str]) -> Any:
        method = getattr(self._backend, name)
        return method(graph, images) if self._images_last else method(graph)


def _plain(reason: Reason | str) -> tuple[str, str, str, str] | str:
    if not isinstance(reason, Reason):
        return str(reason)
    return str(reason.label), str(reason.found), str(reason.wanted), str(reason.text)


def _time(us: Any) -> float:
    time = float(us)
    if not 0 <= time < float("inf"):
        raise ValueError(f"a time must be 0 or more microseconds; found {us!r}")
    return time


def backend_of(device: Mapping[str, Any]) -> Backend | None:
    """That of a target's device; None of a kind of hetnn's own, or one that is not here."""
    kind = str(device["kind"])
    return _made(kind, str(device["name"]), device.get("spec") or {}) if kind in backend_kinds() else None


def _open(kind: str) -> Callable[..., Run]:
    def open_code(
        name: str, version: int, code: bytes, inputs: Sequence[tuple[Any, ...]], outputs: Sequence[tuple[Any, ...]]
    ) -> Run:
        compiled_by, spec, own = taken_apart(name, code)
        backend = _made(kind, name, spec)
        if not backend.reads(compiled_by):
            raise InvalidModel(
                f"device '{name}': compiled by {kind} {compiled_by}; here is {backend.version}. Compile the model "
                f"again, or install that version."
            )
        return backend.open(own, [Port(*row) for row in inputs], [Port(*row) for row in outputs])

    return open_code


def _made(kind: str, name: str, spec: Mapping[str, Any]) -> Backend:
    isolate = spec.get("isolate", _isolated.get(kind, False) if kind in _given else False)
    own = {key: value for key, value in spec.items() if key != "isolate"}
    if isolate is not False:
        from hetnn.backends.isolated import Isolated, limits_of, source_of

        limits = limits_of(name, isolate)
        if limits is not None:
            return Isolated(kind, name, own, source_of(kind, _given.get(kind)), limits)
    backend = factory_of(kind)(name, own)
    if not isinstance(backend, Backend):
        raise InvalidModel(f"kind '{kind}': its factory gave {type(backend).__name__}, not a hetnn.backends.Backend.")
    return backend


def factory_of(kind: str) -> Factory:
    """What makes backends of the kind. InvalidModel where there is none, Unavailable where it cannot be imported."""
    if kind in _given:
        return _given[kind]
    entry = _installed().get(kind)
    if entry is None:
        raise InvalidModel(
            f"there is no backend of kind '{kind}' here; found are {', '.join(backend_kinds()) or 'none'}. "
            "Install the package that brings it."
        )
    try:
        factory: Factory = entry.load()
    except Exception as error:
        raise Unavailable(
            f"the backend of kind '{kind}' ({entry.value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    return factory


@cache
def _installed() -> dict[str, EntryPoint]:
    """By kind, the entry points of installed packages; read once and when asked: it takes 40 milliseconds."""
    from importlib import metadata

    return {entry.name: entry for entry in metadata.entry_points(group=GROUP)}


def find_to_run(kind: str) -> None:
    """Tells the runtime of a kind that a file needs."""
    if kind in _given or kind in _installed():
        _runtime.register_device(kind, _open(kind))
