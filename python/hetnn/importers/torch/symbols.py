"""Symbolic sizes of torch (sympy expressions) as hetnn's dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import sympy
import torch
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from hetnn._core import Dim
from hetnn.errors import Unsupported
from hetnn.importers.lowering.sizes import Size, ceil_divide, denied, divide, equal, less, maximum, minimum, modulo

# Integers up to here are f64, and so is what comes of them by sums, products and halves.
_EXACT = 2**53

_DIVISIONS: dict[str, Callable[[Size, Size], Size]] = {
    "FloorDiv": divide,
    "CleanDiv": divide,
    "CeilDiv": ceil_divide,
    "Mod": modulo,
    "PythonMod": modulo,
}


# Comparisons as torch names them.
RELATIONS: dict[str, Callable[[Size, Size], Size]] = {
    "Equality": equal,
    "Unequality": lambda a, b: denied(equal(a, b)),
    "StrictLessThan": less,
    "StrictGreaterThan": lambda a, b: less(b, a),
    "LessThan": lambda a, b: denied(less(b, a)),
    "GreaterThan": lambda a, b: denied(less(a, b)),
}


class Symbols:
    """Names and expressions of one exported program's symbolic sizes.

    `found` gives a symbol to a size that comes out of rounded reals: its expression, its bounds and a likely value.
    """

    def __init__(self, found: Callable[[sympy.Expr, int, int, int], Dim]) -> None:
        self._found = found
        self._names: dict[sympy.Symbol, Dim] = {}
        self._ranges: dict[sympy.Symbol, ValueRanges[sympy.Expr]] = {}
        self._hints: dict[sympy.Symbol, int] = {}

    def declare(self, symbol: sympy.Symbol, name: str, low: int, high: int, hint: int) -> None:
        """Gives a symbol of torch a name, the range [low, high] that it lies in, and an example."""
        self._names[symbol] = Dim.symbol(name)
        self._ranges[symbol] = ValueRanges(low, high)
        self._hints[symbol] = hint

    def has(self, symbol: sympy.Symbol) -> bool:
        """Whether a symbol of torch is a size here."""
        return symbol in self._names

    def truth(self, expr: Any) -> Size | None:
        """A condition over integers as a size that is 1 where it holds, else 0; None where it is one of reals."""
        kind = type(expr).__name__
        if kind in ("And", "Or", "Not"):
            parts = [self.truth(part) for part in expr.args]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            return denied(known[0]) if kind == "Not" else reduce(minimum if kind == "And" else maximum, known)
        if kind not in RELATIONS or not all(arg.is_integer for arg in expr.args):
            return None
        return RELATIONS[kind](*map(self.expression, expr.args))

    def dim(self, size: Any) -> Size:
        """`size` (an int or a SymInt) as a dimension."""
        if isinstance(size, torch.SymInt):
            return self.expression(size.node.expr)
        return int(size)

    def expression(self, expr: sympy.Expr) -> Size:
        """An expression of torch over symbols as a size. Unsupported where it depends on values or is of a form that
        sizes lack."""
        if expr.is_Integer:
            return int(expr)
        if isinstance(expr, sympy.Symbol):
            if expr not in self._names:
                raise Unsupported(f"the size {expr} depends on values, not on the inputs' shapes alone.")
            return self._names[expr]
        kind = type(expr).__name__
        if isinstance(expr, sympy.Add):
            return sum(map(self.expression, expr.args))
        if isinstance(expr, sympy.Mul):
            return self._product(expr)
        if isinstance(expr, sympy.Pow) and expr.exp.is_Integer and int(expr.exp) > 0:
            return math.prod([self.expression(expr.base)] * int(expr.exp))
        if kind in _DIVISIONS:
            return _DIVISIONS[kind](*map(self.expression, expr.args))
        if isinstance(expr, (sympy.floor, sympy.ceiling)) or kind in (
            "FloorToInt",
            "TruncToInt",
            "CeilToInt",
            "RoundToInt",
        ):
            return self._rounded(expr)
        if kind in ("Max", "Min"):
            return reduce(maximum if kind == "Max" else minimum, map(self.expression, self._deciding(expr)))
        if expr.is_integer:
            return self._computed(expr)
        raise Unsupported(f"the size {expr} uses {kind}, which hetnn's dimensions cannot say.")

    def _deciding(self, expr: sympy.Expr) -> list[sympy.Expr]:
        """The arguments of an extreme that are not beyond another for all values of the symbols."""
        sign = 1 if type(expr).__name__ == "Max" else -1
        ranges = [(arg, bound_sympy(arg, self._ranges)) for arg in expr.args]
        bounds = [
            (sign * r.lower, sign * r.upper)[::sign] for _, r in ranges
        ]  # the least, the greatest, times the sign
        most = max(least for least, _ in bounds)
        first = next(k for k, (least, _) in enumerate(bounds) if least == most)
        return [arg for k, (arg, _) in enumerate(ranges) if k == first or bounds[k][1] > most]

    def _product(self, expr: sympy.Mul) -> Size:
        numerator, denominator = expr.as_numer_denom()
        if denominator == 1:
            return math.prod(map(self.expression, expr.args))
        # A quotient of sizes that torch knows to be whole.
        return divide(self.expression(numerator), self.expression(denominator))

    def _rounded(self, expr: sympy.Expr) -> Size:
        """A real made whole: floor(2 n / 3) where that is what reals give for all sizes, else what nodes compute."""
        kind, (real,) = type(expr).__name__, expr.args
        quotient = self._quotient(real)
        if quotient is not None and kind != "RoundToInt":
            top, bottom = map(self.expression, quotient)
            down, up = divide(top, bottom), ceil_divide(top, bottom)
            if kind == "TruncToInt":
                return down if self._is_bounded(quotient[0], 0, sympy.oo) else maximum(down, 0) + minimum(up, 0)
            return up if kind in ("CeilToInt", "ceiling") else down
        return self._computed(expr)

    def _computed(self, expr: sympy.Expr) -> Dim:
        """A size that nodes give."""
        bounds = bound_sympy(expr, self._ranges)
        low, high = (int(n) if n.is_Integer else preset for n, preset in ((bounds.lower, 0), (bounds.upper, 2**62)))
        likely = expr.subs(self._hints)
        return self._found(expr, low, high, int(likely) if likely.is_Integer else max(low, 1))

    def _quotient(self, real: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr] | None:
        """Integers that a real is the quotient of; None where rounding decides what it is next to an integer.

        Of integers below 2^53 with a power of two beneath them reals round none. A last division by anything may
        round, but to no integer that its quotient does not reach: they are further apart than it rounds.
        """
        if type(real).__name__ in ("IntTrueDiv", "FloatTrueDiv"):
            parts = [self._exact(part) for part in real.args]
            if None not in parts:
                (a, b), (c, d) = parts  # type: ignore[misc]
                return (a * d, c * b) if self._is_bounded(c, 1, _EXACT) else None
        if not real.has(sympy.Float) and not any(
            type(part).__name__ in ("ToFloat", "IntTrueDiv", "FloatTrueDiv") for part in sympy.preorder_traversal(real)
        ):
            top, bottom = sympy.together(real).as_numer_denom()  # of rationals, which are not rounded
            return top, bottom
        return self._exact(real)

    def _exact(self, real: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr] | None:
        """An integer and a power of two whose quotient a real is, without any rounding; None where it is none."""
        kind, one = type(real).__name__, sympy.Integer(1)
        found: tuple[sympy.Expr, sympy.Expr] | None = None
        if kind == "ToFloat" or real.is_Symbol or real.is_Integer or kind in ("FloorDiv", "Mod", "PythonMod"):
            found = (real.args[0] if kind == "ToFloat" else real, one)
        elif real.is_Number:
            whole = sympy.Rational(float(real))
            found = sympy.Integer(whole.p), sympy.Integer(whole.q)
        elif kind in ("Add", "Mul", "IntTrueDiv", "FloatTrueDiv"):
            parts = [self._exact(part) for part in real.args]
            if None in parts:
                return None
            pairs: list[Any] = list(parts)
            if kind == "Add":
                below = max(q for _, q in pairs)
                found = sum(p * (below / q) for p, q in pairs), below
            elif kind == "Mul":
                found = sympy.prod([p for p, _ in pairs]), sympy.prod([q for _, q in pairs])
            else:
                (a, b), (c, d) = pairs
                halves = c.is_Integer and c > 0 and int(c).bit_count() == 1
                found = (a * d, b * c) if halves else None
        if found is None or not self._is_bounded(found[0], -_EXACT, _EXACT) or found[1] > _EXACT:
            return None
        return found

    def _is_bounded(self, expr: sympy.Expr, low: Any, high: Any) -> bool:
        bounds = bound_sympy(expr, self._ranges)
        return bool(bounds.lower >= low and bounds.upper <= high)


def own_name(symbol: sympy.Symbol, value: torch.Tensor) -> str:
    """What the model's author called a symbol, `Dim("batch")`; torch's own name where that did not come along."""
    environment = getattr(getattr(value, "fake_mode", None), "shape_env", None)
    names = getattr(environment, "source_name_to_debug_name", {})
    for source in getattr(environment, "var_to_sources", {}).get(symbol, ()):
        name = str(names.get(source.name if isinstance(source.name, str) else source.name(), ""))
        if name.isidentifier():
            return name
    return str(symbol)
