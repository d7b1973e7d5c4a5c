"""The smallest part of a model that is wrong by itself, as a file that replays it."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hetnn.arrays import Array, as_arrays
from hetnn.errors import Error, Unsupported
from hetnn.inside.compare import Comparison, compare_values, compare_with
from hetnn.inside.references import Reference, reference_of, remembered
from hetnn.inside.replay import Part, write_part
from hetnn.inside.values import scales_of
from hetnn.progress import Progress, counted, part
from hetnn.report.card import framed
from hetnn.report.shown import Shown
from hetnn.report.text import count

if TYPE_CHECKING:
    from hetnn.executable import Executable
    from hetnn.inside.source import Source

# What of the options says what is computed; the rest says where, how fast, and with what shapes.
_KEPT_OPTIONS = ("rewrite", "disabled_rules", "inputs_within", "fusion", "deterministic", "denormals")


_MOST_TRIED = 64  # nodes, each of which is left out once


@dataclass(frozen=True)
class Bisection(Shown):
    """The part that was found: its nodes in order, the file, and what its outputs are beside the reference's."""

    nodes: list[str]
    path: str
    comparison: Comparison

    def __str__(self) -> str:
        few = ", ".join(self.nodes[:6]) + (" …" if len(self.nodes) > 6 else "")
        nodes = count(len(self.nodes), "node")
        return f"beyond the bound by itself, {nodes}: {few}\n{self.comparison}\nhetnn replay {self.path}"

    __repr__ = __str__

    def _card(self) -> str:
        return framed(f"<p>{html.escape(str(self).splitlines()[0])}</p>", self.comparison._card())


def bisect(
    executable: Executable,
    reference: Any,
    inputs: Sequence[Any],
    path: str | os.PathLike[str],
    bound: float | None,
    progress: Progress,
) -> Bisection | None:
    """As Executable.bisect."""
    source = executable._source
    if source is None:
        raise Unsupported("a loaded executable has no model to take parts of. Compile the model in this process.")
    given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    arrays = as_arrays(list(executable._arguments.passed(tuple(given), {})), executable._arguments.called)
    beside = remembered(reference_of(reference, executable, given, arrays, progress))
    found = compare_with(executable, beside, arrays, bound, progress)
    if found.first is None:
        return None
    parts = _Parts(executable, source, beside, arrays, bound)
    nodes = parts.leading_to(found.first.node)
    kept = _fewest(nodes, parts.fails, progress)
    if not parts.fails(kept):
        raise Unsupported(
            f"'{found.first.node}' is beyond its bound in the model, and no part that ends there is by itself: what is "
            "wrong needs what stands around it. exe.compare says what it is."
        )
    part, comparison = parts.tried(kept)
    write_part(path, part)
    return Bisection(kept, os.fspath(path), comparison)


def _fewest(nodes: list[str], fails: Callable[[list[str]], bool], progress: Progress) -> list[str]:
    """The shortest end of the list that fails, found by halves, and of that what it still fails without left out."""
    if len(nodes) > 1 and fails(nodes[-1:]):
        return nodes[-1:]
    low, high = 0, len(nodes) - 1  # the whole fails as far as is known, the last alone does not
    with counted(progress, "halve"):
        for k in range(most := max(high - 1, 0).bit_length()):
            with part(k, most):
                middle = (low + high) // 2
                if high - low > 1:
                    low, high = (middle, high) if fails(nodes[middle:]) else (low, middle)
    kept = nodes[low:]
    if len(kept) > _MOST_TRIED:
        return kept
    with counted(progress, "leave out"):
        for k, node in enumerate(rest := kept[:-1]):
            without = [one for one in kept if one != node]
            with part(k, len(rest)):
                if fails(without):
                    kept = without
    return kept


class _Parts:
    """Parts of the model on the reference's values, compiled as the model was."""

    def __init__(
        self,
        executable: Executable,
        source: Source,
        reference: Reference,
        arrays: Sequence[Array],
        bound: float | None,
    ) -> None:
        self._source = source
        self._reference = reference
        self._bound = bound
        self._rows = {row["name"]: row for row in source.graph.nodes()}
        self._writer = {value: loop for value, loop, _ in source.repeated}
        self._writer |= {value: name for name, row in self._rows.items() for value in row["outputs"]}
        self._types = source.graph.types()
        self._given: dict[str, Array] = dict(zip([name for name, _, _ in source.graph.inputs], arrays, strict=False))
        report = executable.report(format="dict")
        self._devices = {row["node"]: row["device"] for row in report["graph"]}
        self._general = next(iter(report["nodes_on"]), "cpu")
        self._last: tuple[Part, Comparison] | None = None

    def leading_to(self, value: str) -> list[str]:
        """The nodes that the value depends on, in the model's order; it is written by the last."""
        wanted, stack = set(), [self._writer[value]]
        while stack:
            name = stack.pop()
            if name not in wanted:
                wanted.add(name)
                stack += [self._writer[one] for one in self._rows[name]["inputs"] if one in self._writer]
        return [name for name in self._rows if name in wanted]

    def fails(self, nodes: list[str]) -> bool:
        """Whether some output of the part is beyond its bound. A part that cannot be made or run is none that fails."""
        try:
            return self.tried(nodes)[1].first is not None
        except Error:
            return False

    def tried(self, nodes: list[str]) -> tuple[Part, Comparison]:
        """The part, and its outputs beside what the reference has for them."""
        from hetnn import _core
        from hetnn.target import resolve_target

        graph = _core.extract(self._source.graph, set(nodes))
        inputs = {name: self._value(name) for name, _, _ in graph.inputs}
        outputs = [name for name, _, _ in graph.outputs]
        there = [name for name in outputs if name in self._reference.names]
        pins = [
            {"name": name, "device": self._devices[name], "hard": False}
            for name in nodes
            if self._devices.get(name, self._general) != self._general
        ]
        options = {key: value for key, value in self._source.options.items() if key in _KEPT_OPTIONS}
        part = Part(
            graph.print(),
            resolve_target(self._source.target),
            {**options, "pin": pins},
            self._bound,
            inputs,
            self._reference.values(there),
        )
        return part, compare_values(*part.run(), self._reference.called, self._bound)

    def _value(self, name: str) -> Array:
        if name in self._given:
            return self._given[name]
        if name not in self._reference.names:
            raise Unsupported(f"{self._reference.called} has no value '{name}'.")
        return codes(self._reference.values([name])[name], self._types[name])


def codes(array: Array, type: Mapping[str, Any]) -> Array:
    """The integers of a quantized type that stand for these numbers; the array itself for any other type."""
    import numpy as np

    from hetnn.element_types import numpy_type

    quant = type["quant"]
    if quant is None:
        plain: Array = np.asarray(array, numpy_type(type["dtype"]))
        return plain
    scales, zeros = scales_of(quant, array.ndim, np.float64)
    integers: Array = np.asarray(np.rint(array / scales) + zeros, numpy_type(type["dtype"]))
    return integers
