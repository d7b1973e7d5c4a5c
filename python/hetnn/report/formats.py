"""The report in each of its formats. Only what a format needs is loaded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hetnn.errors import InvalidModel
from hetnn.report.text import as_text

if TYPE_CHECKING:
    from hetnn.executable import Executable


def of_executable(executable: Executable, format: str) -> Any:
    """The report of an executable, with what stands in its program and, where it was compiled here, its passes."""
    from hetnn.inside.nodes import complete

    report = complete(json.loads(executable._engine.report_json), executable)
    if executable.passes:
        report["passes"] = executable.passes
    return render(report, format)


def render(report: dict[str, Any], format: str) -> Any:
    """A report as "text", "dict", "json", "html" or "svg"."""
    if format == "json":
        return json.dumps(report)
    if format == "dict":
        return report
    if format == "text":
        return as_text(report)
    if format == "html":
        from hetnn.report.page import as_html

        return as_html(report)
    if format == "svg":
        from hetnn.report.picture import as_svg

        return as_svg(report)
    raise InvalidModel(f"a report's format is text, dict, json, html or svg; got {format!r}.")
