"""Graphs over exact numbers, for an SMT solver: reals, integers, and integers that stand for reals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import z3

from hetnn import _core
from rule_proofs import NotCovered, Value, add, choose, div, elementwise, exact, meaning, mul, sub, term, unknown

REALS = ("f16", "bf16", "f32", "f64")
BITS = re.compile(r"([iu])(\d+)$")
# What integers compute modulo 2^bits: of equal sums of products the rests are equal.
RING = ("add", "sub", "mul", "neg", "nary")
LINEAR = ("upsample_bilinear2d", "block_linear")
MOST_CHOICES = 3  # within a sum, of which each is rounded by itself
MOST_ROUNDED = 40  # that are compared with one another
HALF = Fraction(1, 2)
ELEMENTWISE = frozenset(op["name"] for op in _core.operators() if "elementwise" in op["traits"])
INTEGRAL = frozenset(op["name"] for op in _core.operators() if "integral" in op["traits"])


def at_hints(text: str) -> str:
    """A graph's text with the hints in the places of its symbols."""
    found = re.search(r", symbols = \[(.*?)\]", text)
    if not found:
        return text
    hints = dict(re.findall(r"(\w+)(?:: [^=,]*)? = (\d+)", found[1]))
    text = text.replace(found[0], "", 1)
    return re.sub(r"(?<![%\w.\"])(" + "|".join(hints) + r")(?![\w(])", lambda name: hints[name[1]], text)


def bounds(dtype: str) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    found = BITS.match(dtype)
    if not found:
        raise NotCovered(f"the type {dtype}")
    bits = int(found[2])
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if found[1] == "i" else (0, 2**bits - 1)


ROUND = z3.Function("round", z3.RealSort(), z3.RealSort())  # to the integer that is next, of two the even one


def _rounding(dtype: str, zero: int) -> Any:
    """To the integer of a type that stands for a number of steps: `round`, from the zero point on, saturated."""
    return z3.Function(f"nearest {dtype} {zero}", z3.RealSort(), z3.RealSort())


def _is_integer(x: Any, dtype: str) -> bool:
    name = x.decl().name() if z3.is_app(x) else ""
    return bool(name.startswith((f"nearest {dtype} ", f"{dtype} %")))


def parts_of(*terms: Any) -> list[Any]:
    """All terms within terms, each once."""
    seen: dict[int, Any] = {}
    left = list(terms)
    while left:
        x = left.pop()
        if x.get_id() not in seen:
            seen[x.get_id()] = x
            left += x.children()
    return list(seen.values())


def _choices(x: Any) -> list[Any]:
    """The terms that choose and stand in no other one that does."""
    if z3.is_app_of(x, z3.Z3_OP_ITE):
        return [x]
    return [each for child in x.children() for each in _choices(child)] if z3.is_add(x) or z3.is_mul(x) else []


def nearest(x: Any, dtype: str, zero: int) -> Any:
    """The integer of a type, with a zero point, that is next to a number of steps."""
    low, high = bounds(dtype)
    known: dict[int, Any] = {}

    def chosen(x: Any, choice: Any, part: Any) -> Any:
        if part.get_id() not in known:
            if z3.is_app_of(part, z3.Z3_OP_ITE):
                condition, *sides = part.children()
                known[part.get_id()] = choose(condition, *(chosen(x, choice, side) for side in sides))
            else:
                known[part.get_id()] = nearest(z3.substitute(x, (choice, part)), dtype, zero)
        return known[part.get_id()]

    if isinstance(x, Fraction):
        return Fraction(min(max(round(x) + zero, low), high))
    x = z3.simplify(x, som=True)
    if z3.is_rational_value(x):
        return nearest(x.as_fraction(), dtype, zero)
    from_zero = z3.simplify(x + zero)
    if _is_integer(from_zero, dtype):
        return from_zero
    choices = _choices(x)
    if 0 < len(choices) <= MOST_CHOICES:
        return chosen(x, choices[0], choices[0])
    return _rounding(dtype, zero)(x)


def known_of(claims: Sequence[Any]) -> list[Any]:
    """What is known of the integers in claims: ranges of inputs, roundings, and what is converted to its own value."""
    out = []
    rounded = {}
    for x in parts_of(*claims):
        if not z3.is_app(x):
            continue
        words = x.decl().name().split()
        if words[0] == "nearest":
            (low, high), sum_ = bounds(words[1]), ROUND(x.arg(0)) + int(words[2])
            out.append(x == z3.If(sum_ < low, low, z3.If(sum_ > high, high, sum_)))
            rounded[x.arg(0).get_id()] = x.arg(0)
        elif words[0] == "round":
            rounded[x.arg(0).get_id()] = x.arg(0)
        elif len(words) == 2 and words[1].startswith("%") and BITS.match(words[0]):
            out += [x >= bounds(words[0])[0], x <= bounds(words[0])[1]]
        elif len(words) == 3 and words[1] == "of" and BITS.match(words[0]):
            low, high = bounds(words[0])
            out.append(z3.Implies(z3.And(z3.IsInt(x.arg(0)), x.arg(0) >= low, x.arg(0) <= high), x == x.arg(0)))
    for k, x in enumerate(rounded.values()):
        integer = z3.ToReal(z3.Int(f"rounded {k}"))
        out += [ROUND(x) == integer, integer - x <= term(HALF), x - integer <= term(HALF)]
    if len(rounded) <= MOST_ROUNDED:
        out += [z3.Implies(a <= b, ROUND(a) <= ROUND(b)) for a in rounded.values() for b in rounded.values()]
    return out


def _along(numbers: Sequence[Any], quant: dict[str, Any], rank: int) -> Value:
    shape = [-1 if k == quant["axis"] else 1 for k in range(rank)] if len(numbers) > 1 else []
    return np.array([exact(float(n)) for n in numbers], object).reshape(shape)


def _parts(type_: dict[str, Any]) -> tuple[Value, Value]:
    quant, rank = type_["quant"], len(type_["shape"])
    zeros = quant["zero_points"] or [0]
    return _along([float(np.float32(s)) for s in quant["scales"]], quant, rank), _along(zeros, quant, rank)


def reals(x: Value, type_: dict[str, Any]) -> Value:
    """What integers with a scale stand for; any other values as they are."""
    if not type_["quant"]:
        return x
    scales, zeros = _parts(type_)
    return elementwise(lambda q, s, z: mul(s, sub(q, z)), x, scales, zeros)


def stored(x: Value, type_: dict[str, Any]) -> Value:
    """Reals as the integers that stand for them, if a type has scales."""
    if not type_["quant"]:
        return x
    scales, zeros = _parts(type_)
    return elementwise(lambda y, s, z: nearest(div(y, s), type_["dtype"], int(z)), x, scales, zeros)


def _numbers(array: Any) -> Value:
    if array.dtype == bool:
        return array.astype(object)
    out = np.empty(array.shape, object)
    for index in np.ndindex(array.shape):
        value = float(array[index])
        if not np.isfinite(value):
            raise NotCovered("an infinity")
        out[index] = Fraction(value) if array.dtype.kind not in "iu" else Fraction(int(array[index]))
    return out


def symbols_of(name: str, dtype: str, shape: Sequence[int]) -> Value:
    """A symbol for each element of an input, called after its type, its name and its place."""
    make = z3.Bool if dtype == "bool" else z3.Real
    count = int(np.prod(shape, dtype=int))
    return np.array([make(f"{dtype} %{name}.{k}") for k in range(count)], object).reshape(shape)


def _converted(x: Value, given: str, to: str) -> Value:
    if given == "bool":
        return elementwise(lambda each: choose(each, Fraction(1), Fraction(0)), x)
    known = all(isinstance(each, Fraction) or _is_integer(each, given) for each in x.flat)
    if to in REALS and (given in REALS or known):
        return x
    if known and BITS.match(given) and BITS.match(to):
        (low, high), (least, most) = bounds(given), bounds(to)
        if least <= low and high <= most:
            return x
    return unknown(f"{to} of {given}", x)


def _bits(x: Value, given: str, to: str) -> Value:
    if re.sub("[iu]", "", given) != re.sub("[iu]", "", to):
        raise NotCovered("bits of another width")

    def moved(each: Any) -> Any:
        dtype = given
        # The highest bit of u8, turned, is the sign of i8.
        if z3.is_expr(each) and each.decl().name().startswith("bitwise_xor ") and (given, to) == ("u8", "i8"):
            for bits, other in (each.children(), each.children()[::-1]):
                if z3.is_rational_value(bits) and bits.as_fraction() == 128:
                    return sub(other, Fraction(128))
        while z3.is_expr(each) and each.decl().name().startswith("bits of "):
            dtype, each = each.decl().name().split()[2], each.arg(0)
        if dtype == to:
            return each
        return z3.Function(f"bits of {dtype} as {to}", z3.RealSort(), z3.RealSort())(term(each))

    return elementwise(moved, x)


def array_name(dtype: str) -> str:
    """numpy's name of an element type."""
    return re.sub(r"^(f|i|u)(\d+)$", lambda m: {"f": "float", "i": "int", "u": "uint"}[m[1]] + m[2], dtype)


def _by_basis(row: dict[str, Any], given: list[Value | None]) -> Value:
    """Of a node that is linear in the inputs that are not known: what it gives of each of their elements that is 1."""
    builder = _core.GraphBuilder("one")
    types = row["input_types"]
    operands: list[Any] = [
        None if t is None else builder.add_input(f"x{k}", t["dtype"], t["shape"]) for k, t in enumerate(types)
    ]
    builder.output(builder.create(row["op"], operands, row["attrs"], "y")[0], "y")
    graph = builder.finish()
    known = [x is None or all(isinstance(one, Fraction) for one in x.flat) for x in given]
    arrays = [
        (x if fixed else np.zeros(x.shape)).astype(array_name(t["dtype"]))
        for x, t, fixed in zip(given, types, known, strict=True)
        if x is not None
    ]
    out = _numbers(_core.interpret(graph, arrays)[0])
    told = [(x, fixed) for x, fixed in zip(given, known, strict=True) if x is not None]
    for (x, fixed), array in zip(told, arrays, strict=True):
        for index in () if fixed else np.ndindex(x.shape):
            array[index] = 1
            share = _numbers(_core.interpret(graph, arrays)[0])
            array[index] = 0
            out = elementwise(lambda y, one, element=x[index]: add(y, mul(one, element)), out, share)
    return out


def _node(row: dict[str, Any], given: list[Value | None]) -> Value:
    """What a node gives of its operands, as they are stored."""
    op, attrs = row["op"], row["attrs"]
    types, made = row["input_types"], row["output_types"][0]
    if len(row["outputs"]) != 1:
        raise NotCovered(op)
    if op == "arange":
        count = -(-(attrs["end"] - attrs.get("start", 0)) // attrs.get("step", 1))
        return _numbers(np.arange(count) * attrs.get("step", 1) + attrs.get("start", 0))
    if op == "cast" and not made["quant"] and not types[0]["quant"]:
        return _converted(given[0], types[0]["dtype"], made["dtype"])
    if op == "bitcast":
        return _bits(given[0], types[0]["dtype"], made["dtype"])
    if op == "round" and made["dtype"] in REALS:
        return elementwise(lambda x: Fraction(round(x)) if isinstance(x, Fraction) else ROUND(x), given[0])
    if op in LINEAR and all(one["quant"] is None for one in types if one):
        return _by_basis(row, given)
    plain = made["quant"] is None and made["dtype"] not in REALS
    if op in INTEGRAL and any(t and t["quant"] for t in types):
        return unknown(f"{op} {attrs}", *(x for x in given if x is not None))
    x = [None if one is None else reals(one, t) for one, t in zip(given, types, strict=True)]
    try:
        if op in ELEMENTWISE and plain and made["dtype"] != "bool" and op not in RING:
            raise NotCovered(op)
        y = meaning("identity" if op in ("quantize", "dequantize") else op, x, attrs)
    except NotCovered:
        if op not in ELEMENTWISE:
            raise
        named = " ".join(f"{k}={v}" for k, v in attrs.items() if not k.startswith("q_"))
        of = "" if types[0]["quant"] or types[0]["dtype"] in REALS else f" of {types[0]['dtype']}"
        y = unknown(f"{op} {named}".strip() + of, *(one for one in x if one is not None))
        if made["dtype"] == "bool":
            y = elementwise(lambda each: each != 0, y)
    return stored(np.asarray(y, object), made)


def evaluate(graph: Any, symbols: dict[str, Value]) -> list[Value]:
    """The outputs of a graph without open sizes, as they are stored; `symbols` gets those that its inputs are.

    NotCovered names what is not here.
    """
    if graph.symbols:
        raise NotCovered("sizes that are open")
    values: dict[str, Value] = {}
    for name, dtype, shape in graph.inputs:
        if name not in symbols:
            symbols[name] = symbols_of(name, dtype, [int(n) for n in shape])
        values[name] = symbols[name]
    for name, array in graph.constants().items():
        values[name] = _numbers(np.asarray(array))
    for row in graph.nodes():
        given = [None if name is None else values[name] for name in row["inputs"]]
        if all(name is None for name in row["outputs"]):
            continue
        values[row["outputs"][0]] = _node(row, given)
    return [values[name] for name, _, _ in graph.outputs]
