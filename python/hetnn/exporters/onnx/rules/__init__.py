"""Operators that take more than a one-to-one name in ONNX: a small function each, by family."""

from hetnn.exporters.onnx.rules import (
    elementwise,
    late,
    layers,
    movement,
    norm,
    ordering,
    quant,
    recurrent,
    reduce,
    refused,
    vision,
)
from hetnn.exporters.onnx.rules.call import ONNX, Call

__all__ = [
    "ONNX",
    "Call",
    "elementwise",
    "late",
    "layers",
    "movement",
    "norm",
    "ordering",
    "quant",
    "recurrent",
    "reduce",
    "refused",
    "vision",
]
