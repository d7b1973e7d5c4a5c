"""How a model's own caller passes inputs and gets outputs: nested as the model has them, over the executable's ports.

A tree is JSON: `{"value": k}` is port k, `{"size": k}` the number that port k holds, `{"fixed": x}` what the model was
exported with (a number, a text, a truth or null), `{"complex": [j, k]}` complex numbers, whose parts two ports hold;
`{"shaped": [tree, k]}` an array of any rank, as such a list of one;
`{"sequence": [tree, k]}` a list of arrays, whose elements the tree holds one array after another, and port k a row of
their rank and sizes each; `{"text": [j, k]}` an array of texts, with UTF-8 in port j and their spans in it in k (begin
times 2^32, plus length); `{"optional": [k, tree]}` what the tree holds where the truth in port k says so, else None;
`{"rows": [[key, ...], k]}` for each row of the matrix in port k a dict of its numbers by those keys;
`{"tuple": [...]}`, `{"list": [...]}`, `{"dict": [[key, tree], ...]}` and `{"record": "module:class", "fields": [[name,
tree], ...]}` hold others. A signature is `{"args": [tree, ...], "names": [name, ...], "kwargs": [[name, tree], ...],
"outputs": tree, "written": [[j, k], ...]}`: the model writes output k into the array that is input j.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hetnn.element_types import numpy_type
from hetnn.errors import InvalidModel
from hetnn.report.text import count
from hetnn.texts import coded, decoded

Tree = dict[str, Any]


class Record(dict[str, Any]):
    """The fields of a dataclass or named tuple whose class is not at hand: a dict with attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no field '{name}'; there are {', '.join(self)}") from None


class Signature:
    """Turns what a caller passes into a list of inputs, and a list of outputs into what the caller gets.

    `classes` are those of the records of the signature, by `module:class`; others are looked for among the modules that
    are imported already, since a file must not make this process import anything.
    """

    def __init__(
        self, text: str, inputs: Sequence[tuple[str, str, Sequence[Any]]], classes: Mapping[str, type] | None = None
    ) -> None:
        self._classes = dict(classes or {})
        document = json.loads(text)  # checked when the executable was loaded
        self._args: list[Tree] = document["args"]
        self._names: list[str] = document["names"]
        self._kwargs: dict[str, Tree] = dict(document["kwargs"])
        self._inputs = inputs
        self._make = self._maker(document["outputs"])
        self._written: list[list[int]] = document.get("written", [])
        # Whether arguments by position are the ports in order, as they are of most models.
        self._in_order = not self._kwargs and [_kind(tree) for tree in self._args] == [
            ("value", k) for k in range(len(inputs))
        ]

    def flatten(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The inputs in the order of the ports. InvalidModel names what is missing, unknown or of another structure."""
        if self._in_order and not kwargs and len(args) == len(self._inputs):
            return list(args)
        flat: list[Any] = [None] * len(self._inputs)
        wanted = dict(zip(self._names, self._args, strict=False))
        if len(args) > len(self._args):
            raise InvalidModel(f"the model takes {count(len(self._args), 'input')} by position; got {len(args)}.")
        wanted = {**dict(list(wanted.items())[len(args) :]), **self._kwargs}
        unknown = [name for name in kwargs if name not in wanted]
        missing = [name for name, tree in wanted.items() if name not in kwargs and _takes_any(tree)]
        missing += [str(k) for k in range(max(len(args), len(self._names)), len(self._args))]
        if unknown or missing:
            takes = count(len(self._args) + len(self._kwargs), "input")
            raise InvalidModel(
                f"the model takes {takes}; after {len(args)} by position those by name must be "
                f"{', '.join(wanted) or 'none'}; got {', '.join(kwargs) or 'none'}."
            )
        for k, value in enumerate(args):
            self._fill(self._args[k], value, self._names[k] if k < len(self._names) else f"[{k}]", flat)
        for name, value in kwargs.items():
            self._fill(wanted[name], value, name, flat)
        return flat

    def build(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """What the caller gets, after what the model writes into its inputs is there."""
        for source, target in self._written:
            _write(inputs[source], outputs[target])
        return self._make(outputs)

    def _fill(self, tree: Tree, value: Any, path: str, flat: list[Any]) -> None:
        kind, what = _kind(tree)
        if kind == "value":
            flat[what] = value
        elif kind == "size":
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise InvalidModel(f"input '{path}' must be an integer; got {_described(value)}.")
            flat[what] = np.array(value, np.int64)
        elif kind == "complex":
            flat[what[0]], flat[what[1]] = _parts(value, path)
        elif kind == "sequence":
            self._fill_sequence(what, value, path, flat)
        elif kind == "text":
            flat[what[0]], flat[what[1]] = coded(value, path)
        elif kind == "optional":
            flat[what[0]] = np.array(value is not None)
            if value is None:
                self._fill_absent(what[1], flat)
            else:
                self._fill(what[1], value, path, flat)
        elif kind == "fixed":
            if type(value) is not type(what) or value != what:
                raise InvalidModel(
                    f"input '{path}' was exported as {what!r} and is fixed; got {value!r}. Export the model with that."
                )
        elif kind in ("tuple", "list"):
            if not isinstance(value, (tuple, list)) or len(value) != len(what):
                raise InvalidModel(f"input '{path}' must be a {kind} of {len(what)}; got {_described(value)}.")
            for k, (inner, item) in enumerate(zip(what, value, strict=True)):
                self._fill(inner, item, f"{path}[{k}]", flat)
        else:
            fields = dict(map(tuple, what if kind == "dict" else tree["fields"]))
            if kind == "dict" or isinstance(value, Mapping):
                items = value if isinstance(value, Mapping) else None
            else:
                items = {name: getattr(value, name) for name in fields if hasattr(value, name)}
            if items is None or set(items) != set(fields):
                keys = ", ".join(map(str, fields))
                raise InvalidModel(f"input '{path}' must be a {kind} of {keys}; got {_described(value)}.")
            for key, inner in fields.items():
                self._fill(inner, items[key], f"{path}[{key!r}]" if kind == "dict" else f"{path}.{key}", flat)

    def _fill_sequence(self, what: list[Any], value: Any, path: str, flat: list[Any]) -> None:
        if not isinstance(value, (list, tuple)):
            raise InvalidModel(f"input '{path}' must be a list of arrays; got {_described(value)}.")
        arrays = [np.asarray(item) for item in value]
        (elements, k), axes = what, self._inputs[what[1]][2][1] - 1
        wanted = self._empty(elements["value"])
        for n, array in enumerate(arrays):
            if array.dtype != wanted.dtype or array.ndim > axes:
                raise InvalidModel(
                    f"input '{path}[{n}]' must be {wanted.dtype} of at most {axes} axes; "
                    f"got {array.dtype} of {array.ndim}."
                )
        flat[elements["value"]] = np.concatenate([wanted, *(array.reshape(-1) for array in arrays)])
        rows = [[array.ndim, *array.shape, *[0] * (axes - array.ndim)] for array in arrays]
        flat[k] = np.array(rows, np.int64).reshape(len(rows), axes + 1)

    def _fill_absent(self, tree: Tree, flat: list[Any]) -> None:
        """Values of the least size where an optional value is absent: nothing reads them."""
        kind, what = _kind(tree)
        if kind == "sequence":
            self._fill_absent(what[0], flat)
        for port in [what[1]] if kind == "sequence" else what if kind == "text" else [what]:
            flat[port] = self._empty(port)

    def _empty(self, port: int) -> Any:
        _, dtype, shape = self._inputs[port]
        return np.zeros([size if isinstance(size, int) else 0 for size in shape], numpy_type(dtype))

    def _maker(self, tree: Tree) -> Callable[[Sequence[Any]], Any]:
        kind, what = _kind(tree)
        if kind == "value":
            return lambda outputs: outputs[what]
        if kind == "size":
            return lambda outputs: outputs[what].item()
        if kind == "complex":
            return lambda outputs: _joined(outputs[what[0]], outputs[what[1]])
        if kind == "sequence":
            elements = self._maker(what[0])
            return lambda outputs: _cut(elements(outputs), outputs[what[1]])
        if kind == "shaped":
            elements = self._maker(what[0])
            return lambda outputs: _only(_cut(elements(outputs), outputs[what[1]]))
        if kind == "text":
            return lambda outputs: decoded(outputs[what[0]], outputs[what[1]])
        if kind == "optional":
            inner = self._maker(what[1])
            return lambda outputs: inner(outputs) if outputs[what[0]].item() else None
        if kind == "rows":
            keys, port = what
            return lambda outputs: [dict(zip(keys, row, strict=True)) for row in outputs[port].tolist()]
        if kind == "fixed":
            return lambda _: what
        if kind in ("tuple", "list"):
            makers, whole = [self._maker(inner) for inner in what], (tuple if kind == "tuple" else list)
            return lambda outputs: whole(make(outputs) for make in makers)
        fields = {key: self._maker(inner) for key, inner in (what if kind == "dict" else tree["fields"])}
        made = dict if kind == "dict" else self._record_class(what, list(fields))
        if kind == "dict":
            return lambda outputs: {key: make(outputs) for key, make in fields.items()}
        return lambda outputs: _record(made, {key: make(outputs) for key, make in fields.items()})

    def _record_class(self, called: str, fields: list[str]) -> Callable[..., Any]:
        found: Any = self._classes.get(called)
        if found is None:
            module, _, path = called.partition(":")
            found = sys.modules.get(module)
            for name in path.split("."):  # not by getattr, with which some modules import more
                found = getattr(found, "__dict__", {}).get(name)
        own = record_fields(found)
        if not set(fields) <= set(own):
            return Record
        if hasattr(found, "n_sequence_fields"):
            return (lambda **values: found(values[name] for name in own)) if len(own) == len(fields) else Record
        return found if _can_make(found, fields) else Record


def _parts(value: Any, path: str) -> tuple[Any, Any]:
    """Those of complex numbers, of a tensor or an array."""
    dtype = getattr(value, "dtype", None)
    if getattr(dtype, "is_complex", False):
        plain = value.resolve_conj()
        return plain.real.contiguous(), plain.imag.contiguous()
    if getattr(dtype, "kind", "") != "c":
        raise InvalidModel(f"input '{path}' must be complex; got {dtype or type(value).__name__}. Convert it.")
    return value.real.copy(), value.imag.copy()


def _joined(real: Any, imaginary: Any) -> Any:
    if hasattr(real, "numpy"):  # a tensor
        return sys.modules["torch"].complex(real, imaginary)
    joined = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    joined.real, joined.imag = real, imaginary
    return joined


def _cut(elements: Any, rows: Any) -> list[Any]:
    """A sequence of arrays, whose elements lie one array after another. InvalidModel where their shapes do not fit."""
    arrays, at = [], 0
    for rank, *sizes in rows.tolist():
        shape = sizes[: max(rank, 0)]
        end = at + math.prod(shape)
        if not 0 <= rank <= len(sizes) or min(shape, default=0) < 0 or end > len(elements):
            raise InvalidModel(f"the model gives a sequence with an array of the shape {sizes} and rank {rank}.")
        arrays.append(elements[at:end].reshape(shape))
        at = end
    return arrays


def _only(arrays: list[Any]) -> Any:
    """The one array. InvalidModel where there are none or several."""
    if len(arrays) != 1:
        raise InvalidModel(f"the model gives {len(arrays)} shapes of one array.")
    return arrays[0]


def _write(to: Any, value: Any) -> None:
    """Into an array of the caller. InvalidModel where it cannot be written."""
    try:
        if hasattr(to, "copy_"):
            to.copy_(value)
        else:
            to[...] = value
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidModel(f"the model writes into an input, which cannot be written: {error}. Pass a copy.") from error


def record_fields(kind: Any) -> list[str]:
    """Of a dataclass, a named tuple or a tuple that an operator of torch returns; of nothing else."""
    if not isinstance(kind, type):
        return []
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    if not issubclass(kind, tuple):
        return []
    if hasattr(kind, "n_sequence_fields"):
        return [name for name, member in vars(kind).items() if isinstance(member, types.MemberDescriptorType)]
    return list(getattr(kind, "_fields", ()))


def _record(made: Callable[..., Any], values: dict[str, Any]) -> Any:
    """The record, or its fields where its class has something against them: that is no fault of the run."""
    try:
        return made(**values)
    except Exception:
        return Record(values)


def _can_make(record: type, fields: list[str]) -> bool:
    try:
        inspect.signature(record).bind(**dict.fromkeys(fields))
    except (TypeError, ValueError):
        return False
    return True


def _kind(tree: Tree) -> tuple[str, Any]:
    return next((kind, what) for kind, what in tree.items() if kind != "fields")


def _takes_any(tree: Tree) -> bool:
    """Whether a port of the executable is among the leaves."""
    kind, what = _kind(tree)
    if kind in ("value", "complex", "sequence", "text", "optional", "fixed"):
        return kind != "fixed"
    inner = what if kind in ("tuple", "list") else [child for _, child in tree.get("fields", what)]
    return any(_takes_any(child) for child in inner)


def _described(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a {type(value).__name__} of {', '.join(map(str, value)) or 'nothing'}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return type(value).__name__
