"""What people look at: the picture of a plan and the report as one page, made without any other program."""

from __future__ import annotations

from hetnn.report.page import report_page
from hetnn.report.picture import PictureNode, draw_plan

__all__ = ["PictureNode", "draw_plan", "report_page"]
