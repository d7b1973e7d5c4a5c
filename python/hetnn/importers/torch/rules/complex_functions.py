"""Functions of complex numbers, in double: what the formulas of elementwise functions are of them."""

from __future__ import annotations

from collections.abc import Callable

from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.formulas import build_complex, formula
from hetnn.importers.registry import operators
from hetnn.importers.torch.rules.call import Call
from hetnn.importers.torch.rules.complexes import BY_PARTS, COMPLEX, paired, size_of


def _wide(call: Call) -> list[Complex]:
    return [paired(call, call[name], "f64") for name in call.names[:2] if name in call.args]


def _narrowed(call: Call, z: Complex) -> Complex:
    dtype = call.part({}).dtype()
    return Complex(*(call.cast(part, dtype) for part in z.parts))


def _by_formula(name: str, operands: int) -> Callable[[Call], Complex]:
    return lambda call: _narrowed(call, build_complex(call, name, *_wide(call)[:operands]))


def _register() -> None:
    """All that have a complex form and no rule of their own."""
    for op in operators():
        name = op["name"]
        if formula(name, "complex") is None:
            continue
        for torch in (f"aten.{name}.default", f"prims.{name}.default", *(row[0] for row in op["torch"])):
            if torch not in COMPLEX and torch not in BY_PARTS:
                COMPLEX[torch] = _by_formula(name, len(op["inputs"]))


_register()
COMPLEX["aten.true_divide.Tensor"] = COMPLEX["prims.div.default"]


def _square(call: Call) -> Complex:
    (z,) = _wide(call)
    return _narrowed(call, build_complex(call, "mul", z, z))


def _sgn(call: Call) -> Complex:
    """z / |z|, and 0 of 0."""
    (z,) = _wide(call)
    size, zero, one = size_of(call, z), call.constant(0, "f64"), call.constant(1, "f64")
    size = call.create("where", [call.create("eq", [size, zero]), one, size])
    return _narrowed(call, Complex(*(call.create("div", [part, size]) for part in z.parts)))


for _name, _rule in (("square", _square), ("sgn", _sgn)):
    COMPLEX.update(dict.fromkeys((f"aten.{_name}.default", f"prims.{_name}.default"), _rule))
