"""Values from inside a run.

A value that has a buffer of its own in the program is the executable's own: one run returns it beside the outputs. What
a kernel computes on the way, what was rewritten or folded, and what stays within an accelerator has none; there the
model is compiled once more, with that value as an output, for the same devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hetnn import _runtime
from hetnn.arrays import as_arrays, is_torch
from hetnn.element_types import tensor_of
from hetnn.errors import InvalidModel, Unsupported
from hetnn.inside.names import Names
from hetnn.progress import Progress, counted, part, silent, teller
from hetnn.states import write_states

if TYPE_CHECKING:
    from hetnn.executable import Executable

Array = NDArray[Any]
OWN, APART = "own", "apart"


@dataclass(frozen=True)
class Inside:
    """One value. `source` is "own" where the executable itself computed it, else "apart"."""

    name: str
    array: Array
    source: str


def names_of(executable: Executable) -> Names:
    """The values that can be asked for: those of the model where it is there, else those that the file has."""
    if executable._source is not None:
        return executable._source.names
    own = _buffers(executable)
    rows = executable.report(format="dict")["graph"]
    return Names([(row["node"], row.get("module", ""), [row["node"]]) for row in rows if row["node"] in own])


def _buffers(executable: Executable) -> dict[str, str]:
    """By value of the model, the buffer of the program that holds it.

    A node that others were folded into bears the name of the first and has the value of the last. A name alone says
    nothing: rules may give one that became free to what they make. So where the model is there, a node counts as the
    model's only if it is the same operator of the same module, or is known to have been rewritten.
    """
    there = set(_runtime.exposable(executable._engine))
    report = executable.report(format="dict")
    rows = [row for row in report["graph"] if row["node"] in there]
    if executable._source is None:
        return {row["node"]: row["node"] for row in rows if not row.get("made_from")}
    nodes = {row["name"]: (row["op"], row["module"]) for row in executable._source.graph.nodes()}
    order = {name: k for k, name in enumerate(nodes)}
    rewritten = {row["node"] for row in report["rewrites"]}
    out = {}
    for row in rows:
        node = row["node"]
        if nodes.get(node) == (row["op"], row.get("module", "")) or (node in rewritten and node in nodes):
            folded = [name for name in (node, *row.get("made_from", [])) if name in order]
            out[max(folded, key=order.__getitem__)] = node
    return out


def values_of(
    executable: Executable,
    arrays: Sequence[Array],
    names: Sequence[str],
    states: Mapping[str, Array] | None = None,
    progress: Progress = silent,
) -> tuple[list[Array], dict[str, Inside]]:
    """The outputs of a run, and by each name the value that goes by it. Integers of a quantized type become the numbers
    that they stand for.

    Each run begins with `states`, by themselves the first values; what the executable holds stays as it is.
    InvalidModel for a name that is none; Unsupported for a value that a loaded file has no buffer for.
    """
    known = names_of(executable)
    wanted: dict[str, str] = {}
    for name in names:
        value = known.value(name)
        if value is None:
            raise _missing(executable, known, name)
        wanted[name] = value
    with counted(progress, "run"):
        with part(0, 2):
            outputs = _run(executable._engine, executable.states, arrays, states)  # also compiles for these sizes
        own = _buffers(executable)
        values = list(dict.fromkeys(wanted.values()))
        with part(1, 2):
            found = _own(executable, arrays, {value: own[value] for value in values if value in own}, states)
    found |= _apart(executable, arrays, [value for value in values if value not in own], states, progress)
    return outputs, {name: found[value] for name, value in wanted.items()}


def _run(
    engine: _runtime.Executable, names: Sequence[str], arrays: Sequence[Array], states: Mapping[str, Array] | None
) -> list[Array]:
    """A run on states of its own."""
    session = engine.session() if names else None
    if session is not None and states:
        write_states(names, session, states)
    outputs: list[Array] = engine.run(list(arrays), None, _runtime.RunTimes(), session=session, tell=teller())
    return outputs


def run_also(executable: Executable, inputs: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The outputs of a run and, last, a dict of values by the names that were asked for; torch in gives torch out."""
    if isinstance(names, str):
        raise InvalidModel(f"also must be a list of names; got the text '{names}'. Write [{names!r}].")
    arrays, before = as_arrays(inputs, executable._arguments.called), executable.state_dict()
    outputs, found = values_of(executable, arrays, list(names), before)
    if before:
        outputs = executable.run(arrays)  # what is kept goes on as with any run
    of_torch = any(map(is_torch, inputs))
    values = {name: tensor_of(one.array) if of_torch else one.array for name, one in found.items()}
    return [*(map(tensor_of, outputs) if of_torch else outputs), values]


def _missing(executable: Executable, known: Names, name: str) -> Exception:
    for body in executable.report(format="dict")["bodies"]:
        if any(name in (row["node"], row.get("module")) for row in body["report"]["graph"]):
            return Unsupported(
                f"'{name}' is within what '{body['node']}' repeats, and {_why_not(executable)}. Ask for "
                f"'{body['node']}', or return the value from the loop."
            )
    rows = executable.report(format="dict")["graph"] if executable._source is None else []
    there = [row for row in rows if name in (row["node"], row.get("module"), *row.get("made_from", []))]
    if not there:
        return known.unknown(name)
    row = there[0]
    within = row.get("into") or row["node"]
    into = f"on {row['device']} it is computed on the way to something else, with '{within}'"
    return Unsupported(
        f"the file has no buffer for the value of '{name}': {into}. Compile the model in this process, which then also "
        "compiles it with that value as an output."
    )


def _why_not(executable: Executable) -> str:
    if executable._source is None:
        return "a file has no buffer for all its rounds; the process that compiled the model has them"
    return "came there when the model was compiled"


def _own(
    executable: Executable, arrays: Sequence[Array], values: dict[str, str], states: Mapping[str, Array] | None
) -> dict[str, Inside]:
    """Of `values`, by name the buffer."""
    if not values:
        return {}
    engine = _runtime.exposed(executable._engine, list(values.values()))
    results = _run(engine, executable.states, arrays, states)[-len(values) :]
    quants = _runtime.quants(engine)[-len(values) :]
    reals = [real(array, quant) for array, quant in zip(results, quants, strict=True)]
    return {name: Inside(name, array, OWN) for name, array in zip(values, reals, strict=True)}


def _apart(
    executable: Executable,
    arrays: Sequence[Array],
    values: list[str],
    states: Mapping[str, Array] | None,
    progress: Progress,
) -> dict[str, Inside]:
    if not values:
        return {}
    source = executable._source
    assert source is not None  # else names_of knows only what is exposable
    other = source.compiled_with(values, executable.report(format="dict"), progress)
    with counted(progress, "run"):
        results = _run(other._engine, other.states, arrays, states)[-len(values) :]
    quants = _runtime.quants(other._engine)[-len(values) :]
    reals = [real(np.asarray(array), quant) for array, quant in zip(results, quants, strict=True)]
    return {name: Inside(name, array, APART) for name, array in zip(values, reals, strict=True)}


def real(array: Array, quant: dict[str, Any] | None) -> Array:
    """The numbers that integers of a quantized type stand for; the array itself where they are numbers already."""
    if quant is None:
        return array
    scales, zeros = scales_of(quant, array.ndim, np.float32)
    return (array.astype(np.float32) - zeros) * scales


def scales_of(quant: Mapping[str, Any], rank: int, dtype: type[np.floating[Any]]) -> tuple[Array, Array]:
    """Scales and zero points of a quantized type in that type of reals, as they broadcast against values of a rank."""
    scales = np.asarray(quant["scales"], dtype)
    zeros = np.broadcast_to(np.asarray(quant["zero_points"], dtype), scales.shape)
    if scales.size > 1:
        shape = [1] * rank
        shape[quant["axis"]] = -1
        scales, zeros = scales.reshape(shape), zeros.reshape(shape)
    return scales, zeros
