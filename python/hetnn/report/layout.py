"""Where the boxes of a graph go: by dagre, in the form in which netron keeps it. Its text goes into pages, and for
pictures an engine of JavaScript runs it. Both packages are loaded where a layout is asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hetnn.errors import Unsupported

# Beyond it ranks go by the longest path, which takes time in proportion to the edges.
MANY_NODES = 1500

_RUN = """
globalThis.place = (text) => {
  const { nodes, edges, options } = JSON.parse(text);
  dagre.layout(nodes, edges, options, {});
  return JSON.stringify({ nodes: nodes.map(({ x, y }) => [x, y]),
                          edges: edges.map(({ points }) => points.map(({ x, y }) => [x, y])) });
};
0
"""


@dataclass(frozen=True)
class Layout:
    """Centres of the boxes and points of the edges, in the order in which they were given."""

    nodes: list[tuple[float, float]]
    edges: list[list[tuple[float, float]]]


@cache
def library() -> str:
    """The text of dagre as a script, with what its licence asks for. Unsupported where netron is not installed."""
    found = find_spec("netron")
    path = None if found is None or found.origin is None else Path(found.origin).with_name("dagre.js")
    if path is None or not path.is_file():
        raise Unsupported("a graph is laid out by dagre, which netron brings; `pip install 'hetnn[report]'`.")
    licence = "MIT License, (c) 2012-2014 Chris Pettitt, (c) Lutz Roeder"
    text = re.sub(r"^export (?=const)", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return f"// dagre.js of netron {version('netron')}: {licence}\n{text}"


def _place(problem: Mapping[str, Any]) -> dict[str, Any]:
    """By an engine of its own, which ends with the call: one that is left to the interpreter's end hangs there."""
    try:
        from py_mini_racer import MiniRacer
    except ImportError as error:
        raise Unsupported("a graph as SVG needs mini-racer; `pip install 'hetnn[svg]'`.") from error
    script = library() + _RUN
    with MiniRacer() as engine:
        engine.eval(script)
        answer: dict[str, Any] = json.loads(engine.call("place", json.dumps(problem)))
    return answer


def lay_out(sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]) -> Layout:
    """Boxes of these widths and heights, with edges between them by number. Unsupported where a package is missing."""
    if not sizes:
        return Layout([], [])
    options: dict[str, Any] = {"nodesep": 18, "ranksep": 24, "edgesep": 12}
    if len(sizes) > MANY_NODES:
        options["ranker"] = "longest-path"
    nodes = [{"v": str(k), "width": width, "height": height} for k, (width, height) in enumerate(sizes)]
    lines = [{"v": str(start), "w": str(end)} for start, end in edges]
    placed = _place({"nodes": nodes, "edges": lines, "options": options})
    return Layout([(x, y) for x, y in placed["nodes"]], [[(x, y) for x, y in way] for way in placed["edges"]])
