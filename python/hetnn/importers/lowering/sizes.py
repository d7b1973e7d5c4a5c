"""Arithmetic of sizes: integers, and expressions of a model's symbols as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from hetnn import _core
from hetnn.errors import InvalidModel

# A name in the text of a size: of a symbol, or of a function.
SYMBOL = re.compile(r"[^\W\d]\w*")

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


def never_negative(a: Size) -> bool:
    """Whether a size's form shows that no run makes it negative; no symbol is."""
    return a >= 0 if isinstance(a, int) else _core.never_negative(a)


def negate(a: Size) -> Size:
    return subtract(0, a)


def divide(a: Size, b: Size) -> Size:
    """The quotient, cut downwards."""
    if b == 0:
        raise InvalidModel(f"the size {a} is divided by 0.")
    return a // b if isinstance(a, int) and isinstance(b, int) else _canonical(f"floordiv({a}, {b})")


def ceil_divide(a: Size, b: Size) -> Size:
    """The quotient, cut upwards."""
    return subtract(0, divide(subtract(0, a), b))


def truncated_divide(a: Size, b: Size) -> Size | None:
    """The quotient, cut towards zero; None where the divisor's sign is not known."""
    if isinstance(b, int) and b < 0:
        return truncated_divide(negate(a), -b)
    if not never_negative(b):
        return None
    if never_negative(a):
        return divide(a, b)
    return subtract(divide(maximum(a, 0), b), divide(maximum(negate(a), 0), b))


def truncated_modulo(a: Size, b: Size) -> Size | None:
    """What `truncated_divide` leaves, of the sign of the dividend; None as there."""
    quotient = truncated_divide(a, b)
    return None if quotient is None else subtract(a, multiply(quotient, b))


def modulo(a: Size, b: Size) -> Size:
    if b == 0:
        raise InvalidModel(f"the size {a} is divided by 0.")
    return a % b if isinstance(a, int) and isinstance(b, int) else _canonical(f"mod({a}, {b})")


def maximum(a: Size, b: Size) -> Size:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else _canonical(f"max({a}, {b})")


def minimum(a: Size, b: Size) -> Size:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else _canonical(f"min({a}, {b})")


def magnitude(a: Size) -> Size:
    return a if never_negative(a) else maximum(a, negate(a))


def sign(a: Size) -> Size:
    return maximum(-1, minimum(1, a))


# Truths are the integers 1 and 0, so that those of sizes are sizes.


def truth(a: Size) -> Size:
    """1 where a size is not 0."""
    return 1 if never_negative(subtract(a, 1)) else minimum(1, magnitude(a))


def less(a: Size, b: Size) -> Size:
    gap = subtract(b, a)
    if never_negative(subtract(gap, 1)):
        return 1
    return 0 if never_negative(negate(gap)) else minimum(1, maximum(0, gap))


def equal(a: Size, b: Size) -> Size:
    gap = subtract(a, b)
    if any(never_negative(subtract(away, 1)) for away in (gap, negate(gap))):
        return 0
    return subtract(1, truth(gap))


def denied(a: Size) -> Size:
    return subtract(1, a)


def wrapped(a: Size, bits: int, signed: bool) -> Size:
    """What an integer of so many bits keeps of a size."""
    low = -(2 ** (bits - 1)) if signed else 0
    if isinstance(a, int):
        return int((a - low) % 2**bits + low)
    return add(modulo(subtract(a, low), 2**bits), low)


def place_within(at: Size, size: Size) -> Size:
    """Where a bound of a slice lies within [0, size]; a negative one counts from the end."""
    if not never_negative(at):
        shows = never_negative(subtract(-1, at))
        at = add(at, size if shows else multiply(size, less(at, 0)))
        at = at if never_negative(at) else maximum(at, 0)
    return at if never_negative(subtract(size, at)) else minimum(at, size)


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
