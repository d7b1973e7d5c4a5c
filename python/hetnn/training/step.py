"""A step of training as an executable: forward, backward and the optimizer's update in one run."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.export import ExportedProgram
from torch.nn import functional

from hetnn.api import compile
from hetnn.errors import InvalidModel
from hetnn.executable import Executable
from hetnn.importers.torch.graph import import_exported_program
from hetnn.importers.torch.joint import Loss, is_joint, with_gradients
from hetnn.quantization.quantizer import quantize as quantized
from hetnn.report.shown import Shown
from hetnn.training.history import History
from hetnn.training.optimizers import RATE, STEPS, Settings, optimizer_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hetnn._core import CompileOptions

Array = npt.NDArray[Any]

LOSSES: dict[str, Callable[..., Any]] = {
    "bce_with_logits": functional.binary_cross_entropy_with_logits,
    "cross_entropy": functional.cross_entropy,
    "l1": functional.l1_loss,
    "mse": functional.mse_loss,
    "nll": functional.nll_loss,
}
_MODEL = "model."  # before the names of the module's own


class TrainingStep(Shown):
    """`step(x, y)` takes one step and returns the loss as it was before it. What was learnt lies in states."""

    def __init__(self, executable: Executable, module: nn.Module | None, args: Sequence[Any], names: list[str]) -> None:
        self.executable = executable
        self._module = module
        self._args = tuple(args)
        self._names = names  # of the states that the module's parameters and buffers are
        self.history = History()  # of the last fit

    def __repr__(self) -> str:
        return f"<hetnn.training.TrainingStep of {self.executable!r}>"

    def _card(self) -> str:
        return self.executable._card()

    def _text_of_card(self) -> str:
        return f"{self!r}\n{self.executable.report()}"

    def __call__(self, *args: Any) -> float:
        """One step; the arguments are the model's and then the targets.

        InvalidModel where the loss is no finite number: the step's states are those of the step before.
        """
        loss = float(self.executable(*args))
        if not np.isfinite(loss):
            raise InvalidModel(
                f"the loss of step {self.steps + 1} is {loss}; parameters are those of step {self.steps}. Lower the "
                "learning rate, bound the gradients with clip_norm, or look at what was given."
            )
        return loss

    def fit(
        self,
        loader: Iterable[Sequence[Any]],
        epochs: int = 1,
        *,
        progress: bool = True,
        patience: int | None = None,
        least: float = 0.0,
    ) -> History:
        """Steps over all of `loader`, again for each epoch; the losses, which `history` holds while it runs too.

        loader: gives a step's arguments, the targets last: a DataLoader, a list.
        progress: whether a bar is shown, where tqdm is installed.
        patience: ends after so many epochs whose mean loss was not lower than the lowest by more than `least`.
        Ctrl-C ends it after the step before, which stands. InvalidModel where a loss is no finite number, with the
        states of the step before, and where the loader gives nothing.
        """
        if epochs < 1 or (patience is not None and patience < 1):
            raise InvalidModel(f"epochs and patience are whole numbers from 1 on; got {epochs} and {patience}.")
        self.history = history = History()
        lowest, waited = float("inf"), 0
        try:
            for epoch in range(epochs):
                history.losses.append([])
                for args in _shown(loader, f"epoch {epoch + 1} of {epochs}", progress, history):
                    history.losses[-1].append(self(*args))
                if not history.losses[-1]:
                    raise InvalidModel(
                        f"the loader gave nothing in epoch {epoch + 1}. Give one that can be read again, as a list."
                    )
                mean = history.means()[-1]
                lowest, waited = (mean, 0) if mean < lowest - least else (lowest, waited + 1)
                if patience is not None and waited >= patience:
                    history.stopped = "patience"
                    return history
        except KeyboardInterrupt:
            history.stopped = "interrupted"
            return history
        history.stopped = "epochs"
        return history

    @property
    def steps(self) -> int:
        """How many updates were made."""
        return int(self.executable.state(STEPS))

    @property
    def learning_rate(self) -> float:
        """What the next step moves by; may be set."""
        return float(self.executable.state(RATE))

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        Settings(lr=rate).check()
        self.executable.load_state_dict({RATE: np.float32(rate)})

    def parameters(self) -> dict[str, Array]:
        """Copies of the module's parameters and buffers that training changes, by the module's names for them."""
        return {name.removeprefix(_MODEL): self.executable.state(name) for name in self._names}

    def load_parameters(self, values: Mapping[str, Any]) -> None:
        """Sets some of those that `parameters` names. InvalidModel for others, and for another type or shape."""
        known = {name.removeprefix(_MODEL): name for name in self._names}
        unknown = [name for name in values if name not in known]
        if unknown:
            raise InvalidModel(f"'{unknown[0]}' is not trained; those that are: {', '.join(known)}.")
        self.executable.load_state_dict({known[name]: value for name, value in values.items()})

    def state_dict(self) -> dict[str, Array]:
        """All that the step keeps, the optimizer's moments, its learning rate and its count among it."""
        return self.executable.state_dict()

    def load_state_dict(self, states: Mapping[str, Any]) -> None:
        """Sets what `state_dict` gave. InvalidModel for that of another model."""
        missing = [name for name in self.executable.states if name not in states]
        if missing:
            raise InvalidModel(
                f"'{missing[0]}' is missing in the states; they are those of another model or optimizer."
            )
        self.executable.load_state_dict(states)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file with the states as they are; `hetnn.load(path)` goes on training without torch."""
        self.executable.save(path)

    def inference(
        self,
        target: Any = "cpu",
        *,
        quantize: Iterable[Any] | Mapping[str, Any] | None = None,
        **options: Unpack[CompileOptions],
    ) -> Executable:
        """The module in evaluation mode, with what was learnt, compiled for a target.

        quantize: samples of its inputs, or arguments of hetnn.quantize by name, `samples` among them: integers then.
        """
        if self._module is None:
            raise InvalidModel("a joint graph has no module to compile; load `parameters()` into one of your own.")
        module = copy.deepcopy(self._module)
        values = {name: torch.from_numpy(value) for name, value in self.parameters().items()}
        module.load_state_dict(values, strict=False)
        if quantize is None:
            return compile(module, target, args=self._args, **options)
        told: dict[str, Any] = dict(quantize) if isinstance(quantize, Mapping) else {"samples": quantize}
        exe: Executable = quantized(module.eval(), target=target, args=self._args, **told, **options)
        return exe


def compile_training(
    model: nn.Module | ExportedProgram,
    args: Sequence[Any] = (),
    *,
    loss: str | Loss = "cross_entropy",
    optimizer: str = "sgd",
    lr: float = 0.01,
    weight_decay: float = 0.0,
    momentum: float = 0.9,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    clip_norm: float | None = None,
    accumulate: int = 1,
    target: Any = "cpu",
    **options: Unpack[CompileOptions],
) -> TrainingStep:
    """A step of training as an executable: parameters that require gradients are states, which every run changes.

    model: a torch module, whose layers work in their own modes (of one in evaluation mode those are put into training
        mode that are not frozen), or a joint graph of torch (a loss and gradients of parameters).
    args: what the module is called with, and behind it the targets; where these are left out they are made from what
        the module returns.
    loss: bce_with_logits, cross_entropy, l1, mse, nll, or a function of the module's result and the targets.
    optimizer: sgd, momentum, adam or adamw, as torch.optim has them with `lr`, `weight_decay`, `momentum`, `betas` and
        `eps`; the gradients are clipped to `clip_norm` together first.
    accumulate: how many batches' mean gradient an update takes.
    InvalidModel for numbers that make no sense, a loss that is no scalar, and what torch cannot export; Unsupported
    with all operators that hetnn lacks.
    """
    update = optimizer_of(optimizer, Settings(lr, weight_decay, momentum, betas, eps, clip_norm, accumulate))
    module: nn.Module | None = None
    if isinstance(model, ExportedProgram):
        if not is_joint(model):
            raise InvalidModel("the exported program has no loss and no gradients; give the module itself.")
        program = model
    else:
        chosen = _loss(loss)
        args = tuple(args) if _has_targets(model, args) else (*args, _targets(model, args, loss))
        module = copy.deepcopy(model)
        program = with_gradients(module, args, chosen)
    imported = import_exported_program(program, functional=True, optimizer=update)
    executable = compile(imported, target, **options)
    changed = {spec.target for spec in program.graph_signature.output_specs if spec.target is not None}
    return TrainingStep(executable, module, args[:-1], [name for name in executable.states if name in changed])


def _shown(loader: Iterable[Any], what: str, progress: bool, history: History) -> Iterator[Any]:
    """What a loader gives, with a bar that has the last loss beside it."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        progress = False
    if not progress:
        yield from loader
        return
    with tqdm(loader, desc=what, leave=False) as bar:
        for args in bar:
            yield args
            bar.set_postfix(loss=f"{history.losses[-1][-1]:.4f}", refresh=False)


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
