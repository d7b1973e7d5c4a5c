"""The options of `compile` and `plan`: signature, help and flags from the compiler's own table of them."""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from hetnn import _core
from hetnn.json_text import dump_json

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Option:
    """One row of the table. `flag` is that of the commands with what it takes, "--threads N", or nothing."""

    name: str
    flag: str
    doc: str
    schema: Mapping[str, Any]

    @property
    def default(self) -> Any:
        """What it is when not given; None stands for nothing, an empty list or an empty object."""
        return self.schema.get("default") or (False if self.schema.get("default") is False else None)

    @property
    def type(self) -> str:
        """The type of its values in Python."""
        given = _type_of(self.schema)
        return f"{given} | None" if self.default is None and given != "Any" and "None" not in given else given


def _type_of(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " | ".join(_type_of(one) for one in schema["anyOf"])
    if "enum" in schema:
        words = [word for word in schema["enum"] if isinstance(word, str)]
        names = f"Literal[{', '.join(json.dumps(word) for word in words)}]"
        return names if len(words) == len(schema["enum"]) else f"bool | {names}"
    kind = str(schema.get("type"))
    if kind == "array":
        return f"Iterable[{_type_of(schema['items'])}]"
    if kind == "object":
        return f"Mapping[str, {_type_of(schema.get('additionalProperties', {}))}]"
    if kind == "string" and schema.get("format") == "path":
        return "str | os.PathLike[str]"
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}.get(kind, "Any")


@cache
def table() -> tuple[Option, ...]:
    """All options, in the order of the table."""
    rows = _core.compile_options()
    return tuple(Option(row["name"], row["flag"], row["doc"], json.loads(row["schema"])) for row in rows)


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """All options, those not given at their defaults. InvalidModel naming one that is unknown or makes no sense."""
    options: dict[str, Any] = json.loads(_core.read_options(dump_json(given, "options")))
    return options


def with_options(function: _Function) -> _Function:
    """Gives a function of `**options` the signature and the help of the options themselves."""
    signature = inspect.signature(function)
    own = [parameter for parameter in signature.parameters.values() if parameter.kind != parameter.VAR_KEYWORD]
    options = [
        inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=row.default, annotation=row.type)
        for row in table()
    ]
    function.__signature__ = signature.replace(parameters=own + options)  # type: ignore[attr-defined]
    lines = "\n".join(f"    {row.name}: {row.doc}." for row in table())
    function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n    Options:\n{lines}\n"
    return function


def add_option_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of every command that plans or compiles."""
    for row in table():
        if not row.flag:
            continue
        flag, _, takes = row.flag.partition(" ")
        told: dict[str, Any] = {"dest": row.name, "default": None, "help": row.doc.replace("%", "%%")}
        if not takes:
            if row.default:  # the text says what is done without the flag
                told["help"] = f"turn off: {told['help']}"
            parser.add_argument(flag, action="store_const", const=not row.default, **told)
        elif "enum" in row.schema:
            parser.add_argument(flag, choices=row.schema["enum"], **told)
        elif "=" in takes or row.schema.get("type") == "array":
            parser.add_argument(flag, action="append", metavar=takes, **told)
        else:
            kinds = {"int": int, "float": float}
            kind = kinds.get(row.type.removesuffix(" | None"), str)
            parser.add_argument(flag, type=kind, metavar=takes, **told)


def given_options(args: argparse.Namespace, read_pairs: Callable[[str, list[str]], dict[str, Any]]) -> dict[str, Any]:
    """The options among a command's arguments that were given; `read_pairs` reads KEY=VALUE."""
    out: dict[str, Any] = {}
    for row in table():
        value = getattr(args, row.name, None)
        if value is None:
            continue
        flag, _, takes = row.flag.partition(" ")
        if "=" in takes and row.schema.get("type") == "array":
            value = [read_pairs(flag, pairs.split(",")) for pairs in value]
        elif "=" in takes:
            value = read_pairs(flag, value)
        out[row.name] = value
    return out
