"""What each engine does when: `hetnn simulate MODEL --trace FILE`."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from hetnn import _core
from hetnn.cli import main
from npu.networks import compile_for, network


@pytest.mark.parametrize("name", ["separable int8", "products f32"])
def test_a_timeline_is_what_the_clock_counts(name: str, tmp_path: Path) -> None:
    one = network(name)
    model, trace = tmp_path / "model.hetnn", tmp_path / "trace.json"
    compile_for(one.graph, one.sheet()).save(model)
    assert main(["simulate", str(model), "--trace", str(trace)]) == 0
    events = json.loads(trace.read_text())["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    spans = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            spans[lanes[event["tid"]]].append(event["args"] | {"layer": event["name"]})
    # An engine does one thing after another.
    for row in spans.values():
        assert all(before["end_cycles"] <= after["begin_cycles"] for before, after in pairwise(row))
    (subgraph,) = _core.simulate_model(str(model))["subgraphs"]
    assert max(span["finished_cycles"] for row in spans.values() for span in row) == subgraph["total_cycles"]
    for layer in subgraph["layers"]:
        for engines, key in ((("dma",), "memory_cycles"), (("mac", "vector"), "compute_cycles")):
            mine = [span for engine in engines for span in spans[engine] if span["layer"] == layer["name"]]
            assert sum(span["end_cycles"] - span["begin_cycles"] for span in mine) == layer[key]


def test_a_topology_has_no_timeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--topology", "net.csv", "--trace", str(tmp_path / "trace.json")]) == 2
    assert "a topology's layers have no instructions" in capsys.readouterr().err
