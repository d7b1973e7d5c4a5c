"""What an ONNX graph is made of while it grows: nodes, constants and names; sizes as values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from hetnn._core import Dim
from hetnn.errors import Unsupported
from hetnn.exporters.names import fresh_name
from hetnn.exporters.onnx.schema import least_set, number, schema_of

Array = np.ndarray[Any, Any]
Size = int | Dim
_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_][\w.]*|[-+*(),])")


@dataclass(frozen=True)
class Value:
    """A value of the ONNX graph; `shape` where a rule may want it, `array` of a constant."""

    name: str
    dtype: str
    shape: tuple[Size, ...] | None = None
    array: Array | None = None

    @property
    def rank(self) -> int:
        """That of the shape."""
        assert self.shape is not None
        return len(self.shape)


@dataclass(frozen=True)
class Branch:
    """An attribute: a graph that gives a value of the graph around it."""

    value: str


@dataclass
class Node:
    """A node of the ONNX graph."""

    op_type: str
    inputs: list[str]
    outputs: list[str]
    attrs: dict[str, Any]
    domain: str = ""
    since: int = 0  # the operator set that it needs; 0: that of its newest form
    name: str = ""
    loc: str = ""


def refuse(why: str) -> NoReturn:
    """Ends a rule: the node has no form."""
    raise Unsupported(why)


@dataclass
class Writer:
    """Collects nodes and constants. `names` are those that are taken."""

    names: set[str]
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    # Symbols by name: what gives them, and those that are values already.
    sources: dict[str, tuple[Value, int, int, int]] = field(default_factory=dict)
    known: dict[str, Value] = field(default_factory=dict)
    _same: dict[tuple[str, bytes, tuple[int, ...]], Value] = field(default_factory=dict)

    def fresh(self, wanted: str) -> str:
        """A name that nothing else has."""
        return fresh_name(self.names, wanted)

    def constant(self, array: Any, dtype: str, wanted: str = "constant") -> Value:
        """A constant; small ones that are equal are one."""
        array = np.asarray(array)
        key = (dtype, array.tobytes(), array.shape) if array.nbytes <= 1024 else None
        if key is not None and key in self._same:
            return self._same[key]
        name = self.fresh(wanted)
        self.constants[name] = array
        value = Value(name, dtype, tuple(array.shape), array)
        if key is not None:
            self._same[key] = value
        return value

    def add(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        attrs: dict[str, Any],
        dtypes: Sequence[str | None] = (None,),
        shape: Sequence[Size] | None = None,
        domain: str = "",
        wanted: str = "",
    ) -> list[Value]:
        """A node with as many outputs as `dtypes`: None where the standard says it. Unsupported for no such call."""
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        schema = schema_of(op_type, domain)
        of_each = [None if value is None else value.dtype for value in given]
        if (fault := schema.fault(of_each, attrs)) is not None:
            refuse(fault)
        told = {name: value for name, value in attrs.items() if value is not None and value != schema.presets[name]}
        names = [self.fresh(f"{wanted or 'value'}_{op_type.lower()}") for _ in dtypes]
        ports = ["" if value is None else value.name for value in given]
        out = []
        for k, (name, dtype) in enumerate(zip(names, dtypes, strict=True)):
            made = dtype or schema.result(k, of_each)
            assert made is not None, op_type
            out.append(Value(name, made, None if shape is None else tuple(shape)))
        types = frozenset(dtype for dtype in (*of_each, *(value.dtype for value in out)) if dtype)
        self.nodes.append(Node(op_type, ports, names, told, domain, least_set(op_type, domain, types, frozenset(told))))
        return out

    def one(self, op_type: str, inputs: Sequence[Value | None], **attrs: Any) -> Value:
        """A node of one output, whose element type the standard says."""
        (value,) = self.add(op_type, inputs, attrs)
        return value

    # Sizes, each a tensor of one i64.

    def declare(self, value: Value) -> None:
        """From here on symbols in the shape of a value can be computed."""
        for axis, size in enumerate(value.shape or ()):
            if isinstance(size, int) or len(size.symbols) != 1:
                continue
            (name,) = size.symbols
            least = size.substitute({name: 0})
            factor = size.substitute({name: 1}) - least
            if isinstance(least, int) and isinstance(factor, int) and size == Dim.symbol(name) * factor + least:
                worse = name in self.sources and not (factor == 1 and least == 0 and self.sources[name][2:] != (1, 0))
                if not worse:
                    self.sources[name] = (value, axis, factor, least)

    def symbol(self, name: str) -> Value:
        """The value of a symbol. Unsupported for one that no shape before tells."""
        if name not in self.known:
            if name not in self.sources:
                refuse(f"the size {name} is told by no shape before it")
            value, axis, factor, least = self.sources[name]
            size = self.one("Shape", [value], start=axis, end=axis + 1)
            if least:
                size = self.one("Sub", [size, self.size(least)])
            self.known[name] = size if factor == 1 else self.one("Div", [size, self.size(factor)])
        return self.known[name]

    def size(self, size: Size) -> Value:
        """One size."""
        if isinstance(size, int):
            return self.constant(np.array([size], np.int64), "i64", "size")
        text = str(size)
        if text not in self.known:
            self.known[text] = _Expression(self, text).whole()
        return self.known[text]

    def sizes(self, sizes: Sequence[Size]) -> Value:
        """Several, in one tensor of rank 1."""
        if all(isinstance(size, int) for size in sizes):
            return self.constant(np.array(sizes, np.int64), "i64", "sizes")
        return self.one("Concat", [self.size(size) for size in sizes], axis=0)

    def is_shared(self, name: str) -> bool:
        """Whether a value is a size, which others may read."""
        return any(value.name == name for value in self.known.values())


class _Expression:
    """A size as `str` writes it, as nodes."""

    def __init__(self, writer: Writer, text: str) -> None:
        self._writer, self._words, self._at = writer, _TOKEN.findall(text), 0

    def whole(self) -> Value:
        return self._sum()

    def _peek(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _take(self, word: str) -> bool:
        taken = self._peek() == word
        self._at += taken
        return taken

    def _sum(self) -> Value:
        out = self._product()
        while self._peek() in ("+", "-"):
            op = "Add" if self._take("+") else "Sub"
            if op == "Sub":
                self._take("-")
            out = self._writer.one(op, [out, self._product()])
        return out

    def _product(self) -> Value:
        out = self._factor()
        while self._take("*"):
            out = self._writer.one("Mul", [out, self._factor()])
        return out

    def _factor(self) -> Value:
        write = self._writer.one
        if self._take("-"):
            return write("Neg", [self._factor()])
        if self._take("("):
            out = self._sum()
            self._take(")")
            return out
        word = self._peek()
        self._at += 1
        if word.isdigit():
            return self._writer.size(int(word))
        if not self._take("("):
            return self._writer.symbol(word)
        a = self._sum()
        self._take(",")
        b = self._sum()
        self._take(")")
        if word == "floordiv":  # ONNX cuts towards zero
            return write("Div", [write("Sub", [a, write("Mod", [a, b])]), b])
        return write({"mod": "Mod", "max": "Max", "min": "Min"}[word], [a, b])


def attribute(value: Any, kind: str) -> Any:
    """An attribute of hetnn's as ONNX has it."""
    if kind == "dtype":
        return number(value)
    if kind == "bool":
        return int(value)
    if kind in ("integer", "integers"):
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, int) for part in parts):
            refuse(f"the size {next(part for part in parts if not isinstance(part, int))} would be an attribute")
    return value
