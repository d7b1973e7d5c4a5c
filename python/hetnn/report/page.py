"""The report of a compiled model as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from hetnn.report.picture import as_svg

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; color: #223; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .25rem .6rem; vertical-align: top }
th { border-bottom: 2px solid #99a } td { border-bottom: 1px solid #dde } td.n { text-align: right }
.picture { overflow: auto; border: 1px solid #dde; max-height: 44rem } .none { color: #778 } code { font-size: 12px }
"""


def _or_nothing(row: Mapping[str, Any], *keys: str) -> list[Any]:
    return ["" if row.get(key) is None else float(row[key]) for key in keys]


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]], nothing: str) -> str:
    body = []
    for row in rows:
        cells = []
        for cell in row:
            if isinstance(cell, (int, float)):
                cells.append(f'<td class="n">{_number(cell)}</td>')
            else:
                cells.append(f"<td>{escape(str(cell))}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    if not body:
        return f'<p class="none">{escape(nothing)}</p>'
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    return f"<table><tr>{head}</tr>{''.join(body)}</table>"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _reasons(row: Mapping[str, Any]) -> str:
    return "; ".join(f"{reason['text']} ({reason['label']})" for reason in row["reasons"])


def as_html(report: Mapping[str, Any], title: str = "hetnn report") -> str:
    """One page from a report (`Executable.report(format="dict")`), the picture of its plan included."""
    bounds = report["lower_bound_subgraphs"]
    devices = [
        [
            device,
            nodes,
            report["macs_on"].get(device, 0),
            sum(part["device"] == device for part in report["subgraphs"]),
            bounds.get(device, "–"),
        ]
        for device, nodes in report["nodes_on"].items()
    ]
    sections = {
        "Devices": _table(
            ["device", "nodes", "multiply-accumulates", "subgraphs", "fewest possible"], devices, "There is no node."
        ),
        "Subgraphs, in order": _table(
            ["device", "nodes", "predicted us", "which"],
            (
                [part["device"], len(part["nodes"]), float(part["predicted_us"]), ", ".join(part["nodes"])]
                for part in report["subgraphs"]
            ),
            "There is no subgraph.",
        ),
        "What crosses between devices": _table(
            ["value", "from", "to", "bytes"],
            ([row["value"], row["from"], row["to"], int(row["bytes"])] for row in report["crossings"]),
            "Nothing crosses.",
        ),
        "Rewritten": _table(
            ["node", "rule", "form", "bytes avoided", "launches avoided", "us before", "us after"],
            (
                [
                    row["node"],
                    row["rule"],
                    row["form"],
                    int(row["bytes_avoided"]),
                    int(row["launches_avoided"]),
                    float(row["predicted_us_before"]),
                    float(row["predicted_us_after"]),
                ]
                for row in report["rewrites"]
            ),
            "No layer was rewritten.",
        ),
        "Fused": _table(
            ["into", "nodes", "bytes before", "bytes after", "us before", "us after"],
            (
                [
                    row["into"],
                    ", ".join(row["nodes"]),
                    int(row["bytes_before"]),
                    int(row["bytes_after"]),
                    *_or_nothing(row, "predicted_us_before", "predicted_us_after"),
                ]
                for row in report["fusions"]
            ),
            "No nodes were fused.",
        ),
        "Not on the accelerator, and why": _table(
            ["node", "operator", "on", "reasons", "source"],
            (
                [row["node"], row["op"], row["device"], _reasons(row), row["loc"] or ""]
                for row in report["not_on_preferred"]
            ),
            "Every node is on the accelerator.",
        ),
    }
    shown = f'<h2>Placement</h2><div class="picture">{as_svg(report)}</div>'
    body = "".join(f"<h2>{escape(name)}</h2>{content}" for name, content in sections.items())
    target, strategy = escape(str(report["target"])), escape(str(report["strategy"]))
    summary = (
        f"target <code>{target}</code>, strategy <code>{strategy}</code>, "
        f"predicted {float(report['predicted_us']):,.1f} us, {int(report['crossing_bytes']):,} bytes cross"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f"<h1>{escape(title)}</h1><p>{summary}</p>{shown}{body}</html>\n"
    )
