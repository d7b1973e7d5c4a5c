"""The noise of a quantized network as an SVG: a bar a value, in the order of the network."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING

from hetnn.report.picture import PALETTE, add_tag

if TYPE_CHECKING:
    from hetnn.quantization.report import QuantizeReport

_ROW = 18
_LEFT = 190
_WIDE = 460
_TOP = 44
_LINE = "#889"


def noise_svg(report: QuantizeReport) -> str:
    """Bars as long as the signal is over the noise in dB; a line where the value's own rounding would leave it."""
    rows = [row for row in report.values if row.noise_db is not None]
    most = max((max(row.noise_db or 0.0, row.rounding_db) for row in rows), default=60.0)
    most = max(10.0, 10.0 * -(-min(most, 100.0) // 10))
    height = _TOP + _ROW * len(rows) + 30
    size = {"width": str(_LEFT + _WIDE + 60), "height": str(height)}
    svg = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": "sans-serif", **size})
    add_tag(svg, "text", f"{report.scheme}: signal over noise, dB", x=10, y=20, font_size=14)
    add_tag(svg, "text", "bar: all noise so far; line: this value's own rounding", x=10, y=36, font_size=11, fill=_LINE)

    def x(db: float) -> float:
        return _LEFT + _WIDE * min(max(db, 0.0), most) / most

    for tick in range(0, int(most) + 1, 10):
        bottom = height - 24
        add_tag(svg, "line", x1=x(tick), x2=x(tick), y1=_TOP, y2=bottom, stroke=_LINE, stroke_width=0.3)
        add_tag(svg, "text", str(tick), x=x(tick), y=height - 10, font_size=10, text_anchor="middle", fill=_LINE)
    for k, row in enumerate(rows):
        y = _TOP + k * _ROW
        db = row.noise_db or 0.0
        fill, line = PALETTE[4 if db < 20 else 2]
        name = row.value if len(row.value) <= 26 else f"{row.value[:25]}…"
        add_tag(svg, "text", name, x=_LEFT - 8, y=y + 13, font_size=11, text_anchor="end")
        add_tag(svg, "rect", x=_LEFT, y=y + 3, width=x(db) - _LEFT, height=_ROW - 6, fill=fill, stroke=line)
        own = x(row.rounding_db)
        add_tag(svg, "line", x1=own, x2=own, y1=y + 1, y2=y + _ROW - 1, stroke=PALETTE[0][1], stroke_width=2)
        add_tag(svg, "text", f"{db:.1f}", x=x(db) + 5, y=y + 13, font_size=10, fill=line)
    return ElementTree.tostring(svg, encoding="unicode")
