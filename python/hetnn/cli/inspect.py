"""`hetnn inspect`: what a file or model takes and gives, its sizes, devices and subgraphs."""

from __future__ import annotations

import argparse
import os
from typing import Any

from hetnn.cli.answer import Answer
from hetnn.cli.model import add_compile_arguments, load_or_compile
from hetnn.cli.progress import Progress
from hetnn.report.rows import Rows
from hetnn.report.text import devices_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model or .hetnn file, and the options of compiling."""
    parser.add_argument("model", help=".hetnn, .pt2, .onnx, .tflite or IR text")
    parser.add_argument("--nodes", action="store_true", help="list every node, too")
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """`inputs` and `outputs` (name, dtype, shape), `states`, `target`, `nodes_on`, `macs_on`, `subgraphs` (device,
    nodes, macs, predicted_us), `predicted_us`, `file_bytes`, `arena_bytes`, `dynamic`; with `--nodes` also `graph`.
    """
    with Progress("inspect", args.quiet) as progress:
        executable = load_or_compile(args, progress)
    report: dict[str, Any] = executable.report(format="dict")
    ports = {
        key: [{"name": port.name, "dtype": port.dtype, "shape": list(port.shape)} for port in rows]
        for key, rows in (("inputs", executable.inputs), ("outputs", executable.outputs))
    }
    subgraphs = [
        {"device": part["device"], "nodes": len(part["nodes"]), **{k: part[k] for k in ("macs", "predicted_us")}}
        for part in report["subgraphs"]
    ]
    document = {
        **ports,
        "states": executable.states,
        **{key: report[key] for key in ("target", "nodes_on", "macs_on", "predicted_us")},
        "subgraphs": subgraphs,
        "file_bytes": os.path.getsize(args.model),
        "arena_bytes": executable.arena_bytes,
        "dynamic": executable.is_dynamic,
        **({"graph": report["graph"]} if args.nodes else {}),
    }
    parts = [
        *(_port("input", port) for port in ports["inputs"]),
        *(_port("output", port) for port in ports["outputs"]),
        *(f"state {name}" for name in executable.states),
        f"file {document['file_bytes']:,} bytes, arena {document['arena_bytes']:,} bytes",
        f"target {report['target']}, predicted {report['predicted_us']:,.1f} us",
        devices_table(report),
        str(Rows([{"subgraph": k, **row} for k, row in enumerate(subgraphs)], (), "there is no subgraph")),
    ]
    if args.nodes:
        parts.append(str(executable.nodes()))
    return Answer(document, "\n".join(parts))


def _port(kind: str, port: dict[str, Any]) -> str:
    return f"{kind} {port['name']}: {port['dtype']}[{','.join(map(str, port['shape']))}]"
