"""Graphs of one node each on i8 or i16, within and beyond what Arm's processors take: sizes, steps, windows, axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hetnn import _core

Case = tuple[str, Callable[[], _core.Graph]]
SCALES = {"i8": (0.04, -3), "i16": (0.04 / 256, 0)}


class Node:
    """A graph that gets one node."""

    def __init__(self, dtype: str) -> None:
        self.dtype, self.builder, self.count = dtype, _core.GraphBuilder("node"), 0
        self.scale, self.zero = SCALES[dtype]

    def operand(self, shape: Sequence[int], times: float = 1) -> Any:
        x = self.builder.add_input(f"x{self.count}", self.dtype, shape)
        self.count += 1
        told = {"to": self.dtype, "q_scale": [self.scale * times], "q_zero": self.zero}
        return self.builder.create("bitcast", [x], told)[0]

    def filters(self, shape: Sequence[int], bias: bool = True) -> list[Any]:
        values = np.random.default_rng(0).integers(-127, 128, shape).astype(np.int8)
        given = self.builder.create("constant", [], {"value": values, "q_scale": [0.01]})
        if bias:
            zeros = np.zeros(shape[0], np.int64 if self.dtype == "i16" else np.int32)
            given += self.builder.create("constant", [], {"value": zeros, "q_scale": [0.01 * self.scale]})
        return given

    def rounded(self, op: str, inputs: list[Any], times: float = 1, **attrs: Any) -> _core.Graph:
        told = {"q_scale": [self.scale * times], "q_zero": self.zero, "q_rounding": "double", **attrs}
        return self.plain(op, inputs, **told)

    def plain(self, op: str, inputs: list[Any], **attrs: Any) -> _core.Graph:
        self.builder.output(self.builder.create(op, inputs, attrs)[0], "y")
        return self.builder.finish()


def cases(dtype: str) -> Iterator[Case]:
    for group in (_convolutions, _linear, _pairs, _slopes, _pools, _enlarged, _moved, _alone):
        yield from group(dtype)


def _convolutions(dtype: str) -> Iterator[Case]:
    def conv(x: list[int], filters: list[int], **attrs: Any) -> Case:
        def make() -> _core.Graph:
            n = Node(dtype)
            return n.rounded("conv2d", [n.operand(x), *n.filters(filters)], 4, **attrs)

        return f"conv2d {x} {filters} {attrs}", make

    for stride in ([1, 1], [3, 3], [4, 4], [5, 1], [1, 4], [8, 8]):
        yield conv([1, 4, 33, 33], [4, 4, 3, 3], stride=stride)
        yield conv([1, 4, 33, 33], [4, 1, 3, 3], stride=stride, groups=4)
        yield conv([1, 4, 32, 32], [4, 4, 1, 1], stride=stride)
    yield conv([1, 4, 33, 33], [4, 4, 3, 3], stride=[4, 4], padding=[1, 1])
    yield conv([1, 4, 33, 33], [4, 4, 7, 7], stride=[4, 4], padding=[2, 2])
    yield conv([1, 4, 33, 33], [4, 4, 3, 3], stride=[4, 4], dilation=[2, 2])
    yield conv([1, 4, 33, 33], [4, 4, 3, 3], stride=[1, 4], padding=[1, 0])
    for dilation in ([2, 2], [3, 1], [1, 5], [9, 9]):
        yield conv([1, 4, 40, 40], [4, 4, 3, 3], dilation=dilation)
        yield conv([1, 4, 40, 40], [4, 1, 3, 3], dilation=dilation, groups=4)
    yield conv([1, 4, 40, 40], [4, 4, 3, 3], dilation=[2, 2], stride=[2, 2])
    for kernel in ([64, 1], [65, 1], [1, 65], [64, 64], [1, 200], [70, 70]):
        yield conv([1, 2, 100, 220], [2, 2, *kernel])
        yield conv([1, 2, 100, 220], [2, 1, *kernel], groups=2)
    yield conv([3, 4, 9, 9], [8, 4, 3, 3])
    yield conv([3, 4, 9, 9], [4, 1, 3, 3], groups=4)
    yield conv([1, 4, 9, 9], [8, 1, 3, 3], groups=4)
    yield conv([1, 4, 9, 9], [8, 2, 3, 3], groups=2)
    yield conv([1, 70000, 1, 1], [2, 70000, 1, 1])
    yield conv([1, 1, 1, 1], [70000, 1, 1, 1])
    yield conv([1, 1, 1, 70000], [2, 1, 1, 3])
    yield conv([1, 1, 70000, 1], [2, 1, 3, 1])
    for padding in ([5, 5], [0, 4, 0, 0]):
        yield conv([1, 4, 9, 9], [4, 4, 5, 5], padding=padding)


def _linear(dtype: str) -> Iterator[Case]:
    for rows, length, many in (
        ([1], 10, 10),
        ([5], 10, 10),
        ([70000], 4, 3),
        ([1], 66000, 2),
        ([1], 8, 70000),
        ([2, 3], 9, 4),
    ):

        def make(rows: list[int] = rows, length: int = length, many: int = many) -> _core.Graph:
            n = Node(dtype)
            return n.rounded("linear", [n.operand([*rows, length]), *n.filters([many, length], rows != [2, 3])], 4)

        yield f"linear {rows} {length} {many}", make


def _pairs(dtype: str) -> Iterator[Case]:
    shapes: list[tuple[list[int], list[int]]] = [
        *(([1, 4, 5, 6], other) for other in ([1, 4, 5, 6], [1, 4, 1, 1], [1, 1, 5, 6])),
        *(([2, 3, 4, 5, 6], [2, 3, 4, 5, 6]), ([3, 4], [4]), ([4, 1], [1, 5]), ([1, 4, 1, 6], [1, 1, 5, 1])),
        *(([3, 2, 3, 4], [3, 2, 3, 4]), ([100000], [100000]), ([1, 1, 300, 300], [1, 1, 300, 300])),
        *(([6, 2, 3, 4], [1, 2, 3, 4]), ([2, 2, 3, 4], [2, 1, 1, 1])),
    ]
    for op in ("add", "sub", "mul", "div"):
        for a, b in shapes:
            for times in (1, 0.7):

                def make(op: str = op, a: list[int] = a, b: list[int] = b, times: float = times) -> _core.Graph:
                    n = Node(dtype)
                    return n.rounded(op, [n.operand(a), n.operand(b, times)], 0.3 if op == "mul" else 1.7)

                yield f"{op} {a} {b} {times}", make


def _slopes(dtype: str) -> Iterator[Case]:
    if dtype != "i8":  # slopes are of the operand's type, and those of i16 go nowhere
        return
    shapes = ([1, 4, 9, 7], [3, 4, 5, 6], [2, 5], [1, 3, 70], [2, 3, 4, 2, 2], [30], [1, 70000, 1, 1], [1, 1, 300, 300])
    for shape in shapes:
        for steps in (90, 127):  # of 1 / 100: one line is the higher of both, or each in some channels

            def make(shape: list[int] = shape, steps: int = steps) -> _core.Graph:
                n, many = Node(dtype), shape[1] if len(shape) > 1 else 1
                values = np.linspace(-127, steps, many).astype(np.int8)
                slopes = n.builder.create("constant", [], {"value": values, "q_scale": [0.01]})
                return n.rounded("prelu", [n.operand(shape), *slopes], 0.8)

            yield f"prelu {shape} to {steps}", make


def _pools(dtype: str) -> Iterator[Case]:
    windows: list[tuple[list[int], list[int], list[int]]] = [
        *(([2, 2], stride, [1, 3, 20, 20]) for stride in ([2, 2], [4, 4], [5, 5])),
        *((kernel, [1, 1], [1, 3, 20, 20]) for kernel in ([3, 3], [9, 9])),
        *(([256, 1], [1, 1], [1, 3, 260, 20]), ([257, 1], [1, 1], [1, 3, 260, 20]), ([1, 300], [1, 1], [1, 3, 9, 310])),
        *(([64, 64], [1, 1], [1, 3, 70, 70]), ([2, 2], [2, 2], [4, 3, 20, 20])),
        *(([2, 2], [2, 2], [1, 70000, 4, 4]), ([3, 3], [2, 2], [1, 3, 20, 20])),
        ([1, 70000], [1, 70000], [1, 1, 1, 70000]),
    ]
    for op, more in (("max_pool2d", {}), ("avg_pool2d", {"count_include_pad": False})):
        for kernel, stride, shape in windows:
            for padding in ([0, 0], [kernel[0] // 2, kernel[1] // 2]):
                attrs = {"kernel": kernel, "stride": stride, "padding": padding, **more}

                def make(op: str = op, shape: list[int] = shape, attrs: dict[str, Any] = attrs) -> _core.Graph:
                    n = Node(dtype)
                    return n.rounded(op, [n.operand(shape)], **attrs)

                yield f"{op} {shape} {attrs}", make
    for shape in ([1, 5, 7, 7], [1, 5, 300, 200], [2, 5, 64, 64], [1, 5, 1, 1]):

        def whole(shape: list[int] = shape) -> _core.Graph:
            n = Node(dtype)
            return n.rounded("adaptive_avg_pool2d", [n.operand(shape)], output_size=[1, 1])

        yield f"adaptive_avg_pool2d {shape}", whole


def _enlarged(dtype: str) -> Iterator[Case]:
    for shape, goal in (
        *(([1, 3, 4, 5], [4 * k, 5 * k]) for k in (1, 2, 3, 4, 8, 16)),
        *(([1, 3, 4, 5], goal) for goal in ([8, 20], [4, 10])),
        *(([2, 3, 4, 5], [8, 10]), ([1, 3, 1, 1], [7, 7]), ([1, 3, 1, 5], [4, 5]), ([1, 3, 1, 5], [3, 15])),
    ):

        def make(shape: list[int] = shape, goal: list[int] = goal) -> _core.Graph:
            n = Node(dtype)
            return n.rounded("upsample_nearest2d", [n.operand(shape)], size=goal)

        yield f"upsample_nearest2d {shape} {goal}", make


def _moved(dtype: str) -> Iterator[Case]:
    for shape, perm in (
        *(([2, 3], [1, 0]), ([1, 3, 4, 5], [0, 2, 3, 1]), ([2, 3, 4, 5], [0, 2, 3, 1]), ([2, 3, 4, 5], [3, 1, 0, 2])),
        *(([2, 3, 4, 5, 6], [4, 3, 2, 1, 0]), ([2, 3, 2, 3, 2, 3], [5, 4, 3, 2, 1, 0]), ([70000, 2], [1, 0])),
        *(([1, 300, 300, 2], [0, 3, 1, 2]), ([1, 300, 300, 2], [3, 1, 0, 2]), ([2, 300, 300, 3], [0, 3, 1, 2])),
        *(([2] * 7, [6, 5, 4, 3, 2, 1, 0]), ([257, 257, 2], [2, 0, 1]), ([2, 3, 70000], [1, 0, 2])),
        *(([300, 300, 2, 2], [2, 3, 0, 1]), ([20, 2000, 2, 3], [1, 3, 2, 0]), ([50, 3000, 2, 1], [0, 3, 2, 1])),
        *(([2, 300, 300, 3], [0, 2, 1, 3]), ([250, 900, 1, 2, 1], [3, 1, 4, 2, 0])),
    ):

        def turned(shape: list[int] = shape, perm: list[int] = perm) -> _core.Graph:
            n = Node(dtype)
            return n.plain("permute", [n.operand(shape)], perm=perm)

        yield f"permute {shape} {perm}", turned
    for shape, axis in (
        *(([1, 3, 4, 5], 1), ([2, 3, 4, 5], 0), ([2, 3, 4, 5], 3), ([2, 3, 4, 5, 6], 2), ([2] * 6, 1), ([5], 0)),
        ([1, 70000], 1),
    ):

        def joined(shape: list[int] = shape, axis: int = axis) -> _core.Graph:
            n = Node(dtype)
            return n.plain("concat", [n.operand(shape), n.operand(shape)], axis=axis)

        def cut(shape: list[int] = shape, axis: int = axis) -> _core.Graph:
            n = Node(dtype)
            return n.plain("slice", [n.operand(shape)], axis=axis, start=1, end=2)

        def padded(shape: list[int] = shape, axis: int = axis) -> _core.Graph:
            n, amounts = Node(dtype), [0] * (2 * len(shape))
            amounts[axis], amounts[axis + len(shape)] = 1, 2
            return n.plain("pad", [n.operand(shape)], padding=amounts, value=0.0)

        def mirrored(shape: list[int] = shape, axis: int = axis) -> _core.Graph:
            n, amounts = Node(dtype), [0] * (2 * len(shape))
            amounts[axis], amounts[axis + len(shape)] = 1, shape[axis] - 1
            return n.plain("pad", [n.operand(shape)], padding=amounts, mode="reflect")

        def reversed_(shape: list[int] = shape, axis: int = axis) -> _core.Graph:
            n = Node(dtype)
            return n.plain("flip", [n.operand(shape)], axes=[axis])

        if shape[axis] < 10:
            yield f"pad mirrored {shape} {axis}", mirrored
            yield f"flip {shape} {axis}", reversed_
        yield f"concat {shape} {axis}", joined
        yield f"slice {shape} {axis}", cut
        yield f"pad {shape} {axis}", padded


def _alone(dtype: str) -> Iterator[Case]:
    scale, zero = SCALES[dtype]
    to = {"q_scale": [scale], "q_zero": zero}
    table = np.arange(-128, 128).astype(np.int8)[::-1].copy()
    other = "i16" if dtype == "i8" else "i8"
    narrow = {"q_scale": [SCALES[other][0]], "q_zero": SCALES[other][1], "to": other, "q_rounding": "double"}
    for shape in ([3, 4], [1, 3, 4, 5], [2, 3, 4, 5, 6], [2] * 6, [2] * 7, [100000], [1, 1, 70000, 1]):
        kinds: dict[str, dict[str, Any]] = {
            "relu": {**to, "q_rounding": "double"},
            "quantize": {"q_scale": [scale * 1.3], "q_zero": zero, "to": dtype, "q_rounding": "double"},
            "clamp": {**to, "min": -25 * scale, "max": 50 * scale},
            "identity": {},
            "reshape": {"shape": [int(np.prod(shape))]},
            "lookup": {**to, "table": table},
        }
        for op, attrs in kinds.items():
            if op == "lookup" and dtype != "i8":
                continue

            def make(op: str = op, shape: list[int] = shape, attrs: dict[str, Any] = attrs) -> _core.Graph:
                n = Node(dtype)
                return n.plain(op, [n.operand(shape)], **attrs)

            yield f"{op} {shape}", make
    for shape in ([2, 3, 4, 5], [2] * 7):

        def cast(shape: list[int] = shape) -> _core.Graph:
            n = Node(dtype)
            return n.plain("quantize", [n.operand(shape)], **narrow)

        yield f"quantize {shape} to {other}", cast
    for times in (300.0, 1 / 300, 1e-5):

        def rescaled(times: float = times) -> _core.Graph:
            n = Node(dtype)
            return n.rounded("quantize", [n.operand([2, 30])], times, to=dtype)

        yield f"quantize by {times}", rescaled
    for shape in ([1, 12], [3, 4, 35], [1, 2000], [1, 70000], [70000, 2]):

        def scores(shape: list[int] = shape) -> _core.Graph:
            n = Node(dtype)
            told = {"q_scale": [1 / 256], "q_zero": -128, "q_rounding": "double"}
            return n.plain("softmax", [n.operand(shape)], **told)

        if dtype == "i8":
            yield f"softmax {shape}", scores
