"""The report of an executable or a plan as one HTML page that needs no network, from the files of the folder page."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hetnn.report.layout import library
from hetnn.report.text import as_text

_FOLDER = Path(__file__).parent / "page"
# One script, in the order in which the files need each other.
_SCRIPTS = ("elements", "model", "timeline", "tables", "graph", "main")


def as_html(report: Mapping[str, Any], title: str = "hetnn report") -> str:
    """One page from a report (`Executable.report(format="dict")`): time line, reasons, graph by module, tables.

    Beside the report's own keys it shows `timeline` (rows of `device, node, start_us, us, stall_us`) in place of the
    planned schedule, `what_if` (rows of `Plan.what_if`), and of a node `noise_db`. Unsupported without netron.
    """
    parts = {
        "title": html.escape(title),
        "style": _read("page.css"),
        "text": html.escape(as_text(report)),
        "data": _as_json(report),
        "script": "\n".join([library(), *(_read(f"{name}.js") for name in _SCRIPTS)]),
    }
    return re.sub(r"\{(title|style|text|data|script)\}", lambda match: parts[match[1]], _read("page.html"))


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _as_json(report: Mapping[str, Any]) -> str:
    """As it may stand in an element of a page: nothing in it ends the element or begins a comment."""
    return json.dumps(_finite(report), separators=(",", ":")).replace("<", "\\u003c")


def _finite(value: Any) -> Any:
    """Numbers that JSON has not are none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, (list, tuple)) else value
