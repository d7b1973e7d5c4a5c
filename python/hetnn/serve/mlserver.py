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


class HetnnRuntime(MLModel):  # type: ignore[misc]
    """One network, from the file that `parameters.uri` names."""

    async def load(self) -> bool:
        self._executable = load(await get_model_uri(self._settings))
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Runs beside the event loop; inputs go by their names."""
        try:
            arrays = {given.name: NumpyCodec.decode_input(given) for given in payload.inputs}
            inputs = self._executable._by_name(0, arrays)
            outputs = await asyncio.to_thread(self._executable.run, inputs)
        except (InvalidModel, Unsupported) as error:
            raise InferenceError(str(error)) from None
        rows = zip(self._executable.outputs, outputs, strict=True)
        answers = [NumpyCodec.encode_output(port.name, array) for port, array in rows]
        return InferenceResponse(model_name=self.name, model_version=self.version, id=payload.id, outputs=answers)
