"""`hetnn simulate`: the cycles of a topology's layers, or of a compiled model's accelerator subgraphs."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from hetnn import _core
from hetnn.cli.answer import Answer, BadUse
from hetnn.cli.npu import npu_spec
from hetnn.files import read_text
from hetnn.report.text import table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A .hetnn file, or a topology and the NPU that runs it."""
    parser.add_argument("model", nargs="?", help="a .hetnn file")
    parser.add_argument("--trace", metavar="FILE.json", help="write what each engine does when, for a trace viewer")
    parser.add_argument("--topology", metavar="FILE.csv", help="layers as SCALE-Sim writes them, or name,M,N,K")
    parser.add_argument("--target", default="systolic-32x32", help="an NPU's name or JSON path (with --topology)")
    parser.add_argument("--dataflow", choices=["ws", "os", "is"], default="", help="of a systolic array")
    parser.add_argument("--bandwidth", default="inf", help="words a cycle of each operand, or inf")


def run(args: argparse.Namespace) -> Answer:
    """Counts cycles: of a topology `layers` and `total_cycles`, of a .hetnn file `subgraphs` with their layers,
    `total_cycles` and `seconds`.
    """
    if (args.model is None) == (args.topology is None):
        raise BadUse("name a .hetnn file or give --topology FILE.csv")
    if args.model is not None:
        return _of_model(args.model, args.trace)
    if args.trace is not None:
        raise BadUse("--trace is of a .hetnn file; a topology's layers have no instructions")
    try:
        bandwidth = float(args.bandwidth)
    except ValueError:
        bandwidth = math.nan
    if not bandwidth > 0:
        raise BadUse(f"--bandwidth takes a number above 0 or inf; got '{args.bandwidth}'")
    csv = read_text(args.topology)
    words = 0.0 if math.isinf(bandwidth) else bandwidth
    spec = json.dumps(npu_spec(args.target))
    document: dict[str, Any] = _core.simulate_topology(spec, csv, args.topology, args.dataflow, words)
    return Answer(document, _layers_text(document["layers"]) + f"\ntotal {document['total_cycles']} cycles")


def _of_model(path: str, trace: str | None) -> Answer:
    document: dict[str, Any] = _core.simulate_model(path, timeline=trace is not None)
    texts = []
    if trace is not None:
        Path(trace).write_text(json.dumps({"traceEvents": timeline_events(document)}), encoding="utf-8")
    for subgraph in document["subgraphs"]:
        texts.append(f"{subgraph['name']} {subgraph['bindings'] or ''}".rstrip())
        texts.append(_layers_text(subgraph["layers"]))
    texts.append(f"total {document['total_cycles']} cycles, {document['seconds'] * 1e6:.1f} us")
    return Answer(document, "\n".join(texts))


def timeline_events(document: dict[str, Any]) -> list[dict[str, Any]]:
    """What each engine does when, taken out of what is simulated, as Perfetto and chrome://tracing open it.

    A process a subgraph and a lane an engine; times are microseconds by the device's clock.
    """
    events: list[dict[str, Any]] = []
    for process, subgraph in enumerate(document["subgraphs"]):
        works = subgraph.pop("timeline")
        cycles_per_us = subgraph.pop("clock_hz") / 1e6
        lanes = {engine: lane for lane, engine in enumerate(("dma", "mac", "vector"))}
        named = [("process_name", 0, subgraph["name"]), *(("thread_name", lane, name) for name, lane in lanes.items())]
        events += [{"name": what, "ph": "M", "pid": process, "tid": at, "args": {"name": to}} for what, at, to in named]
        for engine, instruction, layer, begin, end, finished in works:
            span = {"name": layer, "cat": instruction, "ph": "X", "pid": process, "tid": lanes[engine]}
            span |= {"ts": begin / cycles_per_us, "dur": (end - begin) / cycles_per_us}
            cycles = {"begin_cycles": begin, "end_cycles": end, "finished_cycles": finished}
            events.append(span | {"args": {"instruction": instruction, **cycles}})
    return events


def _layers_text(layers: list[dict[str, Any]]) -> str:
    rows = [
        [row["name"], str(row["compute_cycles"]), str(row["stall_cycles"]), f"{row['utilization']:.1%}"]
        for row in layers
    ]
    return table(["layer", "compute cycles", "stall cycles", "utilization"], rows)
