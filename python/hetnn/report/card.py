"""What a notebook shows of an executable or a plan: a card whose style is that of its own elements alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hetnn.report.picture import schedule_svg
from hetnn.report.rows import cell, escaped, table_html
from hetnn.report.text import as_text, costs

_MOST_REASONS = 6


def card(report: Mapping[str, Any], head: str, passes: Sequence[Mapping[str, Any]] = ()) -> str:
    """An HTML fragment of a report; `head` is a line above it. Needs no other package and no network."""
    parts = [f"<div><code>{escaped(head)}</code></div>", _devices(report)]
    parts += [f"<div>{escaped(costs(report))}</div>", _reasons(report)]
    parts.append(f"<div style='overflow-x:auto'>{schedule_svg(report)}</div>")
    parts.append(_folded("report", f"<pre>{escaped(as_text(report))}</pre>"))
    if passes:
        spent = sorted(passes, key=lambda row: -row["ms"])
        rows = [[row["name"], cell(row["ms"])] for row in spent if row["ms"] >= 1]
        parts.append(_folded("passes", table_html(["pass", "ms"], rows)))
    return framed(*parts)


def framed(*parts: str) -> str:
    """Parts as one card: a block that is as wide as it may be and scrolls within."""
    return f"<div class='hetnn-card' style='overflow-x:auto'>{''.join(parts)}</div>"


def _devices(report: Mapping[str, Any]) -> str:
    rows = []
    for device, nodes in report["nodes_on"].items():
        parts = [part for part in report["subgraphs"] if part["device"] == device]
        us = sum(part["predicted_us"] for part in parts)
        rows.append([device, cell(nodes), cell(report["macs_on"].get(device, 0)), cell(len(parts)), cell(float(us))])
    return table_html(["device", "nodes", "MACs", "subgraphs", "predicted us"], rows)


def _reasons(report: Mapping[str, Any]) -> str:
    """Why nodes are not on the accelerator, those of one reason together, the most nodes first."""
    nodes: dict[str, list[str]] = {}
    for row in report["not_on_preferred"]:
        for reason in row["reasons"]:
            nodes.setdefault(f"{reason['text']} ({reason['label']})", []).append(row["node"])
    ranked = sorted(nodes.items(), key=lambda item: -len(item[1]))
    rows = [[text, cell(len(names)), cell(names)] for text, names in ranked[:_MOST_REASONS]]
    return table_html(["not on the accelerator, because", "nodes", "which"], rows) if rows else ""


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>{body}</details>"
