"""Plans of networks answer the questions that plans of problems answer, in the model's own words."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch
from torch import Tensor, nn

import hetnn
from hetnn.cli import main
from models import nets

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "docs" / "report-schema.json").read_text())
TARGET = "cpu+relu-only"


class Gated(nn.Module):
    """Convolutions large enough for the NPU, and between them a gelu that it lacks and no rule rewrites."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, padding=1)
        self.second = nn.Conv2d(32, 32, 3, padding=1)
        self.slope = nn.PReLU(32)

    def forward(self, x: Tensor) -> Tensor:
        return self.slope(self.second(nn.functional.gelu(self.first(x))))


def export(module: nn.Module, inputs: tuple[Tensor, ...]) -> torch.export.ExportedProgram:
    return torch.export.export(module.eval(), inputs, strict=False)


@pytest.fixture(scope="module")
def gated() -> torch.export.ExportedProgram:
    torch.manual_seed(5)
    return export(Gated(), (torch.randn(1, 3, 32, 32),))


@pytest.fixture(scope="module")
def tiny() -> torch.export.ExportedProgram:
    return export(*nets.tiny())


@pytest.mark.parametrize("strategy", ["cost", "topological", "depth", "merge", "take-all", "cpu-only"])
def test_the_document_conforms_to_its_schema(tiny: torch.export.ExportedProgram, strategy: str) -> None:
    plan = hetnn.plan(tiny, TARGET, strategy=strategy)
    document = json.loads(plan.to_json())
    jsonschema.validate(document, SCHEMA)
    report = plan.report(format="dict")
    jsonschema.validate(report, SCHEMA)
    assert [row["name"] for row in report.pop("passes")]
    assert document == report
    assert document["predicted_us"] == pytest.approx(sum(document["parts"].values()))
    # The same terms in another order where nothing overlaps.
    assert document["makespan_us"] <= document["predicted_us"] * (1 + 1e-12)
    assert (document["lower_bound_us"] is None) == (strategy != "cost")


def test_every_node_says_which_devices_support_it(tiny: torch.export.ExportedProgram) -> None:
    graph = hetnn.plan(tiny, TARGET, rewrite="off").report(format="dict")["graph"]
    by_op = {row["op"]: set(row["supported_by"]) for row in graph}
    assert by_op["conv2d"] == {"cpu", "relu-only"}
    assert by_op["prelu"] == by_op["softmax"] == {"cpu"}
    assert all(row["device"] in row["supported_by"] for row in graph)


def test_an_executable_reports_by_the_same_schema(tiny: torch.export.ExportedProgram) -> None:
    jsonschema.validate(hetnn.compile(tiny, "cpu+relu-only+relu-mul").report(format="dict"), SCHEMA)


def test_the_same_model_gives_the_same_text(tiny: torch.export.ExportedProgram) -> None:
    assert hetnn.plan(tiny, TARGET).to_json() == hetnn.plan(tiny, TARGET).to_json()


def test_the_network_is_a_planning_problem(gated: torch.export.ExportedProgram) -> None:
    """The problem of a network, planned as a problem, has the network's plan."""
    plan = hetnn.plan(gated, TARGET)
    answer = hetnn.plan_problem(plan.problem())
    document = plan.report(format="dict")
    assert answer["cost_us"] == pytest.approx(document["predicted_us"])
    assert answer["device_of"] == {row["node"]: row["device"] for row in document["graph"]}


def test_why_gives_costs_and_all_reasons(gated: torch.export.ExportedProgram) -> None:
    plan = hetnn.plan(gated, TARGET, strategy="take-all")
    why = plan.why("gelu")
    assert (why["device"], why["op"]) == ("cpu", "gelu")
    assert why["time_us"]["relu-only"] is None
    assert why["time_us"]["cpu"] > 0
    (reason,) = why["reasons"]
    assert (reason["device"], reason["label"]) == ("relu-only", "gelu_missing")
    assert "test_network_plans.py:" in why["loc"]
    conv = plan.why("conv2d")
    assert conv["device"] == "relu-only"
    assert conv["plan_cost_us"]["relu-only"] == pytest.approx(plan.report("dict")["predicted_us"])
    assert conv["reasons"], "there is a reason against the cpu too"
    with pytest.raises(hetnn.InvalidModel, match="the plan has no node 'x'"):
        plan.why("x")


def test_a_node_that_could_move_says_what_moving_costs(gated: torch.export.ExportedProgram) -> None:
    plan = hetnn.plan(gated, TARGET, strategy="cpu-only", rewrite="off")
    rows = {row["node"]: row for row in plan.report(format="dict")["not_on_preferred"]}
    assert set(rows) == {"conv2d", "gelu", "conv2d_1", "prelu"}
    for name in ("conv2d", "conv2d_1"):
        (reason,) = rows[name]["reasons"]
        assert reason["label"] in ("cost", "strategy")
        assert " us" in reason["text"]
    pinned = hetnn.plan(gated, TARGET, strategy="take-all", pin={"conv2d": "cpu"}, rewrite="off")
    labels = {reason["label"] for reason in pinned.why("conv2d")["reasons"]}
    assert "pin" in labels


def test_explain_weighs_other_plans(gated: torch.export.ExportedProgram) -> None:
    plan = hetnn.plan(gated, TARGET)
    explained = plan.explain()
    assert explained["lower_bound_us"] <= explained["cost_us"] * (1 + 1e-9)
    assert {"cut", "take-all", "cpu-only"} <= {row["name"] for row in explained["candidates"]}
    assert explained["candidates"][0]["cost_us"] == pytest.approx(explained["cost_us"])
    text = plan.explain(format="text")
    for expected in ("plans weighed:", "no plan costs less than", "where devices work at the same time", "gelu"):
        assert expected in text
    with pytest.raises(hetnn.InvalidModel, match="format is dict or text; got 'html'"):
        plan.explain(format="html")


def test_what_if_ranks_operators_of_the_model_as_written(gated: torch.export.ExportedProgram) -> None:
    plan = hetnn.plan(gated, TARGET, rewrite="always")
    assert [row["op"] for row in plan.report(format="dict")["rewrites"]] == ["prelu"]
    rows = plan.what_if()
    assert {row["support"] for row in rows} == {"gelu", "prelu"}
    assert [row["gain_us"] for row in rows] == sorted((row["gain_us"] for row in rows), reverse=True)
    best = rows[0]
    assert (best["support"], best["rewritten"]) == ("gelu", False)
    assert best["gain_us"] > 0
    assert best["cost_us"] == pytest.approx(plan.report("dict")["predicted_us"] - best["gain_us"])
    (node,) = best["nodes"]
    assert node["node"] == "gelu"
    assert "test_network_plans.py:" in node["loc"]
    prelu = rows[1]
    assert prelu["rewritten"]
    assert [node["module"] for node in prelu["nodes"]] == ["slope"]


def test_what_if_knows_the_names_of_torch_and_onnx(gated: torch.export.ExportedProgram) -> None:
    plan = hetnn.plan(gated, TARGET)
    for word in ("gelu", "aten.gelu.default", "Gelu"):
        assert [row["support"] for row in plan.what_if([word])] == ["gelu"]
    with pytest.raises(hetnn.InvalidModel, match=r"no node of the model has the operator 'lstm'; it has .*gelu"):
        plan.what_if(["lstm"])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda p: p().what_if([3]), "what_if takes names of operators; got 3"),
        (lambda p: p().diff("x"), "diff compares with another plan of hetnn.plan; got str"),
        (lambda p: p(shapes=[5]), "options: shapes[0] must be an object; found 5"),
        (lambda p: p(calibration=5), 'calibration is "off", a path or a data sheet; got 5'),
        (
            lambda p: p(memory_budget={"cpu": "1k"}),
            'options: memory_budget.cpu must be a finite number of at least 0; found "1k"',
        ),
        (
            lambda p: p(memory_budget={"cpu": float("nan")}),
            "options: memory_budget.cpu must be a finite number; found nan",
        ),
    ],
)
def test_wrong_arguments_are_named(gated: torch.export.ExportedProgram, ask: Any, message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=re.escape(message)):
        ask(lambda **settings: hetnn.plan(gated, TARGET, **settings))


def test_one_operator_needs_no_list(gated: torch.export.ExportedProgram) -> None:
    plan = hetnn.plan(gated, TARGET)
    assert plan.what_if("gelu") == plan.what_if(["gelu"])


def test_every_device_is_asked(gated: torch.export.ExportedProgram) -> None:
    rows = hetnn.plan(gated, "cpu+relu-only+relu-mul").what_if(["gelu"])
    assert {row["device"] for row in rows} == {"relu-only", "relu-mul"}


def test_diff_names_what_moved(gated: torch.export.ExportedProgram) -> None:
    plan = hetnn.plan(gated, TARGET, strategy="take-all", rewrite="off")
    other = hetnn.plan(gated, TARGET, strategy="cpu-only", rewrite="off")
    difference = plan.diff(other)
    assert {row["node"] for row in difference["moved"]} == {"conv2d", "conv2d_1"}
    assert all((row["from"], row["to"]) == ("relu-only", "cpu") for row in difference["moved"])
    assert difference["cost_us"]["after"] == pytest.approx(other.report("dict")["predicted_us"])
    assert plan.diff(plan)["moved"] == []


def test_the_picture_shows_nodes_and_schedule(gated: torch.export.ExportedProgram) -> None:
    plan = hetnn.plan(gated, TARGET, strategy="take-all")
    root = xml.etree.ElementTree.fromstring(plan.svg())
    titles = [e.text or "" for e in root.iter() if e.tag.endswith("title")]
    assert any(title.startswith("gelu: gelu on cpu") for title in titles)
    assert sum(title.startswith("subgraph ") for title in titles) == len(plan.report("dict")["subgraphs"])


def test_budgets_come_from_the_options(gated: torch.export.ExportedProgram) -> None:
    free = hetnn.plan(gated, TARGET, strategy="take-all", rewrite="off").report(format="dict")
    assert free["nodes_on"][("relu-only")] == 2
    # The second convolution's weights are 32*32*9*4 bytes, the first's 32*3*9*4; both have 32 biases.
    tight = hetnn.plan(gated, TARGET, strategy="take-all", rewrite="off", memory_budget={"relu-only": 10_000})
    document = tight.report(format="dict")
    assert document["nodes_on"]["relu-only"] == 1
    rows = {row["node"]: row for row in document["not_on_preferred"]}
    assert [reason["label"] for reason in rows["conv2d_1"]["reasons"]] == ["budget_bytes"]
    with pytest.raises(hetnn.InvalidModel, match="has no device 'dsp'"):
        hetnn.plan(gated, TARGET, memory_budget={"dsp": 1})
    with pytest.raises(
        hetnn.InvalidModel, match=r"memory_budget\.relu-only must be a finite number of at least 0; found -1"
    ):
        hetnn.plan(gated, TARGET, memory_budget={"relu-only": -1})


class Branches(nn.Module):
    """Two towers that need nothing of each other."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Sequential(*(nn.Conv2d(8, 8, 3, padding=1) for _ in range(3)))
        self.right = nn.Sequential(*(nn.Conv2d(8, 8, 3, padding=1) for _ in range(3)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.left(x), self.right(x)


def test_overlap_shortens_the_schedule_of_independent_towers() -> None:
    torch.manual_seed(6)
    module, x = Branches().eval(), torch.randn(1, 8, 24, 24)
    exported = export(module, (x,))
    # Presets of one speed: one tower each, where one device would take both after each other.
    target = "cpu+relu-only+relu-mul"
    serial = hetnn.plan(exported, target).report(format="dict")
    executable = hetnn.compile(exported, target, overlap=True)
    report = executable.report(format="dict")
    assert report["makespan_us"] < 0.7 * serial["makespan_us"]
    assert report["predicted_us"] >= serial["predicted_us"]
    with torch.no_grad():
        for got, want in zip(executable(x), module(x), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    with pytest.raises(hetnn.InvalidModel, match="strategy 'depth': the set of options has the unknown key 'overlap'"):
        hetnn.plan(exported, target, strategy="depth", overlap=True)


@pytest.fixture(scope="module")
def file(gated: torch.export.ExportedProgram, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("gated") / "gated.pt2"
    torch.export.save(gated, path)
    return str(path)


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    capsys.readouterr()
    return main(list(argv)), capsys.readouterr().out


def test_the_command_prints_plan_and_answers(file: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["plan", file, "--target", TARGET]
    status, out = call(capsys, *arguments, "--json", "--svg", str(tmp_path / "plan.svg"))
    assert status == 0
    document: dict[str, Any] = json.loads(out)
    jsonschema.validate(document, SCHEMA)
    xml.etree.ElementTree.parse(tmp_path / "plan.svg")
    status, out = call(capsys, *arguments)
    assert status == 0
    assert "plans weighed:" in out
    assert "gelu 'gelu' on cpu  at test_network_plans.py:" in out
    status, out = call(capsys, *arguments, "--why", "gelu")
    assert status == 0
    assert "relu-only has no operator gelu (gelu_missing)" in out
    status, out = call(capsys, *arguments, "--what-if")
    assert status == 0
    assert "gelu on relu-only: " in out
    status, out = call(capsys, *arguments, "--what-if", "gelu", "--json")
    assert [row["support"] for row in json.loads(out)["what_if"]] == ["gelu"]
    status, out = call(capsys, *arguments, "--memory-budget", "relu-only=10000", "--strategy", "take-all", "--json")
    assert status == 0
    assert any(
        reason["label"] == "budget_bytes" for row in json.loads(out)["not_on_preferred"] for reason in row["reasons"]
    )


def test_check_lists_reasons_of_every_accelerator(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out = call(capsys, "check", file, "--target", "cpu+relu-only+relu-mul")
    assert status == 1
    assert "gelu 'gelu' runs on cpu  at test_network_plans.py:" in out
    for device in ("relu-only", "relu-mul"):
        assert f"  {device}: {device} has no operator gelu (gelu_missing: gelu, wanted " in out
    assert "by operator: " in out
    status, out = call(capsys, "check", file, "--target", "cpu", "--json")
    assert (status, json.loads(out)) == (0, {"unsupported": []})
