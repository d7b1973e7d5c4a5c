"""Answers that are rows or keys: lists and dicts all the same, which print as tables and show as such in notebooks."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hetnn.errors import Unsupported
from hetnn.report.shown import Shown
from hetnn.report.text import table

_MOST_SHOWN = 60  # characters of a cell


def cell(value: Any) -> str:
    """A value as a cell of a table."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}" if 10 <= abs(value) < 1e15 else f"{value:.3g}"
    if isinstance(value, Mapping):
        named = value.get("node")
        return str(named) if named else ", ".join(f"{key} {cell(one)}" for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return _clipped(", ".join(map(cell, value)))
    return _clipped(str(value))


def _clipped(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"


class Rows(Shown, list[dict[str, Any]]):
    """Rows of one table. `columns` are those that are shown, in order; all where there are none."""

    def __init__(
        self, rows: Iterable[dict[str, Any]] = (), columns: Sequence[str] = (), nothing: str = "nothing"
    ) -> None:
        super().__init__(rows)
        self.columns = list(columns)
        self.nothing = nothing

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        every = dict.fromkeys(key for row in self for key in row)
        columns = [column for column in self.columns if column in every] or list(every)
        return columns, [[cell(row.get(column)) for column in columns] for row in self]

    def __str__(self) -> str:
        columns, rows = self._shown()
        return table(columns, rows) if rows else self.nothing

    __repr__ = __str__

    def _card(self) -> str:
        columns, rows = self._shown()
        return table_html(columns, rows) if rows else f"<p>{escaped(self.nothing)}</p>"

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """All keys of all rows as text with commas; also written to `path` where one is given."""
        keys = list(dict.fromkeys(key for row in self for key in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, keys, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _plain(value) for key, value in row.items()} for row in self)
        if path is not None:
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text.getvalue())
        return text.getvalue()

    def to_dataframe(self) -> Any:
        """The rows as a pandas DataFrame. Unsupported where pandas is not installed."""
        try:
            import pandas
        except ImportError as error:
            raise Unsupported("to_dataframe needs pandas; install it, or take to_csv().") from error
        return pandas.DataFrame(list(self))


def _plain(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


class Answer(Shown, dict[str, Any]):
    """Keys and values that print as `text`."""

    def __init__(self, values: Mapping[str, Any], text: str) -> None:
        super().__init__(values)
        self._text = text

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def _card(self) -> str:
        return f"<pre>{escaped(self._text)}</pre>"


def escaped(text: str) -> str:
    """The text as HTML shows it."""
    import html  # knows all of its entities by name, which takes a while

    return html.escape(text)


def table_html(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that brings no style with it but that of its cells."""
    head = "".join(f"<th style='text-align:{'left' if k == 0 else 'right'}'>{escaped(c)}</th>" for k, c in _n(columns))
    body = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:{'left' if k == 0 else 'right'}'>{escaped(c)}</td>" for k, c in _n(row))
        + "</tr>"
        for row in rows
    )
    return f"<table class='hetnn'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _n(cells: Sequence[str]) -> Iterable[tuple[int, str]]:
    return enumerate(cells)
