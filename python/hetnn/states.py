"""What a model keeps from run to run, in Python's hands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hetnn import _runtime
from hetnn.element_types import array_of
from hetnn.errors import InvalidModel


def read_states(names: Sequence[str], session: _runtime.Session) -> dict[str, npt.NDArray[Any]]:
    """Copies of what the states hold."""
    return {name: session.read(name) for name in names}


def write_states(names: Sequence[str], session: _runtime.Session, given: Mapping[str, Any]) -> None:
    """Has states hold other values. InvalidModel for an unknown name, another type or shape: none is changed then."""
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InvalidModel(f"there is no state '{unknown[0]}'; the model keeps {', '.join(names) or 'none'}.")
    arrays = {
        name: np.asarray(array_of(value) if hasattr(value, "detach") else value, order="C")
        for name, value in given.items()
    }
    before = {name: session.read(name) for name in arrays}
    for name, array in arrays.items():
        if array.dtype != before[name].dtype or array.shape != before[name].shape:
            raise InvalidModel(
                f"the state '{name}' is {before[name].dtype}{list(before[name].shape)}; got "
                f"{array.dtype}{list(array.shape)}."
            )
    for name, array in arrays.items():
        session.write(name, array)
