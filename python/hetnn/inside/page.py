"""The page of an executable with more than its report: times of a run, noise of a comparison, gains of operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hetnn.inside.nodes import measured
from hetnn.inside.profile import profile_of

if TYPE_CHECKING:
    from hetnn.executable import Executable
    from hetnn.inside.compare import Comparison
    from hetnn.inside.timeline import Timeline


def page_report(executable: Executable, inputs: Sequence[Any], comparison: Comparison | None) -> dict[str, Any]:
    """The report, and what the page shows besides (hetnn.report.page.as_html)."""
    report: dict[str, Any] = executable.report(format="dict")
    if inputs:
        timeline = executable._timeline(inputs)
        report["graph"] = list(measured(executable, profile_of(timeline)))
        report["timeline"] = _spans(timeline)
    _add_noise(report, executable, comparison)
    if executable._source is not None and len(report["nodes_on"]) > 1:
        report["what_if"] = list(executable._source.plan().what_if())
    return report


def _spans(timeline: Timeline) -> list[dict[str, Any]]:
    """Where a visit has no spans of its own, as on a device whose inside nobody sees, it is one."""
    out = []
    for visit in timeline.visits:
        rows = [(span.node, span.start_us, span.us, span.more.get("stall_us", 0.0)) for span in visit.spans]
        for node, start, us, stall in rows or [(visit.name, visit.start_us, visit.us, 0.0)]:
            out.append({"device": visit.device, "node": node, "start_us": start, "us": us, "stall_us": stall})
    return out


def _add_noise(report: dict[str, Any], executable: Executable, comparison: Comparison | None) -> None:
    """Of a comparison; without one, what quantizing measured in this process."""
    noise: dict[str, float] = {}
    if comparison is not None:
        noise = {row["node"]: row["noise_db"] for row in comparison.rows}
    elif executable.quantization is not None:
        noise = {row.value: row.noise_db for row in executable.quantization.values if row.noise_db is not None}
    for row in report["graph"]:
        if row["node"] in noise:
            row["noise_db"] = noise[row["node"]]
