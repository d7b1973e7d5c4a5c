"""The sizes that an exported program leaves open: their symbols and ranges, and the nodes that give them values."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.export import ExportedProgram

from hetnn._core import Dim
from hetnn.errors import Unsupported
from hetnn.importers.lowering.sizes import MOST, Size, likely_size
from hetnn.importers.torch.rules.call import Importer, found_symbols
from hetnn.importers.torch.symbols import Symbols, own_name


class OpenSizes:
    """Declares the symbols of one program in the graph that `importer` builds."""

    def __init__(self, importer: Importer, program: ExportedProgram) -> None:
        self._importer, self._program = importer, program
        self.symbols = Symbols(self._computed_size)
        self._computed: ChainMap[Any, Dim] = ChainMap()  # sizes that nodes compute, by their expressions
        self._names: set[str] = set()
        self._new = 0

    def declare_axes(self) -> None:
        """The symbols that are the size of an axis; then those of which sizes are only a multiple, `4*h`."""
        taken: set[Any] = set()
        inputs = [node.meta.get("val") for node in self._program.graph.nodes if node.op == "placeholder"]
        sized: list[tuple[torch.Tensor, Any]] = [
            (value, size)
            for value in inputs
            if isinstance(value, torch.Tensor)
            for size in value.shape
            if isinstance(size, torch.SymInt)
        ]
        for value, size in sorted(sized, key=lambda one: not one[1].node.expr.is_Symbol):
            for symbol in sorted(size.node.expr.free_symbols - taken, key=str):
                taken.add(symbol)
                low, high = self._range(symbol, 1, 2**31 - 1)
                low, high = max(low, 0), min(high, 2**31 - 1)
                itself = symbol == size.node.expr
                hint = size.node.hint if itself and size.node.has_hint() else None
                name = own_name(symbol, value)
                if low == 2 and name == str(symbol):
                    low = self._least(symbol)  # torch notes 2 where nobody gave an axis a range, and lets any pass
                if name in self._names:
                    name = str(symbol)
                self._names.add(name)
                self._declare(symbol, name, low, high, int(hint) if hint is not None else max(low, 1))

    def require(self, conditions: Sequence[tuple[str, Size]]) -> None:
        """Has a run end whose sizes are not such as torch exported the program for."""
        if conditions:
            texts, holds = zip(*conditions, strict=True)
            told = {"holds": list(holds), "demand": "; ".join(texts)}
            self._importer.builder.create("require_sizes", [], told, "sizes", "", "", 0)

    def _declare(self, symbol: Any, name: str, low: int, high: int, hint: int) -> None:
        self.symbols.declare(symbol, name, low, high, hint)
        self._importer.builder.add_symbol(name, low, high, hint)

    def _range(self, symbol: Any, low: int, high: int) -> tuple[int, int]:
        """What torch knows of a symbol's value; the given bounds where it knows none."""
        bounds = self._program.range_constraints.get(symbol)
        if bounds is None:
            return low, high
        return (
            int(bounds.lower) if bounds.lower.is_Integer else low,
            int(bounds.upper) if bounds.upper.is_Integer else high,
        )

    def _least(self, symbol: Any) -> int:
        """Of a symbol that is no axis by itself: what the bounds of the sizes leave that it makes, as `2*k >= 4`."""
        least = 0
        for size, bounds in self._program.range_constraints.items():
            if size.free_symbols != {symbol} or size == symbol or not bounds.lower.is_Integer:
                continue
            factor, offset = size.coeff(symbol), size.subs(symbol, 0)
            if factor.is_Integer and factor > 0 and size == factor * symbol + offset:
                least = max(least, -((int(offset) - int(bounds.lower)) // int(factor)))
        return least

    def declare_found(self, node: torch.fx.Node) -> None:
        """The sizes that come out of the values that a node reads. Costs are predicted at their bounds."""
        for symbol in found_symbols(node):
            low, high = self._range(symbol, -MOST, MOST)
            if "masked_select" in str(node.target):  # torch forgets that the mask may be larger
                high = MOST
            self._declare(symbol, str(symbol), low, high, likely_size(low, high))

    def new_size(self, low: int, high: int, likely: int | None = None) -> Dim:
        """A symbol of a size that comes out of values and has no name in torch."""
        self._new += 1
        name = f"found{self._new}"
        self._importer.builder.add_symbol(name, low, high, likely_size(low, high) if likely is None else likely)
        return Dim.symbol(name)

    def _computed_size(self, expr: Any, low: int, high: int, likely: int) -> Dim:
        """A size that nodes compute as torch does, in reals."""
        if expr not in self._computed:
            value = self._importer.number(expr)
            self._computed[expr] = self.new_size(low, high, likely)
            self._importer.builder.create("read_size", [value], {"sizes": [self._computed[expr]]}, "size")
        return self._computed[expr]

    def declare_given(self, node: torch.fx.Node, value: Any) -> None:
        """A number that comes as a tensor, and is read as a size."""
        size = node.meta.get("val")
        if isinstance(size, torch.SymInt) and hasattr(value, "dtype"):
            symbol = size.node.expr
            if not symbol.is_Symbol:
                raise Unsupported(f"the input '{node.name}' is the size {symbol}, whose parts no other input tells.")
            self._declare(symbol, self._own_size(str(symbol)), *self._range(symbol, -MOST, MOST), 1)
            self._importer.builder.create("read_size", [value], {"sizes": [self.symbols.dim(size)]}, node.name)

    def _own_size(self, name: str) -> str:
        self._new += 1
        return f"{name}_{self._new}"

    @contextmanager
    def in_body(self) -> Iterator[None]:
        """What nodes compute in the body of a loop, is not there behind it."""
        self._computed = self._computed.new_child()
        try:
            yield
        finally:
            self._computed = self._computed.parents
