"""The nested inputs and outputs of an exported program as the trees of hetnn.structure."""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from torch.export import ExportedProgram

from hetnn.errors import Unsupported
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.torch.guards import conditions
from hetnn.structure import Tree, record_fields

Leaf = Callable[[], Tree]


class Signature:
    """Collects the trees of a program, and the classes of its records by `module:class`."""

    def __init__(self, program: ExportedProgram) -> None:
        self._program = program
        self.classes: dict[str, type] = {}

    def inputs(self, leaves: list[Tree]) -> dict[str, Any]:
        """The trees of the arguments over `leaves` in order, with their names."""
        rest = iter(leaves)
        args, kwargs = (_children(part) for part in _children(self._program.call_spec.in_spec))
        trees = [self._tree(spec, rest) for spec in args]
        names = list(_children_keys(self._program.call_spec.in_spec))
        by_name = [[key, self._tree(spec, rest)] for key, spec in zip(names, kwargs, strict=True)]
        return {"args": trees, "names": self._argument_names(len(trees)), "kwargs": by_name}

    def conditions(self, program: ExportedProgram, dim: Callable[[Any], Size]) -> list[tuple[str, Size]]:
        """What the sizes of every run must fulfil, where `program` is what became of this one: texts and booleans."""
        args = _children(_children(self._program.call_spec.in_spec)[0])
        return conditions(self._program, program, self._argument_names(len(args)), dim)

    def outputs(self, leaves: list[Tree]) -> Tree:
        """The tree of what a call returns over `leaves` in order."""
        return self._tree(self._program.call_spec.out_spec, iter(leaves))

    def _argument_names(self, count: int) -> list[str]:
        calls = [entry.signature for entry in self._program.module_call_graph if entry.fqn == ""]
        names = getattr(calls[0], "forward_arg_names", None) if calls and calls[0] else None
        return [str(name) for name in names or ()][:count]

    def _tree(self, spec: Any, leaves: Iterator[Tree]) -> Tree:
        if spec.is_leaf():
            return next(leaves)
        inner = [self._tree(child, leaves) for child in _children(spec)]
        kind, context = spec.type, spec.context
        if kind in (tuple, list):
            return {kind.__name__: inner}
        if kind in (dict, OrderedDict, defaultdict):
            keys = context[1] if kind is defaultdict else context
            odd = [key for key in keys if not isinstance(key, (str, int, float, bool, type(None)))]
            if odd:
                raise Unsupported(f"a dict of the model has the key {odd[0]!r}; hetnn takes texts and numbers as keys.")
            return {"dict": [[key, tree] for key, tree in zip(keys, inner, strict=True)]}
        for named in (context, kind):
            if isinstance(named, type) and issubclass(named, tuple) and len(record_fields(named)) == len(inner):
                return self._record(named, record_fields(named), inner)
        if isinstance(kind, type) and isinstance(context, list):
            empty: list[str] = []
            if len(context) == 2 and all(isinstance(part, list) for part in context):
                context, empty = context
            if len(context) == len(inner) and all(isinstance(name, str) for name in context):
                return self._record(kind, [*context, *empty], [*inner, *({"fixed": None} for _ in empty)])
        raise Unsupported(
            f"the model's inputs or outputs hold a {getattr(kind, '__name__', kind)}, whose parts have no names; hetnn "
            "takes dicts, lists, tuples, named tuples and dataclasses."
        )

    def _record(self, kind: type, names: list[str], inner: list[Tree]) -> Tree:
        called = f"{kind.__module__}:{kind.__qualname__}"
        self.classes[called] = kind
        return {"record": called, "fields": [[name, tree] for name, tree in zip(names, inner, strict=True)]}


def fixed(value: Any) -> Tree:
    """What the model was exported with. Unsupported for what JSON has no form of."""
    plain = isinstance(value, (str, bool, type(None))) or (isinstance(value, float) and math.isfinite(value))
    plain = plain or (isinstance(value, int) and -(2**63) <= value < 2**63)
    if not plain:
        raise Unsupported(
            f"the model takes or returns {value!r}; hetnn takes finite numbers of 64 bits, texts, booleans and None."
        )
    return {"fixed": value}


def _children(spec: Any) -> list[Any]:
    children = getattr(spec, "children", None)
    return list(children() if callable(children) else spec.children_specs)


def _children_keys(in_spec: Any) -> list[str]:
    return [str(key) for key in _children(in_spec)[1].context]
