"""A node of hetnn's graph on its way into ONNX: its inputs and attributes, and what its rule writes with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from hetnn.element_types import numpy_type
from hetnn.exporters.onnx.schema import schema_of
from hetnn.exporters.onnx.writer import Array, Size, Value, Writer, attribute, refuse
from hetnn.exporters.registry import Rules, operators

ONNX: Rules[Any] = Rules("ONNX")
exports = ONNX.exports
# What ONNX lacks a type for is computed in the next of these that it has; integers then wrap as they would have.
_WIDER = {"bool": ("i32",), "f16": ("f32",), "bf16": ("f32",), "u32": ("i64", "u64")}
_WIDER |= dict.fromkeys(("i8", "u8", "i16", "u16"), ("i32", "i64"))
# Elements of a constant that a rule makes.
MOST_ELEMENTS = 1 << 26


def dtype_of(value: Value | None) -> str | None:
    """The element type of an input, where it is there."""
    return None if value is None else value.dtype


class Call:
    """A node: inputs (reals where it computes on quantized ones), attributes, and the types of its outputs.

    `quants` has how the integers of each input stand for reals, where the rule is given the integers themselves.
    """

    def __init__(self, writer: Writer, row: dict[str, Any], inputs: Sequence[Value | None], dtypes: list[str]) -> None:
        self.writer, self.row, self.inputs = writer, row, list(inputs)
        self.op = operators()[row["op"]]
        self.attrs: dict[str, Any] = row["attrs"]
        self.dtypes = dtypes
        self.shapes: list[list[Size]] = [given["shape"] for given in row["output_types"]]
        self.quants = [given and given["quant"] for given in row["input_types"]]

    def __getitem__(self, k: int) -> Value:
        value = self.inputs[k]
        assert value is not None
        return value

    def optional(self, k: int) -> Value | None:
        """Input k, where it is there."""
        return self.inputs[k] if k < len(self.inputs) else None

    @property
    def dtype(self) -> str:
        """The element type of the first output."""
        return self.dtypes[0]

    @property
    def shape(self) -> list[Size]:
        """That of the first output."""
        return self.shapes[0]

    def refuse(self, why: str) -> NoReturn:
        """Unsupported: the node has no form in ONNX."""
        refuse(why)

    def fixed(self, sizes: Sequence[Size], what: str) -> list[int]:
        """Sizes as numbers. Unsupported where one is open."""
        numbers = [size for size in sizes if isinstance(size, int)]
        if len(numbers) < len(sizes):
            self.refuse(f"{what} are open: {[str(size) for size in sizes]}")
        return numbers

    def axis(self, value: Value, name: str = "axis") -> int:
        """An attribute as an axis of the value, from the front."""
        axis = int(self.attrs[name])
        return axis + value.rank if axis < 0 else axis

    # Writing.

    def create(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        *,
        dtype: str | None = None,
        shape: Sequence[Size] | None = None,
        domain: str = "",
        **attrs: Any,
    ) -> Value:
        """A node of one output."""
        (value,) = self.writer.add(op_type, inputs, attrs, [dtype], shape, domain, self.row["name"])
        return value

    def create_all(
        self, op_type: str, inputs: Sequence[Value | None], dtypes: Sequence[str | None], **attrs: Any
    ) -> Any:
        """A node of several outputs: None where the standard says the element type."""
        return self.writer.add(op_type, inputs, attrs, dtypes, wanted=self.row["name"])

    def constant(self, array: Any, dtype: str) -> Value:
        """A constant of an element type."""
        return self.writer.constant(np.asarray(array).astype(numpy_type(dtype)), dtype)

    def like(self, number: float, value: Value) -> Value:
        """One number of the value's type."""
        return self.constant(number, value.dtype)

    def integers(self, numbers: Sequence[int]) -> Value:
        """i64 of rank 1."""
        return self.constant(np.array(numbers, np.int64), "i64")

    def cast(self, value: Value, dtype: str) -> Value:
        """The value in another type."""
        if value.dtype == dtype:
            return value
        return self.create("Cast", [value], dtype=dtype, shape=value.shape, to=attribute(dtype, "dtype"))

    def reshape(self, value: Value, shape: Sequence[Size]) -> Value:
        """The same elements in another shape, of which at most one size is left to the run where that can be."""
        if value.shape is not None and list(value.shape) == list(shape):
            return value
        opened = [k for k, size in enumerate(shape) if not isinstance(size, int)]
        told = [-1 if k in opened else size for k, size in enumerate(shape)]
        if len(opened) > 1 or (opened and 0 in shape):
            told = list(shape)
        goal = self.writer.sizes(told)
        return self.create("Reshape", [value, goal], shape=shape, allowzero=int(0 in shape))

    def unsqueeze(self, value: Value, axes: Sequence[int]) -> Value:
        """Axes of one element more."""
        return self.create("Unsqueeze", [value, self.integers(axes)])

    def permute(self, value: Value, perm: Sequence[int]) -> Value:
        """Axes in another order."""
        shape = None if value.shape is None else [value.shape[k] for k in perm]
        return self.create("Transpose", [value], shape=shape, perm=list(perm))

    def filled(self, number: float, dtype: str, shape: Sequence[Size]) -> Value:
        """One number everywhere."""
        if all(isinstance(size, int) for size in shape) and math.prod(self.fixed(shape, "sizes")) <= 1 << 16:
            return self.constant(np.full(self.fixed(shape, "sizes"), number), dtype)
        return self.expand(self.constant(number, dtype), shape)

    def expand(self, value: Value, shape: Sequence[Size]) -> Value:
        """Broadcast to a shape."""
        return self.create("Expand", [value, self.writer.sizes(shape)], shape=shape)

    def folded(self, op_type: str, values: Sequence[Value]) -> Value:
        """One value after the other joined with those before."""
        out = values[0]
        for value in values[1:]:
            out = self.create(op_type, [out, value])
        return out

    def takes(self, op_type: str, inputs: Sequence[Value | None], domain: str = "") -> bool:
        """Whether ONNX's operator takes these element types."""
        return schema_of(op_type, domain).fault([dtype_of(value) for value in inputs], {}) is None

    # One-to-one names.

    def by_row(self) -> Value | list[Value]:
        """The node by its name in the operator's file. Unsupported for none, or an attribute that ONNX lacks."""
        for name, _, arguments in self.op["onnx"]:
            if arguments:
                return self._named(name, arguments.split())
        self.refuse("ONNX has no such operator, and no others that make it up")

    def _named(self, name: str, words: list[str]) -> Value | list[Value]:
        domain, _, op_type = name.rpartition(".")
        kinds = {row["name"]: row["kind"] for row in self.op["attrs"]}
        ports = [row["name"] for row in self.op["inputs"]]
        left = {row["name"]: row["default"] for row in self.op["attrs"]}
        inputs: list[Value | None] = []
        attrs: dict[str, Any] = {}
        for word in words:
            said, fixed = word.partition("=")[::2]
            ours, _, theirs = said.partition(":")
            if fixed:
                if str(self.attrs[ours]).lower() != fixed:
                    self.refuse(f"ONNX's {op_type} has {ours} = {fixed}; got {self.attrs[ours]}")
            elif word == "-":
                inputs.append(None)
            elif ours in kinds:
                attrs[theirs or ours] = attribute(self.attrs[ours], kinds[ours])
            else:
                inputs.append(self.optional(ports.index(ours)))
            left.pop(ours, None)
        if self.op["inputs"] and self.op["inputs"][-1]["variadic"]:
            inputs += self.inputs[len(inputs) :]
        for ours, preset in left.items():
            if self.attrs[ours] != preset:
                self.refuse(f"ONNX's {op_type} has no {ours}; got {self.attrs[ours]}")
        return self.typed(op_type, inputs, domain, **attrs)

    def typed(self, op_type: str, inputs: Sequence[Value | None], domain: str = "", **attrs: Any) -> list[Value]:
        """A node, computed in a wider type where ONNX lacks that of the operands and each element is by itself."""
        given = list(inputs)
        outputs: list[str | None] = [None] * len(self.dtypes)
        if op_type in ("Cast", "BitCast"):
            outputs = list(self.dtypes)
        if "elementwise" in self.op["traits"] and not self.takes(op_type, given, domain):
            narrow = dtype_of(given[-1])
            for wider in self._others(op_type, given[-1], domain):
                cast = [self.cast(v, wider) if v is not None and v.dtype == narrow else v for v in given]
                if self.takes(op_type, cast, domain):
                    made = self.writer.add(op_type, cast, attrs, outputs, self.shape, domain, self.row["name"])
                    return [self.cast(value, dtype) for value, dtype in zip(made, self.dtypes, strict=True)]
        return self.writer.add(op_type, given, attrs, outputs, self.shape, domain, self.row["name"])

    def _others(self, op_type: str, operand: Value | None, domain: str) -> Sequence[str]:
        if operand is None:
            return ()
        schema = schema_of(op_type, domain)
        truths = all(schema.kinds(letter) == {"bool"} for letter in schema.inputs)
        return ("bool",) if truths else _WIDER.get(operand.dtype, ())

    # Integers that stand for reals.

    def quantized(self, number: float, k: int) -> float:
        """A real as the integer that stands for it in input k; the number itself where that is not quantized."""
        quant = self.quants[k]
        if quant is None:
            return number
        (scale,), zero = quant["scales"], quant["zero_points"][0]
        bounds: Any = np.iinfo(numpy_type(self[k].dtype))
        steps = np.round(np.float32(number) / np.float32(scale)) + zero
        return int(np.clip(steps, bounds.min, bounds.max))


__all__ = ["MOST_ELEMENTS", "ONNX", "Array", "Call", "Size", "Value", "exports"]
