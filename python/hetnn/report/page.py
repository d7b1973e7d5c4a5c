"""The report of a compiled model as one HTML page that needs no network, from the template page.html."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hetnn.errors import Unsupported
from hetnn.report.picture import as_svg


@dataclass(frozen=True)
class _Table:
    title: str
    header: list[str]
    rows: list[list[Any]]  # whole numbers are counted, others have two digits, None is left empty
    nothing: str  # said where there are no rows


def _reasons(row: Mapping[str, Any]) -> str:
    return "; ".join(f"{reason['text']} ({reason['label']})" for reason in row["reasons"])


def _tables(report: Mapping[str, Any]) -> list[_Table]:
    bounds = report["lower_bound_subgraphs"]
    return [
        _Table(
            "Devices",
            ["device", "nodes", "multiply-accumulates", "subgraphs", "fewest possible"],
            [
                [
                    device,
                    nodes,
                    report["macs_on"].get(device, 0),
                    sum(part["device"] == device for part in report["subgraphs"]),
                    bounds.get(device, "–"),
                ]
                for device, nodes in report["nodes_on"].items()
            ],
            "There is no node.",
        ),
        _Table(
            "Subgraphs, in order",
            ["device", "nodes", "predicted us", "which"],
            [
                [part["device"], len(part["nodes"]), float(part["predicted_us"]), ", ".join(part["nodes"])]
                for part in report["subgraphs"]
            ],
            "There is no subgraph.",
        ),
        _Table(
            "What crosses between devices",
            ["value", "from", "to", "bytes"],
            [[row["value"], row["from"], row["to"], int(row["bytes"])] for row in report["crossings"]],
            "Nothing crosses.",
        ),
        _Table(
            "Rewritten",
            ["node", "rule", "form", "bytes avoided", "launches avoided", "us before", "us after"],
            [
                [
                    row["node"],
                    row["rule"],
                    row["form"],
                    int(row["bytes_avoided"]),
                    row["launches_avoided"],
                    float(row["predicted_us_before"]),
                    float(row["predicted_us_after"]),
                ]
                for row in report["rewrites"]
            ],
            "No layer was rewritten.",
        ),
        _Table(
            "Fused",
            ["into", "nodes", "bytes before", "bytes after", "us before", "us after"],
            [
                [
                    row["into"],
                    ", ".join(row["nodes"]),
                    int(row["bytes_before"]),
                    int(row["bytes_after"]),
                    row.get("predicted_us_before"),
                    row.get("predicted_us_after"),
                ]
                for row in report["fusions"]
            ],
            "No nodes were fused.",
        ),
        _Table(
            "Not on the accelerator, and why",
            ["node", "operator", "on", "reasons", "source"],
            [[row["node"], row["op"], row["device"], _reasons(row), row["loc"]] for row in report["not_on_preferred"]],
            "Every node is on the accelerator.",
        ),
    ]


def as_html(report: Mapping[str, Any], title: str = "hetnn report") -> str:
    """One page from a report (`Executable.report(format="dict")`), the picture of its plan included."""
    try:
        import jinja2
        import markupsafe
    except ImportError as error:
        raise Unsupported("a report as HTML needs jinja2; install it with `pip install 'hetnn[report]'`.") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=lambda value: "" if value is None else value,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    picture = markupsafe.Markup(as_svg(report))
    return environment.get_template("page.html").render(
        report=report, title=title, picture=picture, tables=_tables(report)
    )
