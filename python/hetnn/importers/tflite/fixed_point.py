"""TFLite's arithmetic on integers, of whole arrays: a factor as a multiplier of 31 bits and a shift."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def multiplier_of(factor: float) -> tuple[int, int]:
    """m in [2^30, 2^31) and a shift, factor = m 2^(shift - 31); both 0 for a factor that no shift of 31 holds."""
    if factor == 0:
        return 0, 0
    fraction, shift = math.frexp(factor)
    whole = math.floor(fraction * (1 << 31) + 0.5)
    if whole == 1 << 31:
        whole, shift = whole // 2, shift + 1
    return (0, 0) if shift < -31 else (whole, shift)


def high_product(a: Array, b: Array | int) -> Array:
    """The high half of the doubled product of two numbers of 32 bits, to nearest."""
    product = a.astype(np.int64) * b
    nudged = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    return np.asarray(np.sign(nudged) * (np.abs(nudged) >> 31))


def shifted_right(value: Array, bits: int | Array) -> Array:
    """Divided by a power of two, to nearest, halves away from zero."""
    mask = (1 << bits) - 1
    rest, threshold = value & mask, (mask >> 1) + (value < 0)
    return np.asarray((value >> bits) + (rest > threshold))


def scaled(value: Array, factor: float) -> Array:
    """Integers times a factor, rounded twice: gemmlowp's MultiplyByQuantizedMultiplier."""
    return multiplied(value, *multiplier_of(factor))


def multiplied(value: Array, multiplier: Array | int, shift: Array | int) -> Array:
    """The same by a multiplier of 31 bits and a power of two."""
    left, right = np.maximum(shift, 0), np.maximum(np.negative(shift), 0)
    return shifted_right(high_product(value.astype(np.int64) << left, multiplier), right)


def _leading_zeros(value: Array) -> Array:
    """Of numbers of 32 bits without a sign."""
    return np.asarray(32 - np.frexp(value.astype(np.float64))[1], np.int64)


def _inverse(part: Array) -> Array:
    """1 / (1 + a) of fractions of 31 bits: three steps of Newton's, as base/integer_rows has it."""
    one, half = (1 << 31) - 1, (part + (1 << 31)) // 2
    x = 1515870810 + high_product(half, -1010580540)
    for _ in range(3):
        x = x + 4 * high_product(x, (1 << 29) - high_product(half, x))
    return np.asarray(np.minimum(2 * x, one))


def inverse_root(value: Array) -> tuple[Array, Array]:
    """1 / sqrt(value) of whole numbers below 2^29 as a multiplier of 31 bits and a shift; of 0 and less as of 1.

    Five of Newton's steps from 1 on, with 3 bits before the point, of the number between 1/4 and 1 that so many fours
    make of it; times sqrt(1/2).
    """
    whole = np.maximum(value, 2).astype(np.int64)
    fours = (_leading_zeros(whole) - 1) // 2 - 1
    part = whole << 2 * fours >> 1
    half, x = shifted_right(part, 1), np.full_like(part, 1 << 28)
    for _ in range(5):
        cube = high_product(high_product(x, x), x) << 6
        x = (high_product(x, 3 << 27) - high_product(half, cube)) << 3
    shift = 11 - fours
    root = high_product(x, 1518500250) << np.maximum(-shift, 0)
    return np.where(value > 1, root, (1 << 31) - 1), np.where(value > 1, np.minimum(-shift, 0), 0)


def exponential(value: Array) -> Array:
    """e^a of numbers up to 0 with 26 bits behind the point, as fractions of 31 bits: as base/integer_rows has it."""
    rest = (value & ((1 << 24) - 1)) - (1 << 24)
    x = rest * 32 + (1 << 28)
    x2 = high_product(x, x)
    series = shifted_right(high_product(x2, x2), 2) + high_product(x2, x)
    series = x + shifted_right(high_product(series, 715827883) + x2, 1)
    out = 1895147668 + high_product(series, 1895147668)
    powers = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
    for bit, power in enumerate(powers, 24):
        out = np.where((rest - value) >> bit & 1, high_product(out, power), out)
    return np.where(value == 0, (1 << 31) - 1, out)


def quotient(a: Array, b: Array, factor: float) -> Array:
    """a / b times a factor, as LiteRT's division of u8; by 0 what is beyond every bound."""
    return _quotient(a, b, factor)[0]


def shifts_of_quotient(a: Array, b: Array, factor: float) -> Array:
    """Bits by which LiteRT shifts such quotients to the right; by 32 and more, its answer is undefined."""
    return _quotient(a, b, factor)[1]


def _quotient(a: Array, b: Array, factor: float) -> tuple[Array, Array]:
    top, bottom = np.where(b < 0, -a, a).astype(np.int64), np.abs(b).astype(np.int64)
    divisor = np.maximum(bottom, 1)
    zeros = _leading_zeros(divisor)
    room = np.where(top >= 0, _leading_zeros(np.maximum(top, 0)) - 1, _leading_zeros(np.maximum(-2 * top - 1, 0)))
    whole = high_product(top << room, _inverse((divisor << zeros) - (1 << 31)))
    multiplier, shift = multiplier_of(factor)
    bits = np.maximum(31 - zeros + room - shift, 0)
    made = np.where(bottom == 0, np.sign(top) << 31, shifted_right(high_product(whole, multiplier), bits))
    return made, bits


def high_product_16(a: Array, b: int) -> Array:
    """As `high_product`, of two numbers of 16 bits."""
    product = a.astype(np.int64) * b
    nudged = product + np.where(product >= 0, 1 << 14, 1 - (1 << 14))
    return saturated(np.sign(nudged) * (np.abs(nudged) >> 15), -32768, 32767)


def doubled_high_16(a: Array, b: Array) -> Array:
    """The high half of the doubled product of two numbers of 16 bits, cut towards zero."""
    product = a.astype(np.int64) * b
    return saturated(np.sign(product) * (np.abs(product) >> 15), -32768, 32767)


def saturated(value: Array, low: int = -128, high: int = 127) -> Array:
    """Integers cut to [low, high], which are those of i8 by themselves."""
    return np.clip(value, low, high)


def rounded(reals: Array) -> Array:
    """To nearest, halves away from zero."""
    return np.asarray(np.sign(reals) * np.floor(np.abs(reals) + np.asarray(0.5, reals.dtype)))
