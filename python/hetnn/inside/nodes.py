"""The data model of a run: a row a node, from the saved report, the program, and the times of a run if there are any.

Everything else that shows nodes is a view of these rows. What stands in the program (kernels, tiles, cycles) is read
from there and kept in no second place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hetnn import _runtime
from hetnn.errors import InvalidModel
from hetnn.report.rows import Rows

if TYPE_CHECKING:
    from hetnn.executable import Executable

COLUMNS = (
    "node",
    "op",
    "device",
    "subgraph",
    "dtype",
    "shape",
    "macs",
    "bytes",
    "predicted_us",
    "measured_us",
    "kernel",
    "tile",
    "into",
    "module",
    "loc",
)


def complete(report: dict[str, Any], executable: Executable) -> dict[str, Any]:
    """The report with what its nodes have in the program: kernels and their rivals, as `profile` has them, tiles and
    cycles at the example's sizes.
    """
    rows = {row["node"]: row for row in report["graph"]}
    target = _joined(report, rows)
    for node, kernel in _runtime.kernels(executable._engine):
        row = rows.get(target.get(node, node))
        if row is not None:
            row.setdefault("kernel", kernel)
    for command in _described(executable):
        row = rows.get(target.get(command["node"], command["node"]))
        if row is not None and "rivals" not in row:
            row["kernel_us"] = command["predicted_us"]
            row["rivals"] = command["rivals"]
    for part in _at_example(executable):
        for layer in part["layers"]:
            row = rows.get(target.get(layer["node"], layer["node"]))
            if row is not None:
                row["tile"] = layer["tile"]
                row["cycles"] = row.get("cycles", 0) + layer["cycles"]
                row["stall_cycles"] = row.get("stall_cycles", 0) + layer["stall_cycles"]
    return report


def _described(executable: Executable) -> list[dict[str, Any]]:
    """Commands at the example's sizes; none where the model does not hold for these."""
    try:
        commands: list[dict[str, Any]] = executable._engine.described(executable._engine.hints)
    except InvalidModel:
        return []
    return commands


def _joined(report: Mapping[str, Any], rows: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Says in the rows which node computes them. By the name of what computes several nodes: the row that stands for
    all of them, which is its own where the plan has a node of that name.
    """
    out: dict[str, str] = {}
    for fusion in report["fusions"]:
        into = fusion["into"] if fusion["into"] in rows else fusion["nodes"][-1]
        out[fusion["into"]] = into
        for node in fusion["nodes"]:
            if node != into and node in rows:
                rows[node]["into"] = into
    return out


def _at_example(executable: Executable) -> list[dict[str, Any]]:
    import numpy as np

    from hetnn.element_types import numpy_type

    try:
        inputs = [
            np.broadcast_to(np.zeros((), numpy_type(port.dtype)), executable.example_shape(port.name))
            for port in executable.inputs
        ]
        found: list[dict[str, Any]] = _runtime.layers(executable._engine, inputs)
    except InvalidModel:  # an example that is out of the ranges it states has no code
        return []
    return found


def measured(executable: Executable, profile: Sequence[Mapping[str, Any]]) -> Rows:
    """The nodes with what a profile measured of them: `measured_us`, `kernel`, and what an NPU's layers took."""
    report = executable.report(format="dict")
    rows = {row["node"]: row for row in report["graph"]}
    target = _joined(report, rows)
    for entry in profile:
        row = rows.get(target.get(entry["node"], entry["node"]))
        if row is None:
            continue
        row["measured_us"] = row.get("measured_us", 0.0) + entry["us"]
        for key in ("cycles", "stall_cycles"):
            if entry.get(key) is not None:
                row[key] = entry[key]
    return Rows(report["graph"], COLUMNS, "there is no node")
