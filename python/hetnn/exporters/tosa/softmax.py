"""Softmax of bytes as TOSA's integers: exponentials from tables, and a reciprocal by Newton's method.

The formulas are LiteRT's ("Rows" in docs/numerics.md): fixed-point numbers of 31 bits behind the point.
"""

from __future__ import annotations

import math

import numpy as np

from hetnn.exporters.tosa.call import Call, exports
from hetnn.exporters.tosa.numbers import Numbers
from hetnn.exporters.tosa.schema import number
from hetnn.exporters.tosa.writer import ONE, Tensor, Writer, refuse

_ONE = 1 << 31
_MOST = _ONE - 1
# e^(-2^k) for k = -2 .. 4, of 31 bits behind the point.
_POWERS = [(k, min(round(math.exp(-(2.0**k)) * _ONE), _MOST)) for k in range(-2, 5)]
_WHOLE_BITS = 5  # before the point of what is exponentiated
_SUM_BITS = 12  # before the point of sums
# 48 / 17 and -32 / 17, from which the reciprocal of a number in [1/2, 1) starts, of 29 bits.
_FIRST, _SLOPE = 1515870810, -1010580540


def _high_product(a: int, b: int) -> int:
    """Two fixed-point numbers of 31 bits: halves away from zero."""
    product = a * b
    nudge = (1 << 30) if product >= 0 else 1 - (1 << 30)
    total = product + nudge
    return min(total // _ONE if total >= 0 else -((-total) // _ONE), _MOST)


def _over(value: int, bits: int) -> int:
    """Divided by a power of two: halves away from zero."""
    rest, half = value & ((1 << bits) - 1), 1 << (bits - 1)
    return (value >> bits) + (rest > half - (value >= 0))


def exponential(below: int) -> int:
    """e^x of x <= 0 with 5 bits before the point, 31 bits behind it: a polynomial, and a factor for each bit."""
    quarter = 1 << (31 - _WHOLE_BITS - 2)
    rest = (below & (quarter - 1)) - quarter  # in [-1/4, 0)
    x = (rest << _WHOLE_BITS) + (1 << 28)  # around -1/8
    x2 = _high_product(x, x)
    x3, x4 = _high_product(x2, x), _high_product(x2, x2)
    last = _over(_high_product(_over(x4, 2) + x3, 715827883) + x2, 1)
    result = min(1895147668 + _high_product(1895147668, x + last), _MOST)
    for k, factor in _POWERS:
        if (rest - below) & (1 << (31 - _WHOLE_BITS + k)):
            result = _high_product(result, factor)
    return _MOST if below == 0 else result


def exponentials(scale: float) -> list[int]:
    """e^(scale * -d) of 31 bits for d = 0 .. 255; 0 where it is too far."""
    real = min(scale * (1 << (31 - _WHOLE_BITS)), float(_MOST))
    part, shift = math.frexp(real)
    multiplier = math.floor(part * _ONE + 0.5)
    if multiplier == _ONE:
        multiplier, shift = multiplier >> 1, shift + 1
    if shift < 0:
        refuse(f"of scale {scale}, whose steps are too small")
    reach = math.floor(((1 << _WHOLE_BITS) - 1) * 2.0 ** (31 - _WHOLE_BITS) / 2.0**shift)
    return [
        exponential(_high_product(max(-d * (1 << shift), -_ONE), multiplier)) if d <= reach else 0 for d in range(256)
    ]


@exports("softmax")
def _softmax(call: Call) -> Tensor:
    axis, rank = int(call.attrs["axis"]) % len(call.shape), len(call.shape)
    if call[0].dtype != "i8" or call.dtype != "i8" or axis != rank - 1:
        refuse("of other integers than i8, or along another axis than the last")
    if call.ends != (1 / 256, -128):
        refuse("to another scale than 1/256 from -128 on")
    writer, n, rows = call.writer, call.shape[-1], int(np.prod(call.shape[:-1]))
    numbers = Numbers(writer)
    x = writer.reshape(call[0], [rows, n])
    most = _largest(writer, x, rows, n)
    steps = [writer.rescale(part, [ONE], (call.zero(), 0), "i32", "single") for part in (x, most)]
    exps = _of_differences(numbers, steps, exponentials(call.scale()))
    parts = numbers.both("ARITHMETIC_RIGHT_SHIFT", exps, _SUM_BITS, Round=True)
    total = writer.add("REDUCE_SUM", [parts], "i32", [rows, 1], Axis=1)
    zeros = writer.add("CLZ", [total], "i32", [rows, 1])
    half = numbers.both("LOGICAL_LEFT_SHIFT", total, numbers.both("SUB", zeros, 1))
    r = numbers.both("ADD", numbers.product(half, _SLOPE, 31), _FIRST)
    for _ in range(3):
        error = numbers.reversed_difference(1 << 29, numbers.product(r, half, 31))
        r = numbers.both("ADD", r, numbers.product(numbers.product(r, error, 31), 4, 0))
    scaled = numbers.product(exps, r, 30)
    places = numbers.reversed_difference(_SUM_BITS + 31 - 8, zeros)
    y = numbers.both("ARITHMETIC_RIGHT_SHIFT", scaled, places, Round=True)
    out = writer.rescale(y, [ONE], (0, -128), "i8", "single")
    return writer.reshape(out, call.shape)


def _largest(writer: Writer, x: Tensor, rows: int, n: int) -> Tensor:
    """Of each row, by a pool, which more processors have than a reduction."""
    image = writer.reshape(x, [1, rows, n, 1])
    told = {"Kernel": [1, n], "Stride": [1, n], "Pad": [0] * 4, "NanMode": number("NanPropagationMode", "PROPAGATE")}
    return writer.reshape(writer.add("MAX_POOL2D", [image], x.dtype, [1, rows, 1, 1], **told), [rows, 1])


def _of_differences(numbers: Numbers, steps: list[Tensor], exps: list[int]) -> Tensor:
    """Numbers of 31 bits at 0, -1 .. -255, the differences of two operands.

    Each table has a difference of its own, since compilers join a table with what is read by it alone.
    """

    def place() -> Tensor:
        return numbers.writer.rescale(numbers.both("SUB", *steps), [ONE], (0, 127), "i8", "single")

    return numbers.from_tables(place, np.array(exps[::-1], np.int64))
