"""The noise of a compared network as an SVG: a bar a value, in the order of the model."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

from hetnn.report.picture import PALETTE, add_tag

_ROW, _LEFT, _WIDE, _TOP = 16, 200, 420, 26
_MOST_DB = 150.0
MOST_ROWS = 400  # of more values the noisiest


def noise_bars(rows: Sequence[tuple[str, float, bool]]) -> str:
    """`rows`: name, signal over noise in dB, whether it is beyond its bound."""
    shown = rows
    if len(rows) > MOST_ROWS:
        floor = sorted(db for _, db, _ in rows)[MOST_ROWS - 1]
        shown = [row for row in rows if row[1] <= floor][:MOST_ROWS]
    size = {"width": str(_LEFT + _WIDE + 60), "height": str(_TOP + _ROW * len(shown) + 8)}
    svg = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": "sans-serif", **size})
    title = "signal over noise, dB" + ("" if len(shown) == len(rows) else f", the {len(shown)} noisiest of {len(rows)}")
    add_tag(svg, "text", title, x=10, y=16, font_size=12, fill="currentColor")
    for k, (name, db, beyond) in enumerate(shown):
        y = _TOP + k * _ROW
        width = _WIDE * min(max(db, 0.0), _MOST_DB) / _MOST_DB
        fill, line = PALETTE[4 if beyond else 2]
        label = name if len(name) <= 28 else f"{name[:27]}…"
        add_tag(svg, "text", label, x=_LEFT - 8, y=y + 12, font_size=11, text_anchor="end", fill="currentColor")
        add_tag(svg, "rect", x=_LEFT, y=y + 2, width=width, height=_ROW - 5, fill=fill, stroke=line)
        text = "same" if db >= 300 else f"{db:.0f}"
        add_tag(svg, "text", text, x=_LEFT + width + 5, y=y + 12, font_size=10, fill=line)
    return ElementTree.tostring(svg, encoding="unicode")
