"""What values inside a model are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hetnn.errors import InvalidModel


class Names:
    """Values by the names that people know: a value's or node's own, or a module's, whose last node's result it is."""

    def __init__(
        self,
        nodes: Sequence[tuple[str, str, list[str]]],
        repeated: Sequence[tuple[str, str, bool]] = (),
        called: Mapping[str, str] | None = None,
    ) -> None:
        """`nodes` by name, module and outputs; `repeated` what loops compute in each round, by name, loop, and whether
        it has the same shape in each; `called` values by what else the model calls them. `order` are the values that
        every run has, those of a loop before its own.
        """
        within: dict[str, list[str]] = {}
        for value, loop, keeps_shape in repeated:
            if keeps_shape:
                within.setdefault(loop, []).append(value)
        self.order = [value for name, _, outputs in nodes for value in (*within.get(name, ()), *outputs)]
        self._values = {value: value for value in self.order} | {value: value for value, _, _ in repeated}
        self._modules: dict[str, str] = {}
        for name, module, outputs in nodes:
            self._values.setdefault(name, outputs[0])
            parts = module.split(".") if module else []
            for k in range(1, len(parts) + 1):
                self._modules[".".join(parts[:k])] = outputs[0]
        for name, value in (called or {}).items():
            if value in self._values:
                self._values.setdefault(name, value)

    def value(self, name: str) -> str | None:
        """The value that goes by the name; None where none does."""
        return self._values.get(name, self._modules.get(name))

    def unknown(self, name: str) -> InvalidModel:
        """The error for a name that is none, with those that are like it."""
        import difflib

        close = difflib.get_close_matches(name, [*self._values, *self._modules], 3)
        like = f" Close to it: {', '.join(close)}." if close else ""
        return InvalidModel(f"the model has no node, value or module '{name}'.{like}")
