"""Proofs of rewriting rules: a sample is proved again, and a wrong rule is not."""

from __future__ import annotations

import json

import pytest

import prove_rules
from hetnn import _core

RECORDED = json.loads(prove_rules.FILE.read_text())
SAMPLE = ["multiply_as_depthwise", "subtract_as_add", "several_as_pairs", "pieces_from_where", "identity_nothing"]


def test_every_rule_is_recorded() -> None:
    assert list(RECORDED) == [rule["name"] for rule in _core.rules()], "run make prove-rules docs"


@pytest.mark.parametrize("rule", SAMPLE)
def test_a_rule_is_proved_as_recorded(rule: str) -> None:
    assert RECORDED[rule]["proof"] in (prove_rules.EXACT, prove_rules.ROUNDED)
    assert prove_rules.result(rule, prove_rules.cases()[rule]) == RECORDED[rule]


def test_what_is_wrong_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = next(g for g in prove_rules.cases()["subtract_as_add"])
    wrong = _core.Graph.parse(graph.replace("sub(%a, %b)", "add(%a, %b)"))
    monkeypatch.setattr(_core, "apply_rule", lambda before, rule: wrong)
    assert prove_rules.prove("subtract_as_add", graph) == prove_rules.NONE


def test_an_unknown_rule_is_refused() -> None:
    graph = _core.Graph.parse(prove_rules.cases()["subtract_as_add"][0])
    with pytest.raises(ValueError, match="there is no rule 'nothing'"):
        _core.apply_rule(graph, "nothing")
    assert _core.apply_rule(graph, "negate_as_depthwise") is None
