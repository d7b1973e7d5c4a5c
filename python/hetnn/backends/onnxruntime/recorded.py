"""Runs that a GPU repeats from a recording: one launch for all kernels, arrays at addresses that stay."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hetnn.backends.onnxruntime.values import IN_NUMPY

# By provider: the option that has it record, and what its memory is called.
RECORDS = {"CUDAExecutionProvider": ("enable_cuda_graph", "cuda")}
_RUNS_UNTIL_RECORDED = 3


class Recorded:
    """A session that was made with the option, over arrays of fixed sizes.

    Recording needs runs on the thread that replays; ONNX Runtime does these by itself on every thread that comes anew.
    Raises what ONNX Runtime does where the model cannot be recorded, as when it waits for values in between. Called
    with the arrays of the inputs it gives those of the outputs.
    """

    def __init__(self, session: Any, memory: str, device: int) -> None:
        from onnxruntime import OrtValue

        def values(ports: Sequence[Any]) -> Mapping[str, Any]:
            return {
                port.name: OrtValue.ortvalue_from_shape_and_type(port.shape, IN_NUMPY[port.type], memory, device)
                for port in ports
            }

        self._session, self._binding = session, session.io_binding()
        self._inputs, self._outputs = values(session.get_inputs()), values(session.get_outputs())
        for name, value in self._inputs.items():
            self._binding.bind_ortvalue_input(name, value)
        for name, value in self._outputs.items():
            self._binding.bind_ortvalue_output(name, value)
        self._busy = threading.Lock()
        zeros = [np.zeros(port.shape, IN_NUMPY[port.type]) for port in session.get_inputs()]
        for _ in range(_RUNS_UNTIL_RECORDED):
            self(zeros)

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:  # noqa: D102 (the class says it)
        with self._busy:
            for value, array in zip(self._inputs.values(), arrays, strict=True):
                value.update_inplace(array)
            self._session.run_with_iobinding(self._binding)
            self._binding.synchronize_outputs()
            return [value.numpy() for value in self._outputs.values()]


def can_record(session: Any) -> bool:
    """Whether all its inputs and outputs are arrays of numpy's types, not empty, of sizes that are known."""
    ports = [*session.get_inputs(), *session.get_outputs()]
    return all(port.type in IN_NUMPY and all(isinstance(n, int) and n > 0 for n in port.shape) for port in ports)
