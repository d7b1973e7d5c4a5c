"""A class for MLServer: networks compiled by hetnn as a runtime of it.

In model-settings.json: `{"name": "mlp", "implementation": "hetnn.serve.mlserver.HetnnRuntime",
"parameters": {"uri": "mlp.hetnn"}}`.
"""

from __future__ import annotations

import asyncio

from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.errors import InferenceError
from mlserver.types import InferenceRequest, InferenceResponse
from mlserver.utils import get_model_uri

from hetnn.errors import InvalidModel, Unsupported
from hetnn.executable import load
from hetnn.serve.tensors import Tensors


class HetnnRuntime(MLModel):  # type: ignore[misc]
    """One network, from the file that `parameters.uri` names."""

    async def load(self) -> bool:
        """Opens the file that the model's settings name; True."""
        self._tensors = Tensors(load(await get_model_uri(self._settings)), self.name)
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Runs beside the event loop; inputs go by their names."""
        try:
            arrays = {given.name: NumpyCodec.decode_input(given) for given in payload.inputs}
            outputs = await asyncio.to_thread(self._tensors.run, arrays)
        except (InvalidModel, Unsupported) as error:
            raise InferenceError(str(error)) from None
        answers = [NumpyCodec.encode_output(name, array) for name, array in outputs.items()]
        return InferenceResponse(model_name=self.name, model_version=self.version, id=payload.id, outputs=answers)
