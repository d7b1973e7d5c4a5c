"""Complex numbers of any front."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hetnn.importers.lowering.sizes import Size


@dataclass(frozen=True)
class Complex:
    """A tensor of complex numbers, as two values."""

    real: Any
    imag: Any
    pairs: Any = None  # both as reals [...,2], where they came from there

    @property
    def parts(self) -> tuple[Any, Any]:
        """The real part and the imaginary one, values of one shape and type."""
        return self.real, self.imag

    @property
    def shape(self) -> list[Size]:
        """That of either part."""
        return list(self.real.shape)
