"""Symbolic sizes of torch (sympy expressions) as the text of hetnn's dimensions."""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from hetnn.errors import Unsupported


class Symbols:
    """Names and expressions of one exported program's symbolic sizes."""

    def __init__(self) -> None:
        self._names: dict[sympy.Symbol, str] = {}
        self._ranges: dict[sympy.Symbol, ValueRanges[sympy.Expr]] = {}

    def declare(self, symbol: sympy.Symbol, name: str, low: int, high: int) -> None:
        self._names[symbol] = name
        self._ranges[symbol] = ValueRanges(low, high)

    def dim(self, size: Any) -> int | str:
        """`size` (an int or a SymInt) as a dimension."""
        if isinstance(size, torch.SymInt):
            return self.expression(size.node.expr)
        return int(size)

    def expression(self, expr: sympy.Expr) -> int | str:
        return int(expr) if expr.is_Integer else self._text(expr)

    def _text(self, expr: sympy.Expr) -> str:
        if expr.is_Integer:
            return f"({int(expr)})"
        if isinstance(expr, sympy.Symbol):
            if expr not in self._names:
                raise Unsupported(f"the size {expr} depends on values, not on the inputs' shapes alone.")
            return self._names[expr]
        kind = type(expr).__name__
        if isinstance(expr, sympy.Add):
            return "(" + " + ".join(self._text(term) for term in expr.args) + ")"
        if isinstance(expr, sympy.Mul):
            return self._product(expr)
        if isinstance(expr, sympy.Pow) and expr.exp.is_Integer and int(expr.exp) > 0:
            return "(" + "*".join([self._text(expr.base)] * int(expr.exp)) + ")"
        if kind in ("FloorDiv", "CleanDiv"):
            return f"floordiv({self._text(expr.args[0])}, {self._text(expr.args[1])})"
        if kind in ("Mod", "PythonMod"):
            return f"mod({self._text(expr.args[0])}, {self._text(expr.args[1])})"
        if isinstance(expr, sympy.floor) or kind in ("FloorToInt", "TruncToInt"):
            return self._quotient(expr.args[0], upward=False)
        if isinstance(expr, sympy.ceiling) or kind in ("CeilToInt", "CeilDiv"):
            if len(expr.args) == 2:
                return f"(-floordiv(-{self._text(expr.args[0])}, {self._text(expr.args[1])}))"
            return self._quotient(expr.args[0], upward=True)
        if kind in ("Max", "Min"):
            text, *others = (self._text(arg) for arg in self._deciding(expr))
            for other in others:
                text = f"{kind.lower()}({text}, {other})"
            return text
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

    def _product(self, expr: sympy.Mul) -> str:
        numerator, denominator = expr.as_numer_denom()
        if denominator == 1:
            return "(" + "*".join(self._text(factor) for factor in expr.args) + ")"
        # A quotient of sizes that torch knows to be whole.
        return f"floordiv({self._text(numerator)}, {self._text(denominator)})"

    def _quotient(self, expr: sympy.Expr, upward: bool) -> str:
        if type(expr).__name__ == "IntTrueDiv":
            numerator, denominator = expr.args
        else:
            numerator, denominator = sympy.together(expr).as_numer_denom()
        top, bottom = self._text(numerator), self._text(denominator)
        return f"(-floordiv(-{top}, {bottom}))" if upward else f"floordiv({top}, {bottom})"


def own_name(symbol: sympy.Symbol, value: torch.Tensor) -> str:
    """What the model's author called a symbol, `Dim("batch")`; torch's own name where that did not come along."""
    environment = getattr(getattr(value, "fake_mode", None), "shape_env", None)
    names = getattr(environment, "source_name_to_debug_name", {})
    for source in getattr(environment, "var_to_sources", {}).get(symbol, ()):
        name = str(names.get(source.name if isinstance(source.name, str) else source.name(), ""))
        if name.isidentifier():
            return name
    return str(symbol)
