"""Arithmetic of sizes: integers, and expressions of a model's symbols."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TypeAlias, overload

from hetnn._core import Dim
from hetnn.errors import InvalidModel

# An int where it is known.
Size: TypeAlias = "int | Dim"

# Beyond it no integer is a size.
MOST = 2**62
# No axis that a model leaves open is longer: some exporters write 10^9 for the end of any.
LONGEST = 10**9 - 1
# Stands for "to the end" in slices.
WHOLE_END = MOST


def symbol_name(called: str, taken: Container[str]) -> str:
    """A name for the symbol of a size, like what the model calls it, that is not taken."""
    symbol = "".join(c if c.isalnum() and f"_{c}".isidentifier() else "_" for c in called)
    symbol = symbol if symbol.isidentifier() else f"s{symbol}"
    while symbol in taken:
        symbol += "_"
    return symbol


def likely_size(low: int, high: int) -> int:
    """At which size costs are predicted where values give it: the largest, where there is one."""
    return high if high < MOST else max(low, 1)


def dense_strides(shape: Iterable[Size]) -> list[Size]:
    """Elements from one index of each axis to the next, the last axis' lying one behind another."""
    out: list[Size] = []
    step: Size = 1
    for size in reversed(list(shape)):
        out.append(step)
        step = step * size
    return out[::-1]


def never_negative(a: Size) -> bool:
    """Whether a size's form shows that no run makes it negative; no symbol is."""
    return a >= 0 if isinstance(a, int) else a.never_negative


@overload
def divide(a: int, b: int) -> int: ...
@overload
def divide(a: Size, b: Size) -> Size: ...
def divide(a: Size, b: Size) -> Size:
    """The quotient, cut downwards."""
    if b == 0:
        raise InvalidModel(f"the size {a} is divided by 0.")
    return a // b


def ceil_divide(a: Size, b: Size) -> Size:
    """The quotient, cut upwards."""
    return -divide(-a, b)


def truncated_divide(a: Size, b: Size) -> Size | None:
    """The quotient, cut towards zero; None where the divisor's sign is not known."""
    if isinstance(b, int) and b < 0:
        return truncated_divide(-a, -b)
    if not never_negative(b):
        return None
    if never_negative(a):
        return divide(a, b)
    return divide(maximum(a, 0), b) - divide(maximum(-a, 0), b)


def truncated_modulo(a: Size, b: Size) -> Size | None:
    """What `truncated_divide` leaves, of the sign of the dividend; None as there."""
    quotient = truncated_divide(a, b)
    return None if quotient is None else a - quotient * b


def modulo(a: Size, b: Size) -> Size:
    """The rest of a / b with the sign of b. InvalidModel where b is 0."""
    if b == 0:
        raise InvalidModel(f"the size {a} is divided by 0.")
    return a % b


def maximum(a: Size, b: Size) -> Size:
    """The greater of two sizes."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else Dim.max(a, b)


def minimum(a: Size, b: Size) -> Size:
    """The lesser of two sizes."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else Dim.min(a, b)


def magnitude(a: Size) -> Size:
    """|a|"""
    return a if never_negative(a) else maximum(a, -a)


def sign(a: Size) -> Size:
    """-1, 0 or 1, as a size is."""
    return maximum(-1, minimum(1, a))


# Truths are the integers 1 and 0, so that those of sizes are sizes.


def truth(a: Size) -> Size:
    """1 where a size is not 0."""
    return 1 if never_negative(a - 1) else minimum(1, magnitude(a))


def less(a: Size, b: Size) -> Size:
    """1 where a < b, else 0."""
    gap = b - a
    if never_negative(gap - 1):
        return 1
    return 0 if never_negative(-gap) else minimum(1, maximum(0, gap))


def equal(a: Size, b: Size) -> Size:
    """1 where a = b, else 0."""
    gap = a - b
    if any(never_negative(away - 1) for away in (gap, -gap)):
        return 0
    return 1 - truth(gap)


def denied(a: Size) -> Size:
    """1 of 0, and 0 of 1."""
    return 1 - a


def wrapped(a: Size, bits: int, signed: bool) -> Size:
    """What an integer of so many bits keeps of a size."""
    low = -(1 << (bits - 1)) if signed else 0
    return (a - low) % (1 << bits) + low


def place_within(at: Size, size: Size) -> Size:
    """Where a bound of a slice lies within [0, size]; a negative one counts from the end."""
    if not never_negative(at):
        shows = never_negative(-1 - at)
        at = at + (size if shows else size * less(at, 0))
        at = at if never_negative(at) else maximum(at, 0)
    return at if never_negative(size - at) else minimum(at, size)


def places_of_slice(size: int, start: int, end: int, step: int) -> range:
    """The places along an axis that ONNX's Slice takes: Python's, but backwards it begins at the first element where
    `start` lies before it."""
    first, last, step = slice(start, end if step > 0 or end >= -size else None, step).indices(size)
    return range(max(first, 0) if step < 0 and size > 0 else first, last, step)


def product(sizes: Iterable[Size]) -> Size:
    """All sizes multiplied; 1 of none."""
    out: Size = 1
    for size in sizes:
        out = out * size
    return out


def broadcast(a: Iterable[Size], b: Iterable[Size]) -> list[Size]:
    """The shape to which both broadcast. InvalidModel where sizes are neither equal nor 1."""
    left, right = list(a), list(b)
    rank = max(len(left), len(right))
    left, right = [*[1] * (rank - len(left)), *left], [*[1] * (rank - len(right)), *right]
    for x, y in zip(left, right, strict=True):
        if x != y and 1 not in (x, y):
            raise InvalidModel(f"the shapes {left} and {right} do not broadcast: {x} meets {y}.")
    return [y if x == 1 else x for x, y in zip(left, right, strict=True)]
