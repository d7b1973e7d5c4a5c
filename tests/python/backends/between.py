"""Small int8 networks as TFLite files that have one operator between convolutions, twice each: what Vela maps itself,
and what it leaves to a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from backends.integer_networks import VALID, Net, Value, options
from importers.tflite_files import Quant, Told, constant

Step = Callable[[Net, Value], Value]


def _function(name: str, quant: Quant | None = None, **how: Any) -> Step:
    """An operator on elements, whose result lies about where its operand does, or has a scale of its own."""

    def step(n: Net, x: Value) -> Value:
        return n.put(name, [x.place], Told(x.shape, "i8", quant=quant or Quant(x.scale * 0.9, -20)), how or None)

    return step


def _blocks(name: str, table: str, up: bool) -> Step:
    """Blocks of 2 x 2 pixels from channels, or to channels."""

    def step(n: Net, x: Value) -> Value:
        count, h, w, c = x.shape
        shape = [count, h * 2, w * 2, c // 4] if up else [count, h // 2, w // 2, c * 4]
        return n.put(name, [x.place], Told(shape, "i8", quant=x.quant), options(table, BlockSize=2))

    return step


def _quotient(n: Net, x: Value) -> Value:
    y = n.conv(x, x.shape[3])
    return n.put("DIV", [x.place, y.place], Told(x.shape, "i8", quant=Quant(x.scale * 2, 0)))


def _by_a_number(n: Net, x: Value) -> Value:
    given = n.graph.tensor(constant(np.array([77], np.int8), quant=Quant(0.01, 3)))
    return n.put("DIV", [x.place, given], Told(x.shape, "i8", quant=Quant(x.scale * 1.3, 5)), options("Div"))


def _mirrored(mode: int) -> Step:
    """REFLECT (0) leaves out the edge, SYMMETRIC (1) has it twice."""

    def step(n: Net, x: Value) -> Value:
        amounts = [[0, 0], [1, 2], [2, 1], [0, 0]]
        shape = [size + sum(pair) for size, pair in zip(x.shape, amounts, strict=True)]
        given = n.graph.tensor(constant(np.array(amounts, np.int32)))
        how = options("MirrorPad", Mode=mode)
        y = n.put("MIRROR_PAD", [x.place, given], Told(shape, "i8", quant=x.quant), how)
        return n.conv(y, x.shape[3], 4, padding=VALID)

    return step


STEPS: dict[str, Step] = {
    "PRELU": lambda n, x: n.prelu(x),
    "HARD_SWISH": lambda n, x: n.function("HARD_SWISH", x),
    "GELU": _function("GELU", **options("Gelu", Approximate=False)),
    "RELU_0_TO_1": _function("RELU_0_TO_1"),
    "ROUND": _function("ROUND"),
    "SIGN": _function("SIGN"),
    "SIN": _function("SIN"),
    "DEPTH_TO_SPACE": _blocks("DEPTH_TO_SPACE", "DepthToSpace", up=True),
    "SPACE_TO_DEPTH": _blocks("SPACE_TO_DEPTH", "SpaceToDepth", up=False),
    "L2_NORMALIZATION": _function("L2_NORMALIZATION", Quant(1 / 128, 0)),
    "DIV": _quotient,
    "DIV_BY_A_NUMBER": _by_a_number,
    "NEG": lambda n, x: n.put("NEG", [x.place], x.told),
    "REFLECT": _mirrored(0),
    "SYMMETRIC": _mirrored(1),
}


def between(name: str) -> bytes:
    """Three convolutions with the operator between them."""
    n = Net(5)
    x = n.conv(n.start([1, 32, 32, 8]), 32, 3)
    for _ in range(2):
        x = n.conv(STEPS[name](n, x), 32, 3)
    return n.finish(x)
