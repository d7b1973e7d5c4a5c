"""Inputs and outputs that are bound by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hetnn.onnxruntime.errors import InvalidArgument
from hetnn.onnxruntime.values import OrtValue, array_at

if TYPE_CHECKING:
    from hetnn.onnxruntime.session import InferenceSession


class IOBinding:
    """Inputs and outputs by name, kept from run to run."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        self._results: list[Any] = []

    def bind_cpu_input(self, name: str, array: Any) -> None:
        """An array, read when it runs."""
        self._inputs[name] = array

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """The value's array, read when it runs."""
        self._inputs[name] = value.numpy()

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Memory of the caller's, which must stay until it ran."""
        self._inputs[name] = array_at(device_type, element_type, shape, buffer_ptr)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """An output that is made, or memory of the caller's that it is copied into."""
        given = buffer_ptr is not None and shape is not None
        self._outputs[name] = array_at(device_type, element_type, shape or (), buffer_ptr or 0) if given else None

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """A value that the output is copied into."""
        self._outputs[name] = value.numpy()

    def clear_binding_inputs(self) -> None:
        """Forgets the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets the outputs."""
        self._outputs.clear()

    def synchronize_inputs(self) -> None:
        """Nothing is under way."""

    def synchronize_outputs(self) -> None:
        """Nothing is under way."""

    def get_outputs(self) -> list[OrtValue]:
        """Of the last run, in the order in which they were bound."""
        return [OrtValue(array) for array in self._results]

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The arrays of the last run, in the order in which they were bound."""
        return list(self._results)

    def run(self) -> None:
        """Runs the session on what is bound."""
        names = list(self._outputs) or [arg.name for arg in self._session.get_outputs()]
        self._results = self._session.run(names, self._inputs)
        for k, name in enumerate(names):
            place = self._outputs.get(name)
            if place is not None:
                if place.shape != np.shape(self._results[k]) or place.dtype != self._results[k].dtype:
                    raise InvalidArgument(
                        f"the memory bound to output '{name}' is {place.dtype}{list(place.shape)}; the output is "
                        f"{self._results[k].dtype}{list(np.shape(self._results[k]))}."
                    )
                np.copyto(place, self._results[k])
                self._results[k] = place
