"""A call of a torch overload, and the tables of functions that import one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from hetnn.errors import Unsupported

if TYPE_CHECKING:
    from hetnn import _core
    from hetnn.importers.symbols import Symbols

Rule = Callable[["Call"], Any]
RULES: dict[str, Rule] = {}
REFINEMENTS: dict[str, Rule] = {}

DTYPES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.bool: "bool",
}

_NUMPY = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "bool": np.bool_,
}


def rule(*overloads: str) -> Callable[[Rule], Rule]:
    """Registers a function for aten overloads that no operator claims one to one."""
    return _register(RULES, overloads)


def refines(*overloads: str) -> Callable[[Rule], Rule]:
    """Registers a function for aten overloads that mean an operator in most calls, but not in all: asked before it."""
    return _register(REFINEMENTS, overloads)


def _register(table: dict[str, Rule], overloads: Sequence[str]) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for overload in overloads:
            table[f"aten.{overload}"] = function
        return function

    return register


class Importer(Protocol):
    """What a call needs of the importer that makes it."""

    builder: _core.GraphBuilder
    symbols: Symbols

    def dtype(self, dtype: torch.dtype) -> str: ...

    def loc(self, node: torch.fx.Node) -> tuple[str, str, int]: ...


class Call:
    """One node of the exported program: its arguments by name (values, numbers, dims), and what to build with."""

    def __init__(self, importer: Importer, node: torch.fx.Node, names: Sequence[str], args: dict[str, Any]) -> None:
        self._importer = importer
        self._node = node
        self.names = names
        self.args = args

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def _meta(self, index: int = 0) -> torch.Tensor:
        value = self._node.meta["val"]
        found = value[index] if isinstance(value, (tuple, list)) else value
        assert isinstance(found, torch.Tensor)
        return found

    def dtype(self, index: int = 0) -> str:
        """The element type that torch computed for an output."""
        return self._importer.dtype(self._meta(index).dtype)

    def shape(self, index: int = 0) -> list[int | str]:
        """The shape that torch computed for an output, as dims."""
        return [self._importer.symbols.dim(size) for size in self._meta(index).shape]

    def type_name(self, dtype: torch.dtype) -> str:
        return self._importer.dtype(dtype)

    def create_all(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any] | None = None) -> list[Any]:
        scope, file, line = self._importer.loc(self._node)
        return list(self._importer.builder.create(op, list(inputs), attrs or {}, self._node.name, scope, file, line))

    def create(self, op: str, inputs: Sequence[Any], **attrs: Any) -> Any:
        return self.create_all(op, inputs, attrs)[0]

    def constant(self, value: Any, dtype: str) -> Any:
        if dtype not in _NUMPY:
            raise Unsupported(f"constants of {dtype} are not supported")
        return self._importer.builder.constant(np.asarray(value, dtype=_NUMPY[dtype]))

    def whole(self, size: int | str) -> Any:
        """A size as an i64 that nodes can compute with: [] when it is fixed, [1] when it depends on symbols."""
        if isinstance(size, int):
            return self.constant(size, "i64")
        return self.create("arange", [], start=size, end=f"({size}) + 1")

    def from_the_front(self, index: Any, size: int | str) -> Any:
        """Indices along an axis of that size, those that count from its end made to count from its start."""
        negative = self.cast(self.create("lt", [index, self.constant(0, "i64")]), "i64")
        return self.create("add", [index, self.create("mul", [negative, self.whole(size)])])

    def cast(self, value: Any, dtype: str) -> Any:
        return value if value.dtype == dtype else self.create("cast", [value], to=dtype)

    def reshape(self, value: Any, shape: Sequence[int | str]) -> Any:
        return value if list(value.shape) == list(shape) else self.create("reshape", [value], shape=list(shape))

    def promote(self, values: Sequence[Any], compare: bool = False) -> list[Any]:
        """Operands in one element type: torch's promotion for comparisons, else the result's own type."""
        wanted = self._common(values) if compare else self.dtype()
        out = []
        for value in values:
            if isinstance(value, (bool, int, float)):
                out.append(self.constant(value, wanted))
            elif isinstance(value, str):
                raise Unsupported(f"the size {value} is used as a value")
            elif value is None or (value.dtype == "bool" and wanted != "bool" and self._is_condition(values, value)):
                out.append(value)
            else:
                out.append(self.cast(value, wanted))
        return out

    def _is_condition(self, values: Sequence[Any], value: Any) -> bool:
        return "where" in str(self._node.target) and value is values[0]

    def _common(self, values: Sequence[Any]) -> str:
        names = {name: dtype for dtype, name in DTYPES.items()}
        tensors = [torch.empty((1,) * len(v.shape), dtype=names[v.dtype]) for v in values if hasattr(v, "dtype")]
        scalars = [v for v in values if isinstance(v, (bool, int, float))]
        result = tensors[0].dtype
        for other in [*tensors[1:], *scalars]:
            result = torch.result_type(torch.empty((1,), dtype=result), other)
        return self.type_name(result)
