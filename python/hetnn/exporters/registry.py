"""What hetnn's operators become elsewhere: rows of the operators' files where they are one there, else rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Generic, TypeVar

from hetnn import _core
from hetnn.errors import InternalError

Call = TypeVar("Call")
# Writes what a node means and returns its value, or a list of values where there are several.
Rule = Callable[[Call], Any]


@cache
def operators() -> dict[str, dict[str, Any]]:
    """The table of operators by name, read once."""
    return {op["name"]: op for op in _core.operators()}


class Rules(Generic[Call]):
    """One kind of file: a function for each operator that is no row of its file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rules: dict[str, Rule[Call]] = {}

    def exports(self, *ops: str) -> Callable[[Rule[Call]], Rule[Call]]:
        """Registers a function for operators. InternalError for a second one, or an operator that is not there."""

        def register(function: Rule[Call]) -> Rule[Call]:
            for op in ops:
                if op in self.rules or op not in operators():
                    raise InternalError(f"{self.name}: '{op}' has two rules or is no operator.")
                self.rules[op] = function
            return function

        return register
