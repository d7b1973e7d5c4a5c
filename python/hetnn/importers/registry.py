"""What the operators of other systems become: rows of the operators' files where one is one of hetnn's, else rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Generic, TypeVar

from hetnn import _core
from hetnn.errors import InternalError

Call = TypeVar("Call")
# Builds what a call means and returns its value, or a list of values where there are several.
Rule = Callable[[Call], Any]


@cache
def operators() -> list[dict[str, Any]]:
    """What hetnn's operators take and give, read once."""
    return _core.signatures()


@dataclass(frozen=True)
class Row:
    """A one-to-one name: hetnn's operator, and which of its inputs and attributes each argument of the call fills."""

    op: dict[str, Any]
    arguments: tuple[str, ...]
    since: int = 0  # of ONNX: the operator set from which on it holds

    @property
    def inputs(self) -> list[str]:
        """Names of the operator's inputs, in order."""
        return [row["name"] for row in self.op["inputs"]]

    @property
    def attr_kinds(self) -> dict[str, str]:
        """The kind of each of the operator's attributes, by its name."""
        return {row["name"]: row["kind"] for row in self.op["attrs"]}

    @property
    def variadic(self) -> bool:
        """Whether the operator takes any number of inputs."""
        return any(row["variadic"] for row in self.op["inputs"])

    @property
    def elementwise(self) -> bool:
        """Whether the operands must be of one element type, which is for the front to choose."""
        return "elementwise" in self.op["traits"]


class Front(Generic[Call]):
    """One kind of model. A name stands in an operator's file or has a rule, never both, and has one rule.

    The rules of ONNX may be for what was before an operator set: `Softmax<13`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
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
        return {
            name: Row(op, tuple(arguments.split()), *since)
            for op in operators()
            for name, *since, arguments in op.get(self.name, ())
            if arguments
        }

    def ruled(self) -> list[str]:
        """Names that operators' files leave to a rule."""
        return [name for op in operators() for name, *_, arguments in op.get(self.name, ()) if not arguments]

    def shadowed(self) -> list[str]:
        """Names that have both a row and a rule: one of the two must go."""
        bounds = ((key, *key.partition("<")[::2]) for key in self.rules)
        return sorted(
            key for key, name, bound in bounds if name in self.rows and int(bound or 1 << 30) > self.rows[name].since
        )

    def knows(self, name: str) -> bool:
        """Whether a name has a row or a rule."""
        return name in self.rows or name in self.rules
