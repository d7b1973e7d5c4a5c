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
from hetnn.importers.tflite.rules.call import INTEGERS, TFLITE, Call, Place

__all__ = [
    "INTEGERS",
    "TFLITE",
    "Call",
    "Place",
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
