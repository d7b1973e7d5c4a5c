"""Planning problems through Python and the command line: worked examples, answers to questions, bad input."""

from __future__ import annotations

import json
import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import hetnn
from hetnn.cli import main

ROOT = Path(__file__).resolve().parents[3]
STRATEGIES = ["topological", "depth", "merge", "cost", "take-all", "cpu-only"]


def graph(words: str) -> dict[str, Any]:
    """`a: b!:a c~:a,b`: id, `!` not supported by the accelerator, `~` not exportable from it, inputs."""
    nodes = []
    for word in words.split():
        name, _, inputs = word.partition(":")
        node: dict[str, Any] = {
            "id": name.rstrip("!~"),
            "inputs": [i for i in inputs.split(",") if i],
            "time_us": {"cpu": 10},
            "output_bytes": 1000,
        }
        if "!" not in name:
            node["time_us"]["npu"] = 1
        if "~" in name:
            node["exportable"] = {"npu": False}
        nodes.append(node)
    return {
        "devices": [{"name": "cpu", "launch_us": 0}, {"name": "npu", "launch_us": 1}],
        "links": {"bytes_per_us": 1000, "latency_us": 1},
        "nodes": nodes,
    }


def sets(plan: dict[str, Any]) -> list[list[str]]:
    return sorted(sorted(s["nodes"]) for s in plan["subgraphs"])


def test_worked_examples() -> None:
    assert sets(hetnn.plan_problem(graph("a: b!:a c:b e: d:c,e"), "depth")) == [["a"], ["b"], ["c", "d", "e"]]
    assert sets(hetnn.plan_problem(graph("m: q!: n:m,q"), "depth")) == [["m", "n"], ["q"]]
    seven = graph("A: B:A C:A D!:B,C E:D F:D G:E,F")
    assert sets(hetnn.plan_problem(seven, "merge")) == [["A", "B", "C"], ["D"], ["E", "F", "G"]]
    chain = graph("A: B~:A C!:B")
    assert sets(hetnn.plan_problem(chain, "merge", settle="merge")) == [["A", "B", "C"]]
    assert sets(hetnn.plan_problem(chain, "merge", settle="trim")) == [["A"], ["B", "C"]]


def test_depths_may_be_given_and_suit_simd_may_be_said() -> None:
    problem = graph("r1!: r2!:r1 r3!:r2 p: t:p q:r3,p")
    assert sets(hetnn.plan_problem(problem, "depth")) == [["p", "q", "t"], ["r1", "r2", "r3"]]
    for node, depth in zip(problem["nodes"], (0, 1, 2, 0, 1, 3), strict=True):
        node["depth"] = depth
    assert sets(hetnn.plan_problem(problem, "depth")) == [["p", "t"], ["q"], ["r1", "r2", "r3"]]
    del problem["nodes"][2]["depth"]
    with pytest.raises(hetnn.InvalidModel, match="node 'r3': has no depth, while other nodes have one"):
        hetnn.plan_problem(problem, "depth")
    chain = graph("a: b:a c:b")
    chain["nodes"][1]["simd"] = False
    assert sets(hetnn.plan_problem(chain, "merge")) == [["a", "b", "c"]]
    assert sets(hetnn.plan_problem(chain, "merge", criterion="simd")) == [["a"], ["b"], ["c"]]
    ring = graph("a: b!:a c:a,b")
    assert sets(hetnn.plan_problem(ring, "merge", rings="merge")) == [["a", "b", "c"]]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_answer_conforms_to_the_published_schema(strategy: str) -> None:
    schema = json.loads((ROOT / "docs" / "plan-schema.json").read_text())
    problem = hetnn.generate_problem("transformer", 60, 5, devices=3, non_exportable=0.1)
    problem["nodes"][0]["pin"] = {"device": "gpu" if len(problem["devices"]) > 3 else "dsp", "hard": False}
    plan = hetnn.plan_problem(problem, strategy)
    jsonschema.validate(json.loads(plan.to_json()), schema)
    assert json.loads(plan.to_json()) == dict(plan)


def test_order_of_listing_does_not_matter_to_the_cost() -> None:
    problem = hetnn.generate_problem("layered", 80, 2, shuffle=False, launch=False)
    other = dict(problem, nodes=problem["nodes"][::-1])
    assert hetnn.plan_problem(problem)["cost_us"] == pytest.approx(hetnn.plan_problem(other)["cost_us"])


def test_generated_problems_are_the_same_every_time() -> None:
    for kind in ("layered", "series-parallel", "random", "chain", "fan", "transformer"):
        assert hetnn.generate_problem(kind, 30, 4) == hetnn.generate_problem(kind, 30, 4)
        assert hetnn.generate_problem(kind, 30, 4) != hetnn.generate_problem(kind, 30, 5)
        for nodes in (0, 1, 2, 3):
            assert len(hetnn.generate_problem(kind, nodes, 0)["nodes"]) == nodes
    with pytest.raises(hetnn.InvalidModel, match="there is no kind 'star'"):
        hetnn.generate_problem("star", 3, 0)


def test_numpy_numbers_are_numbers() -> None:
    problem = graph("a: b:a")
    problem["nodes"][0]["time_us"] = {"cpu": np.float32(10), "npu": np.int64(1)}
    assert hetnn.plan_problem(problem)["cost_us"] == hetnn.plan_problem(graph("a: b:a"))["cost_us"]


def test_questions() -> None:
    problem = graph("a: b!:a c:b d:c")
    for node, op in zip(problem["nodes"], ["conv", "sort", "conv", "relu"], strict=True):
        node["op"] = op
    plan = hetnn.plan_problem(problem)
    why = plan.why("b")
    assert why["device"] == "cpu"
    assert why["plan_cost_us"]["npu"] is None
    assert {"device": "npu", "label": "support"}.items() <= why["reasons"][0].items()
    with pytest.raises(hetnn.InvalidModel, match="there is no node 'x'"):
        plan.why("x")

    explained = plan.explain()
    assert explained["lower_bound_us"] <= explained["cost_us"]
    assert explained["cost_us"] == pytest.approx(sum(explained["parts"].values()))
    assert {"cut", "take-all", "cpu-only"} <= {c["name"] for c in explained["candidates"]}

    gains = plan.what_if()
    assert [(g["device"], g["support"], g["nodes"]) for g in gains] == [("npu", "sort", ["b"])]
    assert gains[0]["gain_us"] > 0
    assert plan.what_if(["pool"]) == []
    # A stated time counts: at 100 us nothing is gained.
    problem["nodes"][1]["what_if_time_us"] = {"npu": 100}
    assert hetnn.plan_problem(problem).what_if()[0]["gain_us"] == 0

    difference = plan.diff(hetnn.plan_problem(problem, "cpu-only"))
    assert {m["node"] for m in difference["moved"]} == {n for n, d in plan["device_of"].items() if d == "npu"}
    assert plan.diff(plan)["moved"] == []


def test_picture_is_well_formed_and_shows_every_node() -> None:
    problem = graph("a: b!:a c:b")
    problem["nodes"][0]["id"] = 'a<&"\x01'
    problem["nodes"][1]["inputs"] = ['a<&"\x01']
    picture = hetnn.plan_problem(problem).svg()
    root = xml.etree.ElementTree.fromstring(picture)
    boxes = [e for e in root.iter() if e.tag.endswith("rect")]
    assert len(boxes) >= 1 + 2 + 3  # background, legend, nodes


def test_overlap_shares_branches_between_devices() -> None:
    """Two branches of equal work: one after the other on the accelerator, or each on a device of its own."""
    problem = graph("a: b1:a b2:b1 b3:b2 c1:a c2:c1 c3:c2 d:b3,c3")
    for node in problem["nodes"]:
        node["time_us"] = {"cpu": 12, "npu": 10}
    serial, overlapped = hetnn.plan_problem(problem), hetnn.plan_problem(problem, overlap=True)
    assert serial["subgraphs_on"] == {"cpu": 0, "npu": 1}
    assert serial["makespan_us"] == serial["cost_us"] == 8 * 10 + 1
    # The longer way stays on the cpu, 5 * 12; the accelerator has a branch of 2 + 1 + 30 + 2 us beside it. With both
    # ends of it on the accelerator it would be 10 + 36 + 10, two transfers of 2 us and two launches: 62.
    assert overlapped["makespan_us"] == 5 * 12
    assert overlapped["cost_us"] > serial["cost_us"]
    assert {overlapped["device_of"][f"b{k}"] for k in (1, 2, 3)} != {
        overlapped["device_of"][f"c{k}"] for k in (1, 2, 3)
    }
    with pytest.raises(hetnn.InvalidModel, match="strategy 'cost': overlap must be true or false; found 1"):
        hetnn.plan_problem(problem, overlap=1)
    with pytest.raises(hetnn.InvalidModel, match="strategy 'depth': the set of options has the unknown key 'overlap'"):
        hetnn.plan_problem(problem, "depth", overlap=True)


@pytest.mark.parametrize("devices", [2, 3])
@pytest.mark.parametrize("kind", ["layered", "series-parallel", "random", "chain", "fan", "transformer"])
def test_overlap_is_never_slower_than_another_strategy(kind: str, devices: int) -> None:
    gained = 0.0
    for seed in range(6):
        problem = hetnn.generate_problem(kind, 30, seed, devices=devices, non_exportable=0.1)
        overlapped = hetnn.plan_problem(problem, overlap=True)
        again = hetnn.plan_problem(problem, overlap=True)
        assert {**again, "plan_us": 0} == {**overlapped, "plan_us": 0}
        for strategy in STRATEGIES:
            other = hetnn.plan_problem(problem, strategy)["makespan_us"]
            assert overlapped["makespan_us"] <= other * (1 + 1e-9), (seed, strategy)
        gained += hetnn.plan_problem(problem)["makespan_us"] - overlapped["makespan_us"]
    assert gained > 0 or kind == "chain", "graphs with branches have something to overlap"


def test_repair() -> None:
    asked = []

    def backend(device: str, nodes: list[str]) -> tuple[str, list[str]] | None:
        asked.append((device, nodes))
        if "b" in nodes:
            return "no kernel", ["b"]
        return ("too large", []) if len(nodes) > 1 else None

    plan = hetnn.plan_problem(graph("a: b:a c:b d:c e:d"), backend=backend)
    assert plan["device_of"]["b"] == "cpu"
    assert all(len(s["nodes"]) == 1 for s in plan["subgraphs"] if s["device"] == "npu")
    assert all(device == "npu" for device, _ in asked)
    assert any("no kernel" in note["text"] for note in plan["notes"])


def _with(change: str, value: Any) -> dict[str, Any]:
    problem = graph("a: b:a c:b")
    problem["nodes"][1][change] = value
    return problem


@pytest.mark.parametrize(
    ("problem", "kind", "message"),
    [
        (_with("inputs", ["c"]), hetnn.InvalidModel, "the graph has a cycle: .*'b'"),
        (_with("inputs", ["b"]), hetnn.InvalidModel, "node 'b': reads its own output"),
        (_with("inputs", ["x"]), hetnn.InvalidModel, "node 'b': input 'x' is not a node"),
        (_with("inputs", "a"), hetnn.InvalidModel, "node 'b': inputs must be a list of ids; found \"a\""),
        (_with("id", "a"), hetnn.InvalidModel, "node 'a': this id is used twice"),
        (_with("id", 7), hetnn.InvalidModel, r"nodes\[1\]\.id must be a text that is not empty; found 7"),
        (
            _with("time_us", {"cpu": -1}),
            hetnn.InvalidModel,
            "node 'b': time_us.cpu must be a finite number of at least 0; found -1",
        ),
        (
            _with("time_us", {"cpu": float("nan")}),
            hetnn.InvalidModel,
            "node 'b': time_us.cpu must be a finite",
        ),
        (
            _with("time_us", {"cpu": float("inf")}),
            hetnn.InvalidModel,
            "node 'b': time_us.cpu must be a finite",
        ),
        (
            _with("time_us", {"cpu": "1"}),
            hetnn.InvalidModel,
            "node 'b': time_us.cpu must be a finite number of at least 0; found \"1\"",
        ),
        (_with("time_us", {"tpu": 1}), hetnn.InvalidModel, "node 'b': time_us names device 'tpu'"),
        (_with("time_us", {}), hetnn.Unsupported, "node 'b': no device supports it"),
        (
            _with("output_bytes", -1),
            hetnn.InvalidModel,
            "node 'b': output_bytes must be a finite number of at least 0; found -1",
        ),
        (_with("output_bytes", float("nan")), hetnn.InvalidModel, "node 'b': output_bytes must be a finite number"),
        (_with("macs", -1), hetnn.InvalidModel, "node 'b': macs must be a finite number of at least 0; found -1"),
        (_with("compute", 1), hetnn.InvalidModel, "node 'b': compute must be true or false"),
        (_with("exportable", {"tpu": True}), hetnn.InvalidModel, "node 'b': exportable names device 'tpu'"),
        (_with("pin", {"device": "tpu"}), hetnn.InvalidModel, "node 'b': pin names device 'tpu'"),
        (
            dict(graph("a:"), devices=[]),
            hetnn.InvalidModel,
            r"devices must be a list of devices that is not empty; found \[\]",
        ),
        ({"nodes": []}, hetnn.InvalidModel, "lacks 'devices', the devices; the first one is the general processor"),
        ({"devices": [{"name": "cpu"}]}, hetnn.InvalidModel, "lacks 'nodes', the nodes"),
        (
            dict(graph("a:"), links={"bytes_per_us": 0}),
            hetnn.InvalidModel,
            "links.bytes_per_us must be a finite number above 0; found 0",
        ),
        (_with("exportble", False), hetnn.InvalidModel, "unknown key 'exportble'; did you mean 'exportable'"),
        (dict(graph("a:"), links=[]), hetnn.InvalidModel, "nothing connects 'cpu' to 'npu'"),
        (
            dict(graph("a:"), devices=[{"name": "cpu"}, {"name": "npu"}, {"name": "cpu"}]),
            hetnn.InvalidModel,
            "device 'cpu': named twice",
        ),
        ([], hetnn.InvalidModel, "must be a dict"),
    ],
)
@pytest.mark.parametrize("strategy", ["cost", "merge"])
def test_bad_problems_name_what_is_wrong(
    problem: dict[str, Any], kind: type[hetnn.Error], message: str, strategy: str
) -> None:
    with pytest.raises(kind, match=message):
        hetnn.plan_problem(problem, strategy)


def test_impossible_wishes() -> None:
    problem = graph("a: b!:a")
    problem["nodes"][1]["pin"] = {"device": "npu", "hard": True}
    with pytest.raises(hetnn.Unsupported, match="node 'b': pinned to 'npu', which does not support it"):
        hetnn.plan_problem(problem)
    problem["nodes"][1]["pin"]["hard"] = False
    assert "soft pin to 'npu' not kept" in hetnn.plan_problem(problem)["notes"][0]["text"]

    with pytest.raises(hetnn.Unsupported, match="1 of 2 nodes cannot run on 'npu'"):
        hetnn.plan_problem(graph("a: b!:a"), "take-all", strict="npu")

    problem = graph("a: b!:a")
    problem["nodes"][1]["weight_bytes"] = 10
    problem["devices"][0]["budget_bytes"] = 5
    with pytest.raises(hetnn.DoesNotFit, match="device 'cpu': budget_bytes is 5, but 10 bytes"):
        hetnn.plan_problem(problem)


def test_bad_options() -> None:
    with pytest.raises(hetnn.InvalidModel, match="there is no 'best'; there are topological, depth, merge"):
        hetnn.plan_problem(graph("a:"), "best")
    with pytest.raises(hetnn.InvalidModel, match="strategy 'topological': order must be one of min, index"):
        hetnn.plan_problem(graph("a:"), "topological", order="max")
    with pytest.raises(hetnn.InvalidModel, match="unknown key 'settle'; known are local_search, overlap, strict"):
        hetnn.plan_problem(graph("a:"), "cost", settle="trim")


def test_empty_problem_has_an_empty_plan() -> None:
    for strategy in STRATEGIES:
        plan = hetnn.plan_problem(graph(""), strategy)
        assert plan["subgraphs"] == []
        assert plan["cost_us"] == 0


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "problem.json"
    file.write_text(json.dumps(graph("A: B~:A C!:B")))
    arguments = ["plan", "--problem", str(file), "--strategy", "merge", "--option", "settle=trim", "--json"]
    assert main(arguments) == 0
    assert sets(json.loads(capsys.readouterr().out)) == [["A"], ["B", "C"]]
    file.write_text(json.dumps(graph("A:B B:A")))
    assert main(["plan", "--problem", str(file), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "InvalidModel"
    assert "cycle" in error["message"]
