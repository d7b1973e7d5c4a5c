"""The inputs and outputs of an exported program as those of a graph: what a caller passes and gets, and its states."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from hetnn.arrays import odd_kind
from hetnn.element_types import array_of
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.updates import require_finite
from hetnn.importers.torch.nodes import Nodes
from hetnn.importers.torch.rules.call import PARTS, cast_attributes, type_name
from hetnn.importers.torch.signature import fixed
from hetnn.structure import Tree


class Ports:
    """Adds the inputs and outputs of one program to the graph of its nodes, as leaves of trees (hetnn.structure)."""

    def __init__(self, nodes: Nodes, program: ExportedProgram) -> None:
        self._nodes, self._program = nodes, program
        self._builder, self._values = nodes.builder, nodes.values
        self._inputs_so_far = 0
        self._states: dict[str, Any] = {}  # of a buffer: its value before
        self._trains = False  # whether it is a joint graph
        self._given_sizes: list[torch.fx.Node] = []  # inputs that are sizes
        self._initial: dict[str, np.ndarray[Any, Any]] = {}  # of an input that is a state
        self._ports: dict[str, int] = {}  # of an input: its place
        self.written: list[list[int]] = []  # an input and the output that is written into it

    def lift(self) -> list[Tree]:
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
            self._values[node] = self._nodes.constant(self._lifted(spec), spec.target)
        for node in self._given_sizes:
            self._nodes.sizes.declare_given(node, self._values[node])
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
        return self.state(array_of(tensor), type_name(tensor.dtype), name)

    def state(self, initial: np.ndarray[Any, Any], dtype: str, name: str) -> Any:
        """An input that holds a value from run to run, and what it begins with."""
        value = self._builder.add_input(name, dtype, list(initial.shape))
        self._initial[value.name] = initial
        return value

    def _lift_user_input(self, node: torch.fx.Node) -> Tree:
        value, port = node.meta.get("val"), self._inputs_so_far
        if isinstance(value, torch.Tensor):
            shape = [self._nodes.symbols.dim(size) for size in value.shape]
            if value.is_complex():
                part = type_name(PARTS[value.dtype])
                names = (f"{node.name}.real", f"{node.name}.imag")
                self._values[node] = Complex(*(self._builder.add_input(name, part, shape) for name in names))
                self._inputs_so_far += 2
                return {"complex": [port, port + 1]}
            self._values[node] = self._builder.add_input(node.name, type_name(value.dtype), shape)
            self._ports[node.name] = port
            self._inputs_so_far += 1
            return {"value": port}
        if isinstance(value, torch.SymInt):
            self._values[node] = self._builder.add_input(node.name, "i64", [])
            self._inputs_so_far += 1
            if not self._nodes.has_values(value.node.expr.free_symbols):  # no axis of an input is as long
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

    def gradients(self) -> dict[str, tuple[Any, Any]]:
        """Parameters and their gradients, by name. Behind them a run ends where the loss is no number."""
        (results,) = self._program.graph.output_node().args
        found: dict[str, tuple[Any, Any]] = {}
        for spec, node in zip(self._program.graph_signature.output_specs, results, strict=True):
            if spec.kind == OutputKind.LOSS_OUTPUT:
                require_finite(self._builder, self._values[node])
                self._trains = True
            elif spec.kind == OutputKind.GRADIENT_TO_PARAMETER:
                found[spec.target] = (self._states[spec.target], self._values[node])
        return found

    def give(self) -> list[Tree]:
        """The leaves of what a caller gets. A value that stands there twice is one output."""
        output_node = next(node for node in self._program.graph.nodes if node.op == "output")
        leaves: list[Tree] = []
        ports: dict[torch.fx.Node, int] = {}
        made = 0
        specs = self._program.graph_signature.output_specs
        for spec, value in zip(specs, output_node.args[0], strict=True):
            if spec.kind == OutputKind.TOKEN:
                continue
            if spec.kind == OutputKind.BUFFER_MUTATION:
                self.keep(self._states[spec.target], self._values[value])
                continue
            if spec.kind == OutputKind.USER_INPUT_MUTATION:
                if spec.target not in self._ports:
                    raise Unsupported(f"the model writes into its complex input '{spec.target}'. Return the new value.")
                before = self._values[self._place_of(spec.target)]
                self._builder.output(self._written_into(before, self._values[value]), f"{spec.target}.next")
                self.written.append([self._ports[spec.target], made])
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
                self._builder.output(found.real, f"{value.name}.real")
                self._builder.output(found.imag, f"{value.name}.imag")
                ports[value], made = made, made + 2
            if isinstance(found, Complex):
                leaves.append({"complex": [ports[value], ports[value] + 1]})
                continue
            kind = "value" if isinstance(meta, torch.Tensor) else "size"
            if value not in ports:
                ports[value], made = made, made + 1
                expr = None if isinstance(meta, torch.Tensor) else meta.node.expr
                self._builder.output(self._nodes.number(expr) if found is None else found, value.name)
            leaves.append({kind: ports[value]})
        return leaves

    def _place_of(self, name: str) -> torch.fx.Node:
        found: torch.fx.Node = next(
            node for node in self._program.graph.find_nodes(op="placeholder") if node.name == name
        )
        return found

    def keep(self, before: Any, after: Any) -> Any:
        """Makes a value what a state holds in the next run, and returns what it then holds."""
        if isinstance(before, Complex):
            if not isinstance(after, Complex):  # a real value has no imaginary part
                zero = np.zeros((1,) * len(before.imag.shape), self._initial[before.imag.name].dtype)
                after = Complex(after, self._builder.constant(zero))
            return Complex(self.keep(before.real, after.real), self.keep(before.imag, after.imag))
        name, after = f"{before.name}.next", self._written_into(before, after)
        self._builder.output(after, name)
        self._builder.mutation(before.name, name, self._initial[before.name])
        return after

    def _written_into(self, before: Any, after: Any) -> Any:
        """As copy_ writes: in the type and the shape of what it overwrites, which torch's functional form drops."""
        if after.dtype != before.dtype:
            (after,) = self._builder.create("cast", [after], cast_attributes(before.dtype), "")
        if list(after.shape) != list(before.shape):
            (after,) = self._builder.create("expand", [after], {"shape": list(before.shape)}, "")
        return after
