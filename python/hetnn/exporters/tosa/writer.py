"""What a TOSA block is made of while it grows: tensors in either layout, and rescalings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np

from hetnn.errors import Unsupported
from hetnn.exporters.names import fresh_name
from hetnn.exporters.tosa.file import Array, Block, Op
from hetnn.exporters.tosa.interleave import interleaved, side_by_side
from hetnn.exporters.tosa.movement import Movement
from hetnn.exporters.tosa.schema import number

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


def rescaled(values: Any, factor: Factor, rounding: str, left: int = 0) -> Any:
    """Integers times 2^left and a factor, as TOSA's RESCALE has it of 32 bits."""
    shift = 31 - factor.exponent - left
    nudge = np.int64(1 << (shift - 1))
    if rounding == "double" and shift > 31:
        nudge = nudge + np.where(np.asarray(values) >= 0, 1 << 30, -(1 << 30))
    return (np.asarray(values, np.int64) * factor.multiplier + nudge) >> shift


# The factor 1.
ONE = Factor(1 << 30, 1)


def refuse(why: str) -> NoReturn:
    """Ends a rule: the node has no form."""
    raise Unsupported(why)


class Form(NamedTuple):
    """How the same values are written where processors differ in what is fast.

    layers: images are copied and rescaled by filters of single pixels. folds: where it is not 0, convolutions take over
    what is moved around them: blocks of pixels that became channels are read as they lie, and columns in reverse at the
    sides are computed once more by filters of at most so many weights in all.
    """

    layers: bool = False
    folds: float = 0


FORMS = (Form(), Form(layers=True), Form(layers=True, folds=4096), Form(layers=True, folds=math.inf))


@dataclass
class Writer:
    """Collects operators and tensors. `names` are those that are taken.

    chains: for a processor to which an operator on elements costs nothing behind one, as the Ethos-U85.
    """

    block: Block
    names: set[str]
    chains: bool = False
    form: Form = FORMS[0]
    uses: Counter[str] = field(default_factory=Counter)  # of the graph's values
    node: str = ""  # for which is written
    # What each result of transpositions and new shapes was made of.
    _moved: dict[str, tuple[Tensor, Movement]] = field(default_factory=dict)
    _made: dict[tuple[str, Movement], Tensor] = field(default_factory=dict)
    # What each padded tensor was made of, how many elements stand before and behind on each axis, and their value.
    _padded: dict[str, tuple[Tensor, list[int], int]] = field(default_factory=dict)
    # Of parts of tensors the whole and where they begin; of what lies side by side along an axis, the parts.
    _parts: dict[str, tuple[Tensor, list[int]]] = field(default_factory=dict)
    _joined: dict[tuple[str, int], list[Tensor]] = field(default_factory=dict)
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
        self._write("CONST", [], tensor.name)
        if name is None:
            self._same[key] = tensor
        return tensor

    def sizes(self, sizes: Sequence[int]) -> str:
        """A constant shape."""
        name = self.fresh("sizes")
        self.block.shapes[name] = list(sizes)
        self._write("CONST_SHAPE", [], name)
        return name

    def add(self, kind: str, inputs: Sequence[Tensor | str], dtype: str, shape: Sequence[int], **attrs: Any) -> Tensor:
        """An operator of one result."""
        tensor = Tensor(self.fresh(kind.lower()), dtype, tuple(shape))
        self.block.tensors[tensor.name] = (list(shape), dtype, None)
        ports = [part if isinstance(part, str) else part.name for part in inputs]
        self._write(kind, ports, tensor.name, attrs)
        return tensor

    def _write(self, kind: str, inputs: list[str], output: str, attrs: dict[str, Any] | None = None) -> None:
        self.block.ops.append(Op(kind, inputs, [output], attrs or {}, node=self.node))

    def made_by(self, name: str) -> Op | None:
        """The operator of a result; None of an input."""
        return next((op for op in reversed(self.block.ops) if name in op.outputs), None)

    def moved(self, x: Tensor) -> tuple[Tensor, Movement]:
        """The tensor that x has its elements from, and how they moved: x itself where they did not."""
        return self._moved.get(x.name, (x, Movement.none(x.shape)))

    def turned(self, x: Tensor) -> tuple[int, ...]:
        """The order of axes that a transposition alone made x by: as they are where none did, or more than that."""
        source, movement = self.moved(x)
        order = movement.order(len(source.shape))
        return tuple(range(len(x.shape))) if order is None else order

    def transpose(self, x: Tensor, perm: Sequence[int]) -> Tensor:
        """Axes in another order; of constants at once."""
        if x.array is not None:
            return self.constant(np.transpose(x.array, perm), x.dtype)
        source, movement = self.moved(x)
        return self.move(source, movement.transposed(perm))

    def move(self, source: Tensor, movement: Movement) -> Tensor:
        """A movement of a tensor, once: a new shape alone where no axis of several elements changes its place.

        A single image keeps its axes; elsewhere those that stay together are one, since few processors turn many.
        """
        shape, (cut, order) = movement.shape, movement.steps()
        if not order and shape == list(source.shape):
            return source
        key = (source.name, movement)
        if key in self._made:
            return self._made[key]
        whole = movement.order(len(source.shape))
        joined = interleaved(self, source, movement) if order else None
        if joined is not None:
            made = joined
        elif (parted := side_by_side(self, source, cut, order)) is not None:
            made = self.shaped(parted, shape)
        elif not order:
            made = self.shaped(source, shape)
        elif whole is not None and all(size == 1 for size in source.shape[:-3]):
            made = self.add("TRANSPOSE", [source], source.dtype, shape, Perms=list(whole))
        else:
            parts = self.shaped(source, cut)
            sizes = [cut[k] for k in order]
            made = self.shaped(self.add("TRANSPOSE", [parts], source.dtype, sizes, Perms=order), shape)
        self._made[key] = made
        self._moved[made.name] = source, movement
        return made

    def shaped(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The same elements in another shape, whatever made them."""
        return x if list(x.shape) == list(shape) else self.add("RESHAPE", [x, self.sizes(shape)], x.dtype, shape)

    def in_order(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """That of which x is the transposition by an order."""
        return self.transpose(x, np.argsort(order).tolist())

    def zero(self, value: int, dtype: str) -> Tensor:
        """A zero point."""
        return self.constant([value], dtype)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The same elements in another shape."""
        if x.array is not None:
            return self.constant(x.array.reshape(shape), x.dtype)
        source, movement = self.moved(x)
        after = movement.reshaped(shape)
        if after is not None:
            return self.move(source, after)
        after = Movement.none(x.shape).reshaped(shape)
        return self.shaped(x, shape) if after is None else self.move(x, after)

    def sliced(self, x: Tensor, starts: Sequence[int], shape: Sequence[int]) -> Tensor:
        """A part of a tensor; a part of a part is one of the whole."""
        if list(x.shape) == list(shape):
            return x
        whole, begins = self.part_of(x)
        begins = [begin + start for begin, start in zip(begins, starts, strict=True)]
        part = self.add("SLICE", [whole, self.sizes(begins), self.sizes(shape)], x.dtype, shape)
        self._parts[part.name] = whole, begins
        return part

    def part_of(self, x: Tensor) -> tuple[Tensor, list[int]]:
        """What a tensor is a part of, and where it begins there: itself where it is none."""
        return self._parts.get(x.name, (x, [0] * len(x.shape)))

    def joined(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        """Tensors side by side."""
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        made = self.add("CONCAT", parts, parts[0].dtype, shape, Axis=axis)
        self._joined[made.name, axis] = list(parts)
        return made

    def pieces(self, x: Tensor, axis: int) -> list[Tensor]:
        """What lies side by side in a tensor along an axis."""
        return self._joined.get((x.name, axis), [x])

    def pad(self, x: Tensor, pairs: Sequence[int], value: int) -> Tensor:
        """A tensor with so many elements before and behind on each axis."""
        shape = [size + sum(pairs[2 * k : 2 * k + 2]) for k, size in enumerate(x.shape)]
        padded = self.add("PAD", [x, self.sizes(pairs), self.zero(value, x.dtype)], x.dtype, shape)
        self._padded[padded.name] = x, list(pairs), value
        return padded

    def unpadded(self, x: Tensor, value: int) -> tuple[Tensor, list[int]]:
        """Of an image of channels last what was padded by a value, and how: top, bottom, left, right."""
        source, pairs, filled = self._padded.get(x.name, (x, [0] * 8, value))
        if len(pairs) != 8 or any((*pairs[:2], *pairs[6:])) or filled != value:
            return x, [0] * 4
        return source, pairs[2:6]

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
