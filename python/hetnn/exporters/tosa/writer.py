"""What a TOSA block is made of while it grows: tensors in either layout, and rescalings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from hetnn.errors import Unsupported
from hetnn.exporters.names import fresh_name
from hetnn.exporters.tosa.file import Array, Block, Op, number

# Channels last, as TOSA has images, and back.
LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


@dataclass(frozen=True)
class Tensor:
    """A tensor of the block; `array` of a constant."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    array: Array | None = None


@dataclass(frozen=True)
class Factor:
    """A real factor as hetnn's integers have it: multiplier 2^(exponent - 31)."""

    multiplier: int
    exponent: int


def factor_of(real: float, divisor: int = 1) -> Factor:
    """The nearest one with a multiplier of 31 bits; through a divisor as means have it (base/requantize.cpp)."""
    if not 2.0**-31 <= real < 2.0**30:
        refuse(f"a factor of {real} between scales")
    part, exponent = math.frexp(real)
    multiplier = math.floor(part * 2**31 + 0.5)
    if multiplier == 1 << 31:
        multiplier, exponent = multiplier >> 1, exponent + 1
    bits = min(divisor.bit_length() - 1, 31 + exponent)
    return Factor((multiplier << bits) // divisor, exponent - bits)


# The factor 1.
ONE = Factor(1 << 30, 1)


def refuse(why: str) -> NoReturn:
    """Ends a rule: the node has no form."""
    raise Unsupported(why)


@dataclass
class Writer:
    """Collects operators and tensors. `names` are those that are taken."""

    block: Block
    names: set[str]
    turned: dict[tuple[str, tuple[int, ...]], Tensor] = field(default_factory=dict)
    _same: dict[tuple[str, bytes, tuple[int, ...]], Tensor] = field(default_factory=dict)

    def fresh(self, wanted: str) -> str:
        """A name that nothing else has."""
        return fresh_name(self.names, wanted)

    def constant(self, array: Any, dtype: str, name: str | None = None) -> Tensor:
        """A constant; equal ones without a name of their own are one."""
        values = np.asarray(array, np.int64)
        key = (dtype, values.tobytes(), values.shape)
        if name is None and key in self._same:
            return self._same[key]
        tensor = Tensor(name or self.fresh("constant"), dtype, tuple(values.shape), values)
        self.block.tensors[tensor.name] = (list(values.shape), dtype, values)
        self.block.ops.append(Op("CONST", [], [tensor.name], {}))
        if name is None:
            self._same[key] = tensor
        return tensor

    def sizes(self, sizes: Sequence[int]) -> str:
        """A constant shape."""
        name = self.fresh("sizes")
        self.block.shapes[name] = list(sizes)
        self.block.ops.append(Op("CONST_SHAPE", [], [name], {}))
        return name

    def add(self, kind: str, inputs: Sequence[Tensor | str], dtype: str, shape: Sequence[int], **attrs: Any) -> Tensor:
        """An operator of one result."""
        tensor = Tensor(self.fresh(kind.lower()), dtype, tuple(shape))
        self.block.tensors[tensor.name] = (list(shape), dtype, None)
        ports = [part if isinstance(part, str) else part.name for part in inputs]
        self.block.ops.append(Op(kind, ports, [tensor.name], attrs))
        return tensor

    def transpose(self, x: Tensor, perm: Sequence[int]) -> Tensor:
        """Axes in another order; once for each tensor, and of constants at once."""
        key = (x.name, tuple(perm))
        if key not in self.turned:
            if x.array is not None:
                self.turned[key] = self.constant(np.transpose(x.array, perm), x.dtype)
            else:
                shape = [x.shape[k] for k in perm]
                self.turned[key] = self.add("TRANSPOSE", [x], x.dtype, shape, Perms=list(perm))
                self.turned[self.turned[key].name, tuple(np.argsort(perm).tolist())] = x
        return self.turned[key]

    def zero(self, value: int, dtype: str) -> Tensor:
        """A zero point."""
        return self.constant([value], dtype)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The same elements in another shape."""
        if list(x.shape) == list(shape):
            return x
        if x.array is not None:
            return self.constant(x.array.reshape(shape), x.dtype)
        return self.add("RESHAPE", [x, self.sizes(shape)], x.dtype, shape)

    def sliced(self, x: Tensor, starts: Sequence[int], shape: Sequence[int]) -> Tensor:
        """A part of a tensor."""
        if list(x.shape) == list(shape):
            return x
        return self.add("SLICE", [x, self.sizes(starts), self.sizes(shape)], x.dtype, shape)

    def rescale(
        self, x: Tensor, factors: Sequence[Factor], zeros: tuple[int, int], dtype: str, rounding: str, left: int = 0
    ) -> Tensor:
        """round((x - zero) 2^left factor) + zero, a factor for each index of the last axis or one; saturated.

        Rounded once (`single`) or twice (`double`); sums of 48 bits by multipliers of 15 bits.
        """
        wide = x.dtype == "i48"
        pairs = [_narrow(f) if wide else (f.multiplier, 31 - f.exponent - left) for f in factors]
        if any(not 2 <= shift <= 62 for _, shift in pairs):
            refuse(f"a rescaling by 2^-{pairs[0][1]}, where TOSA has 2 to 62 places")
        multipliers, shifts = zip(*pairs, strict=True)
        given = [
            *(x, self.constant(multipliers, "i16" if wide else "i32"), self.constant(shifts, "i8")),
            *(self.zero(zeros[0], x.dtype), self.zero(zeros[1], dtype)),
        ]
        mode = "DOUBLE_ROUND" if rounding == "double" and not wide else "SINGLE_ROUND"
        return self.add(
            *("RESCALE", given, dtype, x.shape),
            Scale32=not wide,
            RoundingMode=number("RoundingMode", mode),
            PerChannel=len(pairs) > 1,
            InputUnsigned=False,
            OutputUnsigned=False,
        )


def _narrow(factor: Factor) -> tuple[int, int]:
    """Multiplier of 15 bits and shift, as LiteRT has them for sums of 16-bit values."""
    most = factor.multiplier >= 0x7FFF0000
    return (0x7FFF if most else (factor.multiplier + (1 << 15)) >> 16), 15 - factor.exponent
