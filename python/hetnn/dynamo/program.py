"""From a functional ATen graph, as AOTAutograd makes them, to an exported program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._export.verifier import TrainingIRVerifier
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ArgumentSpec,
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_flatten

from hetnn.errors import Unsupported
from hetnn.importers.torch.decompositions import sizes_of


class _WithConstants(TrainingIRVerifier):
    """Takes tensors that the model makes of numbers, which torch.export would have lifted to inputs."""

    dialect = "HETNN"

    def allowed_getattr_types(self) -> tuple[type[Any], ...]:
        return (*super().allowed_getattr_types(), torch.Tensor)


def exported(module: GraphModule, held: Mapping[int, torch.Tensor]) -> ExportedProgram:
    """The graph as a program. `held` are tensors of the placeholders, by their places, that are constants of it.

    Unsupported where a value lies on another device than the CPU.
    """
    placeholders = module.graph.find_nodes(op="placeholder")
    specs = [
        InputSpec(InputKind.BUFFER, TensorArgument(node.name), node.name, persistent=True)
        if k in held
        else InputSpec(InputKind.USER_INPUT, _argument(node), None)
        for k, node in enumerate(placeholders)
    ]
    (results,) = module.graph.output_node().args
    outputs = [_argument(value) for value in results]  # type: ignore[union-attr]
    _, in_spec = tree_flatten((tuple(range(len(placeholders) - len(held))), {}))
    _, out_spec = tree_flatten(tuple(outputs))
    sizes = sizes_of(module.graph)
    called = ModuleCallSignature([spec.arg for spec in specs], outputs, in_spec, out_spec)
    return ExportedProgram(
        module,
        module.graph,
        ExportGraphSignature(specs, [OutputSpec(OutputKind.USER_OUTPUT, one, None) for one in outputs]),
        {placeholders[k].name: tensor for k, tensor in held.items()},
        dict(sizes.var_to_range) if sizes is not None else {},
        [ModuleCallEntry("", called)],
        constants={},
        verifiers=[_WithConstants],
    )


def _argument(value: Any) -> ArgumentSpec:
    if not isinstance(value, Node):
        return ConstantArgument("", value)
    known = value.meta.get("val")
    if isinstance(known, torch.Tensor):
        if known.device.type != "cpu":
            raise Unsupported(f"'{value.name}' lies on the device '{known.device}'; hetnn takes tensors on the CPU.")
        return TensorArgument(value.name)
    if isinstance(known, torch.SymInt):
        return SymIntArgument(value.name)
    raise Unsupported(f"'{value.name}' is a {type(known).__name__}; hetnn takes tensors and integers.")
