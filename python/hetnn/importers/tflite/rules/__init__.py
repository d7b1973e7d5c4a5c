"""TFLite's operators: a small function each, by family."""

from __future__ import annotations

from hetnn.importers.tflite.rules import (
    control,
    conv,
    elementwise,
    movement,
    places,
    pool,
    product,
    quant,
    recurrent,
    reduce,
    resize,
    shape,
    softmax,
)
from hetnn.importers.tflite.rules.call import INTEGERS, TFLITE, Call, NodeMaker

__all__ = [
    "INTEGERS",
    "TFLITE",
    "Call",
    "NodeMaker",
    "control",
    "conv",
    "elementwise",
    "movement",
    "places",
    "pool",
    "product",
    "quant",
    "recurrent",
    "reduce",
    "resize",
    "shape",
    "softmax",
]
