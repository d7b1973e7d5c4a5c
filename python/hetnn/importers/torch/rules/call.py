"""A call of a torch overload: its arguments, and what its rule builds with."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import sympy
import torch

from hetnn._core import Dim, Value
from hetnn.element_types import NUMPY, TYPES
from hetnn.errors import Unsupported
from hetnn.importers.lowering.building import BROADCASTING, Building
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import MOST, WHOLE_END, Size, broadcast
from hetnn.importers.registry import Front, Row, Rule
from hetnn.importers.torch.reading import place_of

if TYPE_CHECKING:
    from hetnn import _core
    from hetnn.importers.lowering.loop_body import Body, BodyInput
    from hetnn.importers.torch.symbols import Symbols

DTYPES: dict[torch.dtype, str] = {getattr(torch, row.torch): row.name for row in TYPES if hasattr(torch, row.torch)}

# The types of complex numbers, by that of their parts.
PARTS = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}

_HALVES = ("f16", "bf16")
_NUMBERS = (bool, int, float)
TORCH: Front[Call] = Front("torch")


def rule(*overloads: str) -> Callable[[Rule[Call]], Rule[Call]]:
    """Registers a function for aten overloads."""
    return TORCH.rule(*(f"aten.{overload}" for overload in overloads))


def found_symbols(node: torch.fx.Node) -> list[Any]:
    """The sizes that come out of the values that a node reads, without places in memory, which nothing here has."""
    bindings = node.meta.get("unbacked_bindings") or {}
    return [
        symbol
        for symbol, path in bindings.items()
        if symbol.is_integer and not (path and getattr(path[-1], "name", "") == "storage_offset")
    ]


def _arguments(node: torch.fx.Node) -> dict[str, Any]:
    """Those of an overload by name, defaults among them."""
    schema: Any = node.target._schema  # type: ignore[union-attr]
    out = {}
    for place, argument in enumerate(schema.arguments):
        default = argument.default_value if argument.has_default_value() else None
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name, default)
        out[argument.name] = list(value) if isinstance(value, (list, tuple)) else value
    return out


class Importer(Protocol):
    """What a call needs of the importer that makes it."""

    builder: _core.GraphBuilder

    @property
    def symbols(self) -> Symbols:
        """Of the sizes of the program."""

    def new_size(self, low: int, high: int) -> Dim:
        """A symbol within [low, high] to which the next node that names it gives its value."""

    def has_values(self, symbols: Iterable[Any]) -> bool:
        """Whether each of torch's symbols is a size or a real of the graph."""

    def number(self, expr: Any) -> Any:
        """A number or truth that depends on sizes, as a value of rank 0."""

    def random(self, shape: Sequence[Size], node: torch.fx.Node) -> Any:
        """Numbers of [0, 1) in f32, by a generator of the node's own."""

    def argument(self, value: Any) -> Any:
        """What stands for an argument of a node: values, sizes, and lists of those."""

    def body(self, module: torch.fx.GraphModule, values: Sequence[Any], asks: bool = True) -> list[Any]:
        """The outputs of a module of the program, whose nodes are added in place; `asks`: with its conditions."""

    def loop_body(
        self, inputs: Sequence[BodyInput], build: Callable[[Sequence[Any]], list[Any]]
    ) -> tuple[Body, list[Any]]:
        """The body of a loop: what `build` makes of inputs of these types, and the values that it gives."""


def type_name(dtype: torch.dtype) -> str:
    """hetnn's name of an element type. Unsupported for those that it lacks."""
    if dtype not in DTYPES:
        raise Unsupported(f"the model uses {dtype}, which hetnn does not have.")
    return DTYPES[dtype]


def cast_attributes(dtype: str) -> dict[str, Any]:
    """How torch casts: of the floats of 8 bits e4m3fn alone keeps what is too large at its greatest, the others make it
    inf or NaN; e8m0 rounds to the nearest."""
    if not dtype.startswith("f8"):
        return {"to": dtype}
    return {"to": dtype, "saturate": dtype == "f8e4m3fn", "round_mode": "nearest"}


class Call(Building):
    """One node of the exported program: its arguments by name (values, numbers, dims), and what to build with."""

    def __init__(
        self, importer: Importer, node: torch.fx.Node, target: str, names: Sequence[str], args: dict[str, Any]
    ) -> None:
        self._importer = importer
        self._node = node
        self.target = target
        self.names = names
        self.args = args
        self.of_part = False  # of complex numbers: their real or imaginary parts alone

    def cast(self, value: Any, dtype: str) -> Any:
        """The value in an element type, as torch rounds; itself where it has that already."""
        return value if value.dtype == dtype else self.create("cast", [value], **cast_attributes(dtype))

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    @property
    def arguments(self) -> list[Any]:
        """Those of an operator without names: values, dims and bodies in their places."""
        return [self._importer.argument(argument) for argument in self._node.args]

    def body(self, module: torch.fx.GraphModule, values: Sequence[Any], asks: bool = True) -> list[Any]:
        """What a body of control flow makes of its inputs, as nodes of the graph; without `asks` it may be one that is
        not taken, so that its conditions need not hold."""
        return self._importer.body(module, values, asks)

    def loop_body(
        self, inputs: Sequence[BodyInput], build: Callable[[Sequence[Any]], list[Any]]
    ) -> tuple[Body, list[Any]]:
        """What `build` makes of inputs of these types, as a body, and the values that it gives."""
        return self._importer.loop_body(inputs, build)

    def number(self, index: int) -> Size | None:
        """An output that is no tensor but a size."""
        value = self._node.meta["val"][index]
        return self._importer.symbols.dim(value) if isinstance(value, torch.SymInt) else None

    def expression(self, name: str) -> Any:
        """What torch knows of an argument that is a number of sizes (sympy), with nothing in it replaced by what torch
        learned from conditions; None where it is another."""
        place = self.names.index(name)
        given = self._node.args[place] if place < len(self._node.args) else self._node.kwargs.get(name)
        given = given.meta.get("val") if isinstance(given, torch.fx.Node) else given
        if isinstance(given, (bool, int)):
            return sympy.sympify(given)
        return given.node._expr if isinstance(given, (torch.SymBool, torch.SymInt)) else None

    def is_known(self, expr: Any) -> bool:
        """Whether all symbols of an expression have values here; those of places in memory have none."""
        return self._importer.has_values(expr.free_symbols)

    def truth(self, expr: Any) -> Size | None:
        """A condition (sympy) of integers as a size that is 1 where it holds, else 0; None where it is one of reals."""
        return self._importer.symbols.truth(expr)

    def number_of(self, expr: Any) -> Any:
        """A number or truth that depends on sizes (sympy), as a value of rank 0."""
        return self._importer.number(expr)

    def is_found(self, size: Size) -> bool:
        """Whether a size is one that comes out of the values that the call reads."""
        return size in map(self._importer.symbols.expression, found_symbols(self._node))

    def _meta(self, index: int = 0) -> torch.Tensor:
        value = self._node.meta["val"]
        found = value[index] if isinstance(value, (tuple, list)) else value
        assert isinstance(found, torch.Tensor)
        return found

    def dtype(self, index: int = 0) -> str:
        """The element type that torch computed for an output; of complex numbers that of their parts."""
        dtype = self._meta(index).dtype
        return type_name(PARTS.get(dtype, dtype) if self.of_part else dtype)

    def torch_dtype(self, index: int = 0) -> torch.dtype:
        """The element type of an output as torch calls it."""
        return self._meta(index).dtype

    @property
    def makes_complex(self) -> bool:
        """Whether an output holds complex numbers."""
        value = self._node.meta.get("val")
        found = value if isinstance(value, (tuple, list)) else [value]
        return any(isinstance(one, torch.Tensor) and one.is_complex() for one in found)

    def part(self, args: dict[str, Any]) -> Call:
        """The same call on one part of complex numbers."""
        part = Call(self._importer, self._node, self.target, self.names, args)
        part.of_part = True
        return part

    def shape(self, index: int = 0) -> list[Size]:
        """The shape that torch computed for an output, as dims."""
        return [self._importer.symbols.dim(size) for size in self._meta(index).shape]

    def spans(self, start: str, end: str, axis: int) -> bool:
        """Whether the result is as long along an axis as from one argument to the other, negative integers counted
        from the back: torch proves from the model's ranges that both lie inside."""
        cut: Any = self._node.args[0]
        size = self._size_of(cut.meta["val"].shape[axis])
        low, high = (self._size_given(name, size) for name in (start, end))
        made = self._size_of(self._meta().shape[axis])
        if low is None or high is None or sympy.expand(high - low - made) != 0:
            return False
        return bool(low.is_nonnegative) or sympy.expand(low - size).is_Integer

    def _size_given(self, name: str, size: Any) -> Any:
        """A place along an axis of a size among the arguments, 0 where it is left out; None where it is no size."""
        place = self.names.index(name)
        given = self._node.args[place] if place < len(self._node.args) else self._node.kwargs.get(name)
        given = given.meta.get("val") if isinstance(given, torch.fx.Node) else 0 if given is None else given
        if not isinstance(given, (int, torch.SymInt)):
            return None
        if isinstance(given, int) and given >= WHOLE_END:
            return size
        return size + given if isinstance(given, int) and given < 0 else self._size_of(given)

    def _size_of(self, size: Any) -> Any:
        return size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(int(size))

    @property
    def finds_sizes(self) -> bool:
        """Whether sizes come out of the values that the call reads."""
        return bool(found_symbols(self._node))

    def found_size(self) -> Size:
        """The symbol of the one size that comes out of the values that the call reads. Where torch knows the size
        otherwise, a new symbol: what has it is reshaped to the shape that torch computed."""
        found = [self._importer.symbols.expression(symbol) for symbol in found_symbols(self._node)]
        return found[0] if len(found) == 1 else self.new_size(0, MOST)

    def new_size(self, low: int, high: int) -> Dim:
        """A symbol within [low, high] to which the next node that names it gives its value."""
        return self._importer.new_size(low, high)

    def random(self, shape: Sequence[Size]) -> Any:
        """f64 drawn evenly from [0, 1), by a generator of the call's own."""
        return self._importer.random(shape, self._node)

    def broadcast(self, *values: Any) -> list[Any]:
        """The values expanded to the shape to which all broadcast."""
        shape: list[Any] = []
        for value in values:
            shape = broadcast(shape, value.shape)
        return [v if list(v.shape) == shape else self.create("expand", [v], shape=shape) for v in values]

    def is_tuple(self) -> bool:
        """Whether the call has several outputs, or one in a tuple."""
        return isinstance(self._node.meta["val"], (tuple, list))

    def reads(self, index: int) -> bool:
        """Whether anything reads that one of several outputs."""
        return any(user.args[1] == index for user in self._node.users)

    def made_with(self, name: str, overload: str, index: int) -> bool:
        """Whether an argument is that output of an aten overload of which all arguments are this call's own, too."""
        given = self._node.args[self.names.index(name)]
        maker = given.args[0] if isinstance(given, torch.fx.Node) and given.target is operator.getitem else None
        if not isinstance(maker, torch.fx.Node) or not isinstance(given, torch.fx.Node) or given.args[1] != index:
            return False
        if str(maker.target) != f"aten.{overload}":
            return False
        its, own = (_arguments(node) for node in (maker, self._node))
        return all(name in own and own[name] == value for name, value in its.items())

    def tensors(self) -> list[Any]:
        """The arguments, numbers as tensors of the last tensor's type."""
        given = list(self.args.values())
        dtype = [x.dtype for x in given if hasattr(x, "dtype")][-1]
        return [x if hasattr(x, "dtype") else self.constant(x, dtype) for x in given]

    def filled(self, value: Any) -> Any:
        """A tensor of the result's type and shape that holds one value."""
        shape = self.shape()
        one = self.constant(value, self.dtype())
        return self.create("expand", [one], shape=shape) if shape else one

    def filled_part(self, value: Any) -> Any:
        """Of complex numbers one part that holds one value."""
        return self.part({}).filled(value)

    def by_row(self, row: Row) -> Any:
        """What a one-to-one name means: arguments in order become inputs and attributes."""
        inputs: dict[str, Any] = {}
        attrs: dict[str, Any] = {}
        kinds = row.attr_kinds
        for name, text in (entry.split("=") for entry in row.arguments if "=" in entry):
            attrs[name] = text == "true" if kinds[name] == "bool" else text
        places = [entry for entry in row.arguments if "=" not in entry]
        for place, name in zip(self.names, places, strict=False):
            value = self.args[place]
            if name == "-" or value is None:
                continue
            if name in kinds:
                if hasattr(value, "dtype"):
                    raise Unsupported(f"'{name}' is a number that depends on sizes; it must be known when compiling")
                attrs[name] = type_name(value) if kinds[name] == "dtype" else value
            else:
                inputs[name] = value
        given = [inputs.get(name) for name in row.inputs]
        if row.elementwise:
            return self.elementwise(row.op["name"], given, attrs)
        outputs = self.create_all(row.op["name"], given, attrs)
        return outputs[0] if len(outputs) == 1 else outputs

    def create_all(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any]) -> list[Any]:
        """The outputs of a node of the graph, with the line of the model's code; sizes that meet are taken as equal."""
        if op in BROADCASTING and len(inputs) > 1:
            inputs = self._met(inputs)
        elif op == "expand":
            inputs = [self._met_with(inputs[0], attrs["shape"])]
        scope, file, line = place_of(self._node)
        return list(self._importer.builder.create(op, list(inputs), attrs, self._node.name, scope, file, line))

    def _met(self, values: Sequence[Any]) -> Sequence[Any]:
        """The values with one text for sizes that meet, of which torch has checked or checks that they are equal."""
        shapes = [list(value.shape) for value in values]
        if all(shape == shapes[0] for shape in shapes[1:]):
            return values
        shape: list[Size] = [1] * max(map(len, shapes))
        for axis in range(-len(shape), 0):
            here = [sizes[axis] for sizes in shapes if -axis <= len(sizes) and sizes[axis] != 1]
            known = [size for size in here if isinstance(size, int)]
            shape[axis] = (known or here or [1])[0]
        return [self._met_with(value, shape) for value in values]

    def _met_with(self, value: Any, shape: Sequence[Size]) -> Any:
        """The value with the sizes of a shape to which it broadcasts, where it has symbols for them."""
        meeting = list(shape)[len(shape) - len(value.shape) :]
        return with_sizes(self, value, [None if size == 1 else size for size in meeting])

    def elementwise(self, op: str, values: Sequence[Any], attrs: dict[str, Any] | None = None) -> Any:
        """An elementwise operator on operands in torch's common type. With a number that a half type would round, torch
        computes in f32 and rounds the result alone; for sums and differences it rounds the number."""
        compare = self.dtype() == "bool"
        if compare and op.startswith("bitwise_"):  # of booleans, which rewrites know by the logical operators
            op = op.replace("bitwise", "logical")
        sizes = any(isinstance(value, Dim) for value in values)
        if (
            not compare
            and not sizes
            and op not in ("add", "sub")
            and self.dtype() in _HALVES
            and (any(self._is_rounded(value) for value in values) or self._reads_real())
        ):
            wide = [self.constant(v, "f32") if isinstance(v, _NUMBERS) else self.cast(v, "f32") for v in values]
            return self.cast(self.create(op, wide, **(attrs or {})), self.dtype())
        return self.create(op, self.promote(values, compare), **(attrs or {}))

    def _reads_real(self) -> bool:
        """Whether an argument is a real that depends on sizes."""
        return any(isinstance(node.meta.get("val"), torch.SymFloat) for node in self._node.all_input_nodes)

    def _is_rounded(self, value: Any) -> bool:
        if not isinstance(value, _NUMBERS):
            return False
        return self.dtype() not in NUMPY or float(np.float64(value).astype(NUMPY[self.dtype()])) != float(value)

    def constant(self, value: Any, dtype: str) -> Any:
        """Numbers as a constant of an element type; what depends on sizes as a value that each run computes."""
        if isinstance(value, Dim):
            return self.cast(self.reshape(self.whole(value), []), dtype)
        if isinstance(value, Value):
            return self.cast(value, dtype)
        return self._importer.builder.constant(self.array(value, dtype))

    def promote(self, values: Sequence[Any], compare: bool = False) -> list[Any]:
        """Operands in one element type: torch's promotion for comparisons, else the result's own type."""
        wanted = self.common(values) if compare else self.dtype()
        out = []
        for value in values:
            out.append(None if value is None else self.constant(value, wanted))
        return out

    def common(self, values: Sequence[Any]) -> str:
        """The element type in which torch computes with tensors and numbers together."""
        names = {name: dtype for dtype, name in DTYPES.items()}
        tensors = [torch.empty((1,) * len(v.shape), dtype=names[v.dtype]) for v in values if hasattr(v, "dtype")]
        scalars = [v for v in values if isinstance(v, _NUMBERS)]
        result = tensors[0].dtype
        for other in [*tensors[1:], *scalars]:
            result = torch.result_type(torch.empty((1,), dtype=result), other)
        return type_name(result)
