"""Torch overloads that take more than a one-to-one name: a small function each."""

from __future__ import annotations

from hetnn.importers.torch.rules import (
    activations,
    arithmetic,
    complex_functions,
    complexes,
    composites,
    conditions,
    constants,
    counting,
    flow,
    gradients,
    indexing,
    layers,
    matrices,
    movement,
    ordering,
    pooling,
    prims,
    quantized,
    random,
    recurrent,
    sizes,
)
from hetnn.importers.torch.rules.call import DTYPES, Call

__all__ = [
    "DTYPES",
    "Call",
    "activations",
    "arithmetic",
    "complex_functions",
    "complexes",
    "composites",
    "conditions",
    "constants",
    "counting",
    "flow",
    "gradients",
    "indexing",
    "layers",
    "matrices",
    "movement",
    "ordering",
    "pooling",
    "prims",
    "quantized",
    "random",
    "recurrent",
    "sizes",
]
