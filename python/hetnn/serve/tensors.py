"""What clients see of an executable's ports: where the model takes or gives texts, one tensor in place of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetnn import _runtime
from hetnn.arrays import Array
from hetnn.errors import InvalidModel
from hetnn.executable import Executable, Port
from hetnn.texts import coded, decoded


@dataclass(frozen=True)
class Tensor:
    """One of them, by the protocol's name of its type; a size of -1 varies from request to request."""

    name: str
    datatype: str
    shape: list[int]
    port: int  # of the executable: its values, or the bytes of its texts
    spans: int | None  # of texts


class Tensors:
    """The inputs and outputs of an executable. Unsupported where the protocol has no name for a type."""

    def __init__(self, executable: Executable, network: str = "") -> None:
        self.signature = _runtime.Signature(network, executable._engine)
        self._executable = executable
        self.inputs = _seen(self.signature.inputs, executable.inputs)
        self.outputs = _seen(self.signature.outputs, executable.outputs)

    def run(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """The outputs by their names. InvalidModel for other inputs than those that there are."""
        wanted = [tensor.name for tensor in self.inputs]
        if set(arrays) != set(wanted):
            got = ", ".join(arrays) or "none"
            raise InvalidModel(f"the network's inputs must be {', '.join(wanted) or 'none'}; got {got}.")
        ports: list[Any] = [None] * len(self._executable.inputs)
        for tensor in self.inputs:
            if tensor.spans is None:
                ports[tensor.port] = arrays[tensor.name]
            else:
                ports[tensor.port], ports[tensor.spans] = coded(arrays[tensor.name], tensor.name)
        outputs = self._executable.run(ports)
        return {
            tensor.name: np.asarray(outputs[tensor.port])
            if tensor.spans is None
            else decoded(outputs[tensor.port], outputs[tensor.spans])
            for tensor in self.outputs
        }


def _seen(rows: Sequence[tuple[str, str, int, int | None]], ports: Sequence[Port]) -> list[Tensor]:
    return [
        Tensor(
            name,
            datatype,
            [size if isinstance(size, int) else -1 for size in ports[port if spans is None else spans].shape],
            port,
            spans,
        )
        for name, datatype, port, spans in rows
    ]
