"""A compiler of somebody else's: its code is the subgraph's text, and it runs by the operators' meanings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hetnn import _core
from hetnn.backends import Backend, Port, Reason, Run


class TextBackend(Backend):
    """Takes the operators of the spec's `ops`, all but for `refuse`, which its compiler refuses only then."""

    version = "1.0"

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        super().__init__(name, {"node_us": 0.01, "macs_per_us": 1e9, "flops_per_us": 1e9, "bytes_per_us": 1e9, **spec})
        self.ops = self.spec.get("ops", ["conv2d", "relu", "add"])

    def supports(self, node: _core.Graph) -> Iterable[Reason | str]:
        op = node.nodes()[-1]["op"]
        return [] if op in self.ops else [Reason("text_lacks", op, ", ".join(self.ops), f"the text device has no {op}")]

    def compile(self, graph: _core.Graph) -> bytes:
        return graph.print().encode()

    def open(self, code: bytes, inputs: Sequence[Port], outputs: Sequence[Port]) -> Run:
        graph = _core.Graph.parse(code.decode())
        return lambda arrays: _core.interpret(graph, arrays)
