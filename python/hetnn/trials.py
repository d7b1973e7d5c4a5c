"""Which of several executables of one model is the fastest on this machine, by running them in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from hetnn.calibration import example_of
from hetnn.errors import Error
from hetnn.executable import Executable

# The plan by the nodes' times comes first: it is kept where no other is faster.
_STRATEGIES = ("cost", "cpu-only", "take-all")
_FEWEST_ROUNDS, _MOST_ROUNDS, _AWHILE_S = 5, 50, 1.0
_GAIN = 0.98  # less than that is noise


def fastest(compiled: Callable[[str], Executable]) -> Executable:
    """Of a model compiled by cost, for the general processor alone and for the others wherever they can, the fastest.

    Times of nodes say nothing of what a vendor's compiler makes of many, nor of what lies between two compilers. Plans
    that are alike are run once; a strategy that cannot serve is left out. `trials` of the result says
    what was measured.
    """
    made: dict[str, Executable] = {}
    for strategy in _STRATEGIES:
        try:
            executable = compiled(strategy)
        except Error:
            if not made:
                raise
            continue
        if all(_placement(executable) != _placement(other) for other in made.values()):
            made[strategy] = executable
    first = made["cost"]
    if len(made) == 1:
        return first
    try:
        times_ms = _in_turns(made)
    except Error:  # the model asks of its inputs what examples do not have
        return first
    best = min(times_ms, key=lambda strategy: times_ms[strategy])
    chosen = made[best] if times_ms[best] < _GAIN * times_ms["cost"] else first
    chosen.trials = [{"strategy": strategy, "ms": ms} for strategy, ms in times_ms.items()]
    return chosen


def _placement(executable: Executable) -> list[tuple[str, list[str]]]:
    return [(row["device"], row["nodes"]) for row in executable.report("dict")["subgraphs"]]


def _in_turns(made: dict[str, Executable]) -> dict[str, float]:
    first = made["cost"]
    rng = np.random.default_rng(0)
    inputs = [example_of(rng, port.dtype, first.example_shape(port.name)) for port in first.inputs]
    # In sessions of their own: what a model keeps must be as it was given when the first run of its user begins.
    runs = {strategy: executable.session().run for strategy, executable in made.items()}
    for run in runs.values():
        run(inputs)
    taken: dict[str, list[float]] = {strategy: [] for strategy in made}
    end_s = time.monotonic() + _AWHILE_S
    for done in range(_MOST_ROUNDS):
        if done >= _FEWEST_ROUNDS and time.monotonic() > end_s:
            break
        for strategy, run in runs.items():
            began = time.perf_counter()
            run(inputs)
            taken[strategy].append((time.perf_counter() - began) * 1e3)
    return {strategy: statistics.median(times) for strategy, times in taken.items()}
