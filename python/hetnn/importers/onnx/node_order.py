"""The nodes of an ONNX graph in an order in which each is behind those whose results it reads."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Container, Iterator, Sequence
from typing import Any

import onnx

from hetnn.errors import InvalidModel


def in_order(nodes: Sequence[onnx.NodeProto], given: ChainMap[str, Any], prefix: str) -> Sequence[onnx.NodeProto]:
    """The nodes as they are where that is such an order, else sorted: each is moved no further than it must.

    `given` has what the nodes may read from elsewhere, first what their own graph is given; `prefix` stands before
    their names in messages. InvalidModel where nodes read one another's results in a circle, or one name stands for
    two values.
    """
    _check_names(nodes, given.maps[0], prefix)
    reads = [_read_by(node) for node in nodes]
    if _is_order(nodes, reads, given):
        return nodes
    giver = {name: k for k, node in enumerate(nodes) for name in node.output if name}
    order: dict[int, None] = {}
    for first in range(len(nodes)):
        waiting: dict[int, Iterator[int]] = {}  # each for the one behind it
        after: int | None = None if first in order else first
        while after is not None:
            if after in waiting:
                circle = list(waiting)[list(waiting).index(after) :]
                names = ", ".join(f"'{prefix}{_name(nodes[k])}'" for k in circle)
                raise InvalidModel(f"the nodes {names} read one another's results in a circle. Export the model again.")
            waiting[after] = iter(sorted({giver[name] for name in reads[after] if name in giver}))
            after = None
            while waiting and after is None:
                last = next(reversed(waiting))
                after = next((k for k in waiting[last] if k not in order), None)
                if after is None:
                    order[last] = None
                    del waiting[last]
    return [nodes[k] for k in order]


def check_initializers(graph: onnx.GraphProto) -> None:
    """InvalidModel where two initializers of a graph have one name: which of them is meant, nothing says."""
    taken: set[str] = set()
    for name in (*(one.name for one in graph.initializer), *(one.values.name for one in graph.sparse_initializer)):
        if name in taken:
            raise InvalidModel(f"the graph '{graph.name}' has two initializers '{name}'. Export the model again.")
        taken.add(name)


def _check_names(nodes: Sequence[onnx.NodeProto], given: Container[str], prefix: str) -> None:
    taken: set[str] = set()
    for node in nodes:
        for name in filter(None, node.output):
            if name in taken or name in given:
                raise InvalidModel(
                    f"the node '{prefix}{_name(node)}' gives '{name}', which is the name of another value of its graph "
                    "too. Export the model again."
                )
            taken.add(name)


def _is_order(nodes: Sequence[onnx.NodeProto], reads: Sequence[set[str]], given: Container[str]) -> bool:
    """Whether no node reads what a later one gives."""
    later = {name for node in nodes for name in node.output if name and name not in given}
    for node, names in zip(nodes, reads, strict=True):
        if not later.isdisjoint(names):
            return False
        later.difference_update(node.output)
    return True


def _read_by(node: onnx.NodeProto) -> set[str]:
    """What a node reads, by itself or in the bodies that it has."""
    names = set(node.input)
    for attr in node.attribute:
        for body in (attr.g, *attr.graphs) if attr.HasField("g") else attr.graphs:
            own = {value.name for value in (*body.input, *body.initializer)}
            own.update(name for inner in body.node for name in inner.output)
            read = {value.name for value in body.output}.union(*map(_read_by, body.node))
            names |= read - own
    return names - {""}


def _name(node: onnx.NodeProto) -> str:
    return node.name or next(iter(node.output), "") or node.op_type
