"""The class for KServe: the answers are those of the direct call, errors are its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

A = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
B = np.arange(6, dtype=np.int64).reshape(2, 3)


def test_kserve(path: Path) -> None:
    kserve = pytest.importorskip("kserve")
    from kserve.errors import InvalidInput

    from hetnn.serve.kserve import HetnnModel

    model = HetnnModel("net", str(path))
    assert model.ready
    described = asyncio.run(model.get_input_types())
    assert described[1] == {"name": "b", "datatype": "INT64", "shape": [2, 3]}
    inputs = [kserve.InferInput("a", [2, 3], "FP32"), kserve.InferInput("b", [2, 3], "INT64")]
    for given, array in zip(inputs, (A, B), strict=True):
        given.set_data_from_numpy(array, binary_data=False)
    answer = asyncio.run(model(kserve.InferRequest("net", inputs, request_id="r")))
    outputs = (answer[0] if isinstance(answer, tuple) else answer).outputs
    np.testing.assert_array_equal(outputs[0].as_numpy(), np.maximum(A, 0))
    np.testing.assert_array_equal(outputs[1].as_numpy(), 2 * B)
    with pytest.raises(InvalidInput, match="must be a, b"):
        asyncio.run(model(kserve.InferRequest("net", inputs[:1])))
