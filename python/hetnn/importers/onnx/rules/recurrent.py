"""ONNX recurrent layers: by an operator, or step by step, one after another or in a loop where there are many steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hetnn.element_types import is_float
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.recurrent import by_operator
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.onnx.rules.activations import activate, numbers_of
from hetnn.importers.onnx.rules.call import Call, rule
from hetnn.importers.onnx.rules.late import late
from hetnn.importers.onnx.rules.looping import late_loop

# More steps are rounds of a loop, as an unknown number of them are.
_MOST_UNROLLED = 1024
# [batch, gates · hidden] of the input, the state before, and what comes of them: the next state and its companion.
_Step = Callable[[Any, Any, Any], "tuple[Any, Any]"]


def _activations(call: Call, preset: list[str]) -> list[Callable[[Any], Any]]:
    """The functions of all directions; each takes the next of the node's numbers of those names that it needs.

    `clip` bounds what those of gates read, the first two of a direction, as in onnxruntime: not a cell's state.
    """
    given = {key: iter(call.attr(f"activation_{key}") or []) for key in ("alpha", "beta")}
    most = float(call.attr("clip") or 0)

    def of(name: str, clipped: bool) -> Callable[[Any], Any]:
        taken = {key: next(given[key], None) for key in numbers_of(name) if key in given}
        numbers = {key: number for key, number in taken.items() if number is not None}
        if not clipped:
            return lambda x: activate(call, name, x, numbers)
        return lambda x: activate(call, name, call.create("clamp", [x], min=-most, max=most), numbers)

    names = call.attr("activations") or preset * 2
    return [of(name, most > 0 and k % len(preset) < 2) for k, name in enumerate(names)]


class Layer:
    """One direction of a recurrent layer: its weights, and the sequence as one product with them."""

    inner: ClassVar[int] = 2  # the axis of weights that a product sums over

    def __init__(self, call: Call, direction: int, gates: int, preset: list[str]) -> None:
        self.call = call
        for index in range(3):
            call.ranked(index, 3, 3)
        (hidden,) = call.static_shape(call[2], "a recurrent layer's recurrence", slice(self.inner, self.inner + 1))
        self.hidden = int(call.attr("hidden_size") or hidden)
        self.gates = gates
        count = len(preset)
        self.activations = _activations(call, preset)[direction * count : (direction + 1) * count]
        self.recurrence = call.entry(call[2], direction)
        bias = call.entry(call[3], direction) if call.given(3) else None
        half = gates * self.hidden
        self.input_bias = None if bias is None else self.cut(bias, 0, half)
        self.state_bias = None if bias is None else self.cut(bias, half, 2 * half)
        self.weight = call.entry(call[1], direction)

    @classmethod
    def features(cls, call: Call) -> Size:
        """The size of a row of the sequence."""
        return call.shape(1, 3)[cls.inner]

    # What an LSTM carries beside the cell: at first, at a step's begin, behind it and at last.

    def begun(self, cell: Any) -> Any:
        """What is carried, of the first cell [batch, hidden]."""
        return cell

    def entered(self, x: Any, cell: Any) -> tuple[Any, Any]:
        """What comes of the input, and the cell."""
        return x, cell

    def left(self, _: Any, cell: Any) -> Any:
        """What is carried on, of the state and the cell behind a step."""
        return cell

    def ended(self, cell: Any) -> Any:
        """The cell [batch, hidden] of what is carried."""
        return cell

    def cut(self, value: Any, start: int, end: int) -> Any:
        """Elements [start, end) of the last axis."""
        return self.call.create("slice", [value], axis=len(value.shape) - 1, start=start, end=end)

    def gate(self, value: Any, index: int, count: int = 1) -> Any:
        """The part of so many gates, [..., count · hidden], of those of all."""
        return self.cut(value, index * self.hidden, (index + count) * self.hidden)

    def add(self, *values: Any) -> Any:
        """The sum of values."""
        return self.call.folded("add", values)

    def mul(self, a: Any, b: Any) -> Any:
        """a · b"""
        return self.call.create("mul", [a, b])

    def mix(self, gate: Any, new: Any, old: Any) -> Any:
        """new + gate (old - new)"""
        return self.add(new, self.mul(gate, self.call.create("sub", [old, new])))

    def product(self, x: Any, weight: Any, bias: Any) -> Any:
        """x weightᵀ + bias; a bias of None is 0."""
        return self.call.linear(x, weight, bias)


@dataclass(frozen=True)
class _Direction:
    """One direction over a whole sequence."""

    call: Call
    layer: Layer
    step: _Step
    whole: Any  # [steps, batch, gates · hidden]
    backwards: bool

    def round(self, row: Any, place: Any, state: Any, cell: Any) -> tuple[Any, Any, Any]:
        """What a place of the sequence gives, the next state and its companion."""
        call = self.call
        new_state, new_cell = self.step(row, state, cell)
        if not call.given(4):
            return new_state, new_state, new_cell
        # Behind the end of a sequence the state stays, and the output is 0.
        inside = call.create("gt", [self.lengths(), place])
        output = call.create("where", [inside, new_state, call.like(0, state)])
        new_state = call.create("where", [inside, new_state, state])
        return output, new_state, None if cell is None else call.create("where", [inside, new_cell, cell])

    def lengths(self) -> Any:
        """Of each sequence, [batch, 1]."""
        return self.call.reshape(self.call.cast(self.call[4], "i64"), [self.whole.shape[1], 1])

    def over(self, steps: Size, state: Any, cell: Any) -> tuple[Any, Any, Any]:
        """All outputs, [steps, batch, hidden], and what comes last; as in onnxruntime 0 for a sequence of no step."""
        call = self.call
        way = self.unrolled if isinstance(steps, int) and steps <= _MOST_UNROLLED else self.looped
        y, *last = way(steps, state, cell)
        if call.given(4):
            none = call.create("eq", [self.lengths(), call.constant(0, "i64")])
            last = [x if x is None else call.create("where", [none, call.like(0, x), x]) for x in last]
        return y, last[0], last[1]

    def unrolled(self, steps: Any, state: Any, cell: Any) -> tuple[Any, Any, Any]:
        """The same, step by step."""
        call = self.call
        at: list[Any] = [None] * steps
        for t in reversed(range(steps)) if self.backwards else range(steps):
            row = call.entry(self.whole, t)
            at[t], state, cell = self.round(row, call.constant(t, "i64"), state, cell)
        return call.stacked(at, 0), state, cell

    def looped(self, steps: Size, state: Any, cell: Any) -> tuple[Any, Any, Any]:
        """The same where the number of steps is a symbol."""
        call = self.call
        count, last = (call.reshape(call.whole(size), []) for size in (steps, steps - 1))

        def round_of(given: Sequence[Any]) -> list[Any]:
            number, going, *carried = given
            place = call.create("sub", [last, number]) if self.backwards else number
            row = call.create("gather", [self.whole, place], axis=0)
            output, *behind = self.round(row, place, *carried, *[None] * (2 - len(carried)))
            return [going, *(value for value in behind if value is not None), output]

        carried = [state] if cell is None else [state, cell]
        *behind, rows = late_loop(call, count, None, carried, [{}] * len(carried), round_of)
        shape = [steps, *state.shape]
        # Of no rounds nobody knows how large they would be.
        whole = call.create("concat", [call.reshape(call.whole(size), [1]) for size in shape], axis=0)
        rows = late(call, "reshape_to", [rows, whole], len(shape), allow_zero=True)
        rows = call.create("match_shape", [rows], shape=shape)
        rows = call.create("flip", [rows], axes=[0]) if self.backwards else rows
        return rows, behind[0], behind[1] if len(behind) > 1 else None


def _operator_of(call: Call, preset: list[str]) -> str:
    """The operator that the layer is; nothing where it has other functions, peepholes, bounds or lengths of its own."""
    own = {"LSTM": not call.given(7), "GRU": bool(call.attr("linear_before_reset", 0))}
    preset_only = list(call.attr("activations") or preset) in (preset, preset * 2)
    own_way = call.given(4) or call.attr("clip") or call.attr("input_forget")
    plain = own.get(call.node.op_type, False) and preset_only and not own_way and is_float(call[0].dtype)
    return str(call.node.op_type).lower() if plain else ""


def _layers(
    call: Call,
    gates: int,
    preset: list[str],
    make: Callable[[Any, int], _Step],
    cells: bool,
    kind_of_layer: type[Layer] = Layer,
) -> list[Any]:
    x = call[0]
    turned = bool(call.attr("layout", 0))
    if turned:
        x = call.create("permute", [x], perm=[1, 0, 2])
    call.shape(0, 3)
    x = with_sizes(call, x, [None, None, kind_of_layer.features(call)])
    batches = [call.shape(k, 3)[0 if turned else 1] for k in (5, 6) if call.given(k)]
    x = with_sizes(call, x, [None, next((size for size in batches if isinstance(size, int)), None), None])
    steps, batch = x.shape[0], x.shape[1]
    kind = call.attr("direction", "forward")
    outputs, last_states, last_cells = [], [], []
    for direction in range(2 if kind == "bidirectional" else 1):
        layer = kind_of_layer(call, direction, gates, preset)
        shape = [batch, layer.hidden]

        def initial(index: int, layer: Layer = layer, direction: int = direction, shape: list[Size] = shape) -> Any:
            if not call.given(index):
                return call.broadcast_to(call.like(0, x), shape)
            given = call.create("permute", [call[index]], perm=[1, 0, 2]) if turned else call[index]
            return with_sizes(call, call.entry(given, direction), shape)

        first, backwards = (initial(5), layer.begun(initial(6)) if cells else None), kind == "reverse" or direction == 1
        op = _operator_of(call, preset)
        if op:
            states = list(first if cells else first[:1])
            biases = [bias for bias in (layer.input_bias, layer.state_bias) if bias is not None]
            given = (layer.weight, layer.recurrence, biases)
            y, state, *last = by_operator(call, op, x, *given, states, backwards)
            cell = last[0] if last else None
        else:
            whole = layer.product(x, layer.weight, layer.input_bias)
            y, state, cell = _Direction(call, layer, make(layer, direction), whole, backwards).over(steps, *first)
        outputs.append(y)
        last_states.append(state)
        last_cells.append(layer.ended(cell) if cells else None)
    y = call.stacked(outputs, 1)  # [steps, directions, batch, hidden]
    found = [call.create("permute", [y], perm=[2, 0, 1, 3]) if turned else y]
    for parts in (last_states, last_cells) if cells else (last_states,):
        value = call.stacked(parts, 0)
        found.append(call.create("permute", [value], perm=[1, 0, 2]) if turned else value)
    return found


@rule("RNN")
def _rnn(call: Call) -> list[Any]:
    def make(layer: Layer, _: int) -> _Step:
        (f,) = layer.activations
        return lambda x, h, _: (f(layer.add(x, layer.product(h, layer.recurrence, layer.state_bias))), None)

    return _layers(call, 1, ["Tanh"], make, cells=False)


@rule("GRU")
def _gru(call: Call) -> list[Any]:
    def make(layer: Layer, _: int) -> _Step:
        f, g = layer.activations
        after = bool(call.attr("linear_before_reset", 0))
        last = 2 * layer.hidden
        rows = [
            call.create("slice", [layer.recurrence], axis=0, start=a, end=b)
            for a, b in ((0, last), (last, 3 * layer.hidden))
        ]
        biases = [None, None]
        if layer.state_bias is not None:
            biases = [layer.gate(layer.state_bias, 0, 2), layer.gate(layer.state_bias, 2)]

        def step(x: Any, h: Any, _: Any) -> tuple[Any, Any]:
            both = f(layer.add(layer.gate(x, 0, 2), layer.product(h, rows[0], biases[0])))
            update, reset = layer.gate(both, 0), layer.gate(both, 1)
            if after:
                recurrent = layer.mul(reset, layer.product(h, rows[1], biases[1]))
            else:
                recurrent = layer.product(layer.mul(reset, h), rows[1], biases[1])
            return layer.mix(update, g(layer.add(layer.gate(x, 2), recurrent)), h), None

        return step

    return _layers(call, 3, ["Sigmoid", "Tanh"], make, cells=False)


@rule("LSTM")
def _lstm(call: Call) -> list[Any]:
    return lstm(call, Layer)


def lstm(call: Call, kind_of_layer: type[Layer]) -> list[Any]:
    """An LSTM, its weights as that kind of layer has them."""
    coupled = bool(call.attr("input_forget"))

    def make(layer: Layer, direction: int) -> _Step:
        f, g, h_of = layer.activations
        peephole = call.entry(call[7], direction) if call.given(7) else None

        def peeped(gate: Any, cell: Any, index: int) -> Any:
            return gate if peephole is None else layer.add(gate, layer.mul(cell, layer.gate(peephole, index)))

        def step(x: Any, h: Any, cell: Any) -> tuple[Any, Any]:
            x, cell = layer.entered(x, cell)
            gates = layer.add(x, layer.product(h, layer.recurrence, layer.state_bias))
            admitted = f(peeped(layer.gate(gates, 0), cell, 0))
            if coupled:
                kept = call.create("sub", [call.like(1, admitted), admitted])
            else:
                kept = f(peeped(layer.gate(gates, 2), cell, 2))
            new = layer.add(layer.mul(kept, cell), layer.mul(admitted, g(layer.gate(gates, 3))))
            shown = f(peeped(layer.gate(gates, 1), new, 1))
            state = layer.mul(shown, h_of(new))
            return state, layer.left(state, new)

        return step

    return _layers(call, 4, ["Sigmoid", "Tanh", "Tanh"], make, cells=True, kind_of_layer=kind_of_layer)
