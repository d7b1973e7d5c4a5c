"""What `hetnn.check` finds: rows that print node by node with every reason."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hetnn.report.rows import Rows, table_html
from hetnn.report.text import place


class Checked(Rows):
    """Nodes that no accelerator takes as they stand, each with all reasons."""

    def __str__(self) -> str:
        if not self:
            return self.nothing
        lines = [line for row in self for line in (_head(row), *map(_told, row["reasons"]))]
        counts = Counter(row["op"] for row in self)
        if len(self) > 1:
            lines.append("by operator: " + ", ".join(f"{op} {times}" for op, times in counts.most_common()))
        return "\n".join(lines)

    __repr__ = __str__

    def _card(self) -> str:
        columns = ["node", "op", "runs on", "since", "where"]
        rows = [
            [
                row["node"],
                row["op"],
                row["device"] or "nowhere",
                "; ".join(why["text"] for why in row["reasons"]),
                place(row),
            ]
            for row in self
        ]
        return table_html(columns, rows) if rows else super()._card()


def _head(row: dict[str, Any]) -> str:
    runs = f"runs on {row['device']}" if row["device"] else "runs nowhere"
    return f"{row['op']} '{row['node']}' {runs}  {place(row)}".rstrip()


def _told(why: dict[str, Any]) -> str:
    return f"  {why['device']}: {why['text']} ({why['label']}: {why['found']}, wanted {why['wanted']})"
