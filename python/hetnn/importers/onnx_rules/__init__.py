"""ONNX operators that take more than a one-to-one name: a small function each, by family."""

from __future__ import annotations

from hetnn.importers.onnx_rules import (
    conv,
    elementwise,
    movement,
    norm,
    pool,
    product,
    quant,
    recurrent,
    reduce,
    resize,
    shape,
)
from hetnn.importers.onnx_rules.call import Call, Sizes

__all__ = [
    "Call",
    "Sizes",
    "conv",
    "elementwise",
    "movement",
    "norm",
    "pool",
    "product",
    "quant",
    "recurrent",
    "reduce",
    "resize",
    "shape",
]
