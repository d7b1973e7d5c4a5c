"""The report in each of its formats. Only what a format needs is loaded."""

from __future__ import annotations

import json
from typing import Any

from hetnn.errors import InvalidModel
from hetnn.report.text import as_text


def render(document: str, format: str) -> Any:
    """A report, given as JSON text, as "text", "dict", "json", "html" or "svg"."""
    if format == "json":
        return document
    if format == "dict":
        return json.loads(document)
    if format == "text":
        return as_text(json.loads(document))
    if format == "html":
        from hetnn.report.page import as_html

        return as_html(json.loads(document))
    if format == "svg":
        from hetnn.report.picture import as_svg

        return as_svg(json.loads(document))
    raise InvalidModel(f"a report's format is text, dict, json, html or svg; got {format!r}.")
