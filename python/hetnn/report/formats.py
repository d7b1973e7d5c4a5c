"""The report in each of its formats. Only what a format needs is loaded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hetnn.errors import InvalidModel
from hetnn.report.shown import Shown
from hetnn.report.text import as_text, count

if TYPE_CHECKING:
    from hetnn.executable import Executable


class Report(Shown, dict[str, Any]):
    """The keys of a report, which print as its text and show as a card."""

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def _card(self) -> str:
        from hetnn.report.card import card

        head = f"{self['target']}: {count(self['nodes'], 'node')}, {count(len(self['subgraphs']), 'subgraph')}"
        return card(self, head, self.get("passes") or ())


class ReportText(Shown, str):
    """The text of a report, which shows as its card where there are cards, and as it reads elsewhere."""

    report: Report

    def __new__(cls, text: str, report: Report | None = None) -> ReportText:
        """The text as it stands; without a report it is a copy, which gets that as its state."""
        made = super().__new__(cls, text)
        if report is not None:
            made.report = report
        return made

    def __repr__(self) -> str:
        return str(self)

    def _card(self) -> str:
        return self.report._card()


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
        return Report(report)
    if format == "text":
        return ReportText(as_text(report), Report(report))
    if format == "html":
        from hetnn.report.page import as_html

        return as_html(report)
    if format == "svg":
        from hetnn.report.picture import as_svg

        return as_svg(report)
    raise InvalidModel(f"a report's format is text, dict, json, html or svg; got {format!r}.")
