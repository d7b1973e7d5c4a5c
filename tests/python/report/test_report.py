"""The picture of a plan and the report page say what the plan says, and are well formed."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from importlib.util import find_spec
from random import Random
from typing import Any

import pytest

import hetnn
from hetnn.report import layout
from hetnn.report.page import as_html
from hetnn.report.picture import PictureNode, PictureSubgraph, as_svg, draw_plan, nodes_of
from hetnn.report.text import as_text

SVG = "{http://www.w3.org/2000/svg}"
NODES = [
    PictureNode("conv", "conv2d", ["x"], "npu", 0),
    PictureNode("act", "prelu", ["conv"], "cpu", 1),
    PictureNode("sum", "add", ["conv", "act"], "npu", 2),
]
REPORT: dict[str, Any] = {
    "target": "cpu+npu",
    "strategy": "topological",
    "nodes_on": {"cpu": 1, "npu": 2},
    "macs_on": {"cpu": 0, "npu": 1234567},
    "subgraphs": [
        {
            "device": "npu",
            "nodes": ["conv"],
            "macs": 1234567,
            "inputs": ["x"],
            "outputs": ["conv"],
            "predicted_us": 3.5,
            "start_us": 0.0,
            "finish_us": 3.5,
        },
        {
            "device": "cpu",
            "nodes": ["act"],
            "macs": 0,
            "inputs": ["conv"],
            "outputs": ["act"],
            "predicted_us": 1.0,
            "start_us": 4.5,
            "finish_us": 5.5,
        },
        {
            "device": "npu",
            "nodes": ["sum"],
            "macs": 0,
            "inputs": ["conv", "act"],
            "outputs": ["sum"],
            "predicted_us": 1.0,
            "start_us": 6.5,
            "finish_us": 7.5,
        },
    ],
    "crossings": [{"value": "conv", "from": "npu", "to": "cpu", "bytes": 4096}],
    "crossing_bytes": 4096,
    "predicted_us": 4.5,
    "lower_bound_subgraphs": {"npu": 2},
    "rewrites": [],
    "fusions": [],
    "graph": [
        {"node": "conv", "op": "conv2d", "inputs": ["x"], "device": "npu", "subgraph": 0},
        {"node": "act", "op": "prelu", "inputs": ["conv"], "device": "cpu", "subgraph": 1},
        {"node": "sum", "op": "add", "inputs": ["conv", "act"], "device": "npu", "subgraph": 2},
    ],
    "not_on_preferred": [
        {
            "node": "act",
            "op": "prelu",
            "device": "cpu",
            "loc": "net.py:7",
            "reasons": [{"label": "npu_prelu", "found": "prelu", "wanted": "relu", "text": "it has no <PReLU>"}],
        }
    ],
}


def test_the_picture_colours_nodes_and_marks_crossings() -> None:
    root = ElementTree.fromstring(draw_plan(NODES, ["cpu", "npu"], "a <net>"))
    boxes = {
        group.findtext(f"{SVG}text"): group.find(f"{SVG}rect")
        for group in root.iter(f"{SVG}g")
        if group.find(f"{SVG}rect") is not None
    }
    assert set(boxes) == {"conv2d conv", "prelu act", "add sum"}
    fills = {name: box.get("fill") for name, box in boxes.items() if box is not None}
    assert fills["conv2d conv"] == fills["add sum"] != fills["prelu act"]
    edges = [path.get("stroke") for path in root.iter(f"{SVG}path")]
    assert len(edges) == 3
    assert len([stroke for stroke in edges if stroke == "#c0392b"]) == 2
    legend = [text.text for text in root.findall(f"{SVG}text")]
    assert legend == ["a <net>", "cpu: 1 node, 1 subgraph", "npu: 2 nodes, 2 subgraphs"]


def boxes_of(root: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """The nodes' boxes: left, top, right, bottom."""
    rects = [group.find(f"{SVG}rect") for group in root.iter(f"{SVG}g")]
    numbers = [
        [float(rect.get(key, "")) for key in ("x", "y", "width", "height")] for rect in rects if rect is not None
    ]
    return [(x, y, x + width, y + height) for x, y, width, height in numbers]


@pytest.mark.parametrize("seed", range(8))
def test_nothing_overlaps_and_skipping_edges_pass_beside_the_boxes(seed: int) -> None:
    random = Random(seed)
    nodes: list[PictureNode] = []
    for k in range(random.choice([2, 13, 60])):
        inputs = [f"n{random.randrange(max(0, k - 12), k)}" for _ in range(random.randint(1, 3))] if k else []
        nodes.append(PictureNode(f"n{k}", random.choice(["add", "conv2d"]), inputs, random.choice(["cpu", "npu"]), k))
    root = ElementTree.fromstring(draw_plan(nodes, ["cpu", "npu"]))
    boxes = boxes_of(root)
    assert len(boxes) == len(nodes)
    for left, top, right, bottom in boxes:
        others = [box for box in boxes if box[1] == top and box[0] > left]
        assert all(other[0] > right for other in others)
        assert all(box[1] == top or box[1] >= bottom or box[3] <= top for box in boxes)
    edges = [path.get("d", "") for path in root.iter(f"{SVG}path")]
    assert len(edges) == sum(len(set(node.inputs)) for node in nodes)
    for edge in edges:
        bends = [(float(x), float(y)) for x, y in re.findall(r"Q([-.\d]+) ([-.\d]+)", edge)]
        assert not any(box[0] < x < box[2] and box[1] < y < box[3] for x, y in bends for box in boxes)


def test_residual_networks_stay_on_their_line() -> None:
    """Sums that skip a branch stand below each other, however many follow."""
    nodes = [PictureNode("add0", "add", [], "cpu", 0)]
    for k in range(1, 60):
        nodes.append(PictureNode(f"a{k}", "linear", [f"add{k - 1}"], "cpu", 0))
        nodes.append(PictureNode(f"b{k}", "relu", [f"a{k}"], "cpu", 0))
        nodes.append(PictureNode(f"add{k}", "add", [f"add{k - 1}", f"b{k}"], "cpu", 0))
    root = ElementTree.fromstring(draw_plan(nodes, ["cpu"]))
    boxes = dict(zip([node.name for node in nodes], boxes_of(root), strict=True))
    middles = [(boxes[f"add{k}"][0] + boxes[f"add{k}"][2]) / 2 for k in range(60)]
    assert max(middles) - min(middles) < 150
    assert float(root.get("width", "")) < 400


def test_the_schedule_has_a_box_for_each_subgraph_and_a_line_for_what_crosses() -> None:
    schedule = [PictureSubgraph("npu", 0, 5), PictureSubgraph("cpu", 6, 8), PictureSubgraph("npu", 9, 12)]
    root = ElementTree.fromstring(draw_plan(NODES, ["cpu", "npu"], "", schedule))
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    assert [title for title in titles if title.startswith("subgraph ")] == [
        "subgraph 0: 1 node, 0.0 to 5.0 us",
        "subgraph 1: 1 node, 6.0 to 8.0 us",
        "subgraph 2: 1 node, 9.0 to 12.0 us",
    ]
    assert len(list(root.iter(f"{SVG}line"))) == 2
    assert "12.0 us" in [text.text for text in root.iter(f"{SVG}text")]


def test_two_thousand_nodes_are_drawn() -> None:
    nodes = [PictureNode(f"n{k}", "relu", [f"n{k - 1}"], "cpu", 0) for k in range(2000)]
    assert len(boxes_of(ElementTree.fromstring(draw_plan(nodes, ["cpu"])))) == 2000


def test_a_larger_graph_is_its_schedule() -> None:
    nodes = [PictureNode(f"n{k}", "relu", [f"n{k - 1}"], "cpu", 0) for k in range(3001)]
    root = ElementTree.fromstring(draw_plan(nodes, ["cpu"], "", [PictureSubgraph("cpu", 0, 1)]))
    assert "3,001 nodes are too many to draw." in [text.text for text in root.iter(f"{SVG}text")]
    assert len(boxes_of(root)) == 1


def test_names_are_escaped() -> None:
    root = ElementTree.fromstring(draw_plan([PictureNode('a<&"\x01', "", [], "cpu", 0)], ["cpu"], "<title>\n"))
    assert [group.findtext(f"{SVG}text") for group in root.iter(f"{SVG}g") if group.find(f"{SVG}rect") is not None] == [
        'a<&" '
    ]


def test_an_empty_plan_is_a_picture_too() -> None:
    ElementTree.fromstring(draw_plan([], ["cpu"], "nothing"))


def test_the_page_holds_everything_and_asks_for_nothing() -> None:
    page = as_html(REPORT, "a <net>")
    assert "<h1>a &lt;net&gt;</h1>" in page
    assert "it has no &lt;PReLU&gt;" in page
    seen: list[str] = []
    parser = HTMLParser()
    parser.handle_data = seen.append  # type: ignore[method-assign]
    parser.feed(page)
    text = " ".join(seen)
    for expected in ("1,234,567", "4,096", "npu_prelu: it has no <PReLU>", "net.py:7"):
        assert expected in text
    for word in ('src="', "@import", "url(", "fetch("):
        assert word not in page.replace("url(#arrow)", "")
    assert "MIT License" in page


@pytest.mark.parametrize(("package", "extra"), [("netron", "report"), ("py_mini_racer", "svg")])
def test_what_is_not_installed_is_named(package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layout.library.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(layout, "find_spec", lambda name: None if name == package else find_spec(name))
    with pytest.raises(hetnn.Unsupported, match=rf"pip install 'hetnn\[{extra}\]'"):
        as_svg(REPORT)
    if package == "netron":
        with pytest.raises(hetnn.Unsupported, match="a graph is laid out by dagre, which netron brings"):
            as_html(REPORT)
    layout.library.cache_clear()


def test_the_text_names_devices_bytes_and_reasons() -> None:
    text = as_text(REPORT)
    for expected in (
        "target cpu+npu, strategy topological",
        "4,096 bytes",
        "  prelu 'act' on cpu  at net.py:7",
        "    npu_prelu: it has no <PReLU>",
    ):
        assert expected in text


def test_nodes_are_read_from_the_report() -> None:
    assert nodes_of(REPORT) == NODES
    schedule = [PictureSubgraph("npu", 0, 3.5), PictureSubgraph("cpu", 4.5, 5.5), PictureSubgraph("npu", 6.5, 7.5)]
    assert as_svg(REPORT) == draw_plan(NODES, ["cpu", "npu"], "on cpu+npu", schedule)
