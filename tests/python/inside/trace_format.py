"""The trace-event format as Perfetto's importer reads it, of the events that hetnn writes: a checker of its own."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

METADATA = {"process_name", "process_sort_index", "thread_name", "thread_sort_index"}


def read_trace(path: Path) -> list[dict[str, Any]]:
    """The events of a file that is well formed."""
    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    assert set(document) <= {"traceEvents", "displayTimeUnit"}
    assert document.get("displayTimeUnit") in ("ms", "ns")
    events: list[dict[str, Any]] = document["traceEvents"]
    for event in events:
        _check_event(event)
    _check_nesting(events)
    _check_flows(events)
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in events if event["ph"] in "Xsf"} <= named
    assert {event["pid"] for event in events} <= {e["pid"] for e in events if e["name"] == "process_name"}
    return events


def _no_constant(name: str) -> float:
    raise AssertionError(f"{name} is no JSON")


def _check_event(event: dict[str, Any]) -> None:
    assert event["ph"] in "MXCsf"
    assert isinstance(event["name"], str)
    assert event["name"]
    assert all(isinstance(event[key], int) for key in ("pid", "tid"))
    if event["ph"] == "M":
        assert event["name"] in METADATA
        wanted = int if event["name"].endswith("sort_index") else str
        (value,) = event["args"].values()
        assert isinstance(value, wanted)
        return
    assert math.isfinite(event["ts"])
    assert event["ts"] >= 0
    if event["ph"] == "X":
        assert event["cat"]
        assert event["dur"] >= 0
        assert isinstance(event.get("args", {}), dict)
    if event["ph"] == "C":
        assert event["args"]
        assert all(isinstance(value, (int, float)) for value in event["args"].values())


def _check_nesting(events: list[dict[str, Any]]) -> None:
    """Spans of one thread lie in one another or apart; others, viewers cut off."""
    lanes = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            lanes[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in lanes.values():
        open_ends: list[float] = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= begin + 1e-6:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1] + 1e-6
            open_ends.append(end)


def _check_flows(events: list[dict[str, Any]]) -> None:
    """Each arrow has one start and one finish, not before it, and both ends lie within a span of their thread."""
    spans = [event for event in events if event["ph"] == "X"]
    ends: dict[tuple[str, int], dict[str, dict[str, Any]]] = defaultdict(dict)
    for event in events:
        if event["ph"] in "sf":
            assert event["ph"] not in ends[event["cat"], event["id"]]
            ends[event["cat"], event["id"]][event["ph"]] = event
            at = event["ts"]
            within = [
                span
                for span in spans
                if (span["pid"], span["tid"]) == (event["pid"], event["tid"])
                and span["ts"] <= at < span["ts"] + span["dur"]
            ]
            assert within, event
    for pair in ends.values():
        assert set(pair) == {"s", "f"}
        assert pair["s"]["ts"] <= pair["f"]["ts"]
        assert pair["f"]["bp"] == "e"
