"""Names beyond the standard: what a node of each holds, and either its rule or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import onnx
from onnx import defs

from hetnn.importers.onnx.rules.call import ONNX, Call
from hetnn.importers.registry import Rule

MICROSOFT = "com.microsoft"
_Type = defs.OpSchema.AttrType


@dataclass(frozen=True)
class Kind:
    """The kind of an attribute that is nothing where a node does not give it."""

    type: defs.OpSchema.AttrType
    required: bool = False


INT, FLOAT, STRING = Kind(_Type.INT), Kind(_Type.FLOAT), Kind(_Type.STRING)
INTS, FLOATS, STRINGS = Kind(_Type.INTS), Kind(_Type.FLOATS), Kind(_Type.STRINGS)
SOME_INT, SOME_INTS = Kind(_Type.INT, required=True), Kind(_Type.INTS, required=True)
SOME_STRING = Kind(_Type.STRING, required=True)
GRAPH, SOME_GRAPH = Kind(_Type.GRAPH), Kind(_Type.GRAPH, required=True)


class _Added(Mapping[tuple[str, str], defs.OpSchema]):
    """Schemas, each made when it is asked for: most models hold no node of any."""

    def __init__(self) -> None:
        self._declared: dict[tuple[str, str], Callable[[], defs.OpSchema]] = {}
        self._made: dict[tuple[str, str], defs.OpSchema] = {}

    def declare(self, name: tuple[str, str], make: Callable[[], defs.OpSchema]) -> None:
        self._declared[name] = make

    def __getitem__(self, name: tuple[str, str]) -> defs.OpSchema:
        if name not in self._made:
            self._made[name] = self._declared[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)


# By domain and name: what a node of the operator holds, in the words in which the standard says it of its own.
ADDED = _Added()
# Attributes that decide nothing, or nothing in some forms of their node, behind the operator's name.
UNREAD: set[str] = set()
# What an LSTM's nodes hold beside their inputs.
LSTM: dict[str, Any] = {
    "activation_alpha": FLOATS,
    "activation_beta": FLOATS,
    "activations": STRINGS,
    "clip": FLOAT,
    "direction": "forward",
    "hidden_size": INT,
    "input_forget": 0,
}
# By domain and name: why hetnn does not read an operator.
REFUSED: dict[tuple[str, str], str] = {}

_OPTIONS = {"?": defs.OpSchema.FormalParameterOption.Optional, "*": defs.OpSchema.FormalParameterOption.Variadic}

# Rules look at types by themselves.
_ANY = "tensor(float)"


def contrib(
    name: str, inputs: str, *, domain: str = MICROSOFT, like: str = "", unread: str = "", **attributes: Any
) -> Callable[[Rule[Call]], Rule[Call]]:
    """Registers the rule of an operator, and what its nodes hold.

    `inputs` by name, '?' behind those that may be absent and '*' behind one that repeats. An attribute is given as what
    it is where a node does not have it, or as its kind where it is nothing then; those of the standard's operator
    `like` come with them. `unread`: those that decide nothing, or nothing in some forms of the node.
    """
    ADDED.declare((domain, name), partial(_schema, domain, name, inputs, like, attributes))
    key = f"{domain}.{name}" if domain else name
    UNREAD.update(f"{key}.{attribute}" for attribute in unread.split())
    return ONNX.rule(key)


def _schema(domain: str, name: str, inputs: str, like: str, attributes: dict[str, Any]) -> defs.OpSchema:
    single = defs.OpSchema.FormalParameterOption.Single
    known = {attr.name: attr for attr in defs.get_schema(like).attributes.values()} if like else {}
    known.update((key, _attribute(key, preset)) for key, preset in attributes.items())
    return defs.OpSchema(
        name,
        domain,
        1,
        inputs=[
            defs.OpSchema.FormalParameter(word.rstrip("?*"), _ANY, param_option=_OPTIONS.get(word[-1], single))
            for word in inputs.split()
        ],
        outputs=[defs.OpSchema.FormalParameter("Y", _ANY, param_option=_OPTIONS["*"])],
        attributes=list(known.values()),
    )


def _attribute(name: str, preset: Any) -> defs.OpSchema.Attribute:
    if isinstance(preset, Kind):
        return defs.OpSchema.Attribute(name, preset.type, "", required=preset.required)
    return defs.OpSchema.Attribute(name, onnx.helper.make_attribute(name, preset))


def as_standard(name: str, inputs: str, *, domain: str = MICROSOFT, like: str = "", **attributes: Any) -> None:
    """An operator that means what the standard's operator of that name, or `like`, does."""

    def rule(call: Call) -> Any:
        return call.standard_all(like or name, call.inputs, dict(call.attrs), call.outputs_used())

    contrib(name, inputs, domain=domain, like=like or name, **attributes)(rule)


def refuse(reason: str, *names: str, domain: str = MICROSOFT) -> None:
    """Operators that no rule reads, and why. Their nodes are Unsupported with that reason."""
    REFUSED.update(((domain, name), reason) for name in names)
