"""What Vela maps to an Ethos-U, as rows: a limit and a sentence each, asked of the TOSA operators of a node.

Held against Vela itself by tests/python/backends/test_ethos_constraints.py. What depends on weights' values is asked
when a subgraph is compiled (`heavy_filter`), since nodes that are alike are asked for once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hetnn.backends.backend import Reason

if TYPE_CHECKING:
    from hetnn.exporters.tosa.file import Block, Op

SMALL, ALL = ("EthosU55", "EthosU65"), ("EthosU55", "EthosU65", "EthosU85")
MOST_RANK, MOST_SIZE = 6, 1 << 16
MOST_OF_WEIGHTS = 127 << 16  # the sum of a filter's weights, without their signs
_SUMS = ("CONV2D", "DEPTHWISE_CONV2D")
_POOLS = ("MAX_POOL2D", "AVG_POOL2D")


class Row(NamedTuple):
    """A limit of operators (of every one where `kinds` is empty). `found` gives what breaks it, or None."""

    label: str
    families: tuple[str, ...]
    kinds: tuple[str, ...]
    wanted: str
    text: str
    found: Callable[[Op, Block], str | None]


def _shape(block: Block, name: str) -> list[int]:
    return block.tensors[name][0] if name in block.tensors else []


def _rank(op: Op, block: Block) -> str | None:
    most = max(len(_shape(block, name)) for name in (*op.inputs, *op.outputs))
    return f"{most} axes" if most > MOST_RANK else None


def _step(op: Op, block: Block) -> str | None:
    return f"a step of {max(op.attrs['Stride'])}" if max(op.attrs["Stride"]) > 3 else None


def _step_and_more(op: Op, block: Block) -> str | None:
    plain = not any(op.attrs["Pad"]) and max(op.attrs.get("Dilation", [1])) == 1
    return None if plain else _step(op, block)


def _padded_window(op: Op, block: Block) -> str | None:
    height, width = op.attrs["Kernel"]
    return f"a window of {height} x {width}" if any(op.attrs["Pad"]) and max(height, width) > 8 else None


def _depth(op: Op, block: Block) -> str | None:
    depth = _shape(block, op.inputs[0])[3]
    return f"{depth} channels" if depth > MOST_SIZE else None


def _window(op: Op, block: Block) -> str | None:
    height, width = op.attrs["Kernel"]
    return f"a window of {height} x {width}" if height * width > MOST_SIZE else None


def _turned(op: Op, block: Block) -> str | None:
    """Of an image, and its shapes before and behind, each axis counts; of others all but any two together."""
    shapes = [_shape(block, name) for name in (*op.inputs, *op.outputs)]
    for other in block.ops:
        if other.kind == "RESHAPE" and (other.outputs[0] in op.inputs or other.inputs[0] in op.outputs):
            shapes += [_shape(block, other.inputs[0]), _shape(block, other.outputs[0])]
    stays = op.attrs["Perms"][:-3] == list(range(len(op.attrs["Perms"]) - 3))
    for shape in shapes:
        image = stays and all(size == 1 for size in shape[:-3])
        counted = shape if image else [math.prod(some) for some in combinations(shape, len(shape) - 2)]
        if max(counted) > MOST_SIZE:
            return f"{max(counted)} in {shape}"
    return None


def _times(op: Op, block: Block) -> str | None:
    (n, *before, _), (_, *behind, _) = _shape(block, op.inputs[0]), _shape(block, op.outputs[0])
    times = [b // a for a, b in zip(before, behind, strict=True)]
    if n == 1 and (before == behind or before == [1, 1] or all(each in (2, 4, 8) for each in times)):
        return None
    return f"{times[0]} x {times[1]} times, of {n} images"


ROWS = (
    Row(
        "ethos_rank", ALL, (), f"{MOST_RANK} axes or fewer",
        f"Vela reads tensors of at most {MOST_RANK} axes", _rank,
    ),
    Row(
        "ethos_depthwise_step", SMALL, ("DEPTHWISE_CONV2D",), "steps of 1 to 3",
        "Ethos-U55 and U65 step over an image by at most 3 pixels where each channel has a filter of its own", _step,
    ),
    Row(
        "ethos_step", SMALL, ("CONV2D", *_POOLS), "steps of 1 to 3, or no padding and no dilation",
        "windows of Ethos-U55 and U65 step by more than 3 pixels only without padding and without dilation",
        _step_and_more,
    ),
    Row(
        "ethos_padded_mean", SMALL, ("AVG_POOL2D",), "windows of at most 8 x 8, or no padding",
        "Ethos-U55 and U65 take means over windows of more than 8 pixels a side only of images without padding",
        _padded_window,
    ),
    Row(
        "ethos_depth", ALL, (*_SUMS, *_POOLS), f"{MOST_SIZE} channels or fewer",
        f"a window sees at most {MOST_SIZE} channels", _depth,
    ),
    Row(
        "ethos_window", ALL, _POOLS, f"{MOST_SIZE} pixels or fewer",
        f"a pool has windows of at most {MOST_SIZE} pixels", _window,
    ),
    Row(
        "ethos_turned_axis", SMALL, ("TRANSPOSE",), f"{MOST_SIZE} or fewer",
        f"Ethos-U55 and U65 change the order of three axes of at most {MOST_SIZE} elements each, or of more where all "
        "but any two of them have as many together", _turned,
    ),
    Row(
        "ethos_enlarged", SMALL, ("RESIZE",), "one image, 2, 4 or 8 times as high and as wide",
        "Ethos-U55 and U65 enlarge one image, each side 2, 4 or 8 times, or a single pixel to any size", _times,
    ),
)  # fmt: skip


def broken(block: Block, family: str) -> list[Reason]:
    """The limits of a family of accelerators that a node's operators break."""
    return [
        Reason(row.label, what, row.wanted, row.text)
        for row in ROWS
        if family in row.families
        for what in _found(row, block)
    ]


def _found(row: Row, block: Block) -> Iterator[str]:
    for op in block.ops:
        if (not row.kinds or op.kind in row.kinds) and (what := row.found(op, block)) is not None:
            yield what


def heavy_filter(block: Block) -> tuple[str, int] | None:
    """The node, and the sum, of a filter whose weights without their signs are more than the accelerator adds up."""
    for op in block.ops:
        if op.kind in _SUMS:
            shape, _, values = block.tensors[op.inputs[1]]
            assert values is not None
            axes = (1, 2, 3) if op.kind == "CONV2D" else (0, 1)
            most = int(np.abs(values.reshape(shape)).sum(axes).max(initial=0))
            if most > MOST_OF_WEIGHTS:
                return op.node, most
    return None
