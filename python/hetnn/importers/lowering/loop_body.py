"""Bodies of loops that run an unknown number of rounds: calls on numbered values, as text (ops/control/body.h)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetnn import _core
from hetnn.errors import Unsupported
from hetnn.importers.lowering.sizes import SYMBOL

_OPS = {op["name"]: op for op in _core.operators()}
# Operators that refuse an index outside an axis, and those that refuse to divide an integer by 0.
PICKS = {name for name, op in _OPS.items() if op["checks"]}
DIVIDES = {"div", "floor_divide", "remainder", "fmod"}
# Those that refuse an axis of no element.
NEEDS_ONE = {"reduce_max", "reduce_min", "argmax", "argmin"}
# Those that take long.
HEAVY = {name for name, op in _OPS.items() if "compute" in op["traits"]}
# Whose attributes may be sizes, with the names of those.
SIZED = {
    name: [attr["name"] for attr in op["attrs"] if attr["kind"] in ("integer", "integers")] for name, op in _OPS.items()
}
_FUNCTIONS = {"floordiv", "mod", "max", "min"}


@dataclass(frozen=True)
class BodyInput:
    """What the body is handed: its element type and shape, and the axes whose sizes may differ from round to round."""

    dtype: str
    shape: Sequence[int | str]
    changing: Sequence[int] = ()


@dataclass(frozen=True)
class _Made:
    """A call of a body, and the sizes to which it gives values."""

    op: str
    inputs: list[Any]
    attrs: str
    outputs: list[Any]
    found: list[str]


class Body:
    """Builds nodes as a GraphBuilder does, and writes them down; values from outside become inputs."""

    def __init__(self, inputs: Sequence[BodyInput]) -> None:
        self.builder = _core.GraphBuilder("body")
        self.known: dict[str, np.ndarray[Any, Any]] = {}  # constants from outside, by their names here
        self.captured: list[Any] = []
        self.named: dict[str, str] = {}  # symbols, by what the model calls them
        self.outer: list[str] = []  # sizes of the graph around it that nodes read
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
        self._symbols = {str(x.shape[axis]) for x in inputs for axis in x.changing}

    def owns(self, value: Any) -> bool:
        return id(value) in self._own

    def finds(self, size: str) -> bool:
        """Whether a size has its value from the body."""
        return not self._symbols.isdisjoint(SYMBOL.findall(size))

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

    def create(self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], found: Sequence[str]) -> list[Any]:
        """A node whose inputs the body has; `found` are the symbols to which it gives values."""
        self._symbols.update(found)
        outputs = list(self.builder.create(op, list(inputs), dict(attrs)))
        self._own.update((id(value), value) for value in outputs)
        self._calls.append(_Made(op, list(inputs), self._attributes(op, attrs), outputs, list(found)))
        return outputs

    def _attributes(self, op: str, attrs: Mapping[str, Any]) -> str:
        kinds = {attr["name"]: attr["kind"] for attr in _OPS[op]["attrs"]}
        texts = []
        for name, value in attrs.items():
            text = _text(kinds[name], value)
            if kinds[name] in ("integer", "integers"):
                text = SYMBOL.sub(self._size, text)
            texts.append(f"{name}={text}")
        return ";".join(texts)

    def _size(self, found: re.Match[str]) -> str:
        """A symbol of the body as it is, one of the graph around it by its number among those."""
        symbol = found.group()
        if symbol in _FUNCTIONS or symbol in self._symbols:
            return symbol
        if symbol not in self.outer:
            self.outer.append(symbol)
        return f"outer{self.outer.index(symbol)}"

    def _needed(self, outputs: Sequence[Any]) -> list[_Made]:
        """The calls that the outputs follow from, by their values or by the sizes that they find."""
        values, words = {id(value) for value in outputs}, set[str]()
        out = []
        for call in reversed(self._calls):
            if words.isdisjoint(call.found) and values.isdisjoint(map(id, call.outputs)):
                continue
            out.append(call)
            values.update(map(id, call.inputs))
            words.update(SYMBOL.findall(call.attrs))
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


def _text(kind: str, value: Any) -> str:
    if kind in ("integers", "reals"):
        parts = value if isinstance(value, (list, tuple)) else [value]
        return "[" + ",".join(_text(kind[:-1], part) for part in parts) + "]"
    if kind == "bool":
        return "true" if value else "false"
    if kind == "real":
        return repr(float(value))
    if kind == "tensor":
        raise Unsupported("a constant in the body of a loop")
    return str(value)


class Recording:
    """Stands in for a graph's builder while the nodes of a loop's body are made."""

    def __init__(self, body: Body, around: Any) -> None:
        self._body, self._around = body, around
        self._found: list[str] = []

    def create(self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], *_: Any) -> list[Any]:
        found, self._found = self._found, []
        return self._body.create(op, [self._body.take(value, None) for value in inputs], attrs, found)

    def constant(self, array: np.ndarray[Any, Any], name: str = "") -> Any:
        return self._around.constant(array, name)

    def add_symbol(self, name: str, *_: int) -> None:
        """A size to which the next node gives a value."""
        self._found.append(name)

    def add_input(self, *_: Any) -> Any:
        raise Unsupported("random numbers in the body of a loop")
