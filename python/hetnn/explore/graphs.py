"""A report as graphs of Model Explorer, in the form of the JSON files that it reads. Needs no other package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hetnn.report.picture import PALETTE

# What of a node's row stands beside it, in this order, as its row has it.
_SHOWN = (
    "device",
    "subgraph",
    "computes_in",
    "macs",
    "bytes",
    "predicted_us",
    "measured_us",
    "kernel",
    "tile",
    "cycles",
)
_SHOWN_TOO = ("stall_cycles", "noise_db", "into", "made_from", "module", "loc")
MAIN = "main"


def graphs_of(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The graph by its modules, and one for each subgraph that a loop repeats, which the loop's node leads to."""
    bodies = report.get("bodies") or []
    graphs = [_graph(MAIN, report, {row["node"]: f"body of {row['node']}" for row in bodies})]
    return graphs + [_graph(f"body of {row['node']}", row["report"], {}) for row in bodies]


def _graph(name: str, report: Mapping[str, Any], bodies: Mapping[str, str]) -> dict[str, Any]:
    rows = {row["node"]: row for row in report["graph"]}
    colours = {device: PALETTE[k % len(PALETTE)][0] for k, device in enumerate(report["nodes_on"])}
    reasons = {row["node"]: row["reasons"] for row in report["not_on_preferred"]}
    nodes = []
    for node, row in rows.items():
        attrs = [_pair(key, row[key]) for key in (*_SHOWN, *_SHOWN_TOO) if row.get(key) not in (None, "", [])]
        attrs += [_pair(f"not on {reason.get('device', '')}", reason["text"]) for reason in reasons.get(node, [])]
        edges = [
            {"sourceNodeId": source, "sourceNodeOutputId": "0", "targetNodeInputId": str(k)}
            for k, source in enumerate(row["inputs"])
            if source in rows
        ]
        tensor = [_pair("__tensor_tag", node), _pair("tensor_shape", _type(row))]
        nodes.append(
            {
                "id": node,
                "label": row["op"],
                "namespace": (row.get("module") or "").replace(".", "/"),
                "subgraphIds": [bodies[node]] if node in bodies else [],
                "attrs": attrs,
                "incomingEdges": edges,
                "outputsMetadata": [{"id": "0", "attrs": tensor}],
                "style": {"backgroundColor": colours.get(row["device"], "")},
            }
        )
    said = {"target": report["target"], "strategy": report["strategy"], "predicted us": _figure(report["predicted_us"])}
    placed = {f"nodes on {device}": _figure(count) for device, count in report["nodes_on"].items()}
    return {"id": name, "nodes": nodes, "groupNodeAttributes": {"": {**said, **placed}}}


# Figures of nodes: key of the row, its name, and the colours from the least to the most. The last is shown first.
_HOT = ("#ffffff", "#e4572e")
_FIGURES = (
    ("macs", "multiply-accumulates", _HOT),
    ("bytes", "bytes moved", _HOT),
    ("noise_db", "dB over noise", ("#e4572e", "#4d9a55")),
    ("stall_cycles", "NPU cycles stalled", _HOT),
    ("cycles", "NPU cycles", _HOT),
    ("predicted_us", "predicted us", _HOT),
    ("measured_us", "measured us", _HOT),
)


def node_data_of(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By name, a figure of the nodes as Model Explorer lays it over a graph; those alone that some node has."""
    graphs = [(MAIN, report["graph"])]
    graphs += [(f"body of {row['node']}", row["report"]["graph"]) for row in report.get("bodies") or []]
    out = {}
    for key, name, colours in _FIGURES:
        data = {graph: _laid_over(rows, key, name, colours) for graph, rows in graphs}
        if any(one["results"] for one in data.values()):
            out[name] = data
    return out


def _laid_over(rows: Iterable[Mapping[str, Any]], key: str, name: str, colours: tuple[str, str]) -> dict[str, Any]:
    results = {row["node"]: {"value": row[key]} for row in rows if isinstance(row.get(key), (int, float))}
    gradient = [{"stop": stop, "bgColor": colour} for stop, colour in enumerate(colours)]
    return {"name": name, "results": results, "gradient": gradient}


def _type(row: Mapping[str, Any]) -> str:
    return f"{row.get('dtype', '')}[{','.join(map(str, row.get('shape') or []))}]"


def _pair(key: str, value: Any) -> dict[str, str]:
    return {"key": key, "value": _figure(value)}


def _figure(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
