"""What became of the graphs that torch.compile gave to hetnn."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Literal

Kind = Literal["inference", "forward", "backward"]


@dataclass(frozen=True)
class TorchGraph:
    """A graph: what it computes, its operators, where in the model's source it begins, and why torch's eager mode
    runs it ("" where hetnn does)."""

    kind: Kind
    operators: int
    at: str
    why: str

    @property
    def compiled(self) -> bool:
        """Whether hetnn runs it."""
        return not self.why


class TorchReport(tuple[TorchGraph, ...]):
    """The graphs since the process began, or since `torch_report(clear=True)`; as text a line each."""

    def __str__(self) -> str:
        ours = sum(row.compiled for row in self)
        lines = [f"{ours} of {len(self)} graphs run by hetnn"]
        for row in self:
            what = "hetnn" if row.compiled else f"eager: {row.why}"
            lines.append(f"  {row.kind} of {row.operators} operators at {row.at or 'an unknown place'}: {what}")
        return "\n".join(lines)


_rows: list[TorchGraph] = []
_writing = threading.Lock()


def note(row: TorchGraph) -> None:
    """Adds a graph to the report."""
    with _writing:
        _rows.append(row)


def torch_report(*, clear: bool = False) -> TorchReport:
    """The graphs that torch.compile has given to hetnn: which hetnn runs, and why others stay in torch's eager mode.

    clear: forgets them afterwards.
    """
    with _writing:
        found = TorchReport(_rows)
        if clear:
            _rows.clear()
    return found
