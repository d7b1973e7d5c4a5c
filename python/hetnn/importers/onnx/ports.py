"""The inputs and outputs of an ONNX model as those of a graph: what holds other values becomes several tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

from hetnn._core import Value
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.onnx.builder import HINTS, Builder
from hetnn.importers.onnx.fixed import read_size, size_name
from hetnn.importers.onnx.model import PARTS, dtype_name
from hetnn.importers.onnx.rules.sequence import MOST_ITEM_AXES
from hetnn.importers.onnx.values import AnyRank, Fork, Items, Maybe, Nothing, Records, Sizes, Tensors, Text
from hetnn.structure import Tree


class Ports:
    """Adds inputs and outputs to a graph, and says in trees (hetnn.structure) how callers pass them.

    `settled` makes a tensor of sizes, or of what one of two branches gives; `fixed` has sizes that the caller knows, by
    the model's names; with `apart`, a name speaks of one input's sizes alone.
    """

    def __init__(
        self, builder: Builder, settled: Callable[[Any, str], Any], fixed: Mapping[str, int], apart: bool
    ) -> None:
        self._builder, self._settled, self._fixed = builder, settled, fixed
        self._inputs = 0
        self._outputs = 0
        self._apart = apart
        self._named_by: dict[str, str] = {}  # the first input that has a size of a name
        self.shared = False  # whether another one has it too

    def lift(self, name: str, given: onnx.TypeProto, alone: bool = False) -> tuple[Any, Tree]:
        """An input, and how the model's caller passes it; `alone`: no size of it is another's."""
        kind = given.WhichOneof("value")
        if kind == "optional_type":
            port, there = self._inputs, self._input(f"{name}.given", "bool", [])
            value, tree = self.lift(name, given.optional_type.elem_type, alone=True)
            return Maybe(there, value), {"optional": [port, tree]}
        if kind == "sequence_type":
            return self._lift_sequence(name, given.sequence_type.elem_type)
        if kind not in ("tensor_type", "sparse_tensor_type"):
            raise Unsupported(
                f"the input '{name}' is a {kind or 'value of no type'}; hetnn takes tensors, sequences and optional "
                "values. Give its elements as inputs of their own."
            )
        tensor = getattr(given, kind)  # one that is sparse in the file is given dense
        if not tensor.HasField("shape"):
            raise InvalidModel(f"the input '{name}' has no shape. Export the model with the input's rank.")
        shape = [self._size(name, axis, dim, alone) for axis, dim in enumerate(tensor.shape.dim)]
        if tensor.elem_type == onnx.TensorProto.STRING:
            data = self._input(f"{name}.bytes", "u8", [self._builder.new_symbol(f"{name}_bytes", 0, HINTS[1])])
            spans = self._input(f"{name}.spans", "i64", shape)
            return Text(data, spans), {"text": [self._inputs - 2, self._inputs - 1]}
        if tensor.elem_type in PARTS:
            parts = [self._input(f"{name}.{part}", PARTS[tensor.elem_type], shape) for part in ("real", "imag")]
            return Complex(*parts), {"complex": [self._inputs - 2, self._inputs - 1]}
        return self._input(name, self._dtype(name, tensor), shape), {"value": self._inputs - 1}

    def _lift_sequence(self, name: str, given: onnx.TypeProto) -> tuple[Any, Tree]:
        if given.WhichOneof("value") != "tensor_type":
            raise Unsupported(f"the input '{name}' is a sequence of {given.WhichOneof('value')}; hetnn takes tensors.")
        total, count = (
            self._builder.new_symbol(f"{name}_{what}", 0, hint) for what, hint in (("elements", 64), ("length", 4))
        )
        values = self._input(f"{name}.values", self._dtype(name, given.tensor_type), [total])
        shapes = self._input(f"{name}.shapes", "i64", [count, MOST_ITEM_AXES + 1])
        sizes: tuple[int | str | None, ...] | None = None
        if given.tensor_type.HasField("shape"):
            sizes = tuple(read_size(dim) for dim in given.tensor_type.shape.dim)
        tree = {"sequence": [{"value": self._inputs - 2}, self._inputs - 1]}
        return Tensors(values, shapes, sizes), tree

    def _dtype(self, name: str, tensor: onnx.TypeProto.Tensor) -> str:
        try:
            return dtype_name(tensor.elem_type)
        except Unsupported as error:
            raise Unsupported(f"the input '{name}' has {error}.") from error

    def _input(self, name: str, dtype: str, shape: Sequence[Size]) -> Any:
        self._inputs += 1
        return self._builder.graph.add_input(name, dtype, shape)

    def _size(self, name: str, axis: int, dim: Any, alone: bool = False) -> Size:
        """A fixed size, or the symbol of a named or unnamed one; `alone`: of none that other values have."""
        size = read_size(dim)
        if isinstance(size, int):
            return size
        called = size_name(name, axis, dim)
        if called in self._fixed:
            return self._fixed[called]
        if alone:
            return self._builder.new_symbol(f"{name}_{axis}", 0, HINTS[min(axis, 1)])
        if size is not None and self._named_by.setdefault(size, name) != name and not self._apart:
            self.shared = True
        key = (name, axis) if size is None else (name, size) if self._apart else size
        symbols = self._builder.symbols
        if key not in symbols:
            symbols[key] = self._builder.new_symbol(called, 0, HINTS[min(axis, 1)])
        return symbols[key]

    def give(self, value: Any, name: str) -> Tree:
        """An output of the graph, or several where a value holds others; where they are, as hetnn.structure says."""
        if isinstance(value, Nothing):
            return {"fixed": None}
        if isinstance(value, Items):
            return {"list": [self.give(item, f"{name}.{k}") for k, item in enumerate(value.values)]}
        if isinstance(value, Maybe):
            there = self.give(value.there, f"{name}.given")["value"]
            return {"optional": [there, self.give(value.value, name)]}
        if isinstance(value, Records):
            return {"rows": [list(value.keys), self.give(value.rows, name)["value"]]}
        if isinstance(value, Text):
            parts = [self.give(value.bytes, f"{name}.bytes"), self.give(value.spans, f"{name}.spans")]
            return {"text": [part["value"] for part in parts]}
        if isinstance(value, Complex):
            parts = [self.give(value.real, f"{name}.real"), self.give(value.imag, f"{name}.imag")]
            return {"complex": [part["value"] for part in parts]}
        if isinstance(value, Tensors):
            values = self.give(value.values, f"{name}.values")
            return {"sequence": [values, self.give(value.shapes, f"{name}.shapes")["value"]]}
        if isinstance(value, AnyRank):
            values = self.give(value.values, f"{name}.values")
            return {"shaped": [values, self.give(value.shapes, f"{name}.shapes")["value"]]}
        if isinstance(value, (Sizes, Fork)):
            value = self._settled(value, name)
        self._builder.graph.output(value, name)
        self._outputs += 1
        return {"value": self._outputs - 1}


def value_names(tensors: Mapping[str, Any]) -> dict[str, str]:
    """By the model's names for its tensors, those of the values that they became; of what is one value."""
    return {name: value.name for name, value in tensors.items() if isinstance(value, Value)}
