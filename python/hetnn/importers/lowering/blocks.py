"""Weights of a few bits in blocks, each with a step of its own, as `block_linear` reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hetnn.importers.lowering.building import Building

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Blocks:
    """A known matrix [N, K]: (codes - zeros) scales, codes of `bits` from 0 on, `block` of them with one scale.

    `turned`: what is meant is its transpose.
    """

    codes: Array  # [N, K]
    scales: Array  # [N, blocks]
    zeros: Array | None  # the same; None: half of all codes
    block: int
    bits: int
    turned: bool

    def product(self, call: Building, x: Any, bias: Any) -> Any:
        """x times the transpose of [N, K]; None where `block_linear` has no such blocks."""
        rows, columns = self.codes.shape
        behind = self.scales.shape[1] * self.block - columns
        if self.block % 16 or self.bits not in (2, 4, 8):
            return None
        whole = np.pad(self.codes, [(0, 0), (0, behind)]).reshape(rows, -1, self.block)
        return block_linear(call, x, packed(whole, self.bits), self.scales, self.zeros, bias, self.bits)


def blocks_of(codes: Array, dtype: str, scales: Array, zeros: Array | None, axis: int, block: int) -> Blocks | None:
    """What a matrix of integers stands for, `block` of them along an axis with one scale; None where that is no blocks.

    `dtype`: of the integers, in hetnn's words.
    """
    if dtype not in ("i2", "u2", "i4", "u4", "i8", "u8") or codes.ndim != 2 or scales.ndim != 2 or block < 2:
        return None
    bits = int(dtype[1:])
    turn = 1 << (bits - 1) if dtype[0] == "i" else 0
    if zeros is None:
        zeros = np.zeros(scales.shape, np.int64)
    if axis == 0:
        codes, scales, zeros = codes.T, scales.T, zeros.T
    if scales.shape != (codes.shape[0], -(-codes.shape[1] // block)) or zeros.shape != scales.shape:
        return None
    from_zero = (codes.astype(np.int16) + turn).astype(np.uint8)
    return Blocks(from_zero, np.ascontiguousarray(scales), zeros.astype(np.int64) + turn, block, bits, axis == 0)


def fields(packed: Array, rows: int, bits: int) -> Array:
    """[rows, all that there are]: the numbers of so many bits in bytes, those of the lowest bits first."""
    apart: Array = packed.reshape(rows, -1, 1) >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8(2**bits - 1)
    return apart.reshape(rows, -1)


def packed(codes: Array, bits: int) -> Array:
    """Numbers of so many bits along the last axis as bytes, the first in the lowest bits."""
    apart = codes.astype(np.uint8).reshape(*codes.shape[:-1], -1, 8 // bits)
    out: Array = np.bitwise_or.reduce(apart << np.arange(0, 8, bits, dtype=np.uint8), axis=-1)
    return out


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
