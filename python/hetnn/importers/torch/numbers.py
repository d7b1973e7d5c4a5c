"""Numbers that depend on sizes, as torch has them (sympy expressions): nodes that compute them when a model runs.

Reals are f64, integers i64, what compares them bool, all of rank 0: as Python computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sympy

from hetnn.errors import Unsupported
from hetnn.importers.lowering.building import Building
from hetnn.importers.lowering.sizes import Size

_RELATIONS = {
    "Equality": "eq",
    "Unequality": "ne",
    "StrictLessThan": "lt",
    "StrictGreaterThan": "gt",
    "LessThan": "le",
    "GreaterThan": "ge",
}
_LOGIC = {"And": "logical_and", "Or": "logical_or"}
_FOLDS = {"Add": "add", "Mul": "mul", "Max": "maximum", "Min": "minimum"}
_ROUNDING = {"FloorToInt": "floor", "CeilToInt": "ceil", "TruncToInt": "trunc", "RoundToInt": "round"}
_WHOLE = {"FloorDiv": "floor_divide", "CleanDiv": "floor_divide", "Mod": "remainder", "PythonMod": "remainder"}
_REAL = {"IntTrueDiv": "div", "FloatTrueDiv": "div", "FloatPow": "pow", "Pow": "pow", "PowByNatural": "pow"}
_FUNCTION = "OpaqueUnaryFn_"


class Numbers:
    """Computes expressions at a node of a model.

    `size` says an integer symbol as a dimension; `reals` are the values of other symbols.
    """

    def __init__(self, build: Building, size: Callable[[sympy.Expr], Size], reals: Mapping[sympy.Symbol, Any]) -> None:
        self._build, self._size, self._reals = build, size, reals

    def value(self, expr: Any) -> Any:
        """A number that an expression over sizes and reals stands for, as a value [] of i64, f64 or bool."""
        kind = type(expr).__name__
        if expr in (sympy.true, sympy.false):
            return self._build.constant(bool(expr), "bool")
        if expr in self._reals:
            return self._build.cast(self._build.reshape(self._reals[expr], []), "f64")
        if isinstance(expr, sympy.Symbol) or expr.is_Integer:
            return self._build.reshape(self._build.whole(self._size(expr)), [])
        if expr.is_Number:
            return self._build.constant(float(expr), "f64")
        if kind == "Not":
            return self._build.create("logical_not", [self.value(expr.args[0])])
        if kind == "Piecewise":
            return self._choice(expr)
        given = [self.value(arg) for arg in expr.args]
        if kind == "ToFloat":
            return self._build.cast(given[0], "f64")
        if kind in _ROUNDING:
            return self._build.cast(self._build.create(_ROUNDING[kind], self._alike(given, real=True)), "i64")
        if kind in _LOGIC:
            return self._build.folded(_LOGIC[kind], given)
        if kind in _FOLDS:
            return self._build.folded(_FOLDS[kind], self._alike(given))
        if kind in _REAL:
            return self._build.create(_REAL[kind], self._alike(given, real=True))
        if kind in _WHOLE or kind in _RELATIONS:
            return self._build.create((_WHOLE | _RELATIONS)[kind], self._alike(given))
        if kind.startswith(_FUNCTION):
            return self._build.create(kind.removeprefix(_FUNCTION), self._alike(given, real=True))
        raise Unsupported(f"the number {expr}, which depends on sizes, uses {kind}")

    def _alike(self, values: list[Any], real: bool = False) -> list[Any]:
        real = real or any(x.dtype == "f64" for x in values)
        return [self._build.cast(x, "f64" if real else "i64") for x in values]

    def _choice(self, expr: Any) -> Any:
        *cases, (last, _) = expr.args
        values = self._alike([self.value(x) for x, _ in (*cases, (last, None))])
        out = values.pop()
        for _, condition in reversed(cases):
            out = self._build.create("where", [self.value(condition), values.pop(), out])
        return out
