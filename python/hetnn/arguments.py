"""From what a caller passes, by position or by name, to the inputs of a run; from its outputs to what a call gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hetnn.errors import InvalidModel
from hetnn.report.text import count
from hetnn.structure import Signature

if TYPE_CHECKING:
    from hetnn import _runtime


class Arguments:
    """Those of one model, nested as its signature says, where it has one; `classes` are those of its records."""

    def __init__(self, engine: _runtime.Executable, classes: Mapping[str, type] | None) -> None:
        self._inputs, signature = engine.inputs, engine.signature_json
        self._signature = Signature(signature, self._inputs, classes) if signature else None

    def passed(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> Sequence[Any]:
        """The inputs of a run, in order."""
        if self._signature is not None:
            return self._signature.flatten(inputs, named)
        return (*inputs, *self.by_name(len(inputs), named)) if named else inputs

    def returned(self, inputs: Sequence[Any], outputs: list[Any]) -> Any:
        """What a call gives, of a run's inputs and outputs."""
        if self._signature is not None:
            return self._signature.build(inputs, outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def called(self, index: int) -> str:
        """An input, for messages."""
        ports = self._inputs
        return f"input '{ports[index][0]}'" if index < len(ports) else f"input {index}"

    def by_name(self, positional: int, named: Mapping[str, Any]) -> list[Any]:
        """The inputs behind so many by position. InvalidModel for other names than theirs."""
        wanted = [name for name, _, _ in self._inputs][positional:]
        unknown = [name for name in named if name not in wanted]
        missing = [name for name in wanted if name not in named]
        if unknown or missing:
            takes = count(len(wanted) + positional, "input")
            raise InvalidModel(
                f"the model takes {takes}; after {positional} by position those by name must be "
                f"{', '.join(wanted) or 'none'}; got {', '.join(named)}."
            )
        return [named[name] for name in wanted]
