"""Elementwise formulas as nodes: the core says of which operators a function or its complex form are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from hetnn import _core
from hetnn.errors import InternalError
from hetnn.importers.lowering.building import Building
from hetnn.importers.lowering.complexes import Complex


@cache
def formula(name: str, of: str) -> tuple[list[Any], list[Any]] | None:
    """As `_core.formula`: steps and results, of the `value` or the `complex` form."""
    found: tuple[list[Any], list[Any]] | None = _core.formula(name, of)
    return found


def build_formula(call: Building, name: str, of: str, operands: Mapping[str, Any], dtype: str) -> list[Any]:
    """The results of a formula: values of an element type, or numbers. InternalError where there is no such form."""
    found = formula(name, of)
    if found is None:
        raise InternalError(f"{name} has no {of}")
    steps, results = found
    made: list[Any] = []

    def given(place: Any) -> Any:
        if isinstance(place, float):
            return place
        return operands[place] if isinstance(place, str) else made[place]

    def value(place: Any) -> Any:
        return call.constant(place, dtype) if isinstance(place, float) else given(place)

    for op, places in steps:
        made.append(call.create(op, [value(place) for place in places]))
    return [given(place) for place in results]


def build_complex(call: Building, name: str, *numbers: Complex) -> Complex:
    """A function of one or two complex numbers whose parts are of one element type."""
    parts = {f"{letter}.re": z.real for letter, z in zip("xy", numbers, strict=False)}
    parts |= {f"{letter}.im": z.imag for letter, z in zip("xy", numbers, strict=False)}
    dtype = numbers[0].real.dtype
    results = build_formula(call, name, "complex", parts, dtype)
    return Complex(*(call.constant(part, dtype) if isinstance(part, float) else part for part in results))
