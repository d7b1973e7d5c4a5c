"""Proves rewriting rules, on the graphs with which the tests show that they fire.

    python tools/prove_rules.py [RULE ...]

For every such graph and the graph that the rule makes of it an SMT solver shows that no inputs give different
outputs, over the reals; or, where the rule rounds constants, none give outputs further apart than 2^-20 of 1 plus the
sum of the magnitudes that an output reads, times the largest constant if that is above 1. Integers that stand for
reals are rounded from them, to the integer that is next; where a tie may be rounded otherwise, outputs are at most one
step apart. Where inputs are bytes, and every element of an output depends on one, or on one of each of two
inputs, hetnn itself computes both graphs for all 256 values, or all 256² pairs: results are equal, or at most one step
apart. Where values are only moved, bytes that are their own places are. What the solver cannot know, functions at
nearly equal numbers, is bounded in words (`BOUNDS`). Weights are those of the graphs, and sizes too; those that are
open are taken at their hints. What the solver is told of a graph is first compared with what hetnn computes of random
numbers. Without names all rules are tried and docs/rule_proofs.json is written, from which docs/rules.md says which
rules are proved. Needs z3-solver.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import z3

from hetnn import _core
from rule_graphs import REALS, array_name, at_hints, bounds, evaluate, known_of, parts_of
from rule_proofs import NotCovered, sub, term

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cpp" / "passes"
FILE = ROOT / "docs" / "rule_proofs.json"
# From the strongest to the weakest.
EXACT, ALL, MOVED, ROUNDED, STEP, BOUND, NONE = PROOFS = ("exact", "all", "moved", "rounded", "step", "bound", "none")
MOST_ELEMENTS = 2000  # of all outputs of a graph
SECONDS = 2  # for an element
NEAR = Fraction(1, 2**20)
BYTES = ("i8", "u8")
OF_ERF = (
    "the erf that is written out reads an a within 1e-6 of itself of x / sqrt 2 = b, and |x / 2 (erf a - erf b)| <= "
    "x² exp(-x² / 2) / sqrt(2 pi) |a / b - 1|, in which x² exp(-x² / 2) <= 2 / e: results are within 3e-7"
)
OF_TANH = (
    "the tanh that is written out reads an a within 2e-6 of itself of sqrt(2 / pi) (x + 0.044715 x³) = u, and "
    "|x / 2 (tanh a - tanh u)| <= sqrt(pi / 8) u² / cosh² u |a / u - 1|, in which u² / cosh² u <= 0.44: results are "
    "within 6e-7"
)
# What is shown in words.
BOUNDS = {
    f"gelu_from_{function}_half_{place}": words
    for function, words in (("erf", OF_ERF), ("tanh", OF_TANH))
    for place in ("first", "last", "inside")
}


def cases() -> dict[str, list[str]]:
    """The graphs on which the tests of C++ have each rule fire."""
    out: dict[str, list[str]] = {}
    for path in sorted(CASES.glob("*_cases.cpp")):
        source = path.read_text()
        named = dict(re.findall(r'string_view (\w+) =\s*R"\((graph .*?)\)";', source, re.DOTALL))
        for rule, graph, name in re.findall(r'\{"(\w+)",\s*(?:R"\((graph .*?)\)"|(k\w+)),\s*"', source, re.DOTALL):
            if graph or name in named:
                out.setdefault(rule, []).append(graph or named[name])
    return out


def _holds(claim: Any) -> bool:
    """Whether nothing makes a claim false. One that differs in the places of elements alone is not tried again."""
    names: dict[str, str] = {}
    key = re.sub(r"\|\S+ %[^|]*\|", lambda name: names.setdefault(name[0], f"x{len(names)}"), claim.sexpr())
    if key not in _tried:
        solver = z3.Solver()
        solver.set("timeout", 1000 * SECONDS)
        solver.add(*known_of([claim]))
        solver.add(z3.Not(claim))
        _tried[key] = bool(solver.check() == z3.unsat)
    return _tried[key]


_tried: dict[str, bool] = {}


def _random(dtype: str, shape: list[int], random: Any) -> Any:
    if dtype in REALS:
        return random.normal(size=shape).astype(np.float32)
    if dtype == "bool":
        return random.random(shape) < 0.5
    low, high = bounds(dtype)
    return random.integers(max(low, -128), min(high, 127), shape, endpoint=True)


def compare(graph: Any) -> None:
    """Has the meanings over the reals give of random numbers what hetnn computes, where no function is unknown."""
    random = np.random.default_rng(0)
    given = {name: _random(dtype, shape, random) for name, dtype, shape in graph.inputs}
    if any(dtype not in ("f32", "i8", "u8", "bool") for _, dtype, _ in graph.inputs):
        return
    numbers = {name: _exact(x) for name, x in given.items()}
    found = evaluate(graph, numbers)
    types = graph.types()
    given = {name: given[name].astype(array_name(dtype)) for name, dtype, _ in graph.inputs}
    for x, wanted, (name, _, _) in zip(found, _core.interpret(graph, list(given.values())), graph.outputs, strict=True):
        if not all(isinstance(v, (Fraction, bool)) for v in x.flat):
            return
        near = 1 if types[name]["quant"] else 1e-4 * (1 + np.abs(wanted, dtype=float).max(initial=0))
        if np.abs(x.astype(float) - wanted).max(initial=0) > near:
            raise AssertionError(f"the meanings over the reals are not hetnn's:\n{graph.print()}")


def _exact(x: Any) -> Any:
    convert = bool if x.dtype == bool else (lambda v: Fraction(float(v)))
    return np.array([convert(v) for v in x.flat], object).reshape(x.shape)


def prove(rule: str, graph: str) -> str:
    """How one graph and what the rule makes of it agree. NotCovered where that is beyond these means."""
    before = _core.Graph.parse(at_hints(graph))
    after = _core.apply_rule(before, rule)
    if after is None:
        raise NotCovered("the rule does not fire there")
    if places(before, after):
        return MOVED
    symbols: dict[str, Any] = {}
    old, new = evaluate(before, symbols), evaluate(after, symbols)
    compare(before)
    compare(after)
    pairs = [pair for x, y in zip(old, new, strict=True) for pair in zip(x.flat, y.flat, strict=True)]
    if {dtype for _, dtype, _ in before.inputs} <= set(BYTES) and depend_on_few(pairs):
        return over_bytes(before, after)
    types = before.types()
    constants = [*before.constants().values(), *after.constants().values()]
    largest = max((float(np.abs(np.asarray(each, float)).max(initial=0)) for each in constants), default=0.0)
    return over_reals(pairs, all(types[name]["quant"] for name, _, _ in before.outputs), Fraction(max(1.0, largest)))


def over_reals(pairs: list[tuple[Any, Any]], is_step: bool, largest: Fraction) -> str:
    """What the solver shows of pairs of terms, which are numbers of steps or not."""
    if len(pairs) > MOST_ELEMENTS:
        raise NotCovered(f"{len(pairs)} elements")
    if any(isinstance(x, bool) or z3.is_bool(x) for pair in pairs for x in pair):
        return EXACT if all(_holds(term(a) == term(b)) for a, b in pairs) else NONE
    apart = [z3.simplify(term(sub(a, b)), som=True) for a, b in pairs]
    left = [each for each in apart if not (z3.is_rational_value(each) and each.as_fraction() == 0)]
    if all(_holds(each == 0) for each in left):
        return EXACT
    if is_step:
        return STEP if all(_holds(z3.And(each <= 1, each >= -1)) for each in left) else NONE
    return ROUNDED if all(_is_near(each, largest) for each in left) else NONE


def _symbols(*terms: Any) -> list[Any]:
    """The inputs' elements within terms."""
    parts = parts_of(*(x for x in terms if z3.is_expr(x)))
    return [x for x in parts if z3.is_const(x) and x.decl().kind() == z3.Z3_OP_UNINTERPRETED]


def _is_near(apart: Any, largest: Fraction) -> bool:
    bound = term(NEAR * largest) * (1 + z3.Sum([z3.If(x >= 0, x, -x) for x in _symbols(apart)]))
    return _holds(z3.And(apart <= bound, apart >= -bound))


def depend_on_few(pairs: list[tuple[Any, Any]]) -> bool:
    """Whether each depends on one element of an input at most, or on one of each of two."""
    for pair in pairs:
        read = [str(x) for x in _symbols(*pair)]
        if len(read) > len({name.rsplit(".", 1)[0] for name in read}) or len(read) > 2:
            return False
    return True


def over_bytes(before: Any, after: Any) -> str:
    """What comes of all values of the bytes that an element depends on."""
    runs = [partial(_core.interpret, graph) for graph in (before, after)]
    types = before.types()
    is_step = all(types[name]["quant"] for name, _, _ in before.outputs)
    far = 0.0
    for numbers in itertools.product(range(256), repeat=len(before.inputs)):
        given = [
            np.full(shape, number, np.uint8).view(np.int8 if dtype == "i8" else np.uint8)
            for number, (_, dtype, shape) in zip(numbers, before.inputs, strict=True)
        ]
        for a, b in zip(runs[0](given), runs[1](given), strict=True):
            far = max(far, float(np.abs(np.subtract(a, b, dtype=float)).max(initial=0)))
    return ALL if far == 0 else STEP if is_step and far == 1 else NONE


MOVING = frozenset(op["name"] for op in _core.operators() if "movement" in op["traits"])


def places(before: Any, after: Any) -> bool:
    """Whether both graphs move values only, and the same ones to the same places: bytes that number them tell."""
    rows = [*before.nodes(), *after.nodes()]
    if not all(row["op"] in MOVING - {"cast"} and "q_scale" not in row["attrs"] for row in rows):
        return False
    if any(dtype in ("bool", "f16", "bf16") for _, dtype, _ in before.inputs):
        return False
    runs = [partial(_core.interpret, graph) for graph in (before, after)]
    sizes = [int(np.prod(shape, dtype=int)) * np.dtype(array_name(dtype)).itemsize for _, dtype, shape in before.inputs]
    begin = [sum(sizes[:k]) for k in range(len(sizes))]
    digits = max(1, (sum(sizes).bit_length() + 5) // 6)
    for digit in range(digits):
        # Six bits in the middle of each byte: no NaN, no -0, no number that is refused.
        given = [
            ((((np.arange(size) + first) >> (6 * digit)) & 63) << 1)
            .astype(np.uint8)
            .view(array_name(dtype))
            .reshape(shape)
            for size, first, (_, dtype, shape) in zip(sizes, begin, before.inputs, strict=True)
        ]
        if any(a.tobytes() != b.tobytes() for a, b in zip(runs[0](given), runs[1](given), strict=True)):
            return False
    return True


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
    proof = max(found, key=PROOFS.index) if found else NONE
    if proof == NONE and rule in BOUNDS:
        return {"proof": BOUND, "graphs": 0, "of": len(graphs), "hindered": [], "words": BOUNDS[rule]}
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
