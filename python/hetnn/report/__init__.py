"""What people look at: the report as text, as one page, and the picture of a plan, made without any other program."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from hetnn.errors import InvalidModel
from hetnn.report.page import as_html
from hetnn.report.picture import PictureNode, PictureSubgraph, as_svg, draw_plan, nodes_of, problem_svg
from hetnn.report.text import as_text, costs, devices_table, explanation

__all__ = [
    "PictureNode",
    "PictureSubgraph",
    "as_html",
    "as_svg",
    "as_text",
    "costs",
    "devices_table",
    "draw_plan",
    "explanation",
    "nodes_of",
    "problem_svg",
    "render",
]

_FORMATS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "dict": dict,
    "text": as_text,
    "html": as_html,
    "svg": as_svg,
}


def render(document: str, format: str) -> Any:
    """A report, given as JSON text, as "text", "dict", "json", "html" or "svg"."""
    if format == "json":
        return document
    if format not in _FORMATS:
        raise InvalidModel(f"a report's format is text, dict, json, html or svg; got {format!r}.")
    return _FORMATS[format](json.loads(document))
