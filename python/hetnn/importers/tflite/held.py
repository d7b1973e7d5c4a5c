"""What stands for a tensor of a file: its constant, or its value as the file lays it out, or with channels first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hetnn.importers.tflite.model import Array, Quantization

# Of images: the file's axes [N,H,W,C] as [N,C,H,W], and back.
TO_FIRST, TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)


@dataclass(frozen=True)
class First:
    """A value of rank 4 whose channels a rule has put first."""

    value: Any


@dataclass
class Held:
    """A tensor: each of its two layouts is made when it is first asked for.

    `array` has the file's numbers where they are known; `values` are by whether the channels come first; `variable` is
    the name of the variable that it is a handle of.
    """

    quant: Quantization | None
    array: Array | None
    values: dict[bool, Any]
    made_first: bool = False
    variable: str = ""
