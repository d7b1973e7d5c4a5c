"""A step of training as an executable: forward, backward and the optimizer's update in one run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hetnn.api import compile
from hetnn.errors import InvalidModel
from hetnn.executable import Executable
from hetnn.importers.lowering.updates import FINITE
from hetnn.quantization.quantizer import quantize as quantized
from hetnn.report.shown import Shown
from hetnn.training.history import History
from hetnn.training.optimizers import RATE, STEPS, Settings

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hetnn._core import CompileOptions

Array = npt.NDArray[Any]

# What to compile for inference, given the trained values by their names in the model, and what it is called with.
Learnt = Callable[[Mapping[str, Array]], tuple[Any, Sequence[Any] | None]]


class TrainingStep(Shown):
    """`step(x, y)` takes one step and returns the loss as it was before it. What was learnt lies in states."""

    def __init__(self, executable: Executable, names: Mapping[str, str], learnt: Learnt | None = None) -> None:
        self.executable = executable
        self._learnt = learnt
        self._names = dict(names)  # what the model calls parameters and buffers, and the states that they are
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
        try:
            return float(self.executable(*args))
        except InvalidModel as error:
            if FINITE not in str(error):
                raise
            raise InvalidModel(
                f"the loss of step {self.steps + 1} is no finite number; parameters are those of step {self.steps}. "
                "Lower the learning rate, bound the gradients with clip_norm, or look at what was given."
            ) from error

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
        """Copies of the parameters and buffers that training changes, by the model's names for them."""
        return {name: self.executable.state(state) for name, state in self._names.items()}

    def load_parameters(self, values: Mapping[str, Any]) -> None:
        """Sets some of those that `parameters` names. InvalidModel for others, and for another type or shape."""
        unknown = [name for name in values if name not in self._names]
        if unknown:
            raise InvalidModel(f"'{unknown[0]}' is not trained; those that are: {', '.join(self._names)}.")
        self.executable.load_state_dict({self._names[name]: value for name, value in values.items()})

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
        """The model with what was learnt, a torch module in evaluation mode, compiled for a target.

        quantize: samples of its inputs, or arguments of hetnn.quantize by name, `samples` among them: integers then.
        """
        if self._learnt is None:
            raise InvalidModel("a joint graph has no module to compile; load `parameters()` into one of your own.")
        model, args = self._learnt(self.parameters())
        if quantize is None:
            return compile(model, target, args=args, **options)
        told: dict[str, Any] = dict(quantize) if isinstance(quantize, Mapping) else {"samples": quantize}
        exe: Executable = quantized(model, target=target, args=args, **told, **options)
        return exe


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
