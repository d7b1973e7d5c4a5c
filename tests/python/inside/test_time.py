"""Time on the devices' own line: profiles, traces, and the rows of nodes."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import hetnn
from hetnn.inside.timeline import last_figures
from inside.trace_format import read_trace

TARGET = "cpu+relu-only"


class Net(torch.nn.Module):
    """Two convolutions that the NPU takes, with a function between them that it lacks."""

    def __init__(self, between: torch.nn.Module) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.between = between
        self.second = torch.nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.between(self.first(x))).relu()


X = torch.linspace(-1, 1, 3 * 16 * 16).reshape(1, 3, 16, 16)


def compiled(between: torch.nn.Module, **options: object) -> hetnn.Executable:
    torch.manual_seed(0)
    return hetnn.compile(Net(between).eval(), TARGET, args=(X,), strategy="take-all", **options)


@pytest.fixture(scope="module")
def mixed() -> hetnn.Executable:
    """On the NPU, the CPU, and the NPU again."""
    return compiled(torch.nn.Softplus(), rewrite="off")


@pytest.fixture(scope="module")
def all_npu() -> hetnn.Executable:
    return compiled(torch.nn.ReLU())


def clock_hz(exe: hetnn.Executable) -> float:
    (spec,) = (device["spec"] for device in exe.target["devices"] if device["kind"] == "npu")
    return float(spec["clock_hz"])


def test_a_profile_of_an_npu_alone_has_its_layers(all_npu: hetnn.Executable) -> None:
    assert next(iter(all_npu.report("dict")["nodes_on"].values())) == 0
    rows = all_npu.profile(X)
    assert rows
    assert {row["device"] for row in rows} == {"relu-only"}
    assert all(row["simulated"] and row["us"] > 0 and row["macs"] > 0 for row in rows)
    (part,) = all_npu.last_times
    assert sum(row["cycles"] for row in rows) == part["cycles"]
    assert sum(row["us"] for row in rows) == pytest.approx(part["cycles"] / clock_hz(all_npu) * 1e6)
    assert all(0 <= row["stall_cycles"] <= row["cycles"] for row in rows)
    assert all("wall_us" not in row for row in rows)  # what simulating took is no time of the layer


def test_a_profile_has_rows_of_every_device(mixed: hetnn.Executable) -> None:
    rows = mixed.profile(X)
    assert {row["device"] for row in rows} == {"cpu", "relu-only"}
    measured = [row for row in rows if not row["simulated"]]
    assert all(row["us"] == row["wall_us"] for row in measured)
    assert {type(row[counted]) for row in rows for counted in ("macs", "bytes")} == {int}
    shown = str(rows)
    assert shown.splitlines()[0].split()[:4] == ["node", "device", "kernel", "us"]
    assert repr(rows) == shown
    assert "<table" in rows._repr_html_()
    assert "<style" not in rows._repr_html_()
    lines = rows.to_csv().splitlines()
    assert len(lines) == len(rows) + 1
    assert lines[0].startswith("node,device,kernel,start_us,us,simulated")


def test_the_npus_lane_is_its_clock_and_not_the_simulators_wall_time(all_npu: hetnn.Executable, tmp_path: Path) -> None:
    all_npu.trace(tmp_path / "trace.json", X)
    events = read_trace(tmp_path / "trace.json")
    (span,) = (event for event in events if event.get("cat") == "subprogram")
    assert span["dur"] == pytest.approx(span["args"]["cycles"] / clock_hz(all_npu) * 1e6)
    assert span["args"]["time"] == "simulated"
    assert span["args"]["simulating_took_us"] > 0
    layers = [event for event in events if event["ph"] == "X" and event["pid"] == 1 and event is not span]
    assert sum(layer["dur"] for layer in layers) == pytest.approx(span["dur"])
    assert all({"predicted_us", "stall_us", "tile", "macs"} <= set(layer["args"]) for layer in layers)
    assert all(layer["args"]["predicted_us"] > 0 for layer in layers)
    assert all(layer["cname"] in ("good", "bad", "terrible") for layer in layers)
    assert any(event["ph"] == "C" and event["name"] == "relu-only waits for memory" for event in events)


def test_a_trace_names_its_lanes_and_has_what_was_predicted_beside(mixed: hetnn.Executable, tmp_path: Path) -> None:
    mixed.trace(tmp_path / "trace.json", X)
    events = read_trace(tmp_path / "trace.json")
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert processes == {1: "the run: CPU measured, NPU by its clock", 2: "as planned: predicted"}
    lanes = {(e["pid"], e["args"]["name"]) for e in events if e["name"] == "thread_name"}
    assert lanes == {(process, device) for process in (1, 2) for device in ("cpu", "relu-only")}
    ran = [event for event in events if event.get("cat") == "subprogram"]
    planned = [event for event in events if event.get("cat") == "planned"]
    assert len(ran) == len(planned) == 3
    for before, after in pairwise(ran):  # each waits for the one before
        assert after["ts"] == pytest.approx(before["ts"] + before["dur"])
    assert sum(event["ph"] == "s" for event in events) == sum(event["ph"] == "f" for event in events) == 2
    report = mixed.report("dict")
    names = {event["name"] for event in events if event.get("cat") == "planned node"}
    assert names == {row["node"] for row in report["graph"]}


def test_the_figures_of_a_run_are_three(mixed: hetnn.Executable) -> None:
    mixed.run([X.numpy()])
    figures = last_figures(mixed)
    cycles = sum(row["cycles"] for row in mixed.last_times)
    assert figures.simulated_us == pytest.approx(cycles / clock_hz(mixed) * 1e6)
    assert figures.measured_us > 0
    assert figures.simulating_us > 0


def test_nodes_have_what_they_are_and_where_they_ran(mixed: hetnn.Executable) -> None:
    rows = {row["op"]: row for row in mixed.nodes(X)}
    conv = rows["conv2d"]
    assert conv["shape"] == [1, 8, 16, 16]
    assert (conv["dtype"], conv["computes_in"]) == ("f32", "f32")
    assert conv["macs"] == 8 * 16 * 16 * 8 * 9
    assert conv["bytes"] >= 4 * 2 * 8 * 16 * 16
    assert (conv["device"], conv["module"]) == ("relu-only", "second")
    assert conv["loc"].startswith("test_time.py:")
    assert conv["predicted_us"] > 0
    assert conv["measured_us"] == pytest.approx(conv["cycles"] / clock_hz(mixed) * 1e6)
    assert conv["tile"]
    compared = rows["gt"]
    assert (compared["device"], compared["kernel"]) == ("cpu", "compare")
    assert compared["measured_us"] > 0
    assert rows["where"]["into"] == rows["exp"]["node"]
    assert rows["relu"]["into"] == conv["node"]  # one launch
    saved = mixed.report("dict")["graph"]
    assert {row["op"]: row.get("kernel") for row in saved}["gt"] == "compare"
    assert "measured_us" not in saved[0]  # there was no run
    text = str(mixed.nodes())
    assert text.splitlines()[0].split()[:3] == ["node", "op", "device"]


def test_nodes_say_which_type_computes_them() -> None:
    graph = """graph @g {stage = imported} (%x: f16[4,8]) -> (%y) {
      %y = relu(%x) : f16[4,8]
    }
    """
    (row,) = hetnn.compile(graph, "cpu").report("dict")["graph"]
    assert (row["dtype"], row["computes_in"], row["shape"]) == ("f16", "f32", [4, 8])


def test_nodes_say_what_they_were_made_from() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.BatchNorm2d(4), torch.nn.ReLU()).eval()
    rows = hetnn.compile(module, "cpu", args=(torch.zeros(1, 3, 4, 4),)).nodes()
    conv = next(row for row in rows if row["op"] == "conv2d")
    assert {"0", "1"} & {conv["module"], *conv["made_from"]} == {"0", "1"}


def test_reports_of_open_sizes_say_them_in_symbols() -> None:
    graph = """graph @g {stage = imported, symbols = [n: 1..9 = 4]} (%x: f32[n,3]) -> (%y) {
      %y = relu(%x) : f32[n,3]
    }
    """
    exe = hetnn.compile(graph, "cpu")
    (row,) = exe.nodes(np.ones((2, 3), np.float32))
    assert row["shape"] == ["n", 3]
    assert row["measured_us"] >= 0


def test_what_simulating_a_loops_body_takes_is_not_on_the_line(tmp_path: Path) -> None:
    from torch._higher_order_ops.while_loop import while_loop

    class Looping(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(8, 8, 3, padding=1)

        def forward(self, n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return while_loop(lambda k, _: k > 0, lambda k, y: (k - 1, self.conv(y).relu()), (n, x))[1]

    torch.manual_seed(0)
    args = (torch.tensor(3), torch.ones(1, 8, 16, 16))
    exe = hetnn.compile(Looping().eval(), TARGET, args=args, strategy="take-all")
    exe.trace(tmp_path / "trace.json", *args)
    events = read_trace(tmp_path / "trace.json")
    rounds = [row for row in exe.last_times if "/body " in row["name"] and row["device"] == "relu-only"]
    assert rounds
    simulated_us = sum(row["cycles"] for row in rounds) / clock_hz(exe) * 1e6
    ran = sum(event["dur"] for event in events if event.get("cat") == "subprogram")
    figures = last_figures(exe)
    assert figures.simulated_us == pytest.approx(simulated_us)
    assert ran == pytest.approx(figures.measured_us + simulated_us, rel=0.3)


def test_the_schema_knows_the_keys_of_nodes(mixed: hetnn.Executable) -> None:
    import jsonschema

    schema = json.loads((Path(__file__).parents[3] / "docs" / "report-schema.json").read_text())
    report = mixed.report("dict")
    jsonschema.validate(report, schema)
    report["graph"] = list(mixed.nodes(X))
    jsonschema.validate(report, schema)
