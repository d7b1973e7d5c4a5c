"""What was asked and how long it took: counters of a version of a network, as the protocol and Prometheus show them."""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
OUTCOMES = ("success", "invalid", "unavailable", "cancelled", "failed")


class Histogram:
    """Counts by upper bounds, cumulative when they are shown."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.sum += value


class Counters:
    """Of one version in one process. Numbers are only added to, so that those of several processes can be summed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._durations = {
            name: [0, 0] for name in ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output")
        }
        self._batches: dict[int, list[int]] = {}  # size -> executions, ns
        self._outcomes = dict.fromkeys(OUTCOMES, 0)
        self._inferences = 0
        self._last_ms = 0
        self._request, self._queue, self._sizes = Histogram(SECONDS), Histogram(SECONDS), Histogram(SIZES)
        self._devices: dict[str, float] = {}

    def answered(self, begun_ns: int, queue_ns: int, infer_ns: int, batch: int) -> None:
        """A request that succeeded now."""
        now = time.perf_counter_ns()
        total_ns = now - begun_ns
        with self._lock:
            self._outcomes["success"] += 1
            self._inferences += batch
            self._last_ms = int(time.time() * 1000)
            for name, ns in (("success", total_ns), ("queue", queue_ns), ("compute_infer", infer_ns)):
                row = self._durations[name]
                row[0] += 1
                row[1] += ns
            for name in ("compute_input", "compute_output"):
                self._durations[name][0] += 1
            self._durations["compute_output"][1] += max(total_ns - queue_ns - infer_ns, 0)
            self._request.add(total_ns * 1e-9)
            self._queue.add(queue_ns * 1e-9)

    def refused(self, begun_ns: int, outcome: str) -> None:
        """A request that failed now."""
        ns = time.perf_counter_ns() - begun_ns
        with self._lock:
            self._outcomes[outcome] += 1
            row = self._durations["fail"]
            row[0] += 1
            row[1] += ns
            self._request.add(ns * 1e-9)

    def executed(self, batch: int, ns: int, busy_us: Iterable[tuple[str, float]]) -> None:
        """One run, of that many inferences, and how long its devices worked."""
        with self._lock:
            row = self._batches.setdefault(batch, [0, 0])
            row[0] += 1
            row[1] += ns
            self._sizes.add(batch)
            for device, us in busy_us:
                self._devices[device] = self._devices.get(device, 0.0) + us * 1e-6

    def snapshot(self) -> dict[str, Any]:
        """Everything, as JSON."""
        with self._lock:
            return {
                "durations": {name: list(row) for name, row in self._durations.items()},
                "batches": {str(size): list(row) for size, row in self._batches.items()},
                "outcomes": dict(self._outcomes),
                "inferences": self._inferences,
                "last_ms": self._last_ms,
                "devices": dict(self._devices),
                "histograms": {
                    name: [list(h.counts), h.sum]
                    for name, h in (("request", self._request), ("queue", self._queue), ("batch", self._sizes))
                },
            }


def add(total: Any, more: Any) -> Any:
    """Sums snapshots: numbers with numbers, lists and objects by their places; the last time is the latest."""
    if isinstance(more, dict):
        out = dict(total)
        for key, value in more.items():
            if key == "last_ms":
                out[key] = max(out.get(key, 0), value)
            else:
                out[key] = add(out[key], value) if key in out else value
        return out
    if isinstance(more, list):
        return [add(a, b) for a, b in zip(total, more, strict=True)]
    return total + more


def model_statistics(name: str, version: str, snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the statistics extension."""

    def duration(row: Iterable[int]) -> dict[str, int]:
        count, ns = row
        return {"count": count, "ns": ns}

    durations = {key: duration(row) for key, row in snapshot["durations"].items()}
    nothing = {"count": 0, "ns": 0}
    batches = sorted((int(size), row) for size, row in snapshot["batches"].items())
    return {
        "name": name,
        "version": version,
        "last_inference": snapshot["last_ms"],
        "inference_count": snapshot["inferences"],
        "execution_count": sum(row[0] for _, row in batches),
        "inference_stats": {**durations, "cache_hit": nothing, "cache_miss": nothing},
        "batch_stats": [
            {
                "batch_size": size,
                "compute_input": {"count": row[0], "ns": 0},
                "compute_infer": duration(row),
                "compute_output": {"count": row[0], "ns": 0},
            }
            for size, row in batches
        ],
        "memory_usage": [],
    }


def _histogram(name: str, labels: str, bounds: tuple[float, ...], row: Any) -> list[str]:
    counts, total = row
    lines, seen = [], 0
    for bound, count in zip((*map("{:g}".format, bounds), "+Inf"), counts, strict=True):
        seen += count
        lines.append(f'{name}_bucket{{{labels},le="{bound}"}} {seen}')
    return [*lines, f"{name}_sum{{{labels}}} {total:.9g}", f"{name}_count{{{labels}}} {seen}"]


def prometheus(snapshots: Mapping[tuple[str, str], Mapping[str, Any]], pending: int) -> str:
    """All counters in Prometheus' text format, by (network, version)."""
    families: dict[str, tuple[str, str, list[str]]] = {
        "hetnn_requests_total": ("counter", "Requests by how they ended.", []),
        "hetnn_request_seconds": ("histogram", "From a request's arrival to its answer.", []),
        "hetnn_queue_seconds": ("histogram", "From a request's arrival to its run.", []),
        "hetnn_pending": ("gauge", "Requests that wait or run.", [f"hetnn_pending {pending}"]),
        "hetnn_batch_size": ("histogram", "Inferences of one run.", []),
        "hetnn_device_busy_seconds_total": ("counter", "Time that devices computed.", []),
    }
    busy: dict[str, float] = {}
    for (model, version), snapshot in sorted(snapshots.items()):
        labels = f'model="{model}",version="{version}"'
        families["hetnn_requests_total"][2].extend(
            f'hetnn_requests_total{{{labels},outcome="{outcome}"}} {count}'
            for outcome, count in snapshot["outcomes"].items()
        )
        for name, key, bounds in (
            ("hetnn_request_seconds", "request", SECONDS),
            ("hetnn_queue_seconds", "queue", SECONDS),
            ("hetnn_batch_size", "batch", SIZES),
        ):
            families[name][2].extend(_histogram(name, labels, bounds, snapshot["histograms"][key]))
        for device, seconds in snapshot["devices"].items():
            busy[device] = busy.get(device, 0.0) + seconds
    families["hetnn_device_busy_seconds_total"][2].extend(
        f'hetnn_device_busy_seconds_total{{device="{device}"}} {seconds:.9g}' for device, seconds in busy.items()
    )
    lines: list[str] = []
    for name, (kind, meaning, rows) in families.items():
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", *rows]
    return "\n".join(lines) + "\n"
