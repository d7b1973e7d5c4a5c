"""Operators' samples, read: calls as text, which the operator table holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hetnn import _core
from hetnn.element_types import numpy_type

Array = np.ndarray[Any, Any]
# The inputs, and the attributes.
SAMPLE = re.compile(r"\w+\((.*?)\)(?: \{(.*)\})?$", re.DOTALL)
# One that is absent; else type, shape and the values of a constant.
INPUT = re.compile(r"_(?=,|$)|(\w+)\[([^\]]*)\](?: \{([^}]*)\})?")
_ATTR = re.compile(r'(\w+) = (\[[^\]]*\]|"[^"]*"|[\w.+-]+)')


# Quantized values, whose scales belong together, and sizes that are computed of symbols.
_OTHER = re.compile(r"q_scale|\w\{[^}]*\}\[|\w[*+]\w")


def call_of(sample: str) -> re.Match[str] | None:
    """The inputs and attributes of a sample; None where inputs of random numbers are none for it."""
    return None if _OTHER.search(sample) else SAMPLE.match(sample)


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


# An input of a call, by its number, type and shape.
Input = Callable[[Any, int, str, "list[int | str]"], Any]


def as_input(builder: Any, number: int, dtype: str, shape: list[int | str]) -> Any:
    return builder.add_input(f"x{number}", dtype, shape)


def graph_of(
    op: dict[str, Any],
    sample: str,
    size_of: Callable[[str], int | str],
    like: Mapping[str, str] | None = None,
    given: Input = as_input,
) -> tuple[Any, Any] | None:
    """A builder of a graph, and what the sample gives in it; None where it is no such call.

    `size_of` says what each of its sizes is, as it is written: a number, or a symbol of any size up to 64. `like` are
    element types that stand for those of the sample, and `given` makes the inputs that are no constants.
    """
    match = call_of(sample)
    if match is None:
        return None
    like = like or {}
    builder, declared = _core.GraphBuilder("sample"), set()

    def size(text: str) -> int | str:
        out = size_of(text)
        if isinstance(out, str) and out not in declared:
            declared.add(out)
            builder.add_symbol(out, 0, 64, 2)
        return out

    inputs: list[Any] = []
    for part in INPUT.finditer(match[1]):
        if part[1] is None:
            inputs.append(None)
            continue
        dtype, sizes = like.get(part[1], part[1]), [text for text in part[2].replace(" ", "").split(",") if text]
        if part[3]:
            values = np.array([float(number) for number in part[3].split(",")]).astype(numpy_type(dtype))
            inputs.append(builder.constant(values.reshape([int(n) if n.isdigit() else size_of(n) for n in sizes])))
        else:
            inputs.append(given(builder, len(inputs), dtype, [size(text) for text in sizes]))
    told, found = attributes(op, match[2] or "", like, lambda name: size(name) if len(name) == 1 else None)
    for symbol in found:
        builder.add_symbol(symbol, 0, 1 << 20, 8)
    return builder, builder.create(op["name"], inputs, told)
