"""The sizes that examples of a model's inputs have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hetnn import _core
from hetnn.errors import InvalidModel
from hetnn.report.text import count


def sizes_of(example: Sequence[Any] | Mapping[str, Any], graph: _core.Graph) -> dict[str, int]:
    """By symbol: those of arrays or shapes, in the order of the inputs or by their names; else the model's example's.

    InvalidModel where they do not fit the inputs.
    """
    inputs = {name: list(shape) for name, _, shape in graph.inputs}
    named = dict(example) if isinstance(example, Mapping) else dict(zip(inputs, example, strict=False))
    if not isinstance(example, Mapping) and len(example) != len(inputs):
        raise InvalidModel(
            f"example: the model has {count(len(inputs), 'input')}, {', '.join(inputs)}; got {len(example)}."
        )
    out = {name: hint for name, _, _, hint in graph.symbols}
    for name, value in named.items():
        if name not in inputs:
            raise InvalidModel(f"example: the model has no input '{name}'; its inputs are {', '.join(inputs)}.")
        shape = _shape(value)
        if len(shape) != len(inputs[name]):
            raise InvalidModel(
                f"example: input '{name}' has {count(len(inputs[name]), 'axis')}; got the shape {shape}."
            )
        for size, declared in zip(shape, inputs[name], strict=True):
            if isinstance(declared, int) and declared != size:
                raise InvalidModel(f"example: input '{name}' must be {inputs[name]}; got {shape}.")
            if declared in out:
                out[declared] = size
    return out


def _shape(value: Any) -> list[int]:
    """Of an array, or the shape itself."""
    if hasattr(value, "shape"):
        return [int(size) for size in value.shape]
    if isinstance(value, Sequence) and all(isinstance(size, int) for size in value):
        return list(value)
    return [int(size) for size in np.shape(value)]
