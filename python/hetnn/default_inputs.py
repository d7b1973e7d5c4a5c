"""Inputs for which a model has values of its own, for callers who give others."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hetnn.executable import Executable


class DefaultInputs:
    """What `make` compiles, once for each choice of inputs: the model with those that a caller gives as inputs.

    Values that a model has itself are constants until then, so that all of compiling may use them. `names` are all
    inputs in the model's order, `defaults` those with a value.
    """

    def __init__(
        self, names: Sequence[str], defaults: Collection[str], make: Callable[[frozenset[str]], Executable]
    ) -> None:
        self._names, self._defaults, self._make = list(names), frozenset(defaults), make
        self._made: dict[frozenset[str], Executable] = {}
        self._lock = threading.Lock()

    def for_call(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> tuple[Executable, list[Any]] | None:
        """The executable and its inputs in order, with a warning when it is made; None where no default is given.

        By position are the inputs without a value, or where there are more, all in the model's order.
        """
        needed = [name for name in self._names if name not in self._defaults]
        order = needed if len(inputs) <= len(needed) else self._names
        values = {**dict(zip(order, inputs, strict=False)), **named}
        opened = self._defaults.intersection(values)
        if not opened or len(values) != len(inputs) + len(named) or values.keys() != opened.union(needed):
            return None
        with self._lock:
            if opened not in self._made:
                self._made[opened] = self._make(opened)
                warnings.warn(
                    f"{', '.join(sorted(opened))}, for which the model has values, is given others: it is compiled "
                    "again with such inputs. Where they stay as they are, say so when compiling: fix=.",
                    RuntimeWarning,
                    stacklevel=3,
                )
            executable = self._made[opened]
        return executable, [values[name] for name in self._names if name in values]
