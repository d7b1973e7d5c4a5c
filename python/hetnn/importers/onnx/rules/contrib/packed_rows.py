"""Tables of embeddings whose rows are packed in blocks as GGML's are; they are unpacked when the model is read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.onnx.model import dtype_name
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.declare import SOME_INT, contrib
from hetnn.importers.onnx.values import Array

# What codes of 4 bits stand for that are not evenly apart.
_UNEVEN = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)


def _real(blocks: Array, at: int) -> Array:
    """An f16 at a byte of each block, [blocks, 1]."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view(np.float16).astype(np.float32)


def _halves(blocks: Array, width: int) -> Array:
    """The low bits of so many bytes, then their high bits, and so on: [blocks, 2 bytes]."""
    parts = blocks.reshape(len(blocks), -1, 1, width)
    whole: Array = np.concatenate([parts & 15, parts >> 4], axis=2).reshape(len(blocks), -1)
    return whole


def _bits(blocks: Array, shifts: Array, mask: int) -> Array:
    """Bits of every byte by several shifts, [blocks, shifts bytes]."""
    whole: Array = ((blocks[:, None, :] >> shifts[:, None]) & mask).reshape(len(blocks), -1)
    return whole


def _fours(blocks: Array) -> Array:
    reals: Array = (_halves(blocks[:, 2:], 16) - np.float32(8)) * _real(blocks, 0)
    return reals


def _uneven_fours(blocks: Array) -> Array:
    reals: Array = _UNEVEN[_halves(blocks[:, 2:], 16)] * _real(blocks, 0)
    return reals


def _fives(blocks: Array) -> Array:
    high = np.unpackbits(blocks[:, 2:6], axis=1, bitorder="little")
    reals: Array = (_halves(blocks[:, 6:], 16) + 16 * high - np.float32(16)) * _real(blocks, 0)
    return reals


def _eights(blocks: Array) -> Array:
    return blocks[:, 2:].view(np.int8) * _real(blocks, 0)


def _nested_fives(blocks: Array) -> Array:
    """Of 32 elements each, a scale and a least value of 6 bits, which are in steps of their own."""
    packed = blocks[:, 4:16]
    first, second, last = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 63, (last & 15) | ((first >> 6) << 4)], axis=1)
    least = np.concatenate([second & 63, (last >> 4) | ((second >> 6) << 4)], axis=1)
    codes = _halves(blocks[:, 48:], 32) + 16 * _bits(blocks[:, 16:48], np.arange(8, dtype=np.uint8), 1)
    parts = codes.reshape(-1, 8, 32) * (_real(blocks, 0) * scales)[:, :, None]
    whole: Array = parts - (_real(blocks, 2) * least)[:, :, None]
    return whole.reshape(len(blocks), -1)


def _nested_sixes(blocks: Array) -> Array:
    """Of 16 elements each, a scale of 8 bits, which is in steps of its own."""
    low = _halves(blocks[:, :128], 64)
    high = [_bits(blocks[:, 128 + k : 160 + k], np.arange(0, 8, 2, dtype=np.uint8), 3) for k in (0, 32)]
    codes = low + 16 * np.concatenate(high, axis=1) - np.float32(32)
    scales = blocks[:, 192:208].view(np.int8) * _real(blocks, 208)
    whole: Array = codes.reshape(-1, 16, 16) * scales[:, :, None]
    return whole.reshape(len(blocks), -1)


def _nested_uneven_fours(blocks: Array) -> Array:
    """Of 32 elements each, a scale of 6 bits, which is in steps of its own."""
    low = blocks[:, 4:8].repeat(2, axis=1) >> np.array([0, 4] * 4, np.uint8) & 15
    high = (np.ascontiguousarray(blocks[:, 2:4]).view(np.uint16) >> np.arange(0, 16, 2, dtype=np.uint16)) & 3
    scales = (low + 16.0 * high - 32).astype(np.float32) * _real(blocks, 0)
    whole: Array = _UNEVEN[_halves(blocks[:, 8:], 16)].reshape(-1, 8, 32) * scales[:, :, None]
    return whole.reshape(len(blocks), -1)


def _wide_halves(blocks: Array) -> Array:
    return (np.ascontiguousarray(blocks).view(np.uint16).astype(np.uint32) << 16).view(np.float32)


# By GGML's number: how many elements a block has, in how many bytes, and what they are.
_FORMATS: dict[int, tuple[int, int, Callable[[Array], Array]]] = {
    0: (1, 4, lambda blocks: np.ascontiguousarray(blocks).view(np.float32)),
    1: (1, 2, lambda blocks: _real(blocks, 0)),
    2: (32, 18, _fours),
    6: (32, 22, _fives),
    8: (32, 34, _eights),
    13: (256, 176, _nested_fives),
    14: (256, 210, _nested_sixes),
    20: (32, 18, _uneven_fours),
    23: (256, 136, _nested_uneven_fours),
    30: (1, 2, _wide_halves),
}


@contrib("GatherPacked", "data indices", packed_type=SOME_INT, K=SOME_INT, output_dtype=16)
def _gather(call: Call) -> object:
    """Rows of a table; what is none picks the first."""
    kind, width, data = int(call.attr("packed_type")), int(call.attr("K")), call.known(0)
    if kind not in _FORMATS or data is None:
        raise Unsupported(f"GatherPacked of rows that are no constant, or of GGML's type {kind}")
    length, size, unpack = _FORMATS[kind]
    if data.ndim != 2 or width < 1 or width % length or data.shape[1] != width // length * size:
        raise InvalidModel(f"GatherPacked of {width} elements in rows {list(data.shape)} of blocks of {size} bytes")
    rows = unpack(data.reshape(-1, size)).reshape(len(data), width)
    dtype = dtype_name(int(call.attr("output_dtype")))
    places, count = call.cast(call[1], "i64"), len(data)
    outside = [call.create(op, [places, call.constant(n, "i64")]) for op, n in (("lt", 0), ("ge", count))]
    places = call.create("where", [call.create("logical_or", outside), call.constant(0, "i64"), places])
    return call.create("gather", [call.cast(call.constant(rows, "f32"), dtype), places], axis=0)
