"""Compiles a model of any front and runs it on numbers at the edges: how far an altered one came."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import hetnn
from hetnn.element_types import numpy_type

INTEGERS = [-(2**63), -(2**31), -7, -2, -1, 0, 0, 1, 1, 2, 3, 4, 5, 7, 100, 2**31, 2**40, 2**62, 2**63 - 1]
MOST_BYTES = 1 << 24
LONGEST_RUN_S = 5.0


def compile_and_run(source: Any, rng: random.Random) -> str:
    """Compiles for a target and runs once; how far it came."""
    target = rng.choice(["cpu", "cpu", "cpu", "reference", "cpu+relu-only"])
    try:
        executable = hetnn.compile(source, target)
    except (hetnn.InvalidModel, hetnn.Unsupported, hetnn.DoesNotFit) as error:
        return f"refused by {type(error).__name__}"
    numbers = np.random.default_rng(rng.randrange(1 << 32))
    sizes = executable._engine.example_shapes()
    arrays = []
    for port in executable.inputs:
        shape = [rng.choice([0, 1, 2, 3]) if isinstance(d, str) and rng.random() < 0.3 else n
                 for d, n in zip(port.shape, sizes[port.name], strict=True)]  # fmt: skip
        dtype = np.dtype(numpy_type(port.dtype))
        if np.prod([max(n, 1) for n in shape], dtype=float) * dtype.itemsize > MOST_BYTES:
            return "large"
        arrays.append(_values(numbers, dtype, shape))
    try:
        executable.run_async(arrays, timeout_s=LONGEST_RUN_S).result()
    except (hetnn.InvalidModel, hetnn.Unsupported, hetnn.DoesNotFit):
        return "refused when run"
    except hetnn.Unavailable:  # a loop of as many rounds as a number can say is stopped, as its caller may
        return "stopped"
    return "ran"


def _values(numbers: np.random.Generator, dtype: np.dtype[Any], shape: list[int]) -> np.ndarray[Any, Any]:
    if dtype.kind == "b":
        return numbers.random(shape) < 0.7
    if dtype.kind in "iu" and dtype.itemsize > 1 and numbers.random() < 0.4:
        edges = np.array([n for n in INTEGERS if np.iinfo(dtype).min <= n <= np.iinfo(dtype).max], dtype)
        return np.asarray(numbers.choice(edges, shape))
    return np.asarray(numbers.integers(0, 4, shape)).astype(dtype)
