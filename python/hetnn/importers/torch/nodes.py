"""The nodes of an exported program, one after another: which row or rule says what each becomes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from hetnn import _core
from hetnn._core import Dim
from hetnn.element_types import array_of
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.loop_body import Body, BodyInput, Recording
from hetnn.importers.lowering.random_numbers import Generators
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.torch.decompositions import beyond_rules, decompositions, knows
from hetnn.importers.torch.numbers import Numbers
from hetnn.importers.torch.open_sizes import OpenSizes
from hetnn.importers.torch.reading import expanded, in_place, place_of, sharing
from hetnn.importers.torch.rules.call import TORCH, Call, type_name
from hetnn.importers.torch.rules.complexes import complex_call, is_complex
from hetnn.importers.torch.rules.conditions import CONDITIONS, values_must_hold
from hetnn.importers.torch.symbols import Symbols
from hetnn.progress import announce

# Check what the types of a graph's values say, or what the operators before check themselves.
_VANISH = {
    "aten._assert_tensor_metadata.default",
    "aten._linalg_check_errors.default",
}


def _is_number_of_sizes(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.SymFloat)


class Nodes:
    """Adds nodes to a graph, and notes in `problems` which of them hetnn lacks, with their places in the model.

    inlines: puts decompositions where a rule refuses; else the caller decomposes the program.
    """

    def __init__(self, program: ExportedProgram, inlines: bool) -> None:
        self._inlines = inlines
        self.builder: Any = _core.GraphBuilder("main")
        self.sizes = OpenSizes(self, program)
        self.generators = Generators()
        self._reals: dict[Any, Any] = {}  # values of the symbols of reals
        self._at: torch.fx.Node | None = None  # that is converted now
        self.values: dict[torch.fx.Node, Any] = {}
        self.names: dict[str, str] = {}  # of the values, by nodes of the program
        self.problems: dict[str, list[str]] = {}
        self._bodies: dict[Any, torch.fx.GraphModule | None] = {}  # of decomposed calls
        self._missing: set[torch.fx.Node] = set()  # not imported, or read from what is not
        self._asks = True  # whether the conditions of the nodes must hold
        self.refused: set[str] = set()  # overloads in calls that their rules do not take

    def add(self, graph: torch.fx.Graph) -> None:
        """The calls of a program, whose inputs have their values."""
        for k, node in enumerate(graph.nodes):
            if node.op == "call_function":
                announce(k, len(graph.nodes))
                self._convert(node)
                made: Any = self.values.get(node)
                if hasattr(made, "dtype"):
                    self.names[node.name] = made.name  # of what it is now; what is written into it gives another

    def _convert(self, node: torch.fx.Node) -> None:
        self._at, target = node, str(node.target)
        if node.target is torch.ops.higher_order.with_effects and str(node.args[1]) in _VANISH | CONDITIONS:
            if self._asks and str(node.args[1]) in CONDITIONS:
                values_must_hold(Call(self, node, target, [], {}), *map(self.argument, node.args[2:]))
            self.values[node] = (None,) * len(node.meta["val"])
            return
        picks = node.target is operator.getitem
        self.sizes.declare_found(node)
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
            picked = self.values[source][index]  # type: ignore[index]
            if picked is None and node.users and TORCH.knows(str(source.target)):  # type: ignore[union-attr]
                self._note(node, str(source.target), f"its output {index} is read, which hetnn does not compute")  # type: ignore[union-attr]
            self.values[node] = picked
            return
        if counts or target in _VANISH or (target in CONDITIONS and not self._asks):
            self.values[node] = None  # read as an expression where it is used
            return
        try:
            call = self._call(node, target)
            row = TORCH.rows.get(target)
            if is_complex(call):
                self.values[node] = complex_call(call, target)
            else:
                if row is None and target not in TORCH.rules:
                    raise Unsupported("it is known for complex numbers alone")
                self.values[node] = call.by_row(row) if row else TORCH.rules[target](call)
            if _is_number_of_sizes(node):
                self._reals[node.meta["val"].node.expr] = self.values[node]
            if written is not None:
                self.values.update(dict.fromkeys(sharing(node), self.values[node]))
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
        self.problems.setdefault(f"{target}{': ' + why if why else ''}", []).append(where)

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
        self.values[node] = made if isinstance(node.meta["val"], (list, tuple)) else made[0]
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

    def _value_of(self, value: Any) -> Any:
        """As argument, but None for a number that depends on sizes."""
        known = value.meta.get("val") if isinstance(value, torch.fx.Node) else value
        return None if isinstance(known, (torch.SymInt, torch.SymFloat, torch.SymBool)) else self.argument(value)

    def _attribute(self, node: torch.fx.Node) -> Any:
        """A body of control flow, or a constant of one."""
        found = operator.attrgetter(str(node.target))(node.graph.owning_module)
        return self.constant(found, node.name) if isinstance(found, torch.Tensor) else found

    def _body(self, module: torch.fx.GraphModule, values: Sequence[Any]) -> list[Any]:
        given = iter(values)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                self.values[node] = next(given)
                self.sizes.declare_given(node, self.values[node])
            elif node.op == "call_function":
                self._convert(node)
        (results,) = module.graph.output_node().args
        made = results if isinstance(results, (list, tuple)) else [results]
        if any(node in self._missing for node in made):
            raise Unsupported("its body uses them")
        return [self.argument(node) for node in made]

    # What rules build with

    @property
    def symbols(self) -> Symbols:
        """Of the sizes of the program."""
        return self.sizes.symbols

    def new_size(self, low: int, high: int) -> Dim:
        """A symbol within [low, high] to which the next node that names it gives its value."""
        return self.sizes.new_size(low, high)

    def number(self, expr: Any) -> Any:
        """A number or truth that depends on sizes, as a value of rank 0."""
        assert self._at is not None
        return Numbers(Call(self, self._at, "", [], {}), self.symbols.expression, self._reals).value(expr)

    def has_values(self, symbols: Iterable[Any]) -> bool:
        """Whether each of torch's symbols is a size or a real of the graph."""
        return all(symbol in self._reals or self.symbols.has(symbol) for symbol in symbols)

    def random(self, shape: Sequence[Size], node: torch.fx.Node) -> Any:
        """Numbers of [0, 1) in f32, by a generator of the node's own, seeded by its place among them."""
        place = len(self.generators)
        return self.generators.draw(self.builder, f"generator{place}", place, shape, node.name, *place_of(node))

    def constant(self, tensor: torch.Tensor, name: str) -> Any:
        """A tensor of the program as a constant. Unsupported for an element type that hetnn lacks."""
        if tensor.is_complex():
            plain = tensor.detach().cpu().resolve_conj()
            return Complex(self.constant(plain.real, f"{name}.real"), self.constant(plain.imag, f"{name}.imag"))
        type_name(tensor.dtype)
        return self.builder.constant(array_of(tensor), name)

    def argument(self, value: Any) -> Any:
        """What stands for an argument of a node: values, sizes, and lists of those."""
        if isinstance(value, torch.fx.Node):
            if value.op == "get_attr":
                return self._attribute(value)
            size = value.meta.get("val")
            if isinstance(size, torch.SymInt):
                return self.symbols.dim(size)
            found = self.values.get(value)
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

    def body(self, module: torch.fx.GraphModule, values: Sequence[Any], asks: bool = True) -> list[Any]:
        """The outputs of a module of the program, whose nodes are added in place; `asks`: with its conditions."""
        asked, self._asks = self._asks, self._asks and asks
        try:
            return self._body(module, values)
        finally:
            self._asks = asked

    def loop_body(
        self, inputs: Sequence[BodyInput], build: Callable[[Sequence[Any]], list[Any]]
    ) -> tuple[Body, list[Any]]:
        """The body of a loop: what `build` makes of inputs of these types, and the values that it gives."""
        body, around = Body(inputs), self.builder
        self.builder = Recording(body, around)
        try:
            with self.sizes.in_body():
                return body, [body.take(value, None) for value in build(body.inputs)]
        finally:
            self.builder = around
