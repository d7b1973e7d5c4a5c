"""Proves rewriting rules over the reals, by an SMT solver, on the graphs with which the tests show that they fire.

    python tools/prove_rules.py [RULE ...]

For every such graph of f32 and the graph that the rule makes of it: no real inputs give different outputs; or, where
the rule rounds constants, none give outputs further apart than 2^-20 of 1 plus the sum of the magnitudes that an output
reads. Weights and sizes are those of the graphs. What the solver is told of a graph is first compared with what hetnn
computes of random numbers. Without names all rules are tried and docs/rule_proofs.json is written, from which
docs/rules.md says which rules are proved. Needs z3-solver.
"""

from __future__ import annotations

import json
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import z3
from z3.z3util import get_vars

import hetnn
from hetnn import _core
from rule_proofs import NotCovered, evaluate, sub, term

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cpp" / "passes"
FILE = ROOT / "docs" / "rule_proofs.json"
EXACT, ROUNDED, NONE = "exact", "rounded", "none"
MOST_ELEMENTS = 2000  # of all outputs of a graph
SECONDS = 2  # for an element
NEAR = Fraction(1, 2**20)


def cases() -> dict[str, list[str]]:
    """The graphs on which the tests of C++ have each rule fire."""
    out: dict[str, list[str]] = {}
    for path in sorted(CASES.glob("*_cases.cpp")):
        for rule, graph in re.findall(r'\{"(\w+)",\s*R"\((graph .*?)\)"', path.read_text(), re.DOTALL):
            out.setdefault(rule, []).append(graph)
    return out


def _holds(claim: Any) -> bool:
    """Whether nothing makes a claim false."""
    solver = z3.Solver()
    solver.set("timeout", 1000 * SECONDS)
    solver.add(z3.Not(claim))
    return bool(solver.check() == z3.unsat)


def compare(graph: Any) -> None:
    """Has the meanings over the reals give of random numbers what hetnn computes, where no function is unknown."""
    random = np.random.default_rng(0)
    given = {name: random.normal(size=shape).astype(np.float32) for name, _, shape in graph.inputs}
    numbers = {
        f"%{name}": np.array([Fraction(float(v)) for v in x.flat], object).reshape(x.shape) for name, x in given.items()
    }
    found = evaluate(graph.print(), numbers)
    for x, wanted in zip(found, hetnn.compile(graph, "reference").run(list(given.values())), strict=True):
        if not all(isinstance(v, Fraction) for v in x.flat):
            return
        if np.abs(x.astype(float) - wanted).max(initial=0) > 1e-4 * (1 + np.abs(wanted).max(initial=0)):
            raise AssertionError(f"the meanings over the reals are not hetnn's:\n{graph.print()}")


def prove(rule: str, graph: str) -> str:
    """How one graph and what the rule makes of it agree. NotCovered where that is beyond these means."""
    before = _core.Graph.parse(graph)
    after = _core.apply_rule(before, rule)
    if after is None:
        raise NotCovered("the rule does not fire there")
    symbols: dict[str, Any] = {}
    old, new = evaluate(before.print(), symbols), evaluate(after.print(), symbols)
    compare(before)
    compare(after)
    pairs = [pair for x, y in zip(old, new, strict=True) for pair in zip(x.flat, y.flat, strict=True)]
    if len(pairs) > MOST_ELEMENTS:
        raise NotCovered(f"{len(pairs)} elements")
    apart = [z3.simplify(term(sub(a, b)), som=True) for a, b in pairs if not isinstance(a, bool) and not z3.is_bool(a)]
    if len(apart) != len(pairs):
        raise NotCovered("truth values")
    left = [each for each in apart if not (z3.is_rational_value(each) and each.as_fraction() == 0)]
    if all(_holds(each == 0) for each in left):
        return EXACT
    return ROUNDED if all(_is_near(each) for each in left) else NONE


def _is_near(apart: Any) -> bool:
    bound = term(NEAR) * (1 + z3.Sum([z3.If(x >= 0, x, -x) for x in get_vars(apart)]))
    return _holds(z3.And(apart <= bound, apart >= -bound))


def result(rule: str, graphs: list[str]) -> dict[str, Any]:
    """The weakest proof over a rule's graphs that are covered, how many these are, and what hinders the others."""
    found: list[str] = []
    hindered: set[str] = set()
    for graph in graphs:
        try:
            found.append(prove(rule, graph))
        except NotCovered as error:
            hindered.add(str(error))
    if NONE in found:
        hindered.add("no proof was found")
    proof = NONE if not found or NONE in found else ROUNDED if ROUNDED in found else EXACT
    return {"proof": proof, "graphs": len(found), "of": len(graphs), "hindered": sorted(hindered)}


def main() -> int:
    """Tries rules, and says what came out."""
    known = cases()
    names = sys.argv[1:] or [rule["name"] for rule in _core.rules()]
    results = {}
    for name in names:
        results[name] = result(name, known.get(name, []))
        print(name, json.dumps(results[name]), flush=True)
    if not sys.argv[1:]:
        FILE.write_text(json.dumps(results, indent=1) + "\n")
    proved = sum(each["proof"] != NONE for each in results.values())
    print(f"{proved} of {len(results)} rules are proved")
    return 0


if __name__ == "__main__":
    sys.exit(main())
