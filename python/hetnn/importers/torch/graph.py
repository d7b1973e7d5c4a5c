"""From a torch ExportedProgram to a graph."""

from __future__ import annotations

import operator
from collections import ChainMap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from hetnn import _core
from hetnn._core import Dim
from hetnn.arrays import odd_kind
from hetnn.element_types import array_of
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers import Imported
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.lacking import lacking
from hetnn.importers.lowering.loop_body import Body, BodyInput, Recording
from hetnn.importers.lowering.random_numbers import initial_state
from hetnn.importers.lowering.sizes import MOST, Size, likely_size
from hetnn.importers.lowering.updates import Optimizer, Updates, require_finite
from hetnn.importers.torch.decompositions import beyond_rules, decomposed, decompositions, knows
from hetnn.importers.torch.numbers import Numbers
from hetnn.importers.torch.program import inlined
from hetnn.importers.torch.reading import (
    expanded,
    in_place,
    is_readable,
    place_of,
    refuse_shared_states,
    refuse_training,
    sharing,
)
from hetnn.importers.torch.rules import DTYPES, Call
from hetnn.importers.torch.rules.call import PARTS, TORCH, cast_attributes, found_symbols
from hetnn.importers.torch.rules.complexes import complex_call, is_complex
from hetnn.importers.torch.rules.conditions import CONDITIONS, values_must_hold
from hetnn.importers.torch.signature import Signature, fixed
from hetnn.importers.torch.symbols import Symbols, own_name
from hetnn.progress import announce
from hetnn.structure import Tree

# Check what the types of a graph's values say, or what the operators before check themselves.
_VANISH = {
    "aten._assert_tensor_metadata.default",
    "aten._linalg_check_errors.default",
}


def _is_number_of_sizes(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.SymFloat)


def import_exported_program(
    program: ExportedProgram, *, functional: bool = False, optimizer: Optimizer | None = None
) -> Imported:
    """The graph of an exported program: what rows and rules read stays whole, parameters and buffers are constants.

    functional: torch has decomposed the program as far as rules need, and what behaves as in training is meant to.
    optimizer: of a joint graph, what becomes of parameters by their gradients: they are states.
    Unsupported lists every operator that hetnn lacks with the model's own source lines, in one error.
    """
    signature = Signature(program)
    if functional:
        importer = _Importer(program, signature, inlines=True)
        importer.convert()
        return importer.finish(optimizer)
    whole = inlined(program)
    refuse_training(whole)
    importer = _Importer(whole, signature)
    if is_readable(whole, knows) and importer.reads_all():
        return importer.finish()
    refuse_shared_states(whole)
    apart: set[str] = set()
    while True:
        rest, held = decomposed(program, apart)
        if held and apart:
            return importer.finish()  # refuses, with the rules' reasons
        if held:
            raise Unsupported(
                f"torch decomposes an operator of the model for sizes alone that fulfil {', '.join(held)}, as the "
                "example's do. Export the model with those sizes fixed."
            )
        importer = _Importer(rest, signature)
        importer.convert()
        refused = {name for name in importer.refused if name not in apart and name in decompositions()}
        if not refused:
            return importer.finish()
        apart |= refused  # what a rule does not take, torch may still decompose into what others do


class _Importer:
    def __init__(self, program: ExportedProgram, signature: Signature, inlines: bool = False) -> None:
        self._program = program
        self._signature = signature
        self._inlines = inlines  # puts decompositions where a rule refuses; else the caller decomposes the program
        self._inputs: list[Tree] = []
        self.builder: Any = _core.GraphBuilder("main")
        self.symbols = Symbols(self._computed_size)
        self._computed: ChainMap[Any, Dim] = ChainMap()  # sizes that nodes compute, by their expressions
        self._reals: dict[Any, Any] = {}  # values of the symbols of reals
        self._at: torch.fx.Node | None = None  # that is converted now
        self._values: dict[torch.fx.Node, Any] = {}
        self._names: dict[str, str] = {}  # of the values, by nodes of the program
        self._problems: dict[str, list[str]] = {}
        self._names_of_symbols: set[str] = set()
        self._bodies: dict[Any, torch.fx.GraphModule | None] = {}  # of decomposed calls
        self._new_sizes = 0
        self._inputs_so_far = 0
        self._states: dict[str, Any] = {}  # of a buffer: its value before
        self._trains = False  # whether it is a joint graph
        self._given_sizes: list[torch.fx.Node] = []  # inputs that are sizes
        self._initial: dict[str, np.ndarray[Any, Any]] = {}  # of an input that is a state
        self._ports: dict[str, int] = {}  # of an input: its place
        self._generators: list[tuple[Any, np.ndarray[Any, Any]]] = []  # the next state of each, and its first one
        self._written: list[list[int]] = []  # an input and the output that is written into it
        self._missing: set[torch.fx.Node] = set()  # not imported, or read from what is not
        self._asks = True  # whether the conditions of the nodes must hold
        self.refused: set[str] = set()  # overloads in calls that their rules do not take

    def convert(self) -> None:
        self._declare_symbols()
        self._inputs = self._lift_inputs()
        for node in self._given_sizes:
            self._name_size(node)
        self._require_sizes()
        for k, node in enumerate(self._program.graph.nodes):
            if node.op == "call_function":
                announce(k, len(self._program.graph.nodes))
                self._convert(node)
                made: Any = self._values.get(node)
                if hasattr(made, "dtype"):
                    self._names[node.name] = made.name  # of what it is now; what is written into it gives another

    def reads_all(self) -> bool:
        """Converts a program as it is, and says whether nothing in it is unknown."""
        try:
            self.convert()
        except (Unsupported, InvalidModel):
            return False
        return not self._problems

    def finish(self, optimizer: Optimizer | None = None) -> Imported:
        if self._problems:
            raise lacking(self._problems)
        gradients = self._gradients() if optimizer else {}
        outputs = self._finish()
        if optimizer:
            optimizer(Updates(self.builder, self._state_of, self._keep), gradients)
        signature = {**self._signature.inputs(self._inputs), "outputs": self._signature.outputs(outputs)}
        if self._written:
            signature["written"] = self._written
        graph = self.builder.finish()
        return Imported(graph, signature, self._signature.classes, program=self._program, values=self._names)

    # Symbols and inputs

    def _declare_symbols(self) -> None:
        """The symbols that are the size of an axis; then those of which sizes are only a multiple, `4*h`."""
        taken: set[Any] = set()
        inputs = [node.meta.get("val") for node in self._program.graph.nodes if node.op == "placeholder"]
        sized: list[tuple[torch.Tensor, Any]] = [
            (value, size)
            for value in inputs
            if isinstance(value, torch.Tensor)
            for size in value.shape
            if isinstance(size, torch.SymInt)
        ]
        for value, size in sorted(sized, key=lambda one: not one[1].node.expr.is_Symbol):
            for symbol in sorted(size.node.expr.free_symbols - taken, key=str):
                taken.add(symbol)
                low, high = self._range(symbol, 1, 2**31 - 1)
                low, high = max(low, 0), min(high, 2**31 - 1)
                itself = symbol == size.node.expr
                hint = size.node.hint if itself and size.node.has_hint() else None
                name = own_name(symbol, value)
                if low == 2 and name == str(symbol):
                    low = self._least(symbol)  # torch notes 2 where nobody gave an axis a range, and lets any pass
                if name in self._names_of_symbols:
                    name = str(symbol)
                self._names_of_symbols.add(name)
                self._declare(symbol, name, low, high, int(hint) if hint is not None else max(low, 1))

    def _require_sizes(self) -> None:
        """Has a run end whose sizes are not such as torch exported the program for."""
        conditions = self._signature.conditions(self._program, self.symbols.dim)
        if conditions:
            texts, holds = zip(*conditions, strict=True)
            told = {"holds": list(holds), "demand": "; ".join(texts)}
            self.builder.create("require_sizes", [], told, "sizes", "", "", 0)

    def _declare(self, symbol: Any, name: str, low: int, high: int, hint: int) -> None:
        self.symbols.declare(symbol, name, low, high, hint)
        self.builder.add_symbol(name, low, high, hint)

    def _range(self, symbol: Any, low: int, high: int) -> tuple[int, int]:
        """What torch knows of a symbol's value; the given bounds where it knows none."""
        bounds = self._program.range_constraints.get(symbol)
        if bounds is None:
            return low, high
        return (
            int(bounds.lower) if bounds.lower.is_Integer else low,
            int(bounds.upper) if bounds.upper.is_Integer else high,
        )

    def _least(self, symbol: Any) -> int:
        """Of a symbol that is no axis by itself: what the bounds of the sizes leave that it makes, as `2*k >= 4`."""
        least = 0
        for size, bounds in self._program.range_constraints.items():
            if size.free_symbols != {symbol} or size == symbol or not bounds.lower.is_Integer:
                continue
            factor, offset = size.coeff(symbol), size.subs(symbol, 0)
            if factor.is_Integer and factor > 0 and size == factor * symbol + offset:
                least = max(least, -((int(offset) - int(bounds.lower)) // int(factor)))
        return least

    def _declare_found(self, node: torch.fx.Node) -> None:
        """The sizes that come out of the values that a node reads. Costs are predicted at their bounds."""
        for symbol in found_symbols(node):
            low, high = self._range(symbol, -MOST, MOST)
            if "masked_select" in str(node.target):  # torch forgets that the mask may be larger
                high = MOST
            self._declare(symbol, str(symbol), low, high, likely_size(low, high))

    def new_size(self, low: int, high: int, likely: int | None = None) -> Dim:
        """A symbol of a size that comes out of values and has no name in torch."""
        self._new_sizes += 1
        name = f"found{self._new_sizes}"
        self.builder.add_symbol(name, low, high, likely_size(low, high) if likely is None else likely)
        return Dim.symbol(name)

    def _computed_size(self, expr: Any, low: int, high: int, likely: int) -> Dim:
        """A size that nodes compute as torch does, in reals."""
        if expr not in self._computed:
            value = self.number(expr)
            self._computed[expr] = self.new_size(low, high, likely)
            self.builder.create("read_size", [value], {"sizes": [self._computed[expr]]}, "size")
        return self._computed[expr]

    def number(self, expr: Any) -> Any:
        """A number or truth that depends on sizes, as a value of rank 0."""
        assert self._at is not None
        return Numbers(Call(self, self._at, "", [], {}), self.symbols.expression, self._reals).value(expr)

    def has_values(self, symbols: Iterable[Any]) -> bool:
        """Whether each of torch's symbols is a size or a real of the graph."""
        return all(symbol in self._reals or self.symbols.has(symbol) for symbol in symbols)

    def random(self, shape: Sequence[Size], node: torch.fx.Node) -> Any:
        """Numbers drawn from a generator whose state the graph keeps, seeded by its place among them."""
        name, initial = f"generator{len(self._generators)}", initial_state(len(self._generators))
        before = self.builder.add_input(name, "u32", list(initial.shape))
        drawn, after = self.builder.create("draw", [before], {"shape": list(shape)}, node.name, *place_of(node))
        self._generators.append((after, initial))
        return drawn

    def _lift_inputs(self) -> list[Tree]:
        """The leaves of what a caller passes. Inputs come before constants, which give way where names are the same."""
        signature = self._program.graph_signature
        kinds = {spec.arg.name: spec for spec in signature.input_specs}
        # By the outputs, not by their values: one value may be written into several buffers.
        changed = (OutputKind.BUFFER_MUTATION, OutputKind.GRADIENT_TO_PARAMETER)
        mutated = {spec.target for spec in signature.output_specs if spec.kind in changed}
        leaves: list[Tree] = []
        constants: list[tuple[torch.fx.Node, Any]] = []
        for node in self._program.graph.nodes:
            if node.op != "placeholder":
                continue
            spec = kinds[node.name]
            if spec.kind == InputKind.USER_INPUT:
                leaves.append(self._lift_user_input(node))
            elif spec.kind == InputKind.TOKEN:
                self._values[node] = None  # keeps effects in order, of which none remains
            elif spec.kind in (InputKind.BUFFER, InputKind.PARAMETER) and spec.target in mutated:
                self._lift_state(node, spec)
            else:
                constants.append((node, spec))
        for node, spec in constants:
            self._values[node] = self._constant(self._lifted(spec), spec.target)
        return leaves

    def _lift_state(self, node: torch.fx.Node, spec: Any) -> None:
        """A buffer that the model updates is an input with an initial value; its new value becomes an output."""
        tensor = self._lifted(spec)
        if tensor.is_complex():
            plain = tensor.detach().cpu().resolve_conj()
            self._values[node] = Complex(
                self._state(plain.real, f"{spec.target}.real"), self._state(plain.imag, f"{spec.target}.imag")
            )
        else:
            self._values[node] = self._state(tensor, spec.target)
        self._states[spec.target] = self._values[node]

    def _state(self, tensor: torch.Tensor, name: str) -> Any:
        return self._state_of(array_of(tensor), self.dtype(tensor.dtype), name)

    def _state_of(self, initial: np.ndarray[Any, Any], dtype: str, name: str) -> Any:
        value = self.builder.add_input(name, dtype, list(initial.shape))
        self._initial[value.name] = initial
        return value

    def _lift_user_input(self, node: torch.fx.Node) -> Tree:
        value, port = node.meta.get("val"), self._inputs_so_far
        if isinstance(value, torch.Tensor):
            shape = [self.symbols.dim(size) for size in value.shape]
            if value.is_complex():
                part = self.dtype(PARTS[value.dtype])
                names = (f"{node.name}.real", f"{node.name}.imag")
                self._values[node] = Complex(*(self.builder.add_input(name, part, shape) for name in names))
                self._inputs_so_far += 2
                return {"complex": [port, port + 1]}
            self._values[node] = self.builder.add_input(node.name, self.dtype(value.dtype), shape)
            self._ports[node.name] = port
            self._inputs_so_far += 1
            return {"value": port}
        if isinstance(value, torch.SymInt):
            self._values[node] = self.builder.add_input(node.name, "i64", [])
            self._inputs_so_far += 1
            if not self.has_values(value.node.expr.free_symbols):  # no axis of an input is as long
                self._given_sizes.append(node)
            return {"size": port}
        # Exported with a plain number or None: fixed, and no input of the graph.
        self._values[node] = value
        return fixed(value)

    def _lifted(self, spec: Any) -> torch.Tensor:
        program = self._program
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER) and spec.target in program.state_dict:
            tensor = program.state_dict[spec.target]
        else:
            tensor = program.constants[spec.target]
        if not isinstance(tensor, torch.Tensor):
            raise Unsupported(f"the constant '{spec.target}' is a {type(tensor).__name__}; hetnn takes tensors.")
        if tensor.is_meta:
            raise InvalidModel(
                f"'{spec.target}' lies on the meta device and has no values. Load the weights, then export it."
            )
        odd = odd_kind(tensor)
        if odd is not None:
            raise Unsupported(f"'{spec.target}' is a {odd[0]} tensor; hetnn takes dense ones. {odd[1]}")
        return tensor

    def _constant(self, tensor: torch.Tensor, name: str) -> Any:
        if tensor.is_complex():
            plain = tensor.detach().cpu().resolve_conj()
            return Complex(self._constant(plain.real, f"{name}.real"), self._constant(plain.imag, f"{name}.imag"))
        self.dtype(tensor.dtype)
        return self.builder.constant(array_of(tensor), name)

    def dtype(self, dtype: torch.dtype) -> str:
        if dtype not in DTYPES:
            raise Unsupported(f"the model uses {dtype}, which hetnn does not have.")
        return DTYPES[dtype]

    # Nodes

    def _convert(self, node: torch.fx.Node) -> None:
        self._at, target = node, str(node.target)
        if node.target is torch.ops.higher_order.with_effects and str(node.args[1]) in _VANISH | CONDITIONS:
            if self._asks and str(node.args[1]) in CONDITIONS:
                values_must_hold(Call(self, node, target, [], {}), *map(self.argument, node.args[2:]))
            self._values[node] = (None,) * len(node.meta["val"])
            return
        picks = node.target is operator.getitem
        self._declare_found(node)
        written, target = in_place(node)
        # A size, or what compares sizes.
        of_sizes = (torch.SymInt, torch.SymBool, torch.SymFloat, int, float)
        counts = isinstance(node.meta.get("val"), of_sizes) and not TORCH.knows(target)
        if not (picks or counts or target in _VANISH or knows(target)):
            if not self._inline(node, beyond_rules()):
                self._note(node, target)
            return
        if any(value in self._missing for value in node.all_input_nodes):
            self._missing.add(node)
            return
        if picks:
            source, index = node.args
            picked = self._values[source][index]  # type: ignore[index]
            if picked is None and node.users and TORCH.knows(str(source.target)):  # type: ignore[union-attr]
                self._note(node, str(source.target), f"its output {index} is read, which hetnn does not compute")  # type: ignore[union-attr]
            self._values[node] = picked
            return
        if counts or target in _VANISH or (target in CONDITIONS and not self._asks):
            self._values[node] = None  # read as an expression where it is used
            return
        try:
            call = self._call(node, target)
            row = TORCH.rows.get(target)
            if is_complex(call):
                self._values[node] = complex_call(call, target)
            else:
                if row is None and target not in TORCH.rules:
                    raise Unsupported("it is known for complex numbers alone")
                self._values[node] = call.by_row(row) if row else TORCH.rules[target](call)
            if _is_number_of_sizes(node):
                self._reals[node.meta["val"].node.expr] = self._values[node]
            if written is not None:
                self._values.update(dict.fromkeys(sharing(node), self._values[node]))
        except TypeError:
            if not any(isinstance(value.meta.get("val"), of_sizes) for value in node.all_input_nodes):
                raise
            self.refused.add(target)
            self._note(node, target, "a number that depends on sizes, which must be known when compiling")
        except (Unsupported, InvalidModel) as error:
            if self._inlines and target in decompositions():
                overload, function = decompositions()[target]
                if self._inline(node, {**beyond_rules(), overload: function}):
                    return
            self.refused.add(target)
            self._note(node, target, str(error).split("\n")[0])

    def _note(self, node: torch.fx.Node, target: str, why: str = "") -> None:
        self._missing.add(node)
        scope, file, line = place_of(node)
        where = f"{file}:{line}" if file else scope or node.name
        self._problems.setdefault(f"{target}{': ' + why if why else ''}", []).append(where)

    def _inline(self, node: torch.fx.Node, table: dict[Any, Any]) -> bool:
        """Puts the decomposition of a node where the node stands, and says whether there is one; what its body lacks
        is noted."""
        body = expanded(node, table, self._bodies)
        if body is None:
            return False
        inside = list(body.graph.nodes)
        self._missing.difference_update(inside)  # a body may stand in several places
        self._missing.update(
            place for place, value in zip(inside, node.all_input_nodes, strict=False) if value in self._missing
        )
        for inner in inside:
            inner.meta.update({key: node.meta[key] for key in ("nn_module_stack", "stack_trace") if key in node.meta})
        given = [None if value in self._missing else self.argument(value) for value in node.all_input_nodes]
        try:
            made = self.body(body, given)
        except Unsupported:
            self._missing.add(node)
            return True
        self._values[node] = made if isinstance(node.meta["val"], (list, tuple)) else made[0]
        return True

    def _call(self, node: torch.fx.Node, target: str) -> Call:
        """`target` is not the node's own where that writes in place."""
        own = target == str(node.target)
        schema = getattr(node.target if own else operator.attrgetter(target)(torch.ops), "_schema", None)
        names = [argument.name for argument in schema.arguments] if schema else []
        args: dict[str, Any] = {}
        # Conditions read their numbers as expressions.
        read = self._value_of if target in CONDITIONS else self.argument
        for k, argument in enumerate(schema.arguments if schema else []):
            if k < len(node.args):
                args[argument.name] = read(node.args[k])
            elif argument.name in node.kwargs:
                args[argument.name] = read(node.kwargs[argument.name])
            else:
                args[argument.name] = argument.default_value if argument.has_default_value() else None
        return Call(self, node, target, names, args)

    def argument(self, value: Any) -> Any:
        if isinstance(value, torch.fx.Node):
            if value.op == "get_attr":
                return self._attribute(value)
            size = value.meta.get("val")
            if isinstance(size, torch.SymInt):
                return self.symbols.dim(size)
            found = self._values.get(value)
            value = value.meta.get("val") if found is None else found
        if isinstance(value, torch.Tensor):
            raise Unsupported("it reads an output of another operator that hetnn does not compute")
        if isinstance(value, torch.SymInt):
            return self.symbols.dim(value)
        if isinstance(value, (torch.SymFloat, torch.SymBool)):
            return self.number(value.node.expr)
        if isinstance(value, (list, tuple)):
            return [self.argument(item) for item in value]
        return value

    def _value_of(self, value: Any) -> Any:
        """As argument, but None for a number that depends on sizes."""
        known = value.meta.get("val") if isinstance(value, torch.fx.Node) else value
        return None if isinstance(known, (torch.SymInt, torch.SymFloat, torch.SymBool)) else self.argument(value)

    def _attribute(self, node: torch.fx.Node) -> Any:
        """A body of control flow, or a constant of one."""
        found = operator.attrgetter(str(node.target))(node.graph.owning_module)
        return self._constant(found, node.name) if isinstance(found, torch.Tensor) else found

    def body(self, module: torch.fx.GraphModule, values: Sequence[Any], asks: bool = True) -> list[Any]:
        asked, self._asks = self._asks, self._asks and asks
        try:
            return self._body(module, values)
        finally:
            self._asks = asked

    def _body(self, module: torch.fx.GraphModule, values: Sequence[Any]) -> list[Any]:
        given = iter(values)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                self._values[node] = next(given)
                self._name_size(node)
            elif node.op == "call_function":
                self._convert(node)
        (results,) = module.graph.output_node().args
        made = results if isinstance(results, (list, tuple)) else [results]
        if any(node in self._missing for node in made):
            raise Unsupported("its body uses them")
        return [self.argument(node) for node in made]

    def _name_size(self, node: torch.fx.Node) -> None:
        """A number that comes as a tensor, and is read as a size."""
        size, value = node.meta.get("val"), self._values[node]
        if isinstance(size, torch.SymInt) and hasattr(value, "dtype"):
            symbol = size.node.expr
            if not symbol.is_Symbol:
                raise Unsupported(f"the input '{node.name}' is the size {symbol}, whose parts no other input tells.")
            self._declare(symbol, self._own_size(str(symbol)), *self._range(symbol, -MOST, MOST), 1)
            self.builder.create("read_size", [value], {"sizes": [self.symbols.dim(size)]}, node.name)

    def _own_size(self, name: str) -> str:
        self._new_sizes += 1
        return f"{name}_{self._new_sizes}"

    def loop_body(
        self, inputs: Sequence[BodyInput], build: Callable[[Sequence[Any]], list[Any]]
    ) -> tuple[Body, list[Any]]:
        body, around = Body(inputs), self.builder
        self.builder, self._computed = Recording(body, around), self._computed.new_child()
        try:
            return body, [body.take(value, None) for value in build(body.inputs)]
        finally:
            self.builder, self._computed = around, self._computed.parents

    # Outputs

    def _gradients(self) -> dict[str, tuple[Any, Any]]:
        """Parameters and their gradients, by name. Behind them a run ends where the loss is no number."""
        (results,) = self._program.graph.output_node().args
        found: dict[str, tuple[Any, Any]] = {}
        for spec, node in zip(self._program.graph_signature.output_specs, results, strict=True):
            if spec.kind == OutputKind.LOSS_OUTPUT:
                require_finite(self.builder, self._values[node])
                self._trains = True
            elif spec.kind == OutputKind.GRADIENT_TO_PARAMETER:
                found[spec.target] = (self._states[spec.target], self._values[node])
        return found

    def _finish(self) -> list[Tree]:
        """The leaves of what a caller gets. A value that stands there twice is one output."""
        output_node = next(node for node in self._program.graph.nodes if node.op == "output")
        for k, (after, initial) in enumerate(self._generators):
            self.builder.output(after, f"generator{k}.next")
            self.builder.mutation(f"generator{k}", f"generator{k}.next", initial)
        leaves: list[Tree] = []
        ports: dict[torch.fx.Node, int] = {}
        made = 0
        specs = self._program.graph_signature.output_specs
        for spec, value in zip(specs, output_node.args[0], strict=True):
            if spec.kind == OutputKind.TOKEN:
                continue
            if spec.kind == OutputKind.BUFFER_MUTATION:
                self._keep(self._states[spec.target], self._values[value])
                continue
            if spec.kind == OutputKind.USER_INPUT_MUTATION:
                if spec.target not in self._ports:
                    raise Unsupported(f"the model writes into its complex input '{spec.target}'. Return the new value.")
                before = self._values[self._place_of(spec.target)]
                self.builder.output(self._written_into(before, self._values[value]), f"{spec.target}.next")
                self._written.append([self._ports[spec.target], made])
                made += 1
                continue
            if self._trains and spec.kind == OutputKind.GRADIENT_TO_PARAMETER:
                continue
            if spec.kind != OutputKind.USER_OUTPUT and not (self._trains and spec.kind == OutputKind.LOSS_OUTPUT):
                raise Unsupported(
                    f"an output of the kind {spec.kind.name}. Return tensors alone, or train by compile_training."
                )
            if not isinstance(value, torch.fx.Node):
                leaves.append(fixed(value))
                continue
            meta = value.meta.get("val")
            if not isinstance(meta, (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)):
                leaves.append(fixed(meta))
                continue
            found = self._values[value]
            if value not in ports and isinstance(found, Complex):
                self.builder.output(found.real, f"{value.name}.real")
                self.builder.output(found.imag, f"{value.name}.imag")
                ports[value], made = made, made + 2
            if isinstance(found, Complex):
                leaves.append({"complex": [ports[value], ports[value] + 1]})
                continue
            kind = "value" if isinstance(meta, torch.Tensor) else "size"
            if value not in ports:
                ports[value], made = made, made + 1
                expr = None if isinstance(meta, torch.Tensor) else meta.node.expr
                self.builder.output(self.number(expr) if found is None else found, value.name)
            leaves.append({kind: ports[value]})
        return leaves

    def _place_of(self, name: str) -> torch.fx.Node:
        found: torch.fx.Node = next(
            node for node in self._program.graph.find_nodes(op="placeholder") if node.name == name
        )
        return found

    def _keep(self, before: Any, after: Any) -> Any:
        """Makes a value what a state holds in the next run, and returns what it then holds."""
        if isinstance(before, Complex):
            if not isinstance(after, Complex):  # a real value has no imaginary part
                zero = np.zeros((1,) * len(before.imag.shape), self._initial[before.imag.name].dtype)
                after = Complex(after, self.builder.constant(zero))
            return Complex(self._keep(before.real, after.real), self._keep(before.imag, after.imag))
        name, after = f"{before.name}.next", self._written_into(before, after)
        self.builder.output(after, name)
        self.builder.mutation(before.name, name, self._initial[before.name])
        return after

    def _written_into(self, before: Any, after: Any) -> Any:
        """As copy_ writes: in the type and the shape of what it overwrites, which torch's functional form drops."""
        if after.dtype != before.dtype:
            (after,) = self.builder.create("cast", [after], cast_attributes(before.dtype), "")
        if list(after.shape) != list(before.shape):
            (after,) = self.builder.create("expand", [after], {"shape": list(before.shape)}, "")
        return after
