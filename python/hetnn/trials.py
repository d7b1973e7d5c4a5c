"""Which of several executables of one model is the fastest on this machine, by running them in turns."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from hetnn.calibration import example_of
from hetnn.errors import Error
from hetnn.executable import Executable

# Plans of one device, as far as it goes, come first: one of pieces is taken where it is faster than noise explains.
_STRATEGIES = ("cpu-only", "take-all", "cost")
_GAIN = 0.95
# A turn has several runs, of which the first is not counted: threads of the one before may still look for work.
_RUNS, _FEWEST_TURNS, _MOST_TURNS, _AWHILE_S = 4, 3, 25, 1.5


def fastest(compiled: Callable[[str], Executable]) -> Executable:
    """Of a model compiled by cost, for the general processor alone and for the others wherever they can, the fastest.

    Times of nodes say nothing of what a vendor's compiler makes of many, nor of what lies between two compilers. Plans
    that are alike are run once; a strategy that cannot serve is left out. `trials` of the result says
    what was measured.
    """
    by_cost = compiled("cost")
    made: dict[str, Executable] = {}
    for strategy in _STRATEGIES:
        try:
            executable = by_cost if strategy == "cost" else compiled(strategy)
        except Error:
            continue
        if all(_placement(executable) != _placement(other) for other in made.values()):
            made[strategy] = executable
    if len(made) == 1:
        return by_cost
    try:
        times_ms = _in_turns(made)
    except Error:  # the model asks of its inputs what examples do not have
        return by_cost
    chosen = made[min(made, key=lambda strategy: times_ms[strategy] / (_GAIN if strategy == "cost" else 1))]
    chosen.trials = [{"strategy": strategy, "ms": ms} for strategy, ms in times_ms.items()]
    return chosen


def _placement(executable: Executable) -> list[tuple[str, list[str]]]:
    return [(row["device"], row["nodes"]) for row in executable.report("dict")["subgraphs"]]


def _in_turns(made: dict[str, Executable]) -> dict[str, float]:
    """What a quarter of each one's runs stay below: others who use the machine only add to them."""
    import statistics  # takes a while

    first = next(iter(made.values()))
    rng = np.random.default_rng(0)
    inputs = [example_of(rng, port.dtype, first.example_shape(port.name)) for port in first.inputs]
    # In sessions of their own: what a model keeps must be as it was given when the first run of its user begins.
    runs = {strategy: executable.session().run for strategy, executable in made.items()}
    for run in runs.values():
        run(inputs)
    taken: dict[str, list[float]] = {strategy: [] for strategy in made}
    end_s = time.monotonic() + _AWHILE_S
    for done in range(_MOST_TURNS):
        if done >= _FEWEST_TURNS and time.monotonic() > end_s:
            break
        for strategy, run in runs.items():
            run(inputs)
            for _ in range(_RUNS - 1):
                began = time.perf_counter()
                run(inputs)
                taken[strategy].append((time.perf_counter() - began) * 1e3)
    return {strategy: statistics.quantiles(times, n=4)[0] for strategy, times in taken.items()}
