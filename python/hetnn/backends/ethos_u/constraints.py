"""What Vela maps to an Ethos-U, as rows: one sentence each, asked of the TOSA operators of a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from hetnn.backends.backend import Reason

if TYPE_CHECKING:
    from hetnn.exporters.tosa.file import Block, Op


class Row(NamedTuple):
    """A limit. `found` gives what breaks it, or None."""

    label: str
    kinds: tuple[str, ...]
    families: tuple[str, ...]
    wanted: str
    text: str
    found: Callable[[Op, Block], str | None]


ROWS: list[Row] = []


def broken(block: Block, family: str) -> list[Reason]:
    """The limits of a family of accelerators that a node's operators break."""
    return [
        Reason(row.label, what, row.wanted, row.text)
        for row in ROWS
        if family in row.families
        for what in _found(row, block)
    ]


def _found(row: Row, block: Block) -> Iterator[str]:
    for op in block.ops:
        if op.kind in row.kinds and (what := row.found(op, block)) is not None:
            yield what
