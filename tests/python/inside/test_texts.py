"""What people read: tables in place of raw dicts, places in the source, cards that leave a notebook as it is."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch

import hetnn
from hetnn.cli import main
from hetnn.importers.torch.reading import _source
from hetnn.report.rows import Rows
from hetnn.report.text import as_text, count, place
from inside import nets

X = torch.zeros(1, 3, 14, 14)
TARGET = "cpu+relu-only"


@pytest.fixture(scope="module")
def plan() -> hetnn.Plan:
    return hetnn.plan(nets.residual(), TARGET, args=(X,), rewrite="off")


def test_answers_print_as_tables(plan: hetnn.Plan) -> None:
    why = plan.why("prelu")
    assert isinstance(why, dict)
    assert repr(why) == str(why)
    assert str(why).splitlines()[0].startswith("prelu 'prelu' is on cpu, subgraph ")
    assert "node us" in str(why)
    gains = plan.what_if()
    assert isinstance(gains, list)
    assert str(gains).splitlines()[0].split() == ["support", "device", "gain_us", "nodes"]
    assert "prelu, prelu_1" in str(gains)
    assert str(plan.what_if("relu")) == "no accelerator lacks anything that was asked for"
    assert "{" not in str(why) + str(gains)


def test_plans_tell_what_differs_and_what_was_weighed(plan: hetnn.Plan) -> None:
    other = hetnn.plan(nets.residual(), TARGET, args=(X,), rewrite="always")
    lines = str(plan.diff(other)).splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["before", "cost", "overlapping", "subgraphs"]
    where, nodes = lines[4].split(": ")
    assert where == "cpu → relu-only"
    assert {"prelu", "prelu_1"} <= set(nodes.split(", "))
    assert lines[-1].startswith("after alone: prelu.")
    assert str(plan.diff(plan)).splitlines()[-1] == "no node moved"
    problem = hetnn.plan_problem(hetnn.generate_problem("layered", 12, 1))
    for one in (plan.explain(), problem.explain(), problem.diff(problem)):
        assert isinstance(one, dict)
        assert "{" not in str(one)
    told = str(problem.explain()).splitlines()
    assert told[0] == "cost 261.7 us = nodes 234.0 + launches 18.0 + transfers 9.7"
    assert "plans weighed:" in told


@pytest.mark.parametrize("what", ["plan", "executable"])
def test_a_card_brings_no_style_for_the_notebook(what: str, plan: hetnn.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """And none of the packages that page and picture need."""
    for package in ("netron", "py_mini_racer"):
        monkeypatch.setitem(sys.modules, package, None)
    shown = plan if what == "plan" else hetnn.compile(nets.residual(), TARGET, args=(X,), rewrite="off")
    card = shown._repr_html_()
    assert card.startswith("<div class='hetnn-card'")
    for word in ("<style", "<html", "<body", "<!doctype", "<script"):
        assert word not in card.lower()
    assert card.count("<div") == card.count("</div>")
    assert "<svg" in card
    assert card.count("relu-only has no operator prelu") >= 1
    assert "relu-only" in card


def test_places_are_lines_modules_or_cells() -> None:
    assert place({"loc": "net.py:7", "module": "3"}) == "at net.py:7"
    assert place({"loc": "3", "module": "3"}) == "in module '3'"
    assert place({"loc": "", "module": ""}) == ""
    assert _source("/home/me/net.py") == "net.py"
    assert _source("/tmp/ipykernel_4711/4212800056.py") == "notebook cell"
    assert _source("<ipython-input-5-0123456789ab>") == "notebook cell"
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 1), torch.nn.PReLU()).eval()
    text = hetnn.plan(module, TARGET, args=(X,), rewrite="off").report()
    assert "prelu 'prelu' on cpu  in module '1'" in text


def test_one_is_singular_and_nothing_is_not_told() -> None:
    assert [count(1, "node"), count(2, "node"), count(1, "launch"), count(0, "launch")] == [
        "1 node",
        "2 nodes",
        "1 launch",
        "0 launches",
    ]
    report = hetnn.plan(nets.residual(), TARGET, args=(X,), rewrite="always").report("dict")
    assert report["rewrites"]
    for row in (report["rewriting"], *report["rewrites"]):
        row |= {"bytes_avoided": 0, "launches_avoided": 0}
    told = as_text(report)
    lines = [line for line in told.splitlines() if line.startswith(("rewritten:", "  prelu"))]
    assert len(lines) == 3
    assert not any("0 bytes" in line or "0 launches" in line for line in lines)


WORDS = "nodes|subgraphs|inputs|outputs|samples|steps|epochs|runs|layers|values|rows|axes|crossings"
SEVERAL = re.compile(rf"(?<![.,\d])1 (?:{WORDS})\b")


def test_what_there_is_one_of_is_singular_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In what commands print of a model of one node, and in what a wrong call is told."""
    (tmp_path / "one.ir").write_text("graph @g {stage = imported} (%x: f32[1,8]) -> (%y) { %y = relu(%x) : f32[1,8] }")
    model = str(tmp_path / "one.ir")
    for command in ("plan", "check", "report", "inspect", "profile", "run", "compare", "bench"):
        more = ["--runs", "1"] if command == "bench" else []
        for target in ("cpu", TARGET):
            assert main([command, model, "--target", target, *more]) == 0
    told = "".join(capsys.readouterr())
    exe = hetnn.compile(Path(model))
    net = torch.nn.Linear(3, 3).eval()
    faults = [
        lambda: exe(X, X),
        lambda: exe.run([]),
        lambda: hetnn.compile(Path(model), example=[(1, 8), (1, 8)]),
        lambda: hetnn.compile(net, args=(X[0, 0, :3, :3],))(X, X),
        lambda: hetnn.quantize(net, [(X, X)], args=(torch.zeros(1, 3),)),
    ]
    for fault in faults:
        with pytest.raises(hetnn.InvalidModel) as refused:
            fault()
        told += f"{refused.value}\n"
    told += str(hetnn.quantize(net, [(torch.randn(1, 3),)], args=(torch.zeros(1, 3),)).report)
    assert "1 sample" in told
    assert SEVERAL.findall(told) == []


def test_a_model_given_to_load_is_told_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(b"\x08\x0a\x12\x07pytorch" + bytes(100))
    with pytest.raises(
        hetnn.InvalidModel, match=r"x\.onnx' is no hetnn executable: none begins like this\. Models are"
    ):
        hetnn.load(path)


def test_rows_are_lists_that_print(tmp_path: Path) -> None:
    rows = Rows(
        [{"a": "one", "b": 1234567, "c": 0.25, "d": [1, 2]}, {"a": "two", "b": None, "c": 1e-9}], ("a", "b", "c")
    )
    assert str(rows).splitlines() == ["a            b      c", "one  1,234,567   0.25", "two             1e-09"]
    assert rows.to_csv(tmp_path / "rows.csv") == "a,b,c,d\none,1234567,0.25,1 2\ntwo,,1e-09,\n"
    assert (tmp_path / "rows.csv").read_text() == rows.to_csv()
    assert str(Rows(nothing="none")) == "none"
    assert rows == list(rows)
    try:
        import pandas  # noqa: F401
    except ImportError:
        with pytest.raises(hetnn.Unsupported, match="to_dataframe needs pandas"):
            rows.to_dataframe()
    else:
        assert list(rows.to_dataframe().columns) == ["a", "b", "c", "d"]
