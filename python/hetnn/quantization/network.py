"""A canonical graph as quantizing sees it: which nodes integers compute, which values share a scale."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from hetnn import _core

# Roles (passes/integer_layers.h) of nodes that are worth integers for themselves.
_LAYERS = ("weights", "product")
# Of nodes whose operand rounds once, behind them; and of those that keep the scale of their operands.
_BOUNDS = ("rectify", "bound")
_KEEPING = ("moves", "pool", "joins")


@dataclass(frozen=True)
class Node:
    """One node: `constants` are the places of inputs that are constants, `names` all by which it can be asked for."""

    name: str
    op: str
    role: str | None
    inputs: tuple[str | None, ...]
    constants: tuple[int, ...]
    outputs: tuple[str, ...]
    names: tuple[str, ...]
    quantized: bool
    loc: str

    @property
    def operands(self) -> list[str]:
        """The values that it reads, without constants."""
        return [name for k, name in enumerate(self.inputs) if name is not None and k not in self.constants]


class Network:
    """The nodes of a canonical graph in order, and who writes and reads each value."""

    def __init__(self, graph: _core.Graph) -> None:
        self.graph = graph
        rows = _core.quantize_roles(graph)
        self.nodes = [_node(row) for row in rows]
        self.by_name = {node.name: node for node in self.nodes}
        self.writer = {value: node for node in self.nodes for value in node.outputs}
        self.readers: dict[str, list[Node]] = {}
        for node in self.nodes:
            for value in node.operands:
                self.readers.setdefault(value, []).append(node)
        self.reals = [value for row in rows for value in row["reals"]]
        self.inputs = {name for name, _, _ in graph.inputs}
        self.outputs = {name for name, _, _ in graph.outputs}

    def channel_axis(self, node: Node) -> int:
        """Of what a layer with weights reads and writes, counted from the back: the weights tell which kind it is."""
        return 1 - self.constant(node, 1).ndim if self.constant(node, 1).ndim > 2 else -1

    def is_either(self, value: str) -> bool:
        """Whether it is one of two numbers, both of which integers hold."""
        writer = self.writer.get(value)
        return writer is not None and writer.role == "either"

    def hidden_from(self, value: str) -> str | None:
        """The scores of which `value` has some hidden."""
        writer = self.writer.get(value)
        if writer is None or writer.role != "hides":
            return None
        return next(operand for operand in writer.operands if not self.is_either(operand))

    def is_depthwise(self, node: Node) -> bool:
        """Whether each filter of a layer reads one channel."""
        shape = self.constant(node, 1).shape
        return len(shape) == 4 and shape[1] == 1

    def constant(self, node: Node, index: int) -> Any:
        """The array that a node reads as its input of that number."""
        return _core.constant(self.graph, node.inputs[index] or "")


def _node(row: dict[str, Any]) -> Node:
    lists = {key: tuple(row[key]) for key in ("inputs", "constants", "outputs", "names")}
    return Node(name=row["node"], op=row["op"], role=row["role"], loc=row["loc"], quantized=row["quantized"], **lists)


def layers_of(network: Network, keep_float: Collection[str]) -> dict[str, Node]:
    """The nodes that are worth integers for themselves, but those of `keep_float`."""
    return {node.name: node for node in network.nodes if node.role in _LAYERS and node.name not in keep_float}


@dataclass
class Choice:
    """The nodes that integers compute, and the values that become integers with the one whose scale they share."""

    nodes: dict[str, Node] = field(default_factory=dict)
    scale_of: dict[str, str] = field(default_factory=dict)

    def groups(self) -> dict[str, list[str]]:
        """The values of each scale."""
        out: dict[str, list[str]] = {}
        for value, first in self.scale_of.items():
            out.setdefault(first, []).append(value)
        return out


def choose(
    network: Network,
    keep_float: Collection[str] = (),
    functions: bool = True,
    rows: Collection[str] = (),
    real_sums: bool = False,
) -> Choice:
    """What integers compute: all layers but those of `keep_float`, and what lies between layers.

    A node without weights comes along where all that it reads are integers already and a layer reads what it writes:
    else rounding would cost and nothing would be gained; one of two numbers is not rounded. Functions of one value only
    where `functions` says so, and of rows (softmax, norms) those operators that `rows` names. `real_sums`: what layers
    with weights write stays real where no integers are computed from it.
    """
    integers: set[str] = set()
    for node in network.nodes:
        if node.name in keep_float or node.role in (None, "either") or (node.role == "function" and not functions):
            continue
        if node.role == "rows" and node.op not in rows:
            continue
        of_integers = [_is_integer(network, each, integers) for each in node.operands if not network.is_either(each)]
        if node.role in _LAYERS or (of_integers and all(of_integers)):
            integers.add(node.name)
    needed: set[str] = set()
    for node in reversed(network.nodes):
        if node.name not in integers:
            continue
        is_read = any(reader.name in needed for value in node.outputs for reader in network.readers.get(value, ()))
        if node.role in _LAYERS or is_read:
            needed.add(node.name)
        elif node.role not in _BOUNDS:
            integers.discard(node.name)
    # What is bounded goes with what it bounds.
    for node in network.nodes:
        if node.role in _BOUNDS and not _is_integer(network, node.operands[0], integers):
            integers.discard(node.name)
    choice = Choice({node.name: node for node in network.nodes if node.name in integers})
    _add_values(network, choice, real_sums)
    return choice


def _is_integer(network: Network, value: str, integers: Collection[str]) -> bool:
    writer = network.writer.get(value)
    return writer is not None and writer.name in integers


def _add_values(network: Network, choice: Choice, real_sums: bool) -> None:
    """Every value that a chosen node reads or writes; the result of one that is bounded next is not rounded itself."""
    scale_of: dict[str, str] = {}

    def first(value: str) -> str:
        while scale_of[value] != value:
            value = scale_of[value]
        return value

    def bounded_next(value: str) -> bool:
        readers = network.readers.get(value, [])
        return (
            len(readers) == 1
            and readers[0].role in _BOUNDS
            and readers[0].name in choice.nodes
            and value not in network.outputs
        )

    def stays_real(node: Node) -> bool:
        is_read = any(each.name in choice.nodes for each in network.readers.get(node.outputs[0], ()))
        return real_sums and not is_read and node.role == "weights" and not network.is_depthwise(node)

    for node in choice.nodes.values():
        for value in (*node.operands, *(() if stays_real(node) else node.outputs)):
            if not bounded_next(value):
                scale_of.setdefault(value, value)
    for node in choice.nodes.values():
        if node.role in _KEEPING:
            for value in (*node.operands, *node.outputs):
                if value in scale_of:
                    scale_of[first(value)] = first(node.outputs[0]) if node.outputs[0] in scale_of else first(value)
    choice.scale_of = {value: first(value) for value in scale_of}
