"""What a vendor derives from to bring a compiler and a device to hetnn. Needs numpy alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from hetnn import _core

    Array = npt.NDArray[np.generic]

# Runs a subgraph: arrays of its inputs, in order, which are read-only and lent for the call; arrays of its outputs.
Run = Callable[[list[Any]], Sequence[Any]]


class Port(NamedTuple):
    """An input or output of a subgraph. Sizes that stay open until a run are None."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]


class Reason(NamedTuple):
    """Why a device does not take a node: a label to count by, what was found, what is wanted, and a sentence."""

    label: str
    found: str
    wanted: str
    text: str


class Clock(NamedTuple):
    """What a device takes for a subgraph: cycles in all, their rate, and a row a node: node, op, cycles and macs."""

    cycles: int
    hz: float
    layers: list[dict[str, Any]]


class Backend(ABC):
    """One device of a target and its compiler. Made with the device's name and its spec, a dict of plain data.

    Of the name KIND-VARIANT in a target the spec is {"variant": VARIANT}; a target file gives any. The keys
    `macs_per_us`, `flops_per_us`, `bytes_per_us`, `node_us` and `launch_us` are figures of the device, for planning.
    Compiling and running happen in different processes: `compile` gives bytes, and `open` takes them.
    """

    # Whether each subgraph must be connected, and how many bytes of constants one may have (-1: any number).
    connected = False
    constant_budget_bytes = -1
    # Whether a run here takes the time that the device takes. Where this is so of all devices of a target, the general
    # processor's nodes are measured, too, and what plans by cost is run beside what uses one device alone.
    measures = False
    # Whether `compile` and `times_us` are given, behind the graph, the names of its inputs and outputs that are images
    # which lie channels last in memory: those of four axes that pass between subgraphs. Code may read and write them so
    # where it runs in C (`images_last` of hetnn_device); arrays here are as the graph has them.
    images_last = False

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        self.name = name
        self.spec = dict(spec)

    @property
    @abstractmethod
    def version(self) -> str:
        """Of the compiler and what runs its code. A file says with which it was compiled."""

    def reads(self, version: str) -> bool:
        """Whether code that was compiled by `version` runs here."""
        return version == self.version

    @property
    def launch_us(self) -> float:
        """Microseconds of one visit to the device, whatever it computes."""
        return float(self.spec.get("launch_us", 0))

    def supports(self, node: _core.Graph) -> Iterable[Reason | str]:
        """Why the device does not take a node, given as a graph of it alone; nothing where it does.

        Nodes that are alike (operator, attributes, types, which inputs are constants) are asked for once, so that
        constants' values and names of values are of no account.
        """
        return ()

    def time_us(self, node: _core.Graph, macs: float, flops: float, bytes: int) -> float:
        """Predicted microseconds of a node by itself, without launch and transfers: by the figures of the spec."""
        rates = {"macs_per_us": macs, "flops_per_us": flops, "bytes_per_us": bytes}
        times = [amount / float(self.spec.get(rate, _DEFAULT_RATES[rate])) for rate, amount in rates.items()]
        return float(self.spec.get("node_us", 0)) + max(times)

    def times_us(self, graph: _core.Graph) -> Mapping[str, float] | None:
        """Microseconds of nodes, by name, if the device ran all of a graph that it supports: measured, or None."""
        return None

    @abstractmethod
    def compile(self, graph: _core.Graph) -> bytes:
        """A subgraph as code for `open`. Unsupported and DoesNotFit, with the node's name as attribute `node` where
        one is at fault, become a reason in the report, and the plan is made anew without; so does any other error.
        """

    @abstractmethod
    def open(self, code: bytes, inputs: Sequence[Port], outputs: Sequence[Port]) -> Run:
        """Makes code ready to run. Unavailable where the device is not there. What running raises ends the run."""

    def clock(self, code: bytes) -> Clock | None:
        """What the device would take for the code by its own clock, where what runs here only stands for it."""
        return None


# Of a device of which nothing is told: as fast as one core of a processor.
_DEFAULT_RATES = {"macs_per_us": 50_000.0, "flops_per_us": 10_000.0, "bytes_per_us": 10_000.0}
