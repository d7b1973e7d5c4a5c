"""torchao's operator, as its package declares it: exported programs hold it, and need its name alone to be read."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_SCHEMA = (
    "dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType input_dtype, "
    "Scalar? quant_min=None, Scalar? quant_max=None, ScalarType output_dtype=6) -> Tensor"
)
_declared: list[torch.library.Library] = []


def _repeated(value: Tensor, blocks: list[int]) -> Tensor:
    """For each element what belongs to its block."""
    for axis, block in enumerate(blocks):
        value = value.repeat_interleave(block, axis)
    return value


def _dequantize(
    q: Tensor,
    blocks: list[int],
    scale: Tensor,
    zero: Tensor | None,
    kind: Any,
    low: Any = None,
    high: Any = None,
    output_dtype: torch.dtype = torch.float32,
) -> Tensor:
    whole = q.to(torch.int32) - (0 if zero is None else _repeated(zero.to(torch.int32), blocks))
    return (whole.to(output_dtype) * _repeated(scale, blocks)).to(output_dtype)


def declare() -> None:
    """Declares it where no package has."""
    if hasattr(torch.ops.torchao, "dequantize_affine"):
        return
    library = torch.library.Library("torchao", "FRAGMENT")
    library.define(_SCHEMA)
    for key in ("CPU", "Meta"):  # real tensors, and those of which export knows the sizes alone
        library.impl("dequantize_affine", _dequantize, key)
    _declared.append(library)
