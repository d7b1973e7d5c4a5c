"""The report of a compiled model as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def table(header: list[str], rows: list[list[str]]) -> str:
    """A text table: the first column to the left, the others to the right."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    lines = []
    for row in [header, *rows]:
        cells = [cell.ljust(widths[k]) if k == 0 else cell.rjust(widths[k]) for k, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _some(names: list[str], most: int = 4) -> str:
    return ", ".join(names) if len(names) <= most else f"{names[0]} … {names[-1]}"


def _subgraph(number: int, part: Mapping[str, Any]) -> str:
    names = part["nodes"]
    return f"  {number} on {part['device']}: {len(names)} nodes, {part['predicted_us']:,.1f} us: {_some(names)}"


def as_text(report: Mapping[str, Any]) -> str:
    """Placement, crossings, rewrites and reasons of `report` (`Executable.report(format="dict")`)."""
    bounds = report["lower_bound_subgraphs"]
    devices = [
        [
            device,
            str(nodes),
            f"{report['macs_on'].get(device, 0):,.0f}",
            str(sum(part["device"] == device for part in report["subgraphs"])),
            str(bounds.get(device, "-")),
        ]
        for device, nodes in report["nodes_on"].items()
    ]
    parts = [
        f"target {report['target']}, strategy {report['strategy']}",
        table(["device", "nodes", "MACs", "subgraphs", "fewest"], devices),
        "subgraphs, in order:",
        *(_subgraph(k, part) for k, part in enumerate(report["subgraphs"])),
        f"predicted {report['predicted_us']:,.1f} us; {report['crossing_bytes']:,.0f} bytes cross between devices",
    ]
    if report["rewrites"]:
        parts.append("rewritten:")
        parts += [
            f"  {row['node']}: {row['rule']} ({row['form']}), {row['bytes_avoided']:,.0f} bytes stay on the device"
            for row in report["rewrites"]
        ]
    if report["fusions"]:
        saved = sum(row["bytes_before"] - row["bytes_after"] for row in report["fusions"])
        parts.append(f"fused: {len(report['fusions'])} groups, {saved:,.0f} bytes fewer through memory")
    if report["not_on_preferred"]:
        parts.append("not on the accelerator:")
        for row in report["not_on_preferred"]:
            where = f"  at {row['loc']}" if row["loc"] else ""
            parts.append(f"  {row['op']} '{row['node']}' on {row['device']}{where}")
            parts += [f"    {reason['label']}: {reason['text']}" for reason in row["reasons"]]
    return "\n".join(parts)
