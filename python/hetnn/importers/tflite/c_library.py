"""Functions of f32 of the machine's C library, by which LiteRT fills its tables.

Libraries round some of them otherwise (glibc before 2.41 up to a unit in the last place beside the nearest), and so do
tables that they fill, by a step where a value lies between two.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hetnn.importers.tflite.fixed_point import Array

# Where no library has it: in f64, rounded once.
_EXACT: dict[str, Callable[[float], float]] = {
    "erfcf": math.erfc,
    "expf": math.exp,
    "expm1f": math.expm1,
    "logf": math.log,
    "tanhf": math.tanh,
}


def _exact(name: str) -> Callable[[float], float]:
    def function(x: float) -> float:
        try:
            return _EXACT[name](x)
        except OverflowError:
            return math.inf
        except ValueError:  # the logarithm of 0 and less
            return -math.inf if x == 0 else math.nan

    return function


def of_c(name: str) -> Callable[[Array], Array]:
    """A function of C's on each element of an array, which is rounded to f32 first; it gives f32."""
    function: Any = _exact(name)
    try:
        function = getattr(ctypes.CDLL(None), name)
        function.argtypes, function.restype = [ctypes.c_float], ctypes.c_float
    except (AttributeError, OSError, TypeError):
        pass  # a system whose programs do not hold C's functions by name

    def of_all(x: Array) -> Array:
        reals = np.asarray(x, np.float32)
        with np.errstate(over="ignore"):
            found = np.array([function(value) for value in reals.reshape(-1).tolist()], np.float32)
        return found.reshape(reals.shape)

    return of_all
