"""JSON between Python and the compiler: values that have no JSON form are named with their place."""

from __future__ import annotations

import json
import math
import numbers
import os
from collections.abc import Mapping
from typing import Any

from hetnn.errors import InvalidModel


def load_json(text: str, what: str) -> Any:
    """The value of a JSON text. InvalidModel, "<what> is no JSON: ...", for anything else."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"{what} is no JSON: {error}.") from error


def dump_json(value: Any, where: str) -> str:
    """The JSON text of a value. InvalidModel naming the place of what cannot be written."""
    try:
        return json.dumps(value, allow_nan=False, default=_plain)
    except (ValueError, TypeError, RuntimeError) as error:  # of which recursion without end is one
        _name_the_odd_one(value, where)
        raise InvalidModel(f"{where}: cannot be written as JSON: {error}.") from error


def _plain(value: Any) -> Any:
    """NumPy scalars and other numbers as Python's own, paths as texts, other sequences as lists."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):  # of numpy and torch, also numbers
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        raise TypeError("a set has no order; use a list")
    try:
        return list(value)
    except TypeError:
        raise TypeError(f"{value!r} is no number, string, list or dict") from None


def _name_the_odd_one(value: Any, where: str) -> None:
    """Raises InvalidModel naming the first number that is not finite, if there is one."""
    stack: list[tuple[str, Any, int]] = [(f"{where}: ", value, 0)]
    depth_limit = 100
    while stack:
        place, item, depth = stack.pop()
        if isinstance(item, float) and not math.isfinite(item):
            raise InvalidModel(f"{place} must be a finite number; found {item}.")
        if depth > depth_limit:
            return
        if isinstance(item, Mapping):
            place = f"{where}: node '{item['id']}': " if "id" in item else place
            dot = "" if place.endswith(": ") else "."
            stack.extend((f"{place}{dot}{key}", inner, depth + 1) for key, inner in reversed(list(item.items())))
        elif isinstance(item, (list, tuple)):
            stack.extend((f"{place}[{k}]", inner, depth + 1) for k, inner in reversed(list(enumerate(item))))
