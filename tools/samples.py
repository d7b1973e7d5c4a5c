"""Operators' samples, read: calls as text, which the operator table holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hetnn.element_types import numpy_type

Array = np.ndarray[Any, Any]
# The inputs, and the attributes.
SAMPLE = re.compile(r"\w+\((.*?)\)(?: \{(.*)\})?$", re.DOTALL)
# One that is absent; else type, shape and the values of a constant.
INPUT = re.compile(r"_(?=,|$)|(\w+)\[([^\]]*)\](?: \{([^}]*)\})?")
_ATTR = re.compile(r'(\w+) = (\[[^\]]*\]|"[^"]*"|[\w.+-]+)')


def random_array(numbers: np.random.Generator, dtype: str, shape: Sequence[int]) -> Array:
    """Reals of the normal distribution; integers small enough to be indices now and then, and so that sums fit."""
    kind = np.dtype(numpy_type(dtype))
    if dtype == "bool":
        return np.asarray(numbers.random(shape) < 0.5)
    if kind.kind in "iu" or dtype in ("i4", "u4", "i2", "u2"):
        signed = not dtype.startswith("u") and numbers.random() < 0.5
        return np.asarray(numbers.integers(-2 if signed else 0, 2 if dtype.endswith("2") else 4, shape)).astype(kind)
    values = numbers.standard_normal(shape) if numbers.random() < 0.7 else numbers.random(shape)
    return np.asarray(values).astype(kind)


def attributes(
    op: dict[str, Any], text: str, like: Mapping[str, str], size_of: Callable[[str], int | str | None], begin: int = 0
) -> tuple[dict[str, Any], list[str]]:
    """What a sample says of attributes, and new names of the symbols that it defines, numbered from `begin`.

    `like` are element types that stand for those of the sample, and `size_of` says what its symbols are.
    """
    kinds = {attr["name"]: attr["kind"] for attr in op["attrs"]}
    out: dict[str, Any] = {}
    found: list[str] = []

    def size(word: str) -> int | str:
        if re.fullmatch(r"-?\d+", word):
            return int(word)
        known = size_of(word)
        if known is not None:
            return known
        found.append(f"found{begin + len(found)}")
        return found[-1]

    for name, value in _ATTR.findall(text):
        parts = [part.strip() for part in value.strip("[]").split(",") if part.strip()]
        kind = kinds[name]
        if kind in ("integer", "integers"):
            out[name] = size(value) if kind == "integer" else [size(part) for part in parts]
        elif kind in ("real", "reals"):
            out[name] = float(value) if kind == "real" else [float(part) for part in parts]
        elif kind == "bool":
            out[name] = value == "true"
        elif kind == "dtype":
            out[name] = like.get(value, value)
        else:
            out[name] = value.strip('"')
    return out, found
