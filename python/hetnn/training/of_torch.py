"""Training of torch's models: torch differentiates them, and its joint graph is imported."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.nn import functional

from hetnn.errors import InvalidModel
from hetnn.importers import Imported
from hetnn.importers.lowering.updates import Optimizer
from hetnn.importers.torch.graph import import_exported_program
from hetnn.importers.torch.joint import Loss, is_joint, with_gradients
from hetnn.training.step import Learnt

LOSSES: dict[str, Callable[..., Any]] = {
    "bce_with_logits": functional.binary_cross_entropy_with_logits,
    "cross_entropy": functional.cross_entropy,
    "l1": functional.l1_loss,
    "mse": functional.mse_loss,
    "nll": functional.nll_loss,
}
_MODEL = "model."  # before the names of the module's own


def torch_step(
    model: nn.Module | ExportedProgram, args: Sequence[Any], loss: str | Loss, update: Optimizer
) -> tuple[Imported, dict[str, str], Learnt | None]:
    """A step, the states that parameters are by the module's names for them, and the module with what was learnt."""
    if isinstance(model, ExportedProgram):
        if is_joint(model):
            return (*_imported(model, update), None)
        model = model.module()
    chosen = _loss(loss)
    args = tuple(args) if _has_targets(model, args) else (*args, _targets(model, args, loss))
    module = copy.deepcopy(model)
    imported, names = _imported(with_gradients(module, args, chosen), update)

    return imported, names, _Learnt(module, args[:-1])


@dataclass(frozen=True)
class _Learnt:
    """A module and what it is called with, to be given parameters and put into evaluation mode."""

    module: nn.Module
    args: Sequence[Any]

    def __call__(self, parameters: Mapping[str, Any]) -> tuple[Any, Sequence[Any]]:
        out = copy.deepcopy(self.module)
        out.load_state_dict({name: torch.from_numpy(value) for name, value in parameters.items()}, strict=False)
        for layer in out.modules():  # an exported one has no eval()
            layer.training = False
        return out, self.args


def _imported(program: ExportedProgram, update: Optimizer) -> tuple[Imported, dict[str, str]]:
    imported = import_exported_program(program, functional=True, optimizer=update)
    changed = {spec.target for spec in program.graph_signature.output_specs if spec.target is not None}
    states = [name for name, _ in imported.graph.mutations if name in changed]
    return imported, {name.removeprefix(_MODEL): name for name in states}


def _loss(loss: str | Loss) -> Loss:
    if callable(loss):
        return loss
    if loss not in LOSSES:
        raise InvalidModel(f"loss must be a function or one of {', '.join(LOSSES)}; got {loss!r}.")
    return LOSSES[loss]


def _has_targets(model: nn.Module, args: Sequence[Any]) -> bool:
    """Whether there is one argument more than the module takes."""
    signature = inspect.signature(model.forward)
    try:
        signature.bind(*args)
    except TypeError:
        return True
    return False


def _targets(model: nn.Module, args: Sequence[Any], loss: str | Loss) -> torch.Tensor:
    """Targets that fit what the module returns: classes, or reals of its shape."""
    with torch.no_grad():
        found = copy.deepcopy(model).eval()(*args)
    if not isinstance(found, torch.Tensor):
        raise InvalidModel("the module returns no single tensor; give the targets behind its arguments.")
    if loss in ("cross_entropy", "nll"):
        return torch.zeros(found.shape[:1] + found.shape[2:], dtype=torch.int64)
    return torch.zeros_like(found)
