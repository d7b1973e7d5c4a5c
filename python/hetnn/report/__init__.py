"""What people look at: the picture of a plan and the report as one page, made without any other program."""

from __future__ import annotations

from hetnn.report.page import as_html
from hetnn.report.picture import PictureNode, as_svg, draw_plan, nodes_of
from hetnn.report.text import as_text, explanation

__all__ = ["PictureNode", "as_html", "as_svg", "as_text", "draw_plan", "explanation", "nodes_of"]
