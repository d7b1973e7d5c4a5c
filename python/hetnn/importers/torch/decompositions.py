"""What torch decomposes, and exported programs with as much decomposed as no row or rule reads."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch._decomp import decomposition_table
from torch.export import ExportedProgram

from hetnn.errors import InvalidModel
from hetnn.importers.torch.fast_paths import FAST_PATHS
from hetnn.importers.torch.gradient_formulas import FORMULAS
from hetnn.importers.torch.program import with_values_apart, without_idle
from hetnn.importers.torch.rules.call import TORCH
from hetnn.importers.torch.rules.complexes import COMPLEX


@cache
def decompositions() -> dict[str, tuple[Any, Any]]:
    """All that torch can decompose: by name, the overload and its decomposition."""
    table = {**decomposition_table, **torch.export.default_decompositions(), **FAST_PATHS, **FORMULAS}
    return {str(overload): (overload, function) for overload, function in table.items()}


def knows(name: str) -> bool:
    """Whether a row or a rule reads an overload."""
    return name in COMPLEX or TORCH.knows(name)


@cache
def _usual() -> set[str]:
    """What torch.export decomposes by itself; of the others some do not stay functional."""
    return {str(overload) for overload in torch.export.default_decompositions()}


@cache
def beyond_rules() -> dict[Any, Any]:
    """The decompositions of all that no row or rule reads."""
    return {overload: function for name, (overload, function) in decompositions().items() if not knows(name)}


# What torch held sizes to, when it decomposed a program: it says so once, as it remembers what it evaluated.
_held_before: WeakKeyDictionary[Any, dict[frozenset[str], list[str]]] = WeakKeyDictionary()


def decomposed(program: ExportedProgram, apart: set[str]) -> tuple[ExportedProgram, list[str]]:
    """The program with everything decomposed that no row or rule reads, and what stands in `apart`.

    With it the equations among open sizes that torch took from the example: the result holds where they do.
    """
    environment = sizes_of(program.graph)
    before = len(environment.guards) if environment is not None else 0
    found = _decomposed_by(program, apart)
    if environment is None:
        return found, []
    equal = [str(guard.expr) for guard in environment.guards[before:] if str(guard.expr).startswith("Eq(")]
    known = _held_before.setdefault(environment, {})
    held = known.setdefault(frozenset(apart), equal)
    return found, held


def sizes_of(graph: torch.fx.Graph) -> Any:
    """Where torch keeps the open sizes of a graph; None where it has none."""
    for node in graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        if mode is not None:
            return mode.shape_env
    return None


def _decomposed_by(program: ExportedProgram, apart: set[str]) -> ExportedProgram:
    """That program, by as many of torch's decompositions as do not fail."""
    table = {
        **beyond_rules(),
        **{overload: function for name, (overload, function) in decompositions().items() if name in apart},
    }
    try:
        return _run_decompositions(program, table)
    except Exception:  # whatever torch's decompositions make of the program
        table = {overload: function for overload, function in table.items() if str(overload) in _usual()}
    try:
        return _run_decompositions(program, table)
    except Exception as error:  # whatever torch finds wrong with the program
        raise InvalidModel(f"torch cannot decompose the exported program: {error}. Export the model again.") from error


def _run_decompositions(program: ExportedProgram, table: dict[Any, Any]) -> ExportedProgram:
    program = with_values_apart(without_idle(program))
    # Where a written buffer would need a gradient, torch traces for training unless it is told not to.
    with warnings.catch_warnings(), torch.no_grad():
        # torch 2.13 warns of its own use of a deprecated check, once for every copy it makes.
        warnings.filterwarnings("ignore", message=".isinstance.treespec, LeafSpec", category=FutureWarning)
        found: ExportedProgram = program.run_decompositions(table)
    return found
