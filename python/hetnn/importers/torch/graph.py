"""From a torch ExportedProgram to a graph."""

from __future__ import annotations

from torch.export import ExportedProgram

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers import Imported
from hetnn.importers.lowering.lacking import lacking
from hetnn.importers.lowering.updates import Optimizer, Updates
from hetnn.importers.torch.decompositions import decomposed, decompositions, knows
from hetnn.importers.torch.nodes import Nodes
from hetnn.importers.torch.ports import Ports
from hetnn.importers.torch.program import inlined
from hetnn.importers.torch.reading import is_readable, refuse_shared_states, refuse_training
from hetnn.importers.torch.signature import Signature
from hetnn.structure import Tree


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
    """One program: the symbols of its sizes, its inputs, its nodes and its outputs, in this order."""

    def __init__(self, program: ExportedProgram, signature: Signature, inlines: bool = False) -> None:
        self._program, self._signature = program, signature
        self._nodes = Nodes(program, inlines)
        self._ports = Ports(self._nodes, program)
        self._inputs: list[Tree] = []

    @property
    def refused(self) -> set[str]:
        """Overloads in calls that their rules do not take."""
        return self._nodes.refused

    def convert(self) -> None:
        sizes = self._nodes.sizes
        sizes.declare_axes()
        self._inputs = self._ports.lift()
        sizes.require(self._signature.conditions(self._program, sizes.symbols.dim))
        self._nodes.add(self._program.graph)

    def reads_all(self) -> bool:
        """Converts a program as it is, and says whether nothing in it is unknown."""
        try:
            self.convert()
        except (Unsupported, InvalidModel):
            return False
        return not self._nodes.problems

    def finish(self, optimizer: Optimizer | None = None) -> Imported:
        if self._nodes.problems:
            raise lacking(self._nodes.problems)
        builder = self._nodes.builder
        gradients = self._ports.gradients() if optimizer else {}
        self._nodes.generators.keep(builder)
        outputs = self._ports.give()
        if optimizer:
            optimizer(Updates(builder, self._ports.state, self._ports.keep), gradients)
        signature = {**self._signature.inputs(self._inputs), "outputs": self._signature.outputs(outputs)}
        if self._ports.written:
            signature["written"] = self._ports.written
        return Imported(
            builder.finish(), signature, self._signature.classes, program=self._program, values=self._nodes.names
        )
