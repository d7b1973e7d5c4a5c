"""Operators on elements by themselves, and from one scale to another, as TOSA has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hetnn.exporters.tosa.call import Call, demand_same_scale, exports, rescale_result
from hetnn.exporters.tosa.file import packed
from hetnn.exporters.tosa.interleave import convolution
from hetnn.exporters.tosa.pixels import by_channel
from hetnn.exporters.tosa.schema import number
from hetnn.exporters.tosa.writer import ONE, Factor, Tensor, factor_of, refuse, rescaled


@exports("quantize", "identity", "bitcast")
def _rescale(call: Call) -> Tensor:
    if call.row["op"] == "bitcast":
        if call[0].dtype != call.dtype:
            refuse("to another element type")
        return call[0]
    return rescale_result(call, call[0])


def _clamped(call: Call, x: Tensor, low: float, high: float) -> Tensor:
    """Limits in steps of the operand."""
    ends: Any = np.iinfo({"i8": np.int8, "i16": np.int16}[x.dtype])
    steps = [np.clip(np.rint(bound / call.scale()) + call.zero(), ends.min, ends.max) for bound in (low, high)]
    return call.of_elements(lambda x, order: _cut(call, x, *steps), x)


def _cut(call: Call, x: Tensor, low: float, high: float) -> Tensor:
    """Between two integers of its type, where it may lie elsewhere."""
    ends: Any = np.iinfo({"i8": np.int8, "i16": np.int16}[x.dtype])
    if (low, high) == (ends.min, ends.max):
        return x
    low_bytes, high_bytes = (packed(np.array([int(step)]), x.dtype) for step in (low, high))
    told = {"MinVal": low_bytes, "MaxVal": high_bytes, "NanMode": number("NanPropagationMode", "PROPAGATE")}
    return call.writer.add("CLAMP", [x], x.dtype, x.shape, **told)


@exports("relu")
def _relu(call: Call) -> Tensor:
    return rescale_result(call, _clamped(call, call[0], 0, np.inf))


@exports("clamp")
def _clamp(call: Call) -> Tensor:
    demand_same_scale(call)
    return _clamped(call, call[0], float(call.attrs["min"]), float(call.attrs["max"]))


def alike(call: Call) -> list[Tensor]:
    """Both operands of one rank."""
    rank = len(call.shape)
    return [call.writer.reshape(call[k], [1] * (rank - len(call[k].shape)) + list(call[k].shape)) for k in (0, 1)]


def _broadcast(*operands: Tensor) -> list[int]:
    return list(np.broadcast_shapes(*(x.shape for x in operands)))


_FEW_BITS = 15


def _of_equal_scales(call: Call, most: float) -> tuple[int, str] | None:
    """Bits that operands gain, and how the result is rounded, with which every sum of bytes is as with 20 bits:
    compilers for processors that add bytes know forms of at most 15."""
    scale, _ = call.ends
    if call.scale(0) != call.scale(1) or call[0].dtype != "i8":
        return None
    sums = np.arange(-510, 511)
    wanted = rescaled(sums << 19, factor_of(2 * most / (scale * (1 << 20))), call.rounding)
    factor = factor_of(2 * most / (scale * (1 << _FEW_BITS)))
    for rounding in ("double", "single"):
        if np.array_equal(rescaled(sums << (_FEW_BITS - 1), factor, rounding), wanted):
            return _FEW_BITS, rounding
    return None


def _rounds_alike(call: Call, factors: Sequence[Factor], leave: Factor, bits: int) -> bool:
    """Whether every sum of two bytes is the same where an operand is rounded once, with its bits to the left in its
    factor, as where it is rounded twice."""
    if call.rounding != "double" or all(factor.exponent >= 0 for factor in factors):
        return True
    if call[0].dtype != "i8":
        return False
    steps = [np.arange(-128, 128) - call.zero(k) for k in (0, 1)]
    once = [rescaled(v, factor, "double", bits) for v, factor in zip(steps, factors, strict=True)]
    twice = [rescaled(v << bits, factor, "double") for v, factor in zip(steps, factors, strict=True)]
    join = np.add if call.row["op"] == "add" else np.subtract
    ends = (rescaled(join.outer(*operands), leave, call.rounding) for operands in (once, twice))
    return np.array_equal(*ends)


@exports("add", "sub")
def _sum(call: Call) -> Tensor:
    """In steps of twice the larger scale, with 20 bits more, or 15 of i16."""
    most = max(call.scale(0), call.scale(1))
    bits, rounding = _of_equal_scales(call, most) or (15 if call[0].dtype == "i16" else 20, call.rounding)
    scale, zero = call.ends
    leave = factor_of(2 * most / (scale * (1 << bits)))
    factors = [factor_of(call.scale(k) / (2 * most)) for k in (0, 1)]
    once = _rounds_alike(call, factors, leave, bits)
    kind = "ADD" if call.row["op"] == "add" else "SUB"

    def step(x: Tensor, k: int) -> Tensor:
        if once or factors[k].exponent >= 0:
            return call.writer.rescale(x, [factors[k]], (call.zero(k), 0), "i32", call.rounding, bits)
        whole = call.writer.rescale(x, [ONE], (call.zero(k), 0), "i32", "single")
        places = call.writer.constant(np.full([1] * len(x.shape), bits), "i32")
        wide = call.writer.add("LOGICAL_LEFT_SHIFT", [whole, places], "i32", x.shape)
        return call.writer.rescale(wide, [factors[k]], (0, 0), "i32", call.rounding)

    def write(*operands: Tensor, order: Sequence[int]) -> Tensor:
        common = [step(x, k) for k, x in enumerate(operands)]
        out = call.writer.add(kind, common, "i32", _broadcast(*operands))
        return call.writer.rescale(out, [leave], (0, zero), call.dtype, rounding)

    return call.of_elements(write, *alike(call))


def exact_sum(call: Call, a: tuple[Tensor, int], b: tuple[Tensor, int], zero: int) -> Tensor:
    """Of bytes at one scale, each with its zero point, as those of the same scale: nothing is rounded."""
    w, half, leave = call.writer, factor_of(0.5), factor_of(2.0 / (1 << _FEW_BITS))
    steps = [w.rescale(x, [half], (at, 0), "i32", call.rounding, _FEW_BITS) for x, at in (a, b)]
    return w.rescale(w.add("ADD", steps, "i32", a[0].shape), [leave], (0, zero), "i8", "double")


@exports("mul")
def _mul(call: Call) -> Tensor:
    scale, zero = call.ends
    leave = factor_of(call.scale(0) * call.scale(1) / scale)

    def write(*operands: Tensor, order: Sequence[int]) -> Tensor:
        steps = [call.writer.rescale(x, [ONE], (call.zero(k), 0), "i32", "single") for k, x in enumerate(operands)]
        out = call.writer.add("MUL", [*steps, call.writer.constant([0], "i8")], "i32", _broadcast(*operands))
        return call.writer.rescale(out, [leave], (0, zero), call.dtype, call.rounding)

    return call.of_elements(write, *alike(call))


@exports("lookup")
def _lookup(call: Call) -> Tensor:
    if call[0].dtype != "i8" or call.dtype != "i8":
        refuse("of other integers than i8")
    values = np.asarray(call.attrs["table"], np.int64).reshape(-1)
    zero = int(call.quants[0]["zero_points"][0]) if call.quants[0] else 0
    if len(call.shape) == 4 and _is_slow(call) and (line := _line(values, zero)):
        zeros = zero, 0, line.end
        y = by_channel(call.writer, call.last(), line.weight, zeros, line.factor, line.rounding)
        return call.first(_cut(call, y, values.min(), values.max()))
    table = call.writer.constant(values, "i8")
    return call.of_elements(lambda x, order: call.writer.add("TABLE", [x, table], "i8", x.shape), call[0])


_ANY = 256  # a factor by which every byte but zero is cut
_FEW_PRODUCTS = 128  # of an element, fewer than which take less time than looking it up


def _is_slow(call: Call) -> bool:
    """Whether filters rescale in less time than a table does, which is looked up as fast as what it stands behind."""
    if call.shared(0):
        return call.writer.form.layers
    if not call.writer.form.folds or (found := convolution(call.writer, call.last())) is None:
        return False
    shape, _, _ = call.writer.block.tensors[found[0].inputs[1]]
    return math.prod(shape[1:]) < _FEW_PRODUCTS


class _Line(NamedTuple):
    """A table that is its operand times a number, rounded, and cut at its own lowest and highest value."""

    weight: int
    factor: Factor
    rounding: str
    end: int  # the zero point of its values


def _line(values: Any, zero: int) -> _Line | None:
    """The line that a table of bytes is; None of others."""
    x, end = np.arange(-128, 128) - zero, int(values[zero + 128])
    low, high = values.min(), values.max()
    weight = 1 if values[-1] >= values[0] else -1
    inner = (values > low) & (values < high) & (x != 0)
    ends = [(weight * (values[inner] - end) + half) / x[inner] for half in (-0.5, 0.5)]
    least, most = np.minimum(*ends).max(initial=0), np.maximum(*ends).min(initial=2 * _ANY)
    middle = float(least + most) / 2
    if middle < 2.0**-31:
        return None
    factor = factor_of(middle)
    for rounding in ("single", "double"):
        if np.array_equal(np.clip(rescaled(weight * x, factor, rounding) + end, low, high), values):
            return _Line(weight, factor, rounding, end)
    return None
