"""Proofs of rewriting rules: a sample is proved again, and a wrong rule is not."""

from __future__ import annotations

import json

import pytest

import prove_rules
from hetnn import _core

RECORDED = json.loads(prove_rules.FILE.read_text())
SAMPLE = {
    "multiply_as_depthwise": prove_rules.EXACT,
    "subtract_as_add": prove_rules.EXACT,
    "several_as_pairs": prove_rules.ROUNDED,
    "pieces_from_where": prove_rules.EXACT,
    "permute_without_ones": prove_rules.MOVED,
    "function_as_table": prove_rules.ALL,
    "bits_toggled_twice": prove_rules.ALL,
    "transposed_integers_as_phases": prove_rules.EXACT,
    "mean_as_depthwise": prove_rules.STEP,
    "gelu_from_erf_half_last": prove_rules.BOUND,
}


def test_every_rule_is_recorded() -> None:
    assert list(RECORDED) == [rule["name"] for rule in _core.rules()], "run make prove-rules docs"


@pytest.mark.parametrize("rule", SAMPLE)
def test_a_rule_is_proved_as_recorded(rule: str) -> None:
    assert RECORDED[rule]["proof"] == SAMPLE[rule]
    assert prove_rules.result(rule, prove_rules.cases().get(rule, [])) == RECORDED[rule]


@pytest.mark.parametrize(
    ("rule", "right", "wrong"),
    [
        ("subtract_as_add", "sub(%a, %b)", "add(%a, %b)"),
        ("function_as_table", "gelu(%x)", "relu(%x)"),
        ("function_as_table", "q_zero = -20} : i8{0.03125:-20}", "q_zero = -18} : i8{0.03125:-18}"),
        ("slice_of_gather", "{3, 1, 0, 2, 3}", "{3, 0, 1, 2, 3}"),
        ("sum_as_depthwise", "coefficients = [1.0, -2.0, 3.0]", "coefficients = [1.0, -2.0, 2.0]"),
        ("mean_as_depthwise", "q_scale = [0.0625]} : i8{0.0625}", "q_scale = [0.125]} : i8{0.125}"),
    ],
)
def test_what_is_wrong_is_not_proved(rule: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = next(g for g in prove_rules.cases()[rule] if right in g)
    altered = _core.Graph.parse(prove_rules.at_hints(graph.replace(right, wrong)))
    other = _core.apply_rule(altered, rule) or altered
    monkeypatch.setattr(_core, "apply_rule", lambda before, name: other)
    assert prove_rules.prove(rule, graph) == prove_rules.NONE


def test_an_unknown_rule_is_refused() -> None:
    graph = _core.Graph.parse(prove_rules.cases()["subtract_as_add"][0])
    with pytest.raises(ValueError, match="there is no rule 'nothing'"):
        _core.apply_rule(graph, "nothing")
    assert _core.apply_rule(graph, "negate_as_depthwise") is None
