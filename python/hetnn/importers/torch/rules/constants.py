"""Torch overloads that make constants."""

from __future__ import annotations

from typing import Any

import torch

from hetnn._core import Dim
from hetnn.errors import Unsupported
from hetnn.importers.torch.rules.call import Call, rule

# Numbers that are no integers and are made when the model is imported.
_MOST_FRACTIONS = 1 << 20


@rule("full.default", "full_like.default", "new_full.default")
def _full(call: Call) -> Any:
    return call.filled(call["fill_value"])


@rule(
    *("zeros.default", "zeros_like.default", "new_zeros.default"),
    *("empty.memory_format", "empty_like.default", "empty_strided.default", "empty_permuted.default"),
)
def _zeros(call: Call) -> Any:
    """Zeros; also for memory whose content the model does not rely on, as the noise of rrelu in evaluation."""
    return call.filled(0)


@rule("ones.default", "ones_like.default", "new_ones.default")
def _ones(call: Call) -> Any:
    return call.filled(1)


@rule("scalar_tensor.default")
def _scalar(call: Call) -> Any:
    return call.filled(call["s"])


@rule("arange.default", "arange.start", "arange.start_step")
def _arange(call: Call) -> Any:
    numbers = [call.args.get("start") or 0, call["end"], call.args.get("step") or 1]
    if any(isinstance(number, float) and not number.is_integer() for number in numbers):
        count = call.shape()[0]
        if any(isinstance(number, Dim) for number in numbers) or isinstance(count, Dim) or count > _MOST_FRACTIONS:
            raise Unsupported(f"arange over fractions to a size that is open, or of more than {_MOST_FRACTIONS}")
        return call.constant(torch.arange(*numbers, dtype=call.torch_dtype()).double().numpy(), call.dtype())
    start, end, step = (int(number) if isinstance(number, float) else number for number in numbers)
    return call.create("arange", [], start=start, end=end, step=step, dtype=call.dtype())
