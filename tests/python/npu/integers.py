"""Integer formulas of quantized layers in numpy, and pieces of IR text."""

from __future__ import annotations

import base64

import numpy as np

import hetnn
from hetnn.targets import load_spec

Array = np.ndarray
ROUNDINGS = ("double", "single", "half_even_fp32")


def multiplier_of(real: float) -> tuple[int, int]:
    """``real`` as an integer in [2^30, 2^31) and a power of two (positive: to the left)."""
    fraction, exponent = np.frexp(real)
    multiplier = int(np.floor(fraction * 2**31 + 0.5))
    return (multiplier // 2, int(exponent) + 1) if multiplier == 2**31 else (multiplier, int(exponent))


def requantize(value: Array, real: float, rounding: str = "double") -> Array:
    """By a factor, as one of `ROUNDINGS`; `double` is gemmlowp's MultiplyByQuantizedMultiplier in 64-bit integers."""
    if rounding == "half_even_fp32":
        return np.rint(value.astype(np.float32) * np.float32(real)).astype(np.int64)
    multiplier, shift = multiplier_of(real)
    if rounding == "single":
        return (value.astype(np.int64) * multiplier + (1 << (30 - shift))) >> (31 - shift)
    left, right = max(shift, 0), max(-shift, 0)
    product = (value.astype(np.int64) << left) * multiplier
    nudged = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    high = np.where(nudged >= 0, nudged >> 31, -((-nudged) >> 31))
    mask = (1 << right) - 1
    return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0)).astype(np.int64)


def requantize_steps(value: Array, real: float, rounding: str = "double") -> Array:
    """Of values of 16 bits: `double` rounds them once, halves away from zero."""
    if multiplier_of(real)[1] >= 0 or rounding != "double":
        return requantize(value, real, rounding)
    product = np.abs(value.astype(np.int64)) * int(np.floor(real * 2**31 + 0.5))
    return np.sign(value) * ((product + (1 << 30)) >> 31)


def saturate(value: Array) -> Array:
    return np.clip(value, -128, 127).astype(np.int8)


def text_of(shape: tuple[int, ...], values: Array) -> str:
    dtype = {"int8": "i8", "int32": "i32"}[values.dtype.name]
    return f'{dtype}[{",".join(map(str, shape))}] "{base64.b64encode(values.tobytes()).decode()}"'


def quant(scale: float, zero: int) -> str:
    return f"i8{{{scale!r}:{zero}}}" if zero else f"i8{{{scale!r}}}"


def attrs(scale: float, zero: int) -> str:
    return f"q_scale = [{scale!r}], q_zero = {zero}"


def run(graph: str, *inputs: Array, target: str = "cpu+relu-mul", rounding: str | None = None) -> Array:
    """On an NPU that rounds as named alone, else as its data sheet says."""
    spec = load_spec(target.removeprefix("cpu+"))
    if rounding:
        spec["numerics"]["rounding"] = rounding
    exe = hetnn.compile(graph, target=spec, strategy="take-all")
    report = exe.report(format="dict")
    assert report["nodes_on"]["cpu"] == 0, report["not_on_preferred"]
    return np.asarray(exe(*inputs))
