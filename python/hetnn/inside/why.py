"""Why a node of an executable is where it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hetnn.errors import InvalidModel
from hetnn.report.rows import Answer
from hetnn.report.text import place

if TYPE_CHECKING:
    from hetnn.executable import Executable


def why(executable: Executable, node: str) -> Answer:
    """By the plan of the model where that is there, else by what the report says. InvalidModel for an unknown name."""
    if executable._source is not None:
        return executable._source.plan().why(node)
    report: dict[str, Any] = executable.report(format="dict")
    row = next((row for row in report["graph"] if row["node"] == node), None)
    if row is None:
        few = ", ".join(row["node"] for row in report["graph"][:3])
        raise InvalidModel(f"there is no node '{node}'; there are {few} and others.")
    refused: Mapping[str, Any] = next(
        (other for other in report["not_on_preferred"] if other["node"] == node), {"reasons": []}
    )
    found = {key: row.get(key, "") for key in ("node", "op", "device", "subgraph", "loc", "module")}
    found["reasons"] = refused["reasons"]
    where = f"  {place(found)}".rstrip()
    lines = [f"{row['op']} '{node}' is on {row['device']}, subgraph {row['subgraph']}{where}"]
    lines += [f"{reason['device']}: {reason['text']} ({reason['label']})" for reason in found["reasons"]]
    return Answer(found, "\n".join(lines))
