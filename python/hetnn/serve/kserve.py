"""A class for KServe's model server: networks compiled by hetnn, asked by its protocol of version 2.

kserve.ModelServer().start([HetnnModel("mlp", "mlp.hetnn")])
"""

from __future__ import annotations

import asyncio
from typing import Any

from kserve import InferOutput, InferRequest, InferResponse, Model
from kserve.errors import InvalidInput

from hetnn.errors import InvalidModel, Unsupported
from hetnn.executable import load
from hetnn.serve.tensors import Tensors


class HetnnModel(Model):  # type: ignore[misc]
    """One network, from its file."""

    def __init__(self, name: str, path: str, threads: int | None = None) -> None:
        super().__init__(name)
        self._path = path
        self._threads = threads
        self._tensors: Tensors | None = None
        self.load()

    def load(self) -> bool:
        """Opens the file; True."""
        self._tensors = Tensors(load(self._path, self._threads), self.name)
        self.ready = True
        return True

    async def predict(self, payload: Any, headers: Any = None, response_headers: Any = None) -> InferResponse:
        """Runs beside the event loop; inputs go by their names."""
        if not isinstance(payload, InferRequest):
            raise InvalidInput("this network answers version 2 of the protocol; ask /v2/models/NAME/infer.")
        assert self._tensors is not None
        try:
            arrays = {given.name: given.as_numpy() for given in payload.inputs}
            outputs = await asyncio.to_thread(self._tensors.run, arrays)
        except (InvalidModel, Unsupported) as error:
            raise InvalidInput(str(error)) from None
        answers = []
        for tensor in self._tensors.outputs:
            array = outputs[tensor.name]
            answer = InferOutput(tensor.name, list(array.shape), tensor.datatype)
            answer.set_data_from_numpy(array, binary_data=False)
            answers.append(answer)
        return InferResponse(payload.id, self.name, answers)

    async def get_input_types(self) -> list[dict[str, Any]]:
        """`name`, `datatype` and `shape` of each input."""
        return self._described("inputs")

    async def get_output_types(self) -> list[dict[str, Any]]:
        """`name`, `datatype` and `shape` of each output."""
        return self._described("outputs")

    def _described(self, which: str) -> list[dict[str, Any]]:
        tensors = getattr(self._tensors, which)
        return [{"name": one.name, "datatype": one.datatype, "shape": one.shape} for one in tensors]
