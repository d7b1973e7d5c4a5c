"""What the operators of other systems become: rows of the operators' files where one is one of hetnn's, else rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hetnn import _core
from hetnn.errors import InternalError

if TYPE_CHECKING:
    from hetnn.importers.onnx_rules.call import Call as OnnxCall
    from hetnn.importers.torch_rules.call import Call as TorchCall

Call = TypeVar("Call")
# Builds what a call means and returns its value, or a list of values where there are several.
Rule = Callable[[Call], Any]


@dataclass(frozen=True)
class Row:
    """A one-to-one name: hetnn's operator, and which of its inputs and attributes each argument of the call fills."""

    op: dict[str, Any]
    arguments: tuple[str, ...]

    @property
    def inputs(self) -> list[str]:
        return [row["name"] for row in self.op["inputs"]]

    @property
    def attr_kinds(self) -> dict[str, str]:
        return {row["name"]: row["kind"] for row in self.op["attrs"]}

    @property
    def variadic(self) -> bool:
        return any(row["variadic"] for row in self.op["inputs"])

    @property
    def elementwise(self) -> bool:
        """Whether the operands must be of one element type, which is for the front to choose."""
        return "elementwise" in self.op["traits"]


class Front(Generic[Call]):
    """One kind of model. A name stands in an operator's file or has a rule, never both, and has one rule."""

    def __init__(self, name: str, same_signature: Callable[[str, Row], bool] | None = None) -> None:
        self.name = name
        # Whether a row that says a name alone, not what its arguments fill, stands for an operator of equal signature.
        self._same_signature = same_signature
        self.rules: dict[str, Rule[Call]] = {}

    def rule(self, *names: str) -> Callable[[Rule[Call]], Rule[Call]]:
        """Registers a function for names that are not one operator in every call. InternalError for a second one."""

        def register(function: Rule[Call]) -> Rule[Call]:
            for name in names:
                if name in self.rules:
                    raise InternalError(f"{self.name} '{name}' has two rules; a name has one.")
                self.rules[name] = function
            return function

        return register

    @cached_property
    def rows(self) -> dict[str, Row]:
        """The rows of the operators' files for this front."""
        found: dict[str, Row] = {}
        for op in _core.operators():
            for entry in op[self.name]:
                if isinstance(entry, str):
                    row = Row(op, tuple(part["name"] for part in (*op["inputs"], *op["attrs"])))
                    if self._same_signature and self._same_signature(entry, row):
                        found[entry] = row
                else:
                    name, arguments = entry
                    found[name] = Row(op, tuple(arguments.split()))
        return found

    def shadowed(self) -> list[str]:
        """Names that have both a row and a rule: one of the two must go."""
        return sorted(self.rows.keys() & self.rules.keys())

    def knows(self, name: str) -> bool:
        return name in self.rows or name in self.rules


def _is_onnx_signature(name: str, row: Row) -> bool:
    """Whether the operators have as many inputs, and attributes of the same names that may be left out alike."""
    from onnx import defs

    schema = defs.get_schema(name)
    variadic = [part.option == defs.OpSchema.FormalParameterOption.Variadic for part in schema.inputs]
    attrs = {attr["name"]: attr["default"] is None for attr in row.op["attrs"]}
    return (
        variadic == [part["variadic"] for part in row.op["inputs"]]
        and attrs.keys() == schema.attributes.keys()
        and all(
            attr.required or not must_be_given or attr.default_value.name
            for attr, must_be_given in ((schema.attributes[key], attrs[key]) for key in attrs)
        )
    )


TORCH: Front[TorchCall] = Front("torch")
ONNX: Front[OnnxCall] = Front("onnx", _is_onnx_signature)
