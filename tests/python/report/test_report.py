"""The picture of a plan and the report page say what the plan says, and are well formed."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from typing import Any

from hetnn.report import PictureNode, as_html, as_svg, as_text, draw_plan, nodes_of

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
    boxes = {group.findtext(f"{SVG}text"): group.find(f"{SVG}rect") for group in root.iter(f"{SVG}g")}
    assert set(boxes) == {"conv2d conv", "prelu act", "add sum"}
    fills = {name: box.get("fill") for name, box in boxes.items() if box is not None}
    assert fills["conv2d conv"] == fills["add sum"] != fills["prelu act"]
    edges = [path.get("stroke") for path in root.iter(f"{SVG}path")]
    assert len(edges) == 3
    assert len([stroke for stroke in edges if stroke == "#c0392b"]) == 2
    legend = [text.text for text in root.findall(f"{SVG}text")]
    assert legend == ["a <net>", "cpu: 1 node, 1 subgraph", "npu: 2 nodes, 2 subgraphs"]


def test_boxes_of_one_row_do_not_overlap() -> None:
    fan = [PictureNode("a", "relu", [], "cpu", 0)]
    fan += [PictureNode(f"b{k}", "conv2d", ["a"], "cpu", 0) for k in range(12)]
    root = ElementTree.fromstring(draw_plan(fan, ["cpu"]))
    boxes = [group.find(f"{SVG}rect") for group in root.iter(f"{SVG}g")][1:]
    spans = sorted((float(b.get("x", "")), float(b.get("width", ""))) for b in boxes if b is not None)
    assert len(spans) == 12
    assert all(x + width < spans[k + 1][0] for k, (x, width) in enumerate(spans[:-1]))


def test_an_empty_plan_is_a_picture_too() -> None:
    ElementTree.fromstring(draw_plan([], ["cpu"], "nothing"))


def test_the_page_shows_reasons_bytes_and_the_picture() -> None:
    page = as_html(REPORT, "net")
    seen: list[str] = []
    parser = HTMLParser()
    parser.handle_data = seen.append  # type: ignore[method-assign]
    parser.feed(page)
    text = " ".join(seen)
    for expected in ("1,234,567", "4,096", "it has no <PReLU> (npu_prelu)", "net.py:7", "No layer was rewritten."):
        assert expected in text
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_the_text_names_devices_bytes_and_reasons() -> None:
    text = as_text(REPORT)
    for expected in (
        "target cpu+npu, strategy topological",
        "4,096 bytes cross between devices",
        "  prelu 'act' on cpu  at net.py:7",
        "    npu_prelu: it has no <PReLU>",
    ):
        assert expected in text


def test_nodes_are_read_from_the_report() -> None:
    assert nodes_of(REPORT) == NODES
    assert as_svg(REPORT) == draw_plan(NODES, ["cpu", "npu"], "on cpu+npu")
