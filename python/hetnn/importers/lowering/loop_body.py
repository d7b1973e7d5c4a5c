"""Bodies of loops that run an unknown number of rounds: calls on numbered values, as text (ops/control/body.h)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetnn import _core
from hetnn._core import Dim
from hetnn.errors import Unsupported
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.registry import operators

_OPS = {op["name"]: op for op in operators()}
# What separates the parts of a body's text, and its own mark.
_SEPARATORS = re.compile(r"[%;|(){}\[\]]")
# Operators that refuse an index outside an axis, and those that refuse to divide an integer by 0.
PICKS = {name for name, op in _OPS.items() if op["checks"]}
DIVIDES = {"div", "floor_divide", "remainder", "fmod"}
# Those that end a run, though nobody reads them.
_DEMANDS = {name for name, op in _OPS.items() if any(attr["name"] == "demand" for attr in op["attrs"])}
# Those that refuse an axis of no element.
NEEDS_ONE = {"reduce_max", "reduce_min", "argmax", "argmin"}
# Those that take long.
HEAVY = {name for name, op in _OPS.items() if "compute" in op["traits"]}
# Whose attributes may be sizes, with the names of those.
SIZED = {
    name: [attr["name"] for attr in op["attrs"] if attr["kind"] in ("integer", "integers")] for name, op in _OPS.items()
}


@dataclass(frozen=True)
class BodyInput:
    """What the body is handed: its element type and shape, and the axes whose sizes may differ from round to round."""

    dtype: str
    shape: Sequence[Size]
    changing: Sequence[int] = ()


@dataclass(frozen=True)
class _Made:
    """A call of a body, the symbols of its attributes, and those to which it gives values."""

    op: str
    inputs: list[Any]
    attrs: str
    symbols: set[str]
    outputs: list[Any]
    found: set[str]


class Body:
    """Builds nodes as a GraphBuilder does, and writes them down; values from outside become inputs."""

    def __init__(self, inputs: Sequence[BodyInput]) -> None:
        self.builder = _core.GraphBuilder("body")
        self.known: dict[str, np.ndarray[Any, Any]] = {}  # constants from outside, by their names here
        self.captured: list[Any] = []
        self.named: dict[str, Dim] = {}  # symbols, by what the model calls them
        self.outer: list[Dim] = []  # sizes of the graph around it that nodes read
        self.inputs = [self.builder.add_input(f"in{k}", x.dtype, list(x.shape)) for k, x in enumerate(inputs)]
        self._taken = {
            k: [str(size) if axis in x.changing else "_" for axis, size in enumerate(x.shape)]
            for k, x in enumerate(inputs)
            if x.changing
        }
        self._own: dict[int, Any] = {id(value): value for value in self.inputs}
        self._inside: dict[int, Any] = {}  # of values outside, by which they are kept alive
        self._outside: dict[int, Any] = {}
        self._calls: list[_Made] = []
        self._symbols = names(x.shape[axis] for x in inputs for axis in x.changing)

    def owns(self, value: Any) -> bool:
        """Whether a value is an input of the body or comes of its nodes."""
        return id(value) in self._own

    def finds(self, size: Size) -> bool:
        """Whether a size has its value from the body."""
        return not self._symbols.isdisjoint(names([size]))

    def take(self, value: Any, array: np.ndarray[Any, Any] | None) -> Any:
        """A value of the body, or one from outside as an input of it; `array` is what is known of it there."""
        if value is None or self.owns(value):
            return value
        if id(value) not in self._inside:
            made = self.builder.add_input(f"captured{len(self.captured)}", value.dtype, list(value.shape))
            self.captured.append(value)
            self._outside[id(value)], self._inside[id(value)], self._own[id(made)] = value, made, made
            if array is not None:
                self.known[made.name] = array
        return self._inside[id(value)]

    def create(self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], found: Iterable[Dim]) -> list[Any]:
        """A node whose inputs the body has; `found` are the symbols to which it gives values."""
        given = names(found)
        self._symbols |= given
        outputs = list(self.builder.create(op, list(inputs), dict(attrs)))
        self._own.update((id(value), value) for value in outputs)
        symbols = names(part for name in SIZED[op] for part in parts_of(attrs.get(name)))
        outer = {name: self._outer(name) for name in sorted(symbols - self._symbols)}
        kinds = {attr["name"]: attr["kind"] for attr in _OPS[op]["attrs"]}
        told = ";".join(f"{name}={_text(kinds[name], value, outer)}" for name, value in attrs.items())
        self._calls.append(_Made(op, list(inputs), told, symbols, outputs, given))
        return outputs

    def _outer(self, name: str) -> Dim:
        """A symbol of the graph around the body, as it is called here: by its number among those."""
        symbol = Dim.symbol(name)
        if symbol not in self.outer:
            self.outer.append(symbol)
        return Dim.symbol(f"outer{self.outer.index(symbol)}")

    def _needed(self, outputs: Sequence[Any]) -> list[_Made]:
        """The calls that the outputs follow from, by their values or by the sizes that they find, and demands."""
        values, words = {id(value) for value in outputs}, set[str]()
        out = []
        for call in reversed(self._calls):
            is_read = not values.isdisjoint(map(id, call.outputs)) or not words.isdisjoint(call.found)
            if not is_read and call.op not in _DEMANDS:
                continue
            out.append(call)
            values.update(map(id, call.inputs))
            words |= call.symbols
        return out[::-1]

    def text(self, outputs: Sequence[Any]) -> str:
        """The calls with every value's number, and what the body gives."""
        values = [*self.inputs, *(self._inside[id(value)] for value in self.captured)]
        numbers = {id(value): k for k, value in enumerate(values)}
        lines = [" ".join(["take", str(k), *sizes]) for k, sizes in self._taken.items()]
        for call in self._needed(outputs):
            words = ["_" if value is None else str(numbers[id(value)]) for value in call.inputs]
            lines.append(" ".join([call.op, *words, "{" + call.attrs + "}"]))
            for value in call.outputs:
                numbers[id(value)] = len(numbers)
        lines.append(" ".join(["give", *(str(numbers[id(value)]) for value in outputs)]))
        return " | ".join(lines)


def loop_node(
    call: Any,
    body: Body,
    given: Sequence[Any],
    how_often: Sequence[Any],
    carried: Sequence[Any],
    count: Dim,
    sizes: Any,
) -> list[Any]:
    """A node with a body that gives these values: what is carried behind the last round, then the stacked.

    `how_often`: the number of rounds and whether there is one, None where that does not matter; `count` and `sizes`: of
    the rounds, and of what is stacked or changes its shape.
    """
    kinds = " ".join(f"{value.dtype}:{len(value.shape)}" for value in given[1 + len(carried) :])
    told = {"body": body.text(given), "carried": len(carried), "count": count, "sizes": list(sizes)}
    told |= {"outer": list(body.outer), "stacks": kinds}
    return list(call.create_all("loop", [*how_often, *carried, *body.captured], told))


def parts_of(value: Any) -> Sequence[Any]:
    """What an attribute of one or of several values holds."""
    return value if isinstance(value, (list, tuple)) else [value]


def names(sizes: Iterable[Any]) -> set[str]:
    """Of the symbols in sizes."""
    return {name for size in sizes if isinstance(size, Dim) for name in size.symbols}


def _text(kind: str, value: Any, outer: Mapping[str, Dim]) -> str:
    if kind in ("integers", "reals"):
        return "[" + ",".join(_text(kind[:-1], part, outer) for part in parts_of(value)) + "]"
    if kind == "bool":
        return "true" if value else "false"
    if kind == "real":
        return repr(float(value))
    if kind == "tensor":
        raise Unsupported("a constant in the body of a loop")
    if kind == "string":
        return _SEPARATORS.sub(lambda found: f"%{ord(found[0]):02x}", str(value))
    return str(value.substitute(outer) if isinstance(value, Dim) else value)


class Recording:
    """Stands in for a graph's builder while the nodes of a loop's body are made."""

    def __init__(self, body: Body, around: Any) -> None:
        self._body, self._around = body, around
        self._found: list[Dim] = []

    def create(self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], *_: Any) -> list[Any]:
        """A node of the body, which finds the sizes that were declared since the last one."""
        found, self._found = self._found, []
        return self._body.create(op, [self._body.take(value, None) for value in inputs], attrs, found)

    def constant(self, array: np.ndarray[Any, Any], name: str = "") -> Any:
        """A constant of the graph around, which the body captures where it reads it."""
        return self._around.constant(array, name)

    def add_symbol(self, name: str, *_: int) -> None:
        """A size to which the next node gives a value."""
        self._found.append(Dim.symbol(name))

    def add_input(self, *_: Any) -> Any:
        """Unsupported: a body has no inputs but those that it begins with."""
        raise Unsupported("random numbers in the body of a loop")
