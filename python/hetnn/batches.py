"""Executables as functions of batches, as engines for batch work call them: Ray Data, Dask, Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hetnn.errors import InvalidModel

Array = npt.NDArray[Any]


class Runs(Protocol):
    """What is asked of an executable."""

    @property
    def states(self) -> list[str]:
        """Names of what is kept from call to call; batches are cut only where there is none."""

    @property
    def inputs(self) -> Sequence[Any]:
        """What a run takes: `name`, `dtype`, `shape` of each."""

    @property
    def outputs(self) -> Sequence[Any]:
        """What a run gives: `name`, `dtype`, `shape` of each."""

    def run(self, inputs: Sequence[Array], /) -> Sequence[Array]:
        """Outputs in order for inputs in order."""


class OnBatches:
    """A function of `{column: array}`, or of one array, for any number of rows.

    The first size of every input and output counts rows. Where the model fixes it, rows are cut into pieces of that
    many and the last piece is filled up with zeros, whose answers are dropped; where it is open, `batch` bounds it.
    """

    def __init__(self, executable: Runs, columns: Mapping[str, str] | None = None, batch: int | None = None) -> None:
        if executable.states:
            raise InvalidModel(
                f"the model keeps '{executable.states[0]}' from run to run, so that answers would depend on how rows "
                "are cut. Run it in sessions."
            )
        self._executable = executable
        self._columns = dict(columns or {})
        names = [port.name for port in executable.inputs]
        if strange := [name for name in self._columns if name not in names]:
            raise InvalidModel(f"columns names inputs of the model, which are {', '.join(names)}; got '{strange[0]}'.")
        firsts = {port.shape[0] if port.shape else None for port in (*executable.inputs, *executable.outputs)}
        fixed = {size for size in firsts if isinstance(size, int)}
        if None in firsts or len(firsts) != 1:
            raise InvalidModel(
                f"every input and output must have its rows as first size; the first sizes here are "
                f"{', '.join(sorted(map(str, firsts)))}."
            )
        if batch is not None and (batch < 1 or fixed - {batch}):
            raise InvalidModel(f"batch must be {fixed.pop() if fixed else '1 or more'}; found {batch}.")
        self._pads = bool(fixed)
        self._rows = fixed.pop() if fixed else batch

    def __call__(self, batch: Any) -> Any:
        """The outputs by their names, or for an array the one output."""
        if not isinstance(batch, Mapping):
            return self._one(self.run([np.asarray(batch)]))
        given = []
        for port in self._executable.inputs:
            column = self._columns.get(port.name, port.name)
            if column not in batch:
                raise InvalidModel(
                    f"the batch has no column '{column}' for the input '{port.name}'; it has {', '.join(batch)}. Name "
                    "it with columns={input: column}."
                )
            given.append(np.asarray(batch[column]))
        return dict(zip((port.name for port in self._executable.outputs), self.run(given), strict=True))

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs for all rows, in the model's order."""
        counts = {len(array) if array.ndim else -1 for array in arrays}
        if len(counts) != 1 or -1 in counts:
            raise InvalidModel(f"all inputs must have as many rows; got {', '.join(map(str, sorted(counts)))}.")
        (count,) = counts
        rows = self._rows or max(count, 1)
        answers = []
        for begin in range(0, max(count, 1), rows):
            pieces = [array[begin : begin + rows] for array in arrays]
            missing = rows - len(pieces[0]) if self._pads or count == 0 else 0
            answers.append(self._executable.run([_filled(piece, missing) for piece in pieces]))
        return [np.concatenate(parts)[:count] for parts in zip(*answers, strict=True)]

    def predict(self, *arrays: Array) -> Any:
        """As Spark calls it: arrays in the model's order; one output is the array itself, several go by their names."""
        outputs = self.run([np.asarray(array) for array in arrays])
        names = [port.name for port in self._executable.outputs]
        return outputs[0] if len(outputs) == 1 else dict(zip(names, outputs, strict=True))

    @staticmethod
    def _one(outputs: list[Array]) -> Array:
        if len(outputs) != 1:
            raise InvalidModel(f"one array gives one array; the model has {len(outputs)} outputs. Pass columns.")
        return outputs[0]


def _filled(array: Array, missing: int) -> Array:
    """The rows and as many of zeros behind them, dense."""
    if missing:
        array = np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)])
    return np.ascontiguousarray(array)
