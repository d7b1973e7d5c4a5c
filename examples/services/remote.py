"""A served network as a function, by the unchanged tritonclient."""

from __future__ import annotations

from typing import Any

import numpy as np
import tritonclient.http
from numpy.typing import NDArray

Array = NDArray[Any]


class RemoteNetwork:
    """Arrays in, arrays out, as an executable of the same network; with `batch`, in pieces of that many, padded."""

    def __init__(self, client: Any, name: str, batch: int | None = None) -> None:
        self._client = client
        self._name = name
        self._batch = batch
        described = client.get_model_metadata(name)
        self._inputs = [(row["name"], row["datatype"]) for row in described["inputs"]]
        self._outputs = [row["name"] for row in described["outputs"]]

    def __call__(self, *arrays: Array) -> list[Array]:
        if self._batch is None:
            return self._ask(arrays)
        count = len(arrays[0])
        pieces = [[array[at : at + self._batch] for array in arrays] for at in range(0, count, self._batch)]
        answers = [self._ask([_padded(part, self._batch) for part in piece]) for piece in pieces]
        return [np.concatenate(parts)[:count] for parts in zip(*answers, strict=True)]

    def _ask(self, arrays: Any) -> list[Array]:
        given = []
        for (name, datatype), array in zip(self._inputs, arrays, strict=True):
            made = tritonclient.http.InferInput(name, list(array.shape), datatype)
            made.set_data_from_numpy(np.ascontiguousarray(array))
            given.append(made)
        answer = self._client.infer(self._name, given)
        return [answer.as_numpy(name) for name in self._outputs]


def _padded(array: Array, rows: int) -> Array:
    missing = rows - len(array)
    return np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)]) if missing else array
