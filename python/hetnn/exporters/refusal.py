"""Why a node cannot be written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """A node that has no form in a file: its name, operator and place in the model's source, and why."""

    node: str
    op: str
    loc: str
    why: str

    def __str__(self) -> str:
        return f"{self.op} '{self.node}': {self.why}" + (f"\n  at {self.loc}" if self.loc else "")
