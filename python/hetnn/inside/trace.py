"""A run as events of the trace format that Perfetto and chrome://tracing open (its names stand in the spec's words).

Process 1 is the run on its devices' own time (timeline.py), process 2 what was predicted when the model was planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hetnn.inside.timeline import Span, Timeline, Visit

_RAN, _PLANNED = 1, 2
# From the share of its time on that a layer stalls: how chrome://tracing paints it.
_COLOURS = ((0.5, "terrible"), (0.2, "bad"), (0.0, "good"))
# An arrow leaves what ends: viewers look for the span that is open at its time.
_BEFORE_END_US = 1e-3


class _Lanes:
    """Threads of the trace; their numbers differ between processes, too."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, str], int] = {}

    def number(self, process: int, name: str) -> int:
        return self._numbers.setdefault((process, name), len(self._numbers) + 1)

    def events(self) -> list[dict[str, Any]]:
        return [
            {"name": "thread_name", "ph": "M", "pid": process, "tid": number, "args": {"name": name}}
            for (process, name), number in self._numbers.items()
        ]


def trace_events(timeline: Timeline, report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All events of a run; `report` has what was predicted."""
    lanes = _Lanes()
    for device in dict.fromkeys([*(visit.device for visit in timeline.visits), "cpu"]):
        lanes.number(_RAN, device)
        if device == "cpu":
            for body in timeline.bodies:
                lanes.number(_RAN, body.name)
    predicted = {row["node"]: row.get("predicted_us") for row in report["graph"]}
    events: list[dict[str, Any]] = []
    for visit in timeline.visits:
        events += _visit_events(visit, lanes.number(_RAN, visit.device), predicted)
    for body in timeline.bodies:
        args = {"device": body.device, "queue_us": body.queue_us, "cycles": body.cycles}
        lane = lanes.number(_RAN, body.name)
        events.append(_span(body.name, "body", _RAN, lane, body.start_us, body.us, args))
    events += _arrows(timeline, lanes)
    events += _planned_events(report, lanes)
    simulated = any(visit.simulated for visit in timeline.visits)
    ran = "the run: CPU measured, NPU by its clock" if simulated else "the run, measured"
    return [_process(_RAN, ran), _process(_PLANNED, "as planned: predicted"), *lanes.events(), *events]


def _process(number: int, name: str) -> dict[str, Any]:
    return {"name": "process_name", "ph": "M", "pid": number, "tid": 0, "args": {"name": name}}


def _span(
    name: str, category: str, process: int, lane: int, start_us: float, us: float, args: Mapping[str, Any]
) -> dict[str, Any]:
    span = {"name": name, "cat": category, "ph": "X", "pid": process, "tid": lane}
    return span | {"ts": start_us, "dur": us, "args": dict(args)}


def _visit_events(visit: Visit, lane: int, predicted: Mapping[str, Any]) -> list[dict[str, Any]]:
    args: dict[str, Any] = {"device": visit.device, "time": "simulated" if visit.simulated else "measured"}
    args |= {"queue_us": visit.queue_us, "cycles": visit.cycles, "fallback": visit.fallback}
    if visit.simulated:
        args["simulating_took_us"] = visit.wall_us
    end = visit.start_us + visit.us
    events = [_span(visit.name, "subprogram", _RAN, lane, visit.start_us, visit.us, args)]
    for span in visit.spans:
        # Times of the parts were taken by themselves, so the last may end a moment behind the whole.
        us = max(min(span.us, end - span.start_us), 0.0)
        more = {**_more(span), "predicted_us": predicted.get(span.node)}
        event = _span(span.node, span.kernel, _RAN, lane, min(span.start_us, end), us, more)
        if visit.simulated:
            stalled = span.more["stall_us"] / span.us if span.us else 0.0
            event["cname"] = next(name for least, name in _COLOURS if stalled >= least)
        events.append(event)
    if visit.simulated:
        events += _stalls(visit, lane)
    return events


def _more(span: Span) -> dict[str, Any]:
    return {key: value for key, value in span.more.items() if key not in ("node", "start_us", "kernel")}


def _stalls(visit: Visit, lane: int) -> list[dict[str, Any]]:
    """A counter: the share of each layer's time in which the engines wait for memory."""
    counter = {"name": f"{visit.device} waits for memory", "ph": "C", "pid": _RAN, "tid": lane}
    events = [
        counter | {"ts": span.start_us, "args": {"%": 100 * span.more["stall_us"] / span.us if span.us else 0.0}}
        for span in visit.spans
    ]
    return [*events, counter | {"ts": visit.start_us + visit.us, "args": {"%": 0.0}}]


def _arrows(timeline: Timeline, lanes: _Lanes) -> list[dict[str, Any]]:
    events = []
    pairs = [(earlier, k) for k, earliers in enumerate(timeline.depends_on) for earlier in earliers]
    for number, (earlier, later) in enumerate(pairs):
        begin, end = timeline.visits[earlier], timeline.visits[later]
        flow = {"name": "data", "cat": "data", "pid": _RAN, "id": number}
        leaves = begin.start_us + max(begin.us - _BEFORE_END_US, 0.5 * begin.us)
        events.append(flow | {"ph": "s", "tid": lanes.number(_RAN, begin.device), "ts": leaves})
        events.append(flow | {"ph": "f", "bp": "e", "tid": lanes.number(_RAN, end.device), "ts": end.start_us})
    return events


def _planned_events(report: Mapping[str, Any], lanes: _Lanes) -> list[dict[str, Any]]:
    rows = {row["node"]: row for row in report["graph"]}
    events = []
    for number, part in enumerate(report["subgraphs"]):
        lane = lanes.number(_PLANNED, part["device"])
        start, us = part["start_us"], part["finish_us"] - part["start_us"]
        name = f"{part['device']}.{number}"
        events.append(_span(name, "planned", _PLANNED, lane, start, us, {"predicted_us": part["predicted_us"]}))
        each = [(node, rows[node].get("predicted_us") or 0.0) for node in part["nodes"] if node in rows]
        at = start + max(us - sum(time for _, time in each), 0.0)  # behind the launch
        for node, time in each:
            shown = max(min(time, start + us - at), 0.0)
            args = {key: rows[node][key] for key in ("op", "macs", "bytes", "module", "loc") if key in rows[node]}
            events.append(_span(node, "planned node", _PLANNED, lane, at, shown, args | {"predicted_us": time}))
            at += shown
    return events
