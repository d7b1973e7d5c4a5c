"""ONNX tensors of complex numbers: operators of the standard only move them, real and imaginary parts alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.text import MEASURES, MOVES

# Operators that only move elements, or do not look at them.
BY_PARTS = MOVES | MEASURES | {"CenterCropPad", "Dropout", "Pad", "ReverseSequence", "Scatter"}
# The inputs that are elements, where those are more than the first; None: all.
_ELEMENTS: dict[str, tuple[int, ...] | None] = {
    "Concat": None,
    "Pad": (0, 2),
    "Scatter": (0, 2),
    "ScatterElements": (0, 2),
    "ScatterND": (0, 2),
    "Where": (1, 2),
}


def moved_parts(call: Call, move: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """What an operator that moves elements makes of both parts."""
    op = call.node.op_type
    found = _ELEMENTS.get(op, (0,))
    elements = range(len(call.inputs)) if found is None else [k for k in found if call.given(k)]
    if [k for k, value in enumerate(call.inputs) if isinstance(value, Complex)] != list(elements):
        raise InvalidModel(f"{op} needs elements of one type; some are complex, others are not")
    reals = move([value.real if isinstance(value, Complex) else value for value in call.inputs])
    if op in MEASURES:
        return reals
    imags = move([value.imag if isinstance(value, Complex) else value for value in call.inputs])
    return [Complex(real, imag) for real, imag in zip(reals, imags, strict=True)]
