"""A graph of integers as a TOSA file: node by node by the rules."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from hetnn import _core
from hetnn.errors import Unsupported
from hetnn.exporters.refusal import Refusal
from hetnn.exporters.tosa import elements, prelu, quotient, shapes, softmax, windows  # noqa: F401  # the rules
from hetnn.exporters.tosa.call import ROUNDED, TOSA, UNSTATED, Call
from hetnn.exporters.tosa.file import Block, Op, data_of
from hetnn.exporters.tosa.pixels import copied
from hetnn.exporters.tosa.writer import FIRST, FORMS, LAST, Form, Tensor, Writer, refuse

_INTEGERS = ("i8", "i16", "i32", "i64")
# A node in a graph's text: its name, operator and operands, and whether attributes begin.
_NODE = re.compile(r"(?P<head>\s*%(?P<name>[^\s=,]+) = \w+\([^)]*\))(?P<attrs> \{)?")


class Export:
    """A graph on its way: what is written, and the nodes that cannot be.

    images: inputs and outputs that the file has channels last. entering: images of bytes are copied first, for a
    processor whose layers read what others wrote faster than what lies so.
    """

    def __init__(
        self,
        graph: _core.Graph,
        chains: bool = False,
        form: Form = FORMS[0],
        images: Collection[str] = (),
        entering: bool = False,
    ) -> None:
        self.graph = graph
        self.types = graph.types()
        self.refusals: list[Refusal] = []
        self._images, self._entering = frozenset(images), entering
        self.block = Block("main")
        read = Counter(name for row in graph.nodes() for name in row["inputs"] if name is not None)
        read.update(name for name, _, _ in graph.outputs)
        self.writer = Writer(self.block, {*self.types, *graph.output_names}, chains, form, read)
        self.values: dict[str, Tensor] = {}
        for name, dtype, shape in graph.inputs:
            self._input(name, dtype, shape)
        self._constants = graph.constants()
        for row in graph.nodes():
            self._write(row)
        if not self.refusals:
            self._give_outputs()

    def _input(self, name: str, dtype: str, shape: list[Any]) -> None:
        if dtype not in ("i8", "i16") or not all(isinstance(size, int) for size in shape):
            why = f"is {dtype}{shape}; hetnn writes TOSA of integers of 8 and 16 bits and fixed sizes"
            self.refusals.append(Refusal(name, "input", "", why))
            return
        lies = [shape[k] for k in LAST] if name in self._images else shape
        x = Tensor(name, dtype, tuple(lies))
        self.block.tensors[name] = (list(lies), dtype, None)
        self.block.inputs.append(name)
        if name in self._images:
            x = self.writer.transpose(copied(self.writer, x) if self._entering and dtype == "i8" else x, FIRST)
        self.values[name] = x

    def _value(self, name: str) -> Tensor:
        if name not in self.values:
            array, dtype = self._constants[name], self.types[name]["dtype"]
            if dtype not in _INTEGERS:
                refuse(f"with a constant of {dtype}")
            # Written where a rule asks for it as it stands; biases and weights are written in TOSA's own order.
            self.values[name] = Tensor(name, dtype, tuple(array.shape), array)
        return self.values[name]

    def _write(self, row: dict[str, Any]) -> None:
        there = {*self.values, *self._constants, None}
        if any(name not in there for name in row["inputs"]):
            return  # behind one that is refused
        begin = len(self.block.ops)
        self.writer.node = row["name"]
        try:
            rule = TOSA.rules.get(row["op"])
            if rule is None:
                refuse("hetnn writes no TOSA for it")
            types = [part for part in (*row["input_types"], *row["output_types"]) if part is not None]
            if not all(isinstance(size, int) for part in types for size in part["shape"]):
                refuse("of open sizes, which TOSA files do not have")
            if len(row["outputs"]) != 1 or row["output_types"][0]["dtype"] not in ("i8", "i16"):
                refuse("whose result is not of integers of 8 or 16 bits")
            call = Call(self.writer, row, [None if name is None else self._value(name) for name in row["inputs"]])
            self.values[row["outputs"][0]] = rule(call)
        except Unsupported as error:
            self.refusals.append(Refusal(row["name"], row["op"], row["loc"], str(error)))
            return
        for op in self.block.ops[begin:]:
            op.loc = row["loc"] or row["name"]

    def _give_outputs(self) -> None:
        """Each under its own name, behind what of it is written for nothing."""
        for (name, _, _), wanted in zip(self.graph.outputs, self.graph.output_names, strict=True):
            value = self.values[name]
            if name in self._images:
                value = self.writer.transpose(value, LAST)
            called = wanted if wanted not in self.block.tensors else self.writer.fresh(wanted)
            self.block.tensors[called] = (list(value.shape), value.dtype, None)
            self.block.ops.append(Op("IDENTITY", [value.name], [called], {}))
            self.block.outputs.append(called)
        read = set(self.block.outputs)
        kept: list[Op] = []
        for op in reversed(self.block.ops):
            if any(name in read for name in op.outputs):
                kept.append(op)
                read.update(op.inputs)
        self.block.ops = kept[::-1]
        read.update(self.block.inputs)
        self.block.tensors = {name: part for name, part in self.block.tensors.items() if name in read}
        self.block.shapes = {name: part for name, part in self.block.shapes.items() if name in read}

    def data(self) -> bytes:
        """The file. Unsupported with every node that has no form."""
        if self.refusals:
            listed = "\n".join(map(str, self.refusals))
            raise Unsupported(
                f"{len(self.refusals)} of {len(self.graph.nodes())} nodes have no form in TOSA. Export the "
                f"subgraph of a device that has no such node.\n{listed}"
            )
        return data_of(self.block)


def as_written(graph: _core.Graph) -> _core.Graph:
    """The graph that a file of it means: a node that states no rounding, and has one in the file, states that."""
    lines = graph.print().splitlines()
    unstated = {row["outputs"][0] for row in graph.nodes() if row["op"] in ROUNDED and "q_rounding" not in row["attrs"]}
    return _core.Graph.parse("\n".join(_stated(line, unstated) for line in lines))


def _stated(line: str, names: set[str]) -> str:
    found = _NODE.match(line)
    if found is None or found["name"] not in names:
        return line
    rounding = f"q_rounding = {UNSTATED}"
    attrs = f" {{{rounding}, " if found["attrs"] else f" {{{rounding}}}"
    return found["head"] + attrs + line[found.end() :]


def unsupported(graph: _core.Graph) -> list[Refusal]:
    """The nodes of a graph that hetnn writes no TOSA for, with the reason of each."""
    return Export(graph).refusals


def refusal(graph: _core.Graph) -> str | None:
    """Why a graph, perhaps of a single node, cannot be written as TOSA; None where it can."""
    return "\n".join(map(str, unsupported(graph))) or None


def export(
    graph: _core.Graph,
    chains: bool = False,
    form: Form = FORMS[0],
    images: Collection[str] = (),
) -> bytes:
    """A graph of integers of fixed sizes as the bytes of a TOSA 1.0 file; images enter and leave channels first, but
    for inputs and outputs of these names.

    Rescalings round as nodes say (`q_rounding`: single or double), others once: where a node states none, results
    may be a step off its meaning. With `chains` for a processor to which an operator on elements costs nothing
    behind one; each `form` (FORMS) has the same values.
    Unsupported with every node that has no form, and where tosa-tools is not installed.
    """
    return Export(graph, chains, form, images).data()


def write(graph: _core.Graph, path: str | os.PathLike[str]) -> None:
    """Exports a graph into a file. OSError of the file system."""
    Path(path).write_bytes(export(graph))


__all__ = ["FORMS", "Form", "Refusal", "export", "refusal", "unsupported", "write"]
