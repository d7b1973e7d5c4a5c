"""Networks by id: a folder that keeps executables, what each is made of, and where it runs."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hetnn import _store
from hetnn.arrays import Array
from hetnn.errors import InvalidModel
from hetnn.executable import Executable, load
from hetnn.remote.places import places_of


class UnknownNetwork(InvalidModel):
    """A network or a version that a store does not hold."""

    @property
    def kind(self) -> str:
        """The kind that the command line prints: InvalidModel."""
        return InvalidModel.__name__


class DamagedNetwork(InvalidModel):
    """A network that is kept and cannot be opened: its row or its file was altered or is gone."""

    @property
    def kind(self) -> str:
        """The kind that the command line prints: InvalidModel."""
        return InvalidModel.__name__


class Store:
    """A folder of executables by network id and version. Thread-safe; several processes may share it.

    Open its database with nothing else in the same process, Python's sqlite3 included: a second copy of SQLite would
    drop the locks of the first.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._kept = _store.Store(self.path)
        self._lock = threading.Lock()
        self._open: dict[tuple[str, int | None, str], Executable] = {}

    def add(self, id: str, executable: Executable | str | os.PathLike[str], version: int | None = None) -> int:
        """Keeps an executable, or that of a .hetnn file, and returns its version: the next one, unless it is given."""
        if isinstance(executable, Executable):
            return int(self._kept.add_image(id, executable._with_own_code().image(), version)["version"])
        return int(self._kept.add_file(id, os.fspath(executable), version)["version"])

    def list(self) -> dict[str, Any]:
        """`{"networks": [{"network", "versions", "bytes"}]}`."""
        return {"networks": self._kept.networks()}

    def association(self, id: str, version: int | None = None) -> dict[str, Any]:
        """The nodes of a network, its subgraphs in run order, and the device of each, by default of what runs.

        Where it has loops whose bodies are programs of their own, `bodies` has `{"of", "nodes", "subgraphs"}` of each:
        `of` is the loop, the rest as of a network. A body inside another stands before that one. Of devices that it is
        deployed on elsewhere `at` has the addresses.
        """
        self.find(id, version)
        row, document, deployed = self._kept.association(id, version)
        described = json.loads(document)
        for part in (described, *described.get("bodies", [])):
            for subgraph in part["subgraphs"]:
                subgraph["deployed_on"] = [name for name in (subgraph["device"],) if name in deployed]
        places = self.find(id, version)["places"]
        if places:
            row["at"] = {device: place["at"] for device, place in places.items()}
        del row["bytes"]
        return {**row, **described}

    def find(self, id: str, version: int | None = None) -> dict[str, Any]:
        """`network`, `version`, `hash`, `target`, `bytes`, `path` and `places`. UnknownNetwork when there is none.

        Unless one is named it is the version that runs: the newest of those that are deployed, else the newest.
        `places` is what `hetnn.load` takes as `devices`: where those stand that it was deployed on elsewhere.
        """
        found = self._kept.find(id, version)
        if found is None:
            named = f"'{id}'" if version is None else f"'{id}' version {version}"
            raise UnknownNetwork(f"the store '{self.path}' holds no network {named}. `hetnn store add` adds one.")
        return {**found, "places": {device: json.loads(place) for device, place in sorted(found["places"].items())}}

    def load(self, id: str, version: int | None = None, threads: int | None = None) -> Executable:
        """The executable, opened once, with its devices where it was deployed."""
        found = self.find(id, version)
        key = (found["hash"], threads, json.dumps(found["places"]))
        with self._lock:
            opened = self._open.get(key)
            if opened is None:
                opened = self._open[key] = load(found["path"], threads, devices=found["places"])
            return opened

    def run(self, id: str, inputs: Mapping[str, Any], version: int | None = None) -> dict[str, Array]:
        """Runs a network on arrays by their names; the outputs by theirs."""
        executable = self.load(id, version)
        outputs = executable.run(executable._arguments.by_name(0, inputs))
        return {port.name: np.asarray(value) for port, value in zip(executable.outputs, outputs, strict=True)}

    def remove(self, id: str, version: int | None = None) -> None:
        """Forgets one version, or all of them; `gc` deletes their files."""
        self._kept.remove(id, version)

    def deploy(
        self,
        id: str,
        devices: Iterable[str] = (),
        version: int | None = None,
        places: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Makes a version, by default the newest, the one that runs, ready ahead of requests; other versions' marks go.

        A network is deployed whole. InvalidModel where `devices` are named and are not all that the version runs on.
        `places` says which of its devices stand behind device servers, as `hetnn.load` takes it; whoever opens the
        version uses those, and no device of that name here.
        """
        checked = places_of(places)
        self._kept.deploy(id, version, [*devices], {device: json.dumps(place) for device, place in checked.items()})

    def undeploy(self, id: str, version: int | None = None) -> None:
        """Takes those marks away, of one version or of all."""
        self._kept.undeploy(id, version)

    def deployed(self) -> Iterable[dict[str, Any]]:
        """Each version that is deployed: `network`, `version`, `hash`, `target`, `bytes`."""
        return iter(self._kept.deployed())

    def verify(self) -> dict[str, Any]:
        """`{"ok", "damaged": [{"network", "version", "what"}]}`; reads every byte."""
        damaged = self._kept.verify()
        return {"ok": not damaged, "damaged": damaged}

    def gc(self) -> dict[str, int]:
        """Deletes the files that no version names: `{"files", "bytes"}`."""
        return dict(self._kept.gc())
