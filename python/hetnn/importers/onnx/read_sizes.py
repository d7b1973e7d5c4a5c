"""Integers that nodes of an ONNX model compute from values, read as the sizes that they become in another node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from hetnn import _core
from hetnn.element_types import numpy_type
from hetnn.errors import Unsupported
from hetnn.importers.lowering.sizes import LONGEST
from hetnn.importers.onnx.builder import Builder
from hetnn.importers.onnx.fork import Forks
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.shape import SIGNED, computes_sizes, of_sizes
from hetnn.importers.onnx.values import Array, Sizes

# Integers that are computed like a shape, at most.
_MOST_SIZES = 8


class ReadSizes:
    """Remembers which node gave what may be sizes, and follows it back to symbols when it is read as such."""

    def __init__(self, builder: Builder, forks: Forks) -> None:
        self._builder, self._forks = builder, forks
        self._origins: dict[str, tuple[Call, int]] = {}  # which output of which node a value is that may be sizes
        self._sizes: dict[str, Array] = {}  # of values that were read as such

    def note(self, call: Call, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Remembers a node that computes with few integers as with sizes."""
        if not computes_sizes(call) or self._builder.in_body or not all(map(_may_be_sizes, inputs)):
            return
        passed = {getattr(x, "name", None) for x in inputs}
        for k, value in enumerate(outputs):
            if isinstance(value, _core.Value) and _may_be_sizes(value) and value.name not in passed:
                self._origins[value.name] = call, k

    def read(self, value: Any) -> Array | None:
        """The integers of a value that nodes compute from others as from sizes; None where it is none."""
        if isinstance(value, Sizes):
            return value.array
        # Step by step: chains of nodes may be longer than calls may be deep.
        todo: list[Any] = [value]
        seen: set[str] = set()
        chain: list[tuple[str, Call, int]] = []
        # What a body or a side of a condition reads, others do not have.
        shared = not self._builder.in_body and not self._forks.is_open()
        sizes = self._sizes if shared else dict(self._sizes)
        while todo:
            name = todo[-1].name
            call, k = self._origins.get(name, (None, 0))
            if call is None or name in sizes:
                todo.pop()
                continue
            before = [x for x in call.inputs if x is not None and not isinstance(x, Sizes) and x.name not in seen]
            before = [x for x in before if x.name in self._origins and self._builder.known(x) is None]
            seen.update(x.name for x in before)
            if before:
                todo.extend(before)
                continue
            todo.pop()
            chain.append((name, call, k))
        signed = any(call.node.op_type in SIGNED for _, call, _ in chain)
        for name, call, k in chain:
            given = [self._read_or_found(x, sizes, signed) for x in call.inputs if x is not None]
            try:
                outputs = of_sizes(call, given)
            except Unsupported:
                outputs = None
            if outputs is not None:
                sizes[name] = outputs[k]
        return sizes.get(value.name)

    def _read_or_found(self, value: Any, sizes: dict[str, Array], signed: bool) -> Array:
        """The integers of a value: known, computed from others, or symbols that stand for them.

        No symbol is negative: what may be (`signed`) is one of how far it is above 0, less one of how far it is below.
        """
        builder = self._builder
        array = value.array if isinstance(value, Sizes) else builder.known(value)
        array = sizes.get(value.name) if array is None else array
        if array is None:
            node = onnx.NodeProto(output=[f"{value.name}_sizes"])
            parts = [value]
            if signed:
                zero = builder.constant(np.zeros((), numpy_type(value.dtype)))
                parts = [
                    builder.create("maximum", [x, zero], {}, node)[0]
                    for x in (value, builder.create("neg", [value], {}, node)[0])
                ]
            found = []
            for part in parts:
                symbols = [builder.found_size(0, LONGEST) for _ in range(int(np.prod(value.shape)))]
                builder.create("read_size", [part], {"sizes": symbols}, node)
                found.append(np.array(symbols, dtype=object).reshape(value.shape))
            array = sizes[value.name] = np.asarray(found[0] - found[1], dtype=object) if signed else found[0]
        return array


def _may_be_sizes(value: Any) -> bool:
    """Whether a value is few integers, or sizes."""
    if not isinstance(value, _core.Value):
        return value is None or isinstance(value, Sizes)
    few = len(value.shape) == 0 or (len(value.shape) == 1 and value.shape[0] in range(1, _MOST_SIZES + 1))
    return few and value.dtype in ("i32", "i64")
