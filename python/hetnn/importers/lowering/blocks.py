"""Weights of a few bits in blocks, each with a scale of its own: `dequantize_blocks`, and packed `block_linear`."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.building import Building
from hetnn.importers.lowering.equal_sizes import with_sizes

Array = np.ndarray[Any, Any]


def of_blocks(call: Building, values: Any, x: Any, axis: int, block: int) -> Any:
    """Scales or zero points of blocks along an axis of x; sizes that are symbols are made those that there must be.

    InvalidModel for a block of no elements.
    """
    if block < 1:
        raise InvalidModel(f"a block must hold 1 element or more; got block_size {block}")
    wanted = [-(-size // block) if k == axis else size for k, size in enumerate(x.shape)]
    return with_sizes(call, values, wanted)


def dequantized(call: Building, codes: Any, scales: Any, zeros: Any, axis: int, block: int) -> Any:
    """(codes - zeros) scales of blocks along an axis, of the scales' type; `zeros` may be None or one number."""
    if isinstance(zeros, (int, float)):
        zeros = call.broadcast_to(call.constant(zeros, codes.dtype), scales.shape) if zeros else None
    of_each = [scales] if zeros is None else [scales, zeros]
    of_each = [of_blocks(call, values, codes, axis, block) for values in of_each]
    return call.create("dequantize_blocks", [codes, *of_each], axis=axis, block=block)


def fields(packed: Array, rows: int, bits: int) -> Array:
    """[rows, all that there are]: the numbers of so many bits in bytes, those of the lowest bits first."""
    apart: Array = packed.reshape(rows, -1, 1) >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8(2**bits - 1)
    return apart.reshape(rows, -1)


def block_linear(call: Building, x: Any, codes: Array, scales: Array, zeros: Array | None, bias: Any, bits: int) -> Any:
    """x times a weight of which `codes` [N, blocks, bytes] are packed; `scales` and `zeros` [N, blocks].

    Scales that f16 holds are kept as such, if all of them are. None where `block_linear` has no such blocks.
    """
    block = codes.shape[2] * 8 // bits
    if block % 16 or not 16 <= block <= 256 or bits not in (2, 4, 8):
        return None
    half = scales.astype(np.float16)
    kept = "f16" if np.array_equal(half.astype(scales.dtype), scales) else "f32"
    points = None
    if zeros is not None and np.any(zeros != 2 ** (bits - 1)):
        whole = np.clip(np.rint(zeros), 0, 255)
        if not np.array_equal(whole, zeros):
            return None
        points = call.constant(whole.astype(np.uint8), "u8")
    operands = [call.constant(np.ascontiguousarray(codes), "u8"), call.constant(scales, kept), points, bias]
    return call.create("block_linear", [x, *operands], bits=bits)
