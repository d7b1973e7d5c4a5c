"""The picture of a plan as SVG: its graph, one box a node, coloured by device, and below it the schedule. Edges that
cross between devices stand out.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hetnn.report.layout import Layout, lay_out

# (fill, line) of each device in the order of the plan: general processor first.
PALETTE = [
    ("#dbe9fb", "#4a7fc1"),
    ("#fbe6cf", "#c98a33"),
    ("#e0f2e1", "#4d9a55"),
    ("#f3e0f4", "#9a5aa0"),
    ("#f9dede", "#b85450"),
]
CROSSING = {"stroke": "#c0392b", "stroke-width": "2.2"}
PLAIN = {"stroke": "#889", "stroke-width": "1.1"}
# Larger graphs are drawn as their schedule only, and of that the first boxes and lines.
MOST_NODES = 3000
MOST_LINES = 3000

_BOX_HEIGHT = 26
_CHARACTER = 6.6  # width of one at this font size
_MARGIN = 20
_TOP = 64
_LANE = 44
_LEAST_SCHEDULE_WIDTH = 560.0


@dataclass(frozen=True)
class PictureNode:
    """A node as the picture needs it; `inputs` are names of other nodes, names that are none are left out."""

    name: str
    op: str
    inputs: Sequence[str]
    device: str
    subgraph: int


@dataclass(frozen=True)
class PictureSubgraph:
    """A subgraph in the schedule."""

    device: str
    start_us: float
    finish_us: float


@dataclass(frozen=True)
class _Drawn:
    """A graph that has its places; whether each edge crosses between devices."""

    layout: Layout
    widths: list[float]
    crosses: list[bool]
    width: float
    height: float


def _label(node: PictureNode) -> str:
    return node.name if node.op in ("", node.name) else f"{node.op} {node.name}"


def _drawn(nodes: Sequence[PictureNode]) -> _Drawn:
    number = {node.name: k for k, node in enumerate(nodes)}
    widths = [16 + _CHARACTER * len(_label(node)) for node in nodes]
    edges = [(number[name], k) for k, node in enumerate(nodes) for name in dict.fromkeys(node.inputs) if name in number]
    layout = lay_out([(width, float(_BOX_HEIGHT)) for width in widths], edges)
    right = max((x + width / 2 for (x, _), width in zip(layout.nodes, widths, strict=True)), default=0.0)
    bottom = max((y for _, y in layout.nodes), default=-float(_BOX_HEIGHT)) + _BOX_HEIGHT / 2
    points = [point for way in layout.edges for point in way]
    right = max([right, *(x for x, _ in points)])
    crosses = [nodes[start].device != nodes[end].device for start, end in edges]
    return _Drawn(layout, widths, crosses, right + 2 * _MARGIN, bottom + _TOP)


def add_tag(parent: ElementTree.Element, name: str, text: str = "", **attributes: str | float) -> ElementTree.Element:
    """A new element below `parent`; `_` in an attribute's name stands for `-`."""
    made = ElementTree.SubElement(parent, name)
    for key, value in attributes.items():
        made.set(key.replace("_", "-"), f"{value:.1f}" if isinstance(value, float) else _clean(str(value)))
    made.text = _clean(text) or None
    return made


def _clean(text: str) -> str:
    """XML 1.0 allows no control characters."""
    return "".join(character if character >= " " else " " for character in text)


def _box(
    parent: ElementTree.Element, x: float, y: float, width: float, label: str, hint: str, colours: tuple[str, str]
) -> None:
    """A box around the centre y that begins at x."""
    group = add_tag(parent, "g")
    add_tag(group, "title", hint)
    add_tag(
        group,
        "rect",
        x=x,
        y=y - _BOX_HEIGHT / 2,
        width=width,
        height=str(_BOX_HEIGHT),
        rx="5",
        fill=colours[0],
        stroke=colours[1],
    )
    if label:
        add_tag(group, "text", label, x=x + width / 2, y=y + 4, text_anchor="middle")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _draw_legend(
    svg: ElementTree.Element, nodes: Sequence[PictureNode], colours: Mapping[str, tuple[str, str]]
) -> float:
    """How wide the legend is."""
    x = float(_MARGIN)
    for device, (fill, line) in colours.items():
        mine = [node for node in nodes if node.device == device]
        text = f"{device}: {_count(len(mine), 'node')}, {_count(len({node.subgraph for node in mine}), 'subgraph')}"
        add_tag(svg, "rect", x=x, y="32", width="12", height="12", fill=fill, stroke=line)
        add_tag(svg, "text", text, x=x + 17, y="42")
        x += 40 + _CHARACTER * len(text)
    return x


def _draw_graph(
    svg: ElementTree.Element, drawn: _Drawn, nodes: Sequence[PictureNode], colours: Mapping[str, tuple[str, str]]
) -> None:
    ways = sorted(zip(drawn.layout.edges, drawn.crosses, strict=True), key=lambda edge: edge[1])
    for way, crosses in ways:  # those that cross on top
        add_tag(svg, "path", d=_curve(way), fill="none", **(CROSSING if crosses else PLAIN))
    for node, (x, y), width in zip(nodes, drawn.layout.nodes, drawn.widths, strict=True):
        hint = f"{node.name}: {node.op or 'node'} on {node.device}, subgraph {node.subgraph}"
        _box(svg, x - width / 2, y, width, _label(node), hint, colours[node.device])


def _curve(way: Sequence[tuple[float, float]]) -> str:
    """A smooth line through points: it bends towards each and passes the middles between them."""
    path = "M{:.1f} {:.1f}".format(*way[0])
    for k in range(1, len(way) - 1):
        (x, y), (after_x, after_y) = way[k], way[k + 1]
        last = k == len(way) - 2
        end = (after_x, after_y) if last else ((x + after_x) / 2, (y + after_y) / 2)
        path += f" Q{x:.1f} {y:.1f} {end[0]:.1f} {end[1]:.1f}"
    return path if len(way) > 2 else path + " L{:.1f} {:.1f}".format(*way[-1])


def _draw_schedule(
    svg: ElementTree.Element,
    top: float,
    width: float,
    nodes: Sequence[PictureNode],
    subgraphs: Sequence[PictureSubgraph],
    colours: Mapping[str, tuple[str, str]],
) -> None:
    """One lane a device; a box for every subgraph from its start to its end."""
    end_us = max(subgraph.finish_us for subgraph in subgraphs)
    left = 2 * _MARGIN + _CHARACTER * max(len(device) for device in colours)
    scale = (width - left - _MARGIN) / end_us if end_us > 0 else 0.0
    lane = {device: top + k * _LANE + _BOX_HEIGHT / 2 for k, device in enumerate(colours)}
    subgraph_of = {node.name: node.subgraph for node in nodes}
    pairs = {(subgraph_of[name], node.subgraph): None for node in nodes for name in node.inputs if name in subgraph_of}
    lines = 0
    for number, reader in pairs:
        start, end = subgraphs[number], subgraphs[reader]
        if start.device == end.device or lines == MOST_LINES:
            continue
        lines += 1
        side = _BOX_HEIGHT / 2 if lane[start.device] < lane[end.device] else -_BOX_HEIGHT / 2
        add_tag(
            svg,
            "line",
            x1=left + start.finish_us * scale,
            y1=lane[start.device] + side,
            x2=left + end.start_us * scale,
            y2=lane[end.device] - side,
            **CROSSING,
        )
    for device, y in lane.items():
        add_tag(svg, "text", device, x=str(_MARGIN), y=y + 4)
    counts = [0] * len(subgraphs)
    for node in nodes:
        counts[node.subgraph] += 1
    for k, subgraph in enumerate(subgraphs[:MOST_LINES]):
        hint = f"subgraph {k}: {_count(counts[k], 'node')}, {subgraph.start_us:,.1f} to {subgraph.finish_us:,.1f} us"
        x, breadth = left + subgraph.start_us * scale, max(1.0, (subgraph.finish_us - subgraph.start_us) * scale)
        label = str(k) if breadth > 8 + _CHARACTER * len(str(k)) else ""
        _box(svg, x, lane[subgraph.device], breadth, label, hint, colours[subgraph.device])
    bottom = top + len(colours) * _LANE
    add_tag(svg, "text", "0 us", x=left, y=bottom)
    add_tag(svg, "text", f"{end_us:,.1f} us", x=width - _MARGIN, y=bottom, text_anchor="end")


def draw_plan(
    nodes: Iterable[PictureNode],
    devices: Sequence[str],
    title: str = "",
    subgraphs: Sequence[PictureSubgraph] = (),
    graph: bool = True,
) -> str:
    """The picture of `nodes`, which are in topological order; `devices` gives the colours their order.

    `subgraphs`, by the nodes' numbers, are drawn as the schedule; without them there is none. Without `graph` there is
    only that.
    """
    nodes = list(nodes)
    colours = {device: PALETTE[k % len(PALETTE)] for k, device in enumerate(devices)}
    svg = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg"})
    add_tag(svg, "title", title or "plan")
    background = add_tag(svg, "rect", fill="#fff")
    add_tag(svg, "text", title, x=str(_MARGIN), y="20", font_size="13", font_weight="600")
    shown = nodes if graph and len(nodes) <= MOST_NODES else []
    drawn = _drawn(shown)
    width = max(_draw_legend(svg, nodes, colours), 2 * _MARGIN + 8.0 * len(title), drawn.width)
    height = drawn.height + _MARGIN
    spare = (width - drawn.width) / 2 + _MARGIN
    _draw_graph(add_tag(svg, "g", transform=f"translate({spare:.1f} {_TOP})"), drawn, shown, colours)
    if graph and len(nodes) > len(shown):
        add_tag(svg, "text", f"{len(nodes):,} nodes are too many to draw.", x=str(_MARGIN), y=str(_TOP))
        height += _MARGIN
    if subgraphs:
        width = max(width, _LEAST_SCHEDULE_WIDTH)
        _draw_schedule(svg, height, width, nodes, subgraphs, colours)
        height += len(colours) * _LANE + _MARGIN / 2
    for element in (svg, background):
        element.set("width", f"{width:.0f}")
        element.set("height", f"{height:.0f}")
    svg.set("viewBox", f"0 0 {width:.0f} {height:.0f}")
    svg.set("font-family", "system-ui, sans-serif")
    svg.set("font-size", "11")
    ElementTree.indent(svg, "")
    return ElementTree.tostring(svg, encoding="unicode") + "\n"


def nodes_of(report: Mapping[str, Any]) -> list[PictureNode]:
    """The placed nodes of a report (`report["graph"]`)."""
    return [
        PictureNode(row["node"], row["op"], row["inputs"], row["device"], row["subgraph"]) for row in report["graph"]
    ]


def schedule_of(plan: Mapping[str, Any]) -> list[PictureSubgraph]:
    """The schedule of a report, or of the plan of a problem."""
    return [PictureSubgraph(row["device"], row["start_us"], row["finish_us"]) for row in plan["subgraphs"]]


def as_svg(report: Mapping[str, Any], title: str = "") -> str:
    """The picture of the plan that a report (`Executable.report(format="dict")`) describes."""
    return draw_plan(nodes_of(report), list(report["nodes_on"]), title or f"on {report['target']}", schedule_of(report))


def schedule_svg(report: Mapping[str, Any]) -> str:
    """The schedule alone, which needs no layout."""
    return draw_plan(
        nodes_of(report), list(report["nodes_on"]), f"on {report['target']}", schedule_of(report), graph=False
    )


def problem_svg(problem: Mapping[str, Any], plan: Mapping[str, Any], graph: bool = True) -> str:
    """The picture of the plan of an abstract problem (docs/partitioning.md); without `graph` its schedule alone."""
    described = {node["id"]: node for node in problem["nodes"]}
    nodes = [
        PictureNode(name, described[name].get("op", ""), described[name].get("inputs", []), part["device"], k)
        for k, part in enumerate(plan["subgraphs"])
        for name in part["nodes"]
    ]
    title = f"{plan['strategy']}: {plan['cost_us']:,.1f} us, {plan['makespan_us']:,.1f} where devices overlap"
    return draw_plan(nodes, [device["name"] for device in problem["devices"]], title, schedule_of(plan), graph)
