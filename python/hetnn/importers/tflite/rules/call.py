"""An operator of a TFLite graph: its inputs and options, and what its rule builds with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from hetnn._core import Dim
from hetnn.element_types import numpy_type
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.building import Building
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.registry import Front, Rule
from hetnn.importers.tflite.fixed_point import rounded
from hetnn.importers.tflite.held import TO_FIRST, First, Held
from hetnn.importers.tflite.integers import LITERT, file_form, is_typed, quantized, real, reals_of, typed_attributes
from hetnn.importers.tflite.model import Array, Operator, Quantization, Tensor

TFLITE: Front[Call] = Front("tflite")
# Whether the rule of an operator takes the integers of a call, which stand for reals, as they are. To all others they
# come as reals.
INTEGERS: dict[str, Callable[[Call], bool]] = {}

# The fused activations of the schema, by number: what they bound a value to, or the operator.
_BOUNDS = {1: (0.0, math.inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
_NONE, _TANH, _SIGN_BIT = 0, 4, 5


def rule(*names: str, integers: Callable[[Call], bool] | None = None) -> Callable[[Rule[Call]], Rule[Call]]:
    """Registers a function for operators; where `integers` says so it takes quantized tensors as they are held."""
    if integers is not None:
        INTEGERS.update(dict.fromkeys(names, integers))
    return TFLITE.rule(*names)


def always(_: Call) -> bool:
    """A condition that every call meets."""
    return True


def are_typed(*indices: int) -> Callable[[Call], bool]:
    """Whether these inputs, all where none is named, and the result are of quantized types."""

    def says(call: Call) -> bool:
        inputs = [k for k in indices or range(len(call.inputs)) if call.given(k)]
        return all(map(is_typed, call.outputs)) and all(is_typed(call.tensor(k)) for k in inputs)

    return says


def at_one_scale(call: Call) -> bool:
    """Whether the first input and the result are of one quantized type."""
    return are_typed(0)(call) and call.quant(0) == call.result_quant()


# A round of a loop: whether there is another one behind it, and what it makes of the state.
LoopStep = Callable[[list[Held]], tuple[Any, list[Held]]]


class Importer(Protocol):
    """What a call needs of the importer that makes it."""

    def create(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any], name: str) -> list[Any]:
        """The outputs of a node of the graph; `name` is the model's."""

    def constant(self, array: Array, attrs: dict[str, Any] | None = None) -> Any:
        """An array as a constant; `attrs` say what its integers stand for."""

    def known(self, value: Any) -> Array | None:
        """The elements of a value where they are known now; None where they are not."""

    def permuted(self, value: Any, perm: Sequence[int], name: str) -> Any:
        """A value whose axis k is the old axis perm[k]."""

    def turned(self, held: Held, perm: Sequence[int], name: str) -> Any:
        """The same of what a tensor holds, in whichever layout."""

    def laid(self, held: Held, first: bool, name: str) -> Any:
        """What a tensor holds with channels first, or in the file's order."""

    def inline(self, subgraph: int, inputs: Sequence[Held]) -> list[Held]:
        """The outputs of a subgraph, whose nodes are added in place."""

    def on_one_side(self) -> AbstractContextManager[None]:
        """While it is open, nodes are those of one of two branches."""

    def initialize(self, subgraph: int) -> None:
        """What a subgraph writes, variables begin with."""

    def read_variable(self, name: str, tensor: Tensor) -> Held:
        """What a variable of that name holds now, as a tensor of that type."""

    def assign_variable(self, name: str, held: Held, tensor: Tensor) -> None:
        """Makes a variable hold a value from here on."""

    def found_size(self, most: int) -> Dim:
        """A symbol of at most that size to which the next node that names it gives its value."""

    def write_tensor(self, place: int, held: Held) -> None:
        """Replaces what the tensor of that number holds."""

    def loop(self, state: Sequence[Held], tensors: Sequence[Tensor], going: Any, step: LoopStep) -> list[Held]:
        """What is carried behind the last round of a loop that goes on as long as `going` says."""


class NodeMaker(Building):
    """Where nodes are made, under the name of a tensor."""

    def __init__(self, importer: Importer, label: str) -> None:
        self.importer = importer
        self.label = label

    def create_all(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any]) -> list[Any]:
        """The outputs of a node of the graph, with the model's name."""
        return self.importer.create(op, inputs, attrs, self.label)

    def constant(self, value: Any, dtype: str) -> Any:
        """Numbers as a constant of an element type."""
        return self.importer.constant(self.array(value, dtype))


class Call(NodeMaker):
    """One operator: inputs in order, None where one is absent, and options by the schema's names."""

    def __init__(
        self, importer: Importer, operator: Operator, tensors: Sequence[Tensor], inputs: Sequence[Held | None]
    ) -> None:
        self._operands = operator.inputs
        super().__init__(importer, next((tensors[place].name for place in operator.outputs), operator.name))
        self.name = operator.name
        self.inputs = list(inputs)
        self.outputs = [tensors[place] for place in operator.outputs]
        self.tensors = [None if place < 0 else tensors[place] for place in operator.inputs]
        self._options: Mapping[str, Any] = operator.options
        self.typed = False  # whether quantized tensors come, and results go, as integers

    # Inputs and options

    def option(self, name: str, default: Any = 0) -> Any:
        """What the file says; what is left out is 0, as in the schema."""
        return self._options.get(name, default)

    def given(self, index: int) -> bool:
        """Whether there is an input of that number."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def held(self, index: int, handle: bool = False) -> Held:
        """What stands for an input; `handle`: of a variable too."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise InvalidModel(f"it needs input {index}, which is absent")
        if found.variable and not handle:
            raise InvalidModel(f"input {index} is a variable, not its value")
        return found

    def tensor(self, index: int) -> Tensor:
        """What the file says of an input."""
        self.held(index)
        found = self.tensors[index]
        assert found is not None
        return found

    def __getitem__(self, index: int) -> Any:
        """An input that must be there, as the file lays it out."""
        return self.importer.laid(self.held(index), False, self.label)

    def first(self, index: int) -> Any:
        """An input of rank 4 with its channels first."""
        self.ranked(index, 4)
        return self.importer.laid(self.held(index), True, self.label)

    def write(self, index: int, value: Any) -> None:
        """Gives the variable tensor that is an input a new value."""
        tensor = self.tensor(index)
        if not tensor.is_variable:
            raise InvalidModel(f"input {index} is a state, which must be a variable tensor")
        if tensor.quant is not None:
            value = quantized(self, value, tensor)
        self.importer.write_tensor(self._operands[index], Held(tensor.quant, None, {False: value}))

    def is_first(self, index: int) -> bool:
        """Whether an input was made with its channels first."""
        return self.held(index).made_first

    def in_its_layout(self, index: int) -> tuple[Any, bool]:
        """An input as it was made, and whether its channels are first."""
        first = self.is_first(index)
        return (self.first(index) if first else self[index]), first

    def placed(self, value: Any, first: bool) -> Any:
        """A result whose channels are first, or one as the file lays it out."""
        return First(value) if first else value

    def mapped(self, value: Any, function: Callable[[Any], Any]) -> Any:
        """What a function makes of a result, in its layout."""
        return First(function(value.value)) if isinstance(value, First) else function(value)

    def rank(self, index: int) -> int:
        """How many axes an input has."""
        held = self.held(index)
        if held.array is not None:
            return held.array.ndim
        return len(next(iter(held.values.values())).shape)

    def ranked(self, index: int, least: int, most: int | None = None) -> int:
        """The rank of an input, which must be in a range: `least` where `most` is not given."""
        rank, most = self.rank(index), least if most is None else most
        if not least <= rank <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise InvalidModel(f"input {index} has rank {rank}; its rank must be {wanted}")
        return rank

    def shape(self, index: int) -> list[Size]:
        """The shape of an input as the file lays it out."""
        held = self.held(index)
        if held.array is not None:
            return list(held.array.shape)
        if False in held.values:
            return list(held.values[False].shape)
        n, c, h, w = held.values[True].shape
        return [n, h, w, c]

    def known(self, index: int) -> Array | None:
        """An input's numbers as in the file, where they are known."""
        return self.held(index).array if self.given(index) else None

    def found_size(self, most: int) -> Any:
        """A symbol to which the next node that names it gives a value when the model runs."""
        return self.importer.found_size(most)

    def sizes(self, index: int, called: str) -> list[Size]:
        """As `integers`, of which some may depend on open sizes."""
        array = self.known(index)
        if array is not None and array.dtype == object:
            return list(array.reshape(-1).tolist())
        return list(self.integers(index, called))

    def integers(self, index: int, called: str) -> list[int]:
        """The integers in an input. Unsupported where they are computed when the model runs."""
        array = self.known(index)
        if array is not None and array.dtype == object:
            raise Unsupported(f"{called} depends on a size that the file leaves open")
        if array is None:
            self.held(index)
            raise Unsupported(f"{called} is computed when the model runs; it must be known when compiling")
        if array.dtype.kind not in "iub":
            raise InvalidModel(f"{called} must be integers; got {array.dtype}")
        return [int(number) for number in array.reshape(-1)]

    def integer(self, index: int, called: str) -> int:
        """The one integer in an input. InvalidModel where there are several; Unsupported where it is not known."""
        found = self.integers(index, called)
        if len(found) != 1:
            raise InvalidModel(f"{called} must be one integer; got {len(found)}")
        return found[0]

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front. InvalidModel where the rank does not have it."""
        if not -rank <= axis < rank:
            raise InvalidModel(f"axis {axis} of a tensor of rank {rank}")
        return axis % rank

    def axes(self, index: int, rank: int) -> list[int]:
        """Axes in an input, counted from the front."""
        return [self.axis(axis, rank) for axis in self.integers(index, "axes")]

    # Integers that stand for reals

    def held_quant(self, index: int) -> dict[str, Any]:
        """What the integers of an input stand for, as they are held."""
        tensor = self.tensor(index)
        return typed_attributes(tensor.quant, tensor.dtype)

    def q(self) -> dict[str, Any]:
        """Attributes of a node that gives the result: how it is quantized, nothing where it is not."""
        tensor = self.outputs[0]
        return {**typed_attributes(tensor.quant, tensor.dtype), **LITERT} if self.typed else {}

    def quant(self, index: int) -> Quantization | None:
        """What the integers of an input stand for."""
        return self.held(index).quant

    def result_quant(self, output: int = 0) -> Quantization | None:
        """What the integers of an output stand for; None where they are themselves."""
        return self.outputs[output].quant

    def real_number(self, index: int) -> float:
        """The one number that an input stands for. Unsupported where it is computed when the model runs."""
        array, quant = self.known(index), self.quant(index)
        if array is None or array.size != 1:
            raise Unsupported("a number that is computed when the model runs")
        return float((array if quant is None else reals_of(array, quant)).reshape(-1)[0])

    def of_scale(self, value: Any, quant: Quantization | None) -> Any:
        """Integers of an input as those that stand for the same in the result."""
        tensor = self.outputs[0]
        if quant is None or tensor.quant is None or quant == tensor.quant:
            return value
        return quantized(self, real(self, value, quant), tensor)

    # What rules build with

    def typed_constant(self, array: Array, attrs: dict[str, Any] | None) -> Any:
        """A constant of integers that stand for reals; of plain numbers without attributes."""
        return self.importer.constant(array, attrs)

    def known_of(self, value: Any) -> Array | None:
        """What is known of a value that a rule made."""
        return self.importer.known(value)

    def of_array(self, array: Array) -> Held:
        """Numbers as a result."""
        return Held(None, array, {})

    def plain(self, value: Any, index: int) -> Any:
        """A value of an input as integers that stand for nothing, in the file's element type."""
        return file_form(self, value, self.tensor(index), plain=True)

    def flat_constant(self, index: int) -> Any:
        """The numbers of a known input in one row; integers keep what they stand for."""
        held = self.held(index)
        assert held.array is not None
        return self.importer.turned(Held(held.quant, held.array.reshape(-1), {}), [0], self.label)

    def turned(self, index: int, perm: Sequence[int]) -> Any:
        """An input with its axes in another order; a constant of integers keeps what they stand for."""
        return self.importer.turned(self.held(index), perm, self.label)

    def permuted(self, value: Any, perm: Sequence[int]) -> Any:
        """A value whose axis k is the old axis perm[k]."""
        return self.importer.permuted(value, perm, self.label)

    def meeting(self, indices: Sequence[int]) -> tuple[list[Any], bool]:
        """Inputs that broadcast with one another in one layout, and whether that has the channels first.

        That is so where one of rank 4 was made so; those of lower rank get axes in front.
        """
        if any(self.is_first(k) for k in indices) and max(map(self.rank, indices)) == 4:
            return [self._first_of_any(k) for k in indices], True
        return [self[k] for k in indices], False

    def _first_of_any(self, index: int) -> Any:
        rank = self.rank(index)
        if rank == 4:
            return self.first(index)
        held = self.held(index)
        if rank == 0:
            return self[index]
        if held.array is not None:
            wide = held.array.reshape([*[1] * (4 - rank), *held.array.shape])
            return self.importer.turned(Held(held.quant, wide, {}), TO_FIRST, self.label)
        value = self[index]
        return self.permuted(self.reshape(value, [*[1] * (4 - rank), *value.shape]), TO_FIRST)

    def activated(self, value: Any) -> Any:
        """A value behind the activation that the operator has fused, if any."""
        return self.activation(value, self.option("FusedActivationFunction"))

    def activation(self, value: Any, number: int) -> Any:
        """What an activation, by its number in the schema, makes of a value."""
        if number == _NONE:
            return value
        if number in _BOUNDS:
            return self.bounded(value, *_BOUNDS[number])
        if number == _TANH:
            return self.create("tanh", [value])
        if number == _SIGN_BIT:
            raise Unsupported("the fused activation SIGN_BIT")
        raise InvalidModel(f"the fused activation {number}, which the schema lacks")

    def bounded(self, value: Any, low: float, high: float) -> Any:
        """A value within bounds, of a quantized type where they cut any of its integers."""
        q = self.q()
        if q:
            scale, zero = np.float32(q["q_scale"][0]), q["q_zero"]
            ends = rounded(np.array([low, high], np.float32) / scale) + zero
            limits = np.iinfo(numpy_type(value.dtype))
            if ends[0] <= limits.min and ends[1] >= limits.max:
                return value
            # On a tie the integer that the bound is rounded to says what it is.
            low, high = (
                bound if np.rint(np.float32(bound) / scale) + zero == end else float(scale) * float(end - zero)
                for bound, end in zip((low, high), ends, strict=True)
            )
        if (low, high) == (0.0, math.inf):
            return self.create("relu", [value], **q)
        return self.create("clamp", [value], min=low, max=high, **q)


def static(shape: Sequence[Size], what: str) -> list[int]:
    """Sizes that are known. Unsupported where one is a symbol."""
    sizes = [size for size in shape if isinstance(size, int)]
    if len(sizes) != len(shape):
        raise Unsupported(f"{what} of the symbolic shape {list(shape)}")
    return sizes
