"""ONNX's own account of its operators, from the package onnx: element types, attributes, and since when.

The package is imported when it is first asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from hetnn.element_types import TYPES
from hetnn.errors import Unsupported
from hetnn.report.text import count

# The newest operator set that is written: 27 has no operator more, and fewer readers. A model states the oldest that
# has its operators as they are in this one.
NEWEST = 26
# Readers that follow ONNX from afar, such as ONNX Runtime's providers for accelerators, know operators up to this set.
WIDELY_READ = 21
_NAMES = {f"tensor({row.onnx.lower()})": row.name for row in TYPES if row.onnx}
_NUMBERS = {row.name: row.onnx for row in TYPES if row.onnx}


def onnx() -> Any:
    """The package. Unsupported where it is not installed."""
    try:
        import onnx as package
        import onnx.helper
    except ModuleNotFoundError as error:
        raise Unsupported(f"writing ONNX models needs {error.name}. Run pip install 'hetnn[onnx]'.") from error
    return package


def number(dtype: str) -> int:
    """ONNX's number of an element type. Unsupported for one that the installed package does not know."""
    known = dict(onnx().TensorProto.DataType.items())
    if _NUMBERS.get(dtype) not in known:
        raise Unsupported(f"the installed package onnx has no {dtype}. Run pip install --upgrade onnx.")
    return int(known[_NUMBERS[dtype]])


@dataclass(frozen=True)
class Schema:
    """An operator of ONNX: for inputs and outputs the letter or type, and what each letter may be."""

    name: str
    since: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    variadic: bool
    allowed: dict[str, frozenset[str]]
    presets: dict[str, Any]

    def input(self, k: int) -> str:
        """The letter of input k; the last one's behind it where it takes any number."""
        return self.inputs[min(k, len(self.inputs) - 1)]

    def kinds(self, letter: str) -> frozenset[str]:
        """Element types, by hetnn's names, that a letter may be."""
        return self.allowed.get(letter) or frozenset(filter(None, [_NAMES.get(letter)]))

    def fault(self, dtypes: list[str | None], attrs: dict[str, Any]) -> str | None:
        """Why a call of these element types and attributes is none, or None."""
        if len(dtypes) > len(self.inputs) and not self.variadic:
            return f"ONNX's {self.name} takes {count(len(self.inputs), 'input')}; got {len(dtypes)}"
        bound: dict[str, str] = {}
        for k, dtype in enumerate(dtypes):
            if dtype is None:
                continue
            letter = self.input(k)
            if dtype not in self.kinds(letter):
                return f"ONNX's {self.name} takes no {dtype} there"
            alike = not self.variadic or k < len(self.inputs)
            if alike and letter in self.allowed and bound.setdefault(letter, dtype) != dtype:
                return f"ONNX's {self.name} takes no {dtype} beside {bound[letter]}"
        unknown = [name for name in attrs if name not in self.presets]
        return f"ONNX's {self.name} has no attribute {unknown[0]}" if unknown else None

    def result(self, k: int, dtypes: list[str | None]) -> str | None:
        """The element type of output k, where those of the inputs say it."""
        letter = self.outputs[min(k, len(self.outputs) - 1)]
        for n, dtype in enumerate(dtypes):
            if dtype is not None and self.input(n) == letter:
                return dtype
        kinds = self.kinds(letter)
        return next(iter(kinds)) if len(kinds) == 1 else None


def _plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


@cache
def schema_of(op_type: str, domain: str = "") -> Schema:
    """The newest form of an operator. Unsupported for one that the installed package does not know."""
    package = onnx()
    from onnx import defs

    try:
        found: Any = defs.get_schema(op_type, NEWEST if not domain else defs.onnx_ml_opset_version(), domain)
    except defs.SchemaError as error:
        raise Unsupported(f"onnx {package.__version__} has no {op_type}. Run pip install --upgrade onnx.") from error
    allowed = {
        row.type_param_str: frozenset(_NAMES[kind] for kind in row.allowed_type_strs if kind in _NAMES)
        for row in found.type_constraints
    }
    many = defs.OpSchema.FormalParameterOption.Variadic
    presets = {
        name: _plain(package.helper.get_attribute_value(row.default_value)) if row.default_value.name else None
        for name, row in found.attributes.items()
    }
    return Schema(
        op_type,
        found.since_version,
        tuple(row.type_str for row in found.inputs),
        tuple(row.type_str for row in found.outputs),
        bool(found.inputs) and found.inputs[-1].option == many,
        allowed,
        presets,
    )


@cache
def least_set(op_type: str, domain: str, dtypes: frozenset[str], told: frozenset[str] = frozenset()) -> int:
    """The operator set that a model must state for a call on these element types, with these attributes: that of the
    operator's newest form or, where few read it, of an older one that has all of them and means the same.
    """
    from onnx import defs

    newest = schema_of(op_type, domain)
    if domain or newest.since <= WIDELY_READ:
        return newest.since
    try:
        older: Any = defs.get_schema(op_type, WIDELY_READ, domain)
    except defs.SchemaError:
        return newest.since
    attrs = told | set(older.attributes)
    alike = _form(older, dtypes, attrs) == _form(defs.get_schema(op_type, newest.since, domain), dtypes, attrs)
    return int(older.since_version) if alike else newest.since


def _form(schema: Any, dtypes: frozenset[str], attrs: frozenset[str]) -> Any:
    """What two forms of an operator must share: a further attribute that is not told leaves what was."""
    ports = [[(row.name, row.type_str, row.option) for row in rows] for rows in (schema.inputs, schema.outputs)]
    told = [
        (name, row.type, row.required, row.default_value.SerializeToString())
        for name, row in sorted(schema.attributes.items())
        if name in attrs
    ]
    kinds = {
        row.type_param_str: {_NAMES.get(kind) for kind in row.allowed_type_strs} & dtypes
        for row in schema.type_constraints
    }
    return ports, told, kinds
