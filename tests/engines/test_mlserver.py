"""The class for MLServer: the answers are those of the direct call, errors are its own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

A = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
B = np.arange(6, dtype=np.int64).reshape(2, 3)


def test_mlserver(path: Path) -> None:
    pytest.importorskip("mlserver")
    from mlserver.codecs import NumpyCodec
    from mlserver.errors import InferenceError
    from mlserver.settings import ModelSettings
    from mlserver.types import InferenceRequest

    from hetnn.serve.mlserver import HetnnRuntime

    document = {"name": "net", "implementation": HetnnRuntime, "parameters": {"uri": str(path)}}
    runtime = HetnnRuntime(ModelSettings(**document))
    assert asyncio.run(runtime.load())
    inputs = [NumpyCodec.encode_input("a", A), NumpyCodec.encode_input("b", B)]
    sent = json.loads(InferenceRequest(id="r", inputs=inputs).model_dump_json())
    answer = asyncio.run(runtime.predict(InferenceRequest(**sent)))
    assert (answer.model_name, answer.id) == ("net", "r")
    np.testing.assert_array_equal(NumpyCodec.decode_output(answer.outputs[0]), np.maximum(A, 0))
    np.testing.assert_array_equal(NumpyCodec.decode_output(answer.outputs[1]), 2 * B)
    with pytest.raises(InferenceError, match="must be a, b"):
        asyncio.run(runtime.predict(InferenceRequest(inputs=inputs[:1])))
