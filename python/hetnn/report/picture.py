"""The graph of a plan as SVG: one box a node, coloured by device; edges that cross between devices stand out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

# (fill, line) of each device in the order of the plan: general processor first.
PALETTE = [
    ("#dbe9fb", "#4a7fc1"),
    ("#fbe6cf", "#c98a33"),
    ("#e0f2e1", "#4d9a55"),
    ("#f3e0f4", "#9a5aa0"),
    ("#f9dede", "#b85450"),
]
CROSSING = "#c0392b"
PLAIN = "#889"

_BOX_HEIGHT = 26
_ROW_HEIGHT = 46
_GAP = 18
_CHARACTER = 6.6  # width of one at this font size


@dataclass(frozen=True)
class PictureNode:
    """A node as the picture needs it; `inputs` are names of other nodes, names that are none are left out."""

    name: str
    op: str
    inputs: Sequence[str]
    device: str
    subgraph: int


def _rows(nodes: Sequence[PictureNode]) -> list[list[PictureNode]]:
    """Nodes by their longest distance from a source; within a row near their producers."""
    depth: dict[str, int] = {}
    for node in nodes:  # in topological order
        depth[node.name] = 1 + max((depth[name] for name in node.inputs if name in depth), default=-1)
    rows: list[list[PictureNode]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in nodes:
        rows[depth[node.name]].append(node)
    place: dict[str, float] = {}
    for row in rows:
        wanted = {}
        for k, node in enumerate(row):
            above = [place[name] for name in node.inputs if name in place]
            wanted[node.name] = (sum(above) / len(above) if above else float(k), k)
        row.sort(key=lambda node: wanted[node.name])
        for k, node in enumerate(row):
            place[node.name] = k - (len(row) - 1) / 2
    return rows


def _label(node: PictureNode) -> str:
    return node.op if node.op == node.name else f"{node.op} {node.name}"


def _width(node: PictureNode) -> float:
    return 16 + _CHARACTER * len(_label(node))


def draw_plan(nodes: Iterable[PictureNode], devices: Sequence[str], title: str = "") -> str:
    """The picture of `nodes`, which are in topological order; `devices` gives the colours their order."""
    nodes = list(nodes)
    rows = _rows(nodes)
    colours = {device: PALETTE[k % len(PALETTE)] for k, device in enumerate(devices)}
    widths = [sum(_width(node) for node in row) + _GAP * (len(row) - 1) for row in rows]
    legend, legend_width = _legend(nodes, devices, colours)
    width = max([legend_width, *widths]) + 40
    top = 64
    centre: dict[str, tuple[float, float]] = {}
    for k, row in enumerate(rows):
        x = (width - widths[k]) / 2
        for node in row:
            centre[node.name] = (x + _width(node) / 2, top + k * _ROW_HEIGHT)
            x += _width(node) + _GAP
    height = top + len(rows) * _ROW_HEIGHT
    device_of = {node.name: node.device for node in nodes}

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="11">',
        f"<title>{escape(title or 'plan')}</title>",
        f'<rect width="{width:.0f}" height="{height}" fill="#fff"/>',
        f'<text x="20" y="20" font-size="13" font-weight="600">{escape(title)}</text>',
        legend,
    ]
    for node in nodes:
        for name in dict.fromkeys(node.inputs):
            if name in centre:
                parts.append(_edge(centre[name], centre[node.name], device_of[name] != node.device))
    parts += [_box(node, centre[node.name], colours[node.device]) for node in nodes]
    return "\n".join([*parts, "</svg>\n"])


def _legend(
    nodes: Sequence[PictureNode], devices: Sequence[str], colours: dict[str, tuple[str, str]]
) -> tuple[str, float]:
    """The legend and how wide it is."""
    parts, x = [], 20.0
    for device in devices:
        mine = [node for node in nodes if node.device == device]
        subgraphs = len({node.subgraph for node in mine})
        text = f"{device}: {_count(len(mine), 'node')}, {_count(subgraphs, 'subgraph')}"
        fill, line = colours[device]
        parts.append(f'<rect x="{x:.0f}" y="32" width="12" height="12" fill="{fill}" stroke="{line}"/>')
        parts.append(f'<text x="{x + 17:.0f}" y="42">{escape(text)}</text>')
        x += 40 + _CHARACTER * len(text)
    return "\n".join(parts), x


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _edge(start: tuple[float, float], end: tuple[float, float], crosses: bool) -> str:
    (x0, y0), (x1, y1) = start, end
    y0, y1 = y0 + _BOX_HEIGHT / 2, y1 - _BOX_HEIGHT / 2
    bend = max(10.0, (y1 - y0) / 2)
    aside = 0.8 * (y1 - y0) if y1 - y0 > _ROW_HEIGHT else 0.0  # around the boxes of the rows between
    style = f'stroke="{CROSSING}" stroke-width="2.2"' if crosses else f'stroke="{PLAIN}" stroke-width="1.1"'
    towards = f"{x0 + aside:.1f} {y0 + bend:.1f} {x1 + aside:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}"
    path = f"M{x0:.1f} {y0:.1f} C{towards}"
    return f'<path d="{path}" fill="none" {style}/>'


def _box(node: PictureNode, centre: tuple[float, float], colours: tuple[str, str]) -> str:
    (x, y), (fill, line), width = centre, colours, _width(node)
    hint = f"{node.name}: {node.op} on {node.device}, subgraph {node.subgraph}"
    return (
        f"<g><title>{escape(hint)}</title>"
        f'<rect x="{x - width / 2:.1f}" y="{y - _BOX_HEIGHT / 2:.1f}" width="{width:.1f}" height="{_BOX_HEIGHT}" '
        f'rx="5" fill="{fill}" stroke="{line}"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{escape(_label(node))}</text></g>'
    )


def nodes_of(report: Mapping[str, Any]) -> list[PictureNode]:
    """The placed nodes of a report (`report["graph"]`)."""
    return [
        PictureNode(row["node"], row["op"], row["inputs"], row["device"], row["subgraph"]) for row in report["graph"]
    ]


def as_svg(report: Mapping[str, Any], title: str = "") -> str:
    """The picture of the plan that a report (`Executable.report(format="dict")`) describes."""
    return draw_plan(nodes_of(report), list(report["nodes_on"]), title or f"on {report['target']}")
