"""A profile: a row a kernel of the CPU, as measured, and a row a layer of an NPU, by its clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hetnn.inside.timeline import Span, Timeline, Visit
from hetnn.report.rows import Rows
from hetnn.report.text import next_best

COLUMNS = (
    "node",
    "device",
    "kernel",
    "us",
    "predicted_us",
    "macs",
    "bytes",
    "gflops",
    "gbytes_s",
    "stall_us",
    "next_best",
)
# Of a layer on an NPU; its other keys are those of the CPU's rows.
_OF_LAYERS = ("op", "tile", "compute_cycles", "memory_cycles", "utilization", "weight_bytes", "energy_nj")


def profile_of(timeline: Timeline) -> Rows:
    """The rows in the order of the program."""
    rows = []
    for visit in timeline.visits:
        if visit.simulated:
            rows += _layers(visit)
        else:
            rows += [_kernel(visit, span) for span in visit.spans]
    return Rows(rows, COLUMNS, "nothing was computed")


def _kernel(visit: Visit, span: Span) -> dict[str, Any]:
    more: Mapping[str, Any] = span.more
    row = {"node": span.node, "device": visit.device, "kernel": span.kernel, "start_us": more["start_us"]}
    row |= {"us": span.us, "simulated": False, **more}
    row |= {counted: int(more[counted]) for counted in ("macs", "flops", "bytes")}
    if row["rivals"]:
        row["next_best"] = next_best(row["rivals"])
    ns = row["wall_us"] * 1e3
    return row | _rates(ns, 2 * more["macs"] + more["flops"], more["bytes"])


def _layers(visit: Visit) -> list[dict[str, Any]]:
    """A row a layer, though its words may stand in several places of the stream."""
    rows: dict[str, dict[str, Any]] = {}
    for span in visit.spans:
        row = rows.get(span.node)
        if row is None:
            row = rows[span.node] = {"node": span.node, "device": visit.device, "kernel": span.kernel}
            row |= {"start_us": span.start_us, "us": 0.0, "simulated": True, "cycles": 0, "stall_cycles": 0}
            row |= {"stall_us": 0.0, "macs": span.more["macs"], "bytes": span.more.get("dma_bytes", 0)}
            row |= {key: span.more[key] for key in _OF_LAYERS if key in span.more}
        row["us"] += span.us
        for key in ("cycles", "stall_cycles", "stall_us"):
            row[key] += span.more[key]
    return [row | _rates(row["us"] * 1e3, 2 * row["macs"], row["bytes"]) for row in rows.values()]


def _rates(ns: float, flops: float, bytes: float) -> dict[str, float]:
    return {"gflops": flops / ns if ns else 0.0, "gbytes_s": bytes / ns if ns else 0.0}
