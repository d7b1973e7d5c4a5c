"""ONNX operators that take more than a one-to-one name: a small function each, by family."""

from __future__ import annotations

from hetnn.importers.onnx_rules import (
    conv,
    elementwise,
    found,
    late,
    ml,
    movement,
    norm,
    ordering,
    pool,
    product,
    quant,
    recurrent,
    reduce,
    resize,
    sequence,
    shape,
    signal,
    training,
    vision,
)
from hetnn.importers.onnx_rules.call import Call, Either, Items, Nothing, Sizes

__all__ = [
    "Call",
    "Either",
    "Items",
    "Nothing",
    "Sizes",
    "conv",
    "elementwise",
    "found",
    "late",
    "ml",
    "movement",
    "norm",
    "ordering",
    "pool",
    "product",
    "quant",
    "recurrent",
    "reduce",
    "resize",
    "sequence",
    "shape",
    "signal",
    "training",
    "vision",
]
