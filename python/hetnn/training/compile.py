"""A model, a loss and an optimizer become a step of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hetnn.api import compile
from hetnn.errors import InvalidModel
from hetnn.training.of_graph import trained
from hetnn.training.optimizers import Settings, optimizer_of
from hetnn.training.step import TrainingStep

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hetnn._core import CompileOptions


def compile_training(
    model: Any,
    args: Sequence[Any] = (),
    *,
    loss: str | Callable[[Any, Any], Any] = "cross_entropy",
    optimizer: str = "sgd",
    lr: float = 0.01,
    weight_decay: float | None = None,
    momentum: float = 0.9,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    clip_norm: float | None = None,
    accumulate: int = 1,
    train: Sequence[str] | None = None,
    fix: Mapping[str, Any] | None = None,
    target: Any = "cpu",
    **options: Unpack[CompileOptions],
) -> TrainingStep:
    """A step of training as an executable: parameters that require gradients are states, which every run changes.

    model: a torch module, whose layers work in their own modes (of one in evaluation mode those are put into training
        mode that are not frozen), an exported program, whose layers work as they were exported, or a joint graph of
        torch (a loss and gradients of parameters); or an ONNX model (path, bytes or ModelProto), another model that
        hetnn reads, or IR text, which hetnn differentiates itself.
    args: what a module is called with, and behind it the targets; where these are left out they are made from what
        the module returns. Other models take theirs as they declare them.
    loss: bce_with_logits, cross_entropy, l1, mse, nll, or a function of the module's result and the targets; of a model
        that is not torch's one of these names, or the name of an output that is the loss.
    optimizer: sgd, momentum, adam or adamw, as torch.optim has them with `lr`, `weight_decay`, `momentum`, `betas` and
        `eps`, of which torch's are taken where none are given (a decay of 0.01 with adamw, else none); the gradients
        are clipped to `clip_norm` together first.
    accumulate: how many batches' mean gradient an update takes.
    train: of a model that is not torch's, the names of the initializers (constants) of f32 that are trained; None: all
        that have an axis, but means and variances of batch norms. `fix` is as for `compile`.
    InvalidModel for numbers that make no sense, a loss that is no scalar, and what torch cannot export; Unsupported
    with all operators that hetnn lacks, or that have no derivative.
    """
    if weight_decay is None:
        weight_decay = 0.01 if optimizer == "adamw" else 0.0
    update = optimizer_of(optimizer, Settings(lr, weight_decay, momentum, betas, eps, clip_norm, accumulate))
    if _is_torch(model):
        from hetnn.training.of_torch import torch_step

        if train is not None or fix is not None:
            raise InvalidModel("train and fix are for models that are not torch's; there requires_grad says it.")
        imported, names, learnt = torch_step(model, args, loss, update)
        return TrainingStep(compile(imported, target, **options), names, learnt)
    if callable(loss):
        raise InvalidModel("a loss that is a function is for torch modules; give the name of one, or of an output.")
    found = trained(model, loss, train, fix)
    executable = compile(found.step(update), target, **options)
    states = {name: name for name in (*found.names, *found.running)}
    return TrainingStep(executable, states, found.learnt)


def _is_torch(model: Any) -> bool:
    return any(base.__module__.split(".")[0] == "torch" for base in type(model).__mro__)
