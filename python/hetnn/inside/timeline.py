"""A run on the time line of its devices: the CPU as measured, a device that is not here by its own clock.

Such a device is simulated, or its compiler predicts its cycles. What simulating takes is nowhere on that line. Each
subgraph begins when all that it waits for has ended and its device is free, so the line is what the run would be if the
simulated devices were there; transfers are not on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hetnn import _runtime

if TYPE_CHECKING:
    from hetnn.backends.backend import Clock
    from hetnn.executable import Executable


@dataclass
class Span:
    """One kernel or layer on its device's line."""

    node: str
    kernel: str
    start_us: float
    us: float
    more: dict[str, Any] = field(default_factory=dict)  # what else is known of it


@dataclass
class Visit:
    """One subgraph on its device. `simulated`: its time is that of the device's clock and was not measured."""

    name: str
    device: str
    start_us: float
    us: float
    wall_us: float
    simulated: bool
    queue_us: float
    cycles: int
    fallback: bool
    spans: list[Span] = field(default_factory=list)


@dataclass(frozen=True)
class Body:
    """All rounds of a subgraph that a loop repeats, from the first's start to the last's end."""

    name: str
    device: str
    start_us: float
    us: float
    queue_us: float
    cycles: int


@dataclass(frozen=True)
class Timeline:
    """The visits of a run in the program's order, what loops repeated, and which visits each waited for."""

    visits: list[Visit]
    bodies: list[Body]
    depends_on: list[list[int]]

    @property
    def end_us(self) -> float:
        """The end of the last visit."""
        return max((visit.start_us + visit.us for visit in self.visits), default=0.0)

    def us_of(self, simulated: bool) -> float:
        """The time of all simulated, or of all measured visits, one after the other."""
        return sum(visit.us for visit in self.visits if visit.simulated == simulated)


def timeline_of(executable: Executable, times: _runtime.RunTimes, arrays: Sequence[Any]) -> Timeline:
    """Of the run on `arrays` that filled `times`."""
    parts, rounds = times.subprograms(), times.bodies()
    clocks = times.device_us()
    repeated = _repeated(rounds, clocks[len(parts) :])
    commands: list[list[dict[str, Any]]] = [[] for _ in parts]
    for k, command in zip(times.subprograms_of_commands(), times.commands(), strict=True):
        commands[k].append(command)
    visits = []
    for row, clock, kernels in zip(parts, clocks, commands, strict=False):
        told = executable._clocks.get(row["name"])
        visit = _visit(row, clock, told)
        _add_kernels(visit, row, kernels, visit.wall_us - clock[1], repeated)
        if told is not None and visit.simulated:
            visit.spans = _told_layers(told)
        visits.append(visit)
    if any(clock[0] > 0 for clock in clocks[: len(parts)]):
        for part in _runtime.layers(executable._engine, list(arrays)):
            _add_layers(visits[part["subprogram"]], part)
    depends_on = [list(earlier) for earlier in executable._engine.depends_on]
    _schedule(visits, depends_on)
    return Timeline(visits, _bodies(rounds, visits), depends_on)


def _visit(row: Mapping[str, Any], clock: tuple[float, float], told: Clock | None) -> Visit:
    wall_us = row["finish_us"] - row["start_us"]
    own_us = clock[0] if told is None else told.cycles / told.hz * 1e6
    simulated = own_us > 0 and not row["fallback"]
    us = own_us if simulated else wall_us
    more = {key: row[key] for key in ("queue_us", "cycles", "fallback")}
    if told is not None and simulated:
        more["cycles"] = told.cycles
    return Visit(row["name"], row["device"], 0.0, us, wall_us, simulated, **more)


def _repeated(rounds: Sequence[Mapping[str, Any]], clocks: Sequence[tuple[float, float]]) -> dict[str, float | None]:
    """By loop: what its rounds take on their devices' own time; None where none of these is simulated, so that what was
    measured is that already.
    """
    own: dict[str, float] = {}
    simulated: set[str] = set()
    for row, (simulated_us, busy_us) in zip(rounds, clocks, strict=True):
        loop = row["name"].partition("/body ")[0]
        own[loop] = own.get(loop, 0.0) + (simulated_us or busy_us)
        if simulated_us > 0:
            simulated.add(loop)
    return {loop: us if loop in simulated else None for loop, us in own.items()}


def _add_kernels(
    visit: Visit,
    row: Mapping[str, Any],
    kernels: Sequence[dict[str, Any]],
    waited_us: float,
    repeated: Mapping[str, float | None],
) -> None:
    """The kernels of a visit, one after the other. `waited_us`: how long the visit waited for what its loops repeat,
    which for a loop with simulated devices is no time of anybody's.
    """
    looped_us = sum(kernel["wall_us"] for kernel in kernels if kernel["node"] in repeated)
    less_us = 0.0
    for kernel in kernels:
        us = kernel["wall_us"]
        own_us = repeated.get(kernel["node"])
        if own_us is not None:
            us = max(us - waited_us * us / looped_us, 0.0) + own_us
        start = kernel["start_us"] - row["start_us"] - less_us
        visit.spans.append(Span(kernel["node"], kernel["kernel"], start, us, kernel))
        less_us += kernel["wall_us"] - us
    if not visit.simulated:
        visit.us = max(visit.us - less_us, 0.0)


def _add_layers(visit: Visit, part: Mapping[str, Any]) -> None:
    if not visit.simulated:
        return
    cycles_per_us = part["clock_hz"] / 1e6
    visit.spans = []
    for number, begin, end, stall in part["spans"]:
        layer = part["layers"][number]
        more = {**layer, "cycles": end - begin, "stall_cycles": stall, "stall_us": stall / cycles_per_us}
        start, us = begin / cycles_per_us, (end - begin) / cycles_per_us
        visit.spans.append(Span(layer["node"], layer["op"], start, us, more))


def _told_layers(told: Clock) -> list[Span]:
    """The layers one after the other: a compiler says how long each is, and not when."""
    spans, at = [], 0
    for layer in told.layers:
        start, us = (cycles / told.hz * 1e6 for cycles in (at, layer["cycles"]))
        spans.append(Span(layer["node"], layer["op"], start, us, {**layer, "stall_cycles": 0, "stall_us": 0.0}))
        at += layer["cycles"]
    return spans


def _schedule(visits: Sequence[Visit], depends_on: Sequence[Sequence[int]]) -> None:
    """Each visit after those that it waits for and after its device's visit before."""
    free_us: dict[str, float] = {}
    for visit, earlier in zip(visits, depends_on, strict=True):
        ends = [visits[k].start_us + visits[k].us for k in earlier]
        visit.start_us = max([free_us.get(visit.device, 0.0), *ends])
        free_us[visit.device] = visit.start_us + visit.us
        for span in visit.spans:
            span.start_us += visit.start_us


def _bodies(rounds: Sequence[Mapping[str, Any]], visits: Sequence[Visit]) -> list[Body]:
    """Rounds over the span of their loop, whose time is shorter by what simulating them took longer."""
    loops = {span.node: span for visit in visits for span in visit.spans}
    out = []
    for row in rounds:
        loop = loops.get(row["name"].partition("/body ")[0])
        start, us = row["start_us"], row["finish_us"] - row["start_us"]
        if loop is not None:
            wall = loop.more["wall_us"]
            scale = loop.us / wall if wall else 0.0
            start, us = loop.start_us + (start - loop.more["start_us"]) * scale, us * scale
        out.append(Body(row["name"], row["device"], start, us, row["queue_us"], row["cycles"]))
    return out


@dataclass(frozen=True)
class Figures:
    """Of one run, in microseconds: what measured devices were at work, what simulated ones would have been by their
    clocks, and what simulating these took, which is nothing of the model's own.
    """

    measured_us: float
    simulated_us: float
    simulating_us: float


def last_figures(executable: Executable) -> Figures:
    """Of the calling thread's last run."""
    times = executable._of_thread.times
    clocks = [
        (told.cycles / told.hz * 1e6, busy_us) if told is not None and not row["fallback"] else (own_us, busy_us)
        for row, (own_us, busy_us) in zip([*times.subprograms(), *times.bodies()], times.device_us(), strict=True)
        for told in (executable._clocks.get(row["name"]),)
    ]
    return Figures(
        sum(busy_us for simulated_us, busy_us in clocks if simulated_us == 0),
        sum(simulated_us for simulated_us, _ in clocks),
        sum(busy_us for simulated_us, busy_us in clocks if simulated_us > 0),
    )
