"""The model that an executable was compiled from in this process: what it lacks can be asked of the model's own graph.

An executable that was loaded, or came out of a pickle, has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hetnn import _core
from hetnn.inside.names import Names
from hetnn.progress import Progress

if TYPE_CHECKING:
    from hetnn.executable import Executable
    from hetnn.importers import Imported
    from hetnn.planning import Plan


@dataclass
class Source:
    """`imported` imports the model again; the rest is what it was compiled with."""

    imported: Callable[[], Imported]
    target: Any
    options: Mapping[str, Any]

    @cached_property
    def _imported(self) -> Imported:
        return self.imported()

    @property
    def graph(self) -> _core.Graph:
        """The graph as it was imported."""
        return self._imported.graph

    @cached_property
    def repeated(self) -> list[tuple[str, str, bool]]:
        """What its loops compute in each round: name, loop, and whether it has the same shape in each."""
        return _core.repeated_values(self.graph)

    @cached_property
    def names(self) -> Names:
        """By which its values can be asked for."""
        return Names([_named(row) for row in self.graph.nodes()], self.repeated, self._imported.values)

    def plan(self) -> Plan:
        """The plan of the model as it was compiled."""
        from hetnn.api import plan

        options = {key: value for key, value in self.options.items() if key not in ("schedule", "progress")}
        return plan(self.imported().graph, self.target, **options)

    def compiled_with(self, values: Sequence[str], report: Mapping[str, Any], progress: Progress) -> Executable:
        """The model compiled as it was, but that it returns these values too, so that no kernel or layer computes past
        them. Nodes that ran on an accelerator do so again, wherever it takes them.
        """
        from hetnn.api import compile

        known = {name for row in self.graph.nodes() for name in (row["name"], *row["outputs"])}
        general = next(iter(report["nodes_on"]), "cpu")
        pins = _rows(self.options.get("pin"))
        pins += [
            {"name": row["node"], "device": row["device"], "hard": False}
            for row in report["graph"]
            if row["device"] != general and row["node"] in known
        ]
        options = {key: value for key, value in self.options.items() if key not in ("pin", "schedule", "progress")}
        graph = _core.with_outputs(self.graph, list(values))
        return compile(graph, self.target, pin=pins, progress=progress, **options)


def _rows(pin: Any) -> list[dict[str, Any]]:
    if isinstance(pin, Mapping):
        return [{"name": name, "device": device} for name, device in pin.items()]
    return [dict(row) for row in pin or []]


def _named(row: Mapping[str, Any]) -> tuple[str, str, list[str]]:
    return row["name"], row["module"], row["outputs"]
