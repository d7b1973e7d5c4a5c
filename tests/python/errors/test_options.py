"""The options of compiling: one table gives the signature, the flags and the errors; passes can be dumped."""

from __future__ import annotations

import inspect
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from hetnn.cli import COMMANDS, build_parser, main
from hetnn.options import table

MODEL = """graph @g {stage = imported} (%a: f32[4]) -> (%y) {
  %b = neg(%a) : f32[4]
  %y = relu(%b) : f32[4]
}
"""
COMPILING = ("compile", "plan", "run", "bench", "report")


@pytest.mark.parametrize("function", [hetnn.compile, hetnn.plan])
def test_the_signature_names_every_option_with_its_type_and_default(function: Any) -> None:
    parameters = inspect.signature(function).parameters
    assert [row.name for row in table() if row.name not in parameters] == []
    assert all(parameters[row.name].kind is inspect.Parameter.KEYWORD_ONLY for row in table())
    found = {name: (str(parameters[name].annotation), parameters[name].default) for name in parameters}
    assert found["strategy"] == ("str", "cost")
    assert found["threads"] == ("int | None", None)
    assert found["deterministic"] == ("bool", False)
    assert found["fusion"] == ('bool | Literal["on", "off"]', True)
    assert found["memory_budget"] == ("Mapping[str, float] | None", None)
    assert all(f"{row.name}: {row.doc}" in function.__doc__ for row in table())


def test_every_command_that_compiles_has_every_flag() -> None:
    _, commands = build_parser(list(COMMANDS))
    for name in COMPILING:
        help_text = commands[name].format_help()
        assert [row.flag for row in table() if row.flag.split(" ")[0] not in help_text] == [], name


@pytest.mark.parametrize("function", [hetnn.compile, hetnn.plan])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"detreministic": True}, "unknown key 'detreministic'; did you mean 'deterministic'? Known are strategy, "),
        ({"threads": -1}, "options: threads must be an integer in [0, 4096]; found -1."),
        ({"threads": "4"}, 'options: threads must be an integer in [0, 4096]; found "4".'),
        ({"threads": 1.5}, "options: threads must be an integer in [0, 4096]; found 1.5."),
        ({"deterministic": 1}, "options: deterministic must be true or false; found 1."),
        ({"fusion": "maybe"}, 'options: fusion must be true, false, "on" or "off"; found "maybe".'),
        ({"rewrite": "some"}, 'options: rewrite must be one of auto, always, off; found "some".'),
        ({"strict": 3}, "options: strict must be a text that is not empty; found 3."),
        ({"disabled_rules": "abs_from_relu"}, "options: disabled_rules must be a list; found "),
        ({"memory_budget": {"cpu": math.nan}}, "options: memory_budget.cpu must be a finite number; found nan."),
        ({"memory_budget": {"cpu": math.inf}}, "options: memory_budget.cpu must be a finite number; found inf."),
        ({"shapes": [{"n": 1.5}]}, "options: shapes[0].n must be an integer; found 1.5."),
        ({"pin": [{"device": "cpu"}]}, "options: pin[0] must name a device and one of name, regex, op, module, as in "),
        ({"pin": [{"name": "a", "op": "b", "device": "cpu"}]}, "options: pin[0] must name a device and one of name"),
        ({"pin": {"y": 3}}, "options: pin.y must be a text; found 3."),
        ({"options": {"orderr": "min"}}, "strategy 'cost': the set of options has the unknown key 'orderr'"),
        ({"measured_us": {"y": {"cpu": -1}}}, "measured_us.y.cpu must be a finite number of at least 0; found -1."),
        ({"dump": 3}, "options: dump must be a text that is not empty; found 3."),
        ({"tune": object()}, "options: cannot be written as JSON: <object object"),
    ],
)
def test_options_that_make_no_sense(function: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=re.escape(message)):
        function(MODEL, **options)


def test_options_may_be_left_empty_and_come_from_numpy() -> None:
    nothing = {row.name: row.default for row in table()}
    same = hetnn.plan(MODEL, **nothing).to_json()
    assert hetnn.plan(MODEL, memory_budget={"cpu": np.float32(1e9)}, threads=np.int64(1)).to_json() == same


def test_times_may_be_given() -> None:
    measured = {"b": {"cpu": 100.0}, "y": {"cpu": 200.0}}
    plan = hetnn.plan(MODEL, fusion=False, measured_us=measured)
    assert plan.explain()["parts"]["node_us"] == 300
    assert plan.report("dict")["measured_nodes"] == 2


def test_a_target_nested_without_end_is_refused(tmp_path: Path) -> None:
    deep: Any = {}
    for _ in range(100):
        deep = {"a": deep}
    target = {"name": "t", "devices": [{"name": "cpu", "kind": "cpu", "spec": deep}]}
    with pytest.raises(hetnn.InvalidModel, match=r"target: .* is nested too deep; at most 16 levels are expected"):
        hetnn.plan(MODEL, target)
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(hetnn.InvalidModel, match=r"deep.json' is no JSON"):
        hetnn.plan(MODEL, str(path))
    with pytest.raises(hetnn.InvalidModel, match=r"devices\[0\] has the unknown key 'kindd'; did you mean 'kind'"):
        hetnn.plan(MODEL, {"name": "t", "devices": [{"name": "cpu", "kindd": "cpu"}]})
    for devices in (7, None, {"cpu": "cpu"}):
        with pytest.raises(hetnn.InvalidModel, match="a target's devices are a list of objects; found"):
            hetnn.plan(MODEL, {"name": "t", "devices": devices})


def dumped(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.ir"))


def test_the_graph_is_dumped_after_each_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.ir"
    model.write_text(MODEL)
    arguments = ["compile", str(model), "-o", str(tmp_path / "m.hetnn"), "--dump", str(tmp_path / "dump"), "--json"]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out)["report"]
    passes = [row["name"] for row in report["passes"]]
    assert passes[0] == "canonicalize"
    assert all(row["ms"] >= 0 and set(row) == {"name", "stage", "ms"} for row in report["passes"])
    names = dumped(tmp_path / "dump")
    assert [name for name in names if name.count(".") == 1] == [
        f"{number:02}_{name}.ir" for number, name in enumerate(["imported", *passes])
    ]
    assert (tmp_path / "dump" / "00_imported.ir").read_text() == MODEL
    assert "relu(%b) : f32[4] on cpu" in (tmp_path / "dump" / "05_place.ir").read_text()


def test_the_environment_may_name_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HETNN_DUMP", str(tmp_path / "a"))
    hetnn.plan(MODEL)
    assert dumped(tmp_path / "a")[-1] == "09_plan_bodies.ir"
    hetnn.plan(MODEL, dump=tmp_path / "b")
    assert dumped(tmp_path / "b") == dumped(tmp_path / "a")


def test_a_plan_tells_its_passes_and_stays_the_same_text() -> None:
    plan = hetnn.plan(MODEL)
    assert [row["stage"] for row in plan.report("dict")["passes"]][-1] == "cut"
    assert "passes" not in json.loads(plan.to_json())
