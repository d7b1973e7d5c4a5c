"""Runs a graph on samples and looks at values inside it, one sample at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetnn import _core
from hetnn.api import compile
from hetnn.executable import Executable
from hetnn.progress import announce
from hetnn.quantization.samples import Sample

Array = NDArray[Any]


class Observed:
    """A graph that returns values from inside it besides its outputs."""

    def __init__(self, graph: _core.Graph, values: Sequence[str], threads: int | None) -> None:
        self.values = list(values)
        self._executable: Executable = compile(_core.with_outputs(graph, self.values), threads=threads)

    def run(self, sample: Sample) -> tuple[list[Array], dict[str, Array]]:
        """The outputs, and the values by their names."""
        results = self._executable.run(sample)
        own = len(results) - len(self.values)
        return results[:own], dict(zip(self.values, results[own:], strict=True))


def _powers(a: Array, b: Array) -> tuple[float, float, float, float]:
    """Sums of a^2, b^2, a b and (a - b)^2."""
    with np.errstate(all="ignore"):
        off = a - b
        return float(a @ a), float(b @ b), float(a @ b), float(off @ off)


class Noise:
    """Powers of a signal and of what differs from it, over samples, and the least cosine of a sample."""

    def __init__(self) -> None:
        self.signal = self.noise = 0.0
        self.cosine = 1.0

    def add(self, want: Array, got: Array) -> None:
        """Takes in one sample, as far as it is finite."""
        a, b = (x.reshape(-1) if x.dtype == np.float32 else x.reshape(-1).astype(np.float64) for x in (want, got))
        powers = _powers(a, b)
        if not np.isfinite(powers).all():  # of such numbers, or too large for the type
            finite = np.isfinite(a) & np.isfinite(b)
            powers = _powers(a[finite].astype(np.float64), b[finite].astype(np.float64))
        signal, other, both, noise = powers
        self.signal += signal
        self.noise += noise
        lengths = np.sqrt(signal * other)
        if lengths > 0:
            self.cosine = min(self.cosine, both / lengths)
        elif signal > 0:
            self.cosine = min(self.cosine, 0.0)

    @property
    def db(self) -> float:
        """Signal over noise; 300 where there is none."""
        return float(min(10 * np.log10(max(self.signal, 1e-300) / max(self.noise, 1e-300)), 300.0))


def compare(
    reference: Observed,
    other: Observed,
    samples: Sequence[Sample],
    factors: Mapping[str, Array],
    floors: Mapping[str, float],
) -> tuple[list[Noise], dict[str, Noise]]:
    """What differs between two graphs: of each output, and of the reference's values, which the other has in order.

    factors: by value, what the other's is to be multiplied by. floors: below what all numbers of a value are alike.
    """
    outputs: list[Noise] = []
    values = {name: Noise() for name in reference.values}
    for k, sample in enumerate(samples):
        announce(k, len(samples))
        wanted, inside = reference.run(sample)
        got, theirs = other.run(sample)
        outputs = outputs or [Noise() for _ in wanted]
        for noise, one, two in zip(outputs, wanted, got, strict=True):
            noise.add(one, two)
        for name, called in zip(reference.values, other.values, strict=True):
            floor = np.float32(floors.get(name, -np.inf))
            got_inside = theirs[called] * factors.get(name, np.float32(1))
            values[name].add(np.maximum(inside[name], floor), np.maximum(got_inside, floor))
    return outputs, values
