"""ONNX operators that take more than a one-to-one name: a small function each, by family."""

from __future__ import annotations

import importlib
from functools import cache

from hetnn.importers.onnx.rules import (
    conv,
    elementwise,
    found,
    late,
    movement,
    norm,
    ordering,
    pool,
    product,
    quant,
    random,
    recurrent,
    reduce,
    resize,
    sequence,
    shape,
    signal,
    text,
    vision,
)

# Operators of domains beside the standard's own, a third of all, which few models have.
RARE = ("contrib", "features", "generation", "ml", "support_vectors", "training", "trees")


@cache
def load_rare() -> None:
    """Registers the rules of RARE; others are when this package is imported."""
    for family in RARE:
        importlib.import_module(f"{__name__}.{family}")


__all__ = [
    "RARE",
    "conv",
    "elementwise",
    "found",
    "late",
    "load_rare",
    "movement",
    "norm",
    "ordering",
    "pool",
    "product",
    "quant",
    "random",
    "recurrent",
    "reduce",
    "resize",
    "sequence",
    "shape",
    "signal",
    "text",
    "vision",
]
