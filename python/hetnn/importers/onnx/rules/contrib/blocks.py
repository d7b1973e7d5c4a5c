"""Weights of few bits in blocks, each with a step of its own: they become reals, once where they are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.blocks import block_linear, dequantized, fields
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.pieces import part
from hetnn.importers.onnx.rules.declare import SOME_INT, contrib


def _bits(call: Call, preset: int = 4) -> int:
    bits = int(call.attr("bits", preset))
    if bits not in (2, 4, 8):
        raise Unsupported(f"weights of {bits} bits")
    return bits


def unpacked(call: Call, x: Any, bits: int) -> Any:
    """Bytes as the numbers of so many bits that each holds along the last axis, those of the lowest bits first."""
    if bits == 8:
        return x
    shifts = call.constant(np.arange(0, 8, bits), "u8")
    apart = call.create("shift_right", [call.reshape(x, [*x.shape, 1]), shifts])
    whole = call.create("bitwise_and", [apart, call.constant(2**bits - 1, "u8")])
    return call.reshape(whole, [*x.shape[:-1], x.shape[-1] * (8 // bits)])


def known_weight(call: Call, packed: int, scales: int, zeros: int, shape: Sequence[int], bits: int, block: int) -> Any:
    """[rows, columns] of reals as a constant, from inputs that are known; None where one is not.

    Codes are packed by row and block; what stands for 0 by row too, unless it is a real itself.
    """
    arrays = [call.known(k) for k in (packed, scales, zeros)]
    if any(array is None and call.given(k) for array, k in zip(arrays, (packed, scales, zeros), strict=True)):
        return None
    rows, columns = shape
    count = -(-columns // block)

    codes, scale, zero = arrays
    assert codes is not None
    assert scale is not None
    if codes.size * 8 // bits != rows * count * block or scale.size != rows * count:
        raise InvalidModel(f"{codes.size} bytes and {scale.size} steps for weights of {rows} x {columns}")
    step = scale.reshape(rows, count, 1)
    nothing: Any = np.asarray(2 ** (bits - 1))
    if zero is not None:
        zero = fields(zero, rows, bits)[:, :count] if zero.dtype == np.uint8 else zero
        nothing = zero.reshape(rows, count, 1)
    reals = (
        fields(codes, rows, bits).reshape(rows, count, block).astype(step.dtype) - nothing.astype(step.dtype)
    ) * step
    return call.constant(reals.reshape(rows, -1)[:, :columns], call[scales].dtype)


def _by_blocks(call: Call, rows: int, columns: int, bits: int, block: int) -> Any:
    """The product where the weights are known and kept as they are; None where they are not."""
    codes, scales, zeros = (call.known(k) for k in (1, 2, 3))
    count = -(-columns // block)
    if codes is None or scales is None or (zeros is None and call.given(3)):
        return None
    if codes.size * 8 != rows * count * block * bits or scales.size != rows * count:
        return None
    if zeros is not None:
        zeros = fields(zeros, rows, bits)[:, :count] if zeros.dtype == np.uint8 else zeros
        zeros = zeros.reshape(rows, count)
    x = with_sizes(call, call[0], [*[None] * (len(call[0].shape) - 1), columns])
    return block_linear(
        call, x, codes.reshape(rows, count, -1), scales.reshape(rows, count), zeros, call.optional(5), bits
    )


def _product(call: Call, weight: Any, bias: Any) -> Any:
    """The input by weights [rows, columns]."""
    x = call[0]
    return call.linear(with_sizes(call, x, [*[None] * (len(x.shape) - 1), weight.shape[1]]), weight, bias)


@contrib(
    "MatMulNBits",
    "A B scales zero_points? g_idx? bias?",
    unread="accuracy_level",
    K=SOME_INT,
    N=SOME_INT,
    accuracy_level=0,
    bits=4,
    block_size=SOME_INT,
    weight_prepacked=0,
)
def _matmul(call: Call) -> Any:
    if call.given(4) or call.attr("weight_prepacked"):
        raise Unsupported("weights in an order of their own: g_idx or weight_prepacked")
    rows, columns = int(call.attr("N")), int(call.attr("K"))
    bits, block = _bits(call), int(call.attr("block_size"))
    y = _by_blocks(call, rows, columns, bits, block)
    if y is not None:
        return y
    weight = known_weight(call, 1, 2, 3, [rows, columns], bits, block)
    if weight is None:
        count = -(-columns // block)
        codes = call.reshape(unpacked(call, call[1], bits), [rows, count * block])
        zeros: Any = 2 ** (bits - 1)
        if call.given(3):
            zeros = call[3]
            if zeros.dtype == "u8":
                zeros = call.reshape(zeros, [rows, -(-count * bits // 8)])
                zeros = part(call, unpacked(call, zeros, bits), 0, count)
            zeros = call.reshape(zeros, [rows, count])
        weight = dequantized(call, codes, call.reshape(call[2], [rows, count]), zeros, 1, block)
        weight = part(call, weight, 0, columns)
    return _product(call, weight, call.optional(5))


# What the numbers of four bits stand for: as floats of 4 bits, and evenly under a normal distribution.
_OF_4_BITS = (
    [sign * number for sign in (1, -1) for number in (0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4)],
    [
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
        *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
        *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
        *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    ],
)


@contrib(
    "MatMulBnb4",
    "A B absmax",
    unread="training_mode",
    K=SOME_INT,
    N=SOME_INT,
    block_size=SOME_INT,
    quant_type=SOME_INT,
    training_mode=0,
    transB=1,
)
def _table_matmul(call: Call) -> Any:
    """Of weights that are looked up in a table; the higher half of a byte comes first."""
    codes, steps, block = call.known(1), call.known(2), int(call.attr("block_size"))
    if codes is None or steps is None:
        raise Unsupported("weights of 4 bits that are computed when the model runs")
    shape = rows, columns = int(call.attr("N")), int(call.attr("K"))
    table = np.array(_OF_4_BITS[int(call.attr("quant_type"))], np.float32)
    reals = table[np.stack([codes >> 4, codes & 15], -1).reshape(-1)[: rows * columns]]
    reals = (reals * np.repeat(steps.reshape(-1), block)[: rows * columns]).reshape(shape)
    return _product(call, call.constant(reals if call.attr("transB") else reals.T, call[0].dtype), None)


@contrib(
    "GatherBlockQuantized",
    "data indices scales zero_points?",
    unread="bits",
    bits=4,
    block_size=128,
    gather_axis=0,
    quantize_axis=1,
)
def _gather(call: Call) -> Any:
    """What is taken becomes reals; an index outside takes zeros."""
    data, indices, scales = call[0], call[1], call[2]
    rank = len(data.shape)
    at, axis = (call.axis(int(call.attr(name)), rank) for name in ("gather_axis", "quantize_axis"))
    packs, block = data.dtype == "u8", int(call.attr("block_size"))
    bits = _bits(call) if packs else 8
    size = call.whole(data.shape[at])
    index = call.from_the_front(call.cast(indices, "i64"), data.shape[at])
    inside = call.create("lt", [index, size])
    inside = call.create("logical_and", [inside, call.create("ge", [index, call.constant(0, "i64")])])
    index = call.create("where", [inside, index, call.constant(0, "i64")])

    def taken(x: Any) -> Any:
        if at == axis:
            return x
        if x.shape[at] == 1:  # one for all
            return call.reshape(x, [*x.shape[:at], *[1] * len(index.shape), *x.shape[at + 1 :]])
        return call.create("gather", [x, index], axis=at)

    codes, steps = taken(data), taken(scales)
    codes = unpacked(call, codes, bits) if packs else codes
    zeros: Any = 2 ** (bits - 1) if packs else 0
    if call.given(3):
        zeros = taken(call[3])
        if packs:  # to whole bytes
            zeros = part(call, unpacked(call, zeros, bits), 0, steps.shape[-1])
    moved = axis + len(index.shape) - 1 if at < axis else axis
    if block:
        each = [codes.shape[k] if k != moved else steps.shape[k] for k in range(len(codes.shape))]
        zeros = zeros if isinstance(zeros, int) else call.broadcast_to(zeros, each)
        y = dequantized(call, codes, call.broadcast_to(steps, each), zeros, moved, block)
    else:  # one scale for all
        y = call.cast(codes, steps.dtype)
        y = call.create("sub", [y, call.cast(zeros, y.dtype) if call.given(3) else call.like(zeros, y)])
        y = call.create("mul", [y, steps])
    if at == axis:
        y = call.create("gather", [y, index], axis=at)
    kept = call.reshape(inside, [*index.shape, *[1] * (len(y.shape) - at - len(index.shape))])
    return call.create("where", [kept, y, call.like(0, y)])


@contrib("MatMulFpQ4", "A B B_shape", blk_quant_type=1)
def _packed_product(call: Call) -> Any:
    """Columns in blocks of a scale in f32, what stands for 0 and 32 codes of 4 bits, the first 16 below the others."""
    packed, (rows, columns) = call.known(1), call.integers(2, "B_shape")
    kind = int(call.attr("blk_quant_type"))
    if packed is None or kind not in (0, 1):
        raise Unsupported(f"MatMulFpQ4 of weights that are no constant, or of blocks of the kind {kind}")
    length, head = 32, 4 + kind  # of the kind 0, 8 stands for 0
    count = -(-rows // length)
    if packed.size != columns * count * (head + length // 2):
        raise InvalidModel(f"MatMulFpQ4 of weights [{rows}, {columns}] in {packed.size} bytes of blocks of {length}")
    blocks = packed.reshape(columns, count, head + length // 2)
    scales = np.ascontiguousarray(blocks[..., :4]).view(np.float32)  # [columns, count, 1]
    zeros = blocks[..., 4:5].astype(np.float32) if kind else np.float32(8)
    halves = blocks[..., head:]
    codes = np.concatenate([halves & 15, halves >> 4], axis=2).reshape(columns, count, length)
    weight = ((codes - zeros) * scales).reshape(columns, -1)[:, :rows].T
    return call.standard("MatMul", [call[0], call.constant(weight, "f32")])
