"""The networks that a server knows: those of a store and those of files, opened when they are first asked for."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from hetnn import _store
from hetnn.errors import DoesNotFit, InvalidModel, Unavailable
from hetnn.executable import load
from hetnn.serve.runner import Batching, Deliveries, Job, Runner
from hetnn.store import DamagedNetwork, Store, UnknownNetwork

_T = TypeVar("_T")


def _opened(name: str, open: Callable[[], _T]) -> _T:
    """What `open` gives. A client who asked for a network is not to blame where what is kept of it is damaged."""
    try:
        return open()
    except UnknownNetwork:
        raise
    except (InvalidModel, DoesNotFit) as error:
        raise DamagedNetwork(f"the kept network '{name}' cannot be opened: {error}") from error


@dataclass(frozen=True)
class _Found:
    version: str
    hash: str  # of all that says what is opened
    path: str
    places: Mapping[str, Any]


class Networks:
    """Runners by network and version. Everything but `open` is for the event loop's thread alone."""

    def __init__(
        self, store: Store | None, files: Mapping[str, str], batching: Batching, threads: int | None = None
    ) -> None:
        self.store = store
        self._files = dict(files)
        self.batching = batching
        self._threads = threads
        self._current: dict[str, Runner] = {}  # that a request without a version gets
        self._versions: dict[tuple[str, str], Runner] = {}
        self._unloaded: set[str] = set()
        self._opening: dict[str, asyncio.Lock] = {}
        self._retired: list[Runner] = []  # counters of versions that are gone still count

    def deliver_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop whose requests are answered; called once, before any network is opened."""
        self._deliveries = Deliveries(loop)

    def jobs(self) -> list[Job]:
        """What waits or runs."""
        return [*self._deliveries.jobs.values()]

    def opened(self, name: str, version: str) -> Runner | None:
        """The runner, if it was opened already; version '' is the current one."""
        return self._versions.get((name, version)) if version else self._current.get(name)

    async def runner(self, name: str, version: str = "") -> Runner:
        """The runner, opened now if need be. UnknownNetwork when there is none, or it was unloaded."""
        found = self.opened(name, version)
        if found is not None:
            return found
        number = self._check(name, version)
        async with self._opening.setdefault(name, asyncio.Lock()):
            found = self.opened(name, version)
            if found is None:
                self._check(name, version)
                found = await self._open(name, number)
                if not version:
                    self._current[name] = found
            return found

    async def load(self, name: str) -> None:
        """Makes the deployed version ready, the newest where none is, then lets it take over."""
        self._check(name, "", unloaded=True)
        async with self._opening.setdefault(name, asyncio.Lock()):
            newest = await self._open(name, None)
            old = self._current.get(name)
            self._current[name] = newest
            self._unloaded.discard(name)
            if old is not None and old is not newest:
                self._retire(old)

    async def unload(self, name: str) -> None:
        """Lets every version finish what it has, and answers no more."""
        self._check(name, "", unloaded=True)
        async with self._opening.setdefault(name, asyncio.Lock()):
            await asyncio.to_thread(self._find, name, None)
            self._unloaded.add(name)
            self._current.pop(name, None)
            for runner in [runner for (owner, _), runner in self._versions.items() if owner == name]:
                self._retire(runner)

    def unloaded(self) -> list[str]:
        """Names that clients have unloaded, sorted."""
        return sorted(self._unloaded)

    def restore_unloaded(self, names: list[str]) -> None:
        """Takes over the names that clients unloaded before this worker began."""
        self._unloaded = set(names)

    def runners(self) -> Iterator[Runner]:
        """Every runner that ever was, for what they counted."""
        yield from self._retired
        yield from self._versions.values()

    def close(self) -> None:
        """Takes no more jobs and hands over no more results; what waits is still run."""
        for runner in [*self._versions.values()]:
            runner.close()
        self._deliveries.close()

    async def index(self) -> list[dict[str, str]]:
        """Rows of the repository's index."""
        listed = (await asyncio.to_thread(self.store.list))["networks"] if self.store else []
        rows = {name: ["1"] for name in self._files}
        rows |= {row["network"]: [str(version) for version in row["versions"]] for row in listed}
        return [
            {"name": name, "version": version, "state": "UNAVAILABLE", "reason": "unloaded"}
            if name in self._unloaded
            else {"name": name, "version": version, "state": "READY", "reason": ""}
            for name, versions in sorted(rows.items())
            for version in versions
        ]

    async def versions(self, name: str) -> list[str]:
        """The versions of a network that the index lists, as texts; none where it has none."""
        return [row["version"] for row in await self.index() if row["name"] == name]

    async def open_deployed(self) -> None:
        """Opens what is deployed and every file; what a device is not there for, when it is asked for."""
        deployed = {row["network"] for row in self.store.deployed()} if self.store else set()
        for name in (*self._files, *sorted(deployed)):
            try:
                await self.runner(name)
            except Unavailable as error:
                print(f"hetnn serve: '{name}' is not opened yet: {error}", file=sys.stderr)

    def _check(self, name: str, version: str, unloaded: bool = False) -> int | None:
        _store.check_id(name)
        if name in self._unloaded and not unloaded:
            raise UnknownNetwork(f"the network '{name}' is unloaded. Load it first.")
        if version and not (version.isascii() and version.isdecimal() and len(version) < 19):
            raise InvalidModel(f"a version is a number; got '{version:.50}'.")
        return int(version) if version else None

    def _find(self, name: str, number: int | None) -> _Found:
        path = self._files.get(name)
        if path is not None and number in (None, 1):
            status = os.stat(path)
            return _Found("1", f"{status.st_ino}-{status.st_mtime_ns}-{status.st_size}", path, {})
        if self.store is None or path is not None:
            named = f"'{name}'" if number is None else f"'{name}' version {number}"
            raise UnknownNetwork(f"there is no network {named} here.")
        found: dict[str, Any] = self.store.find(name, number)
        places = found["places"]
        hash = f"{found['hash']} {json.dumps(places)}" if places else found["hash"]
        return _Found(str(found["version"]), hash, found["path"], places)

    async def _open(self, name: str, number: int | None) -> Runner:
        found = await asyncio.to_thread(_opened, name, partial(self._find, name, number))
        kept = self._versions.get((name, found.version))
        if kept is not None and kept.hash == found.hash:
            return kept
        opening = partial(load, found.path, self._threads, devices=found.places)
        executable = await asyncio.to_thread(_opened, name, opening)
        made = Runner(name, found.version, found.hash, executable, self.batching, self._deliveries)
        if kept is not None:
            self._retire(kept)
        self._versions[name, found.version] = made
        return made

    def _retire(self, runner: Runner) -> None:
        runner.close()
        self._versions.pop((runner.name, runner.version), None)
        self._retired.append(runner)
