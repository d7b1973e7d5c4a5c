"""A second executable of a model whose inputs share the name of a size, for callers who pass unlike sizes."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hetnn.errors import Error

if TYPE_CHECKING:
    from hetnn.executable import Executable, Port


class SizesApart:
    """What `make` compiles where it is asked for first: the model with a size of each input's own under each name.

    Exporters name axes alike that need not be: the lengths of what is read and of what is written.
    """

    def __init__(self, make: Callable[[], Executable]) -> None:
        self._make = make
        self._made: Executable | None = None
        self._lock = threading.Lock()
        self._failed = False

    def for_inputs(self, ports: Sequence[Port], arrays: Sequence[Any]) -> Executable | None:
        """The executable, with a warning when it is made; None where the sizes are alike or something else is wrong."""
        names = _unlike(ports, arrays)
        if not names:
            return None
        with self._lock:
            if self._made is None and not self._failed:
                try:
                    self._made = self._make()
                except Error:
                    self._failed = True
                    return None
                warnings.warn(
                    f"inputs differ in {', '.join(names)}, which the model gives one name: it is compiled again with "
                    "sizes of their own. Name them apart in the model where they may differ.",
                    RuntimeWarning,
                    stacklevel=4,
                )
            return self._made


def _unlike(ports: Sequence[Port], arrays: Sequence[Any]) -> list[str]:
    """Names of sizes that have several values, where nothing else is wrong with the shapes."""
    found: dict[str, set[int]] = {}
    if len(ports) != len(arrays):
        return []
    for port, array in zip(ports, arrays, strict=True):
        if len(port.shape) != len(array.shape):
            return []
        for wanted, size in zip(port.shape, array.shape, strict=True):
            if isinstance(wanted, int) and wanted != size:
                return []
            if isinstance(wanted, str) and wanted.isidentifier():
                found.setdefault(wanted, set()).add(int(size))
    return [name for name, sizes in found.items() if len(sizes) > 1]
