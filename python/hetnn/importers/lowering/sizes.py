"""Arithmetic of sizes: integers, and expressions of a model's symbols as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from hetnn import _core
from hetnn.errors import InvalidModel

# In canonical form, so that equal texts are equal sizes.
Size: TypeAlias = "int | str"

# Beyond it no integer is a size.
MOST = 2**62
# Stands for "to the end" in slices.
WHOLE_END = MOST


def likely_size(low: int, high: int) -> int:
    """At which size costs are predicted where values give it: the largest, where there is one."""
    return high if high < MOST else max(low, 1)


def add(a: Size, b: Size) -> Size:
    return a + b if isinstance(a, int) and isinstance(b, int) else _canonical(f"({a}) + ({b})")


def subtract(a: Size, b: Size) -> Size:
    return a - b if isinstance(a, int) and isinstance(b, int) else _canonical(f"({a}) - ({b})")


def multiply(a: Size, b: Size) -> Size:
    return a * b if isinstance(a, int) and isinstance(b, int) else _canonical(f"({a})*({b})")


def dense_strides(shape: Iterable[Size]) -> list[Size]:
    """Elements from one index of each axis to the next, the last axis' lying one behind another."""
    out: list[Size] = []
    step: Size = 1
    for size in reversed(list(shape)):
        out.append(step)
        step = multiply(step, size)
    return out[::-1]


def divide(a: Size, b: Size) -> Size:
    """The quotient, cut downwards."""
    if b == 0:
        raise InvalidModel(f"the size {a} is divided by 0.")
    return a // b if isinstance(a, int) and isinstance(b, int) else _canonical(f"floordiv({a}, {b})")


def ceil_divide(a: Size, b: Size) -> Size:
    """The quotient, cut upwards."""
    return subtract(0, divide(subtract(0, a), b))


def modulo(a: Size, b: Size) -> Size:
    if b == 0:
        raise InvalidModel(f"the size {a} is divided by 0.")
    return a % b if isinstance(a, int) and isinstance(b, int) else _canonical(f"mod({a}, {b})")


def maximum(a: Size, b: Size) -> Size:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else _canonical(f"max({a}, {b})")


def minimum(a: Size, b: Size) -> Size:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else _canonical(f"min({a}, {b})")


def product(sizes: Iterable[Size]) -> Size:
    return _fold(multiply, sizes, 1)


def total(sizes: Iterable[Size]) -> Size:
    return _fold(add, sizes, 0)


def broadcast(a: Iterable[Size], b: Iterable[Size]) -> list[Size]:
    """The shape to which both broadcast. InvalidModel where sizes are neither equal nor 1."""
    left, right = list(a), list(b)
    rank = max(len(left), len(right))
    left, right = [*[1] * (rank - len(left)), *left], [*[1] * (rank - len(right)), *right]
    for x, y in zip(left, right, strict=True):
        if x != y and 1 not in (x, y):
            raise InvalidModel(f"the shapes {left} and {right} do not broadcast: {x} meets {y}.")
    return [y if x == 1 else x for x, y in zip(left, right, strict=True)]


def _fold(operation: Callable[[Size, Size], Size], sizes: Iterable[Size], start: Size) -> Size:
    for size in sizes:
        start = operation(start, size)
    return start


def _canonical(text: str) -> Size:
    size: Size = _core.canonical_dim(text)
    return size
