"""Operators of TFLite on integers, their operands, and what LiteRT's reference kernels make of them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import hetnn
from importers.tflite_files import Array, Quant, Told, constant, one, random_inputs, reference

RNG = np.random.default_rng(11)


def restart(name: str) -> None:
    """The numbers of the test of that name, whichever others ran."""
    RNG.bit_generator.state = np.random.default_rng(zlib.crc32(name.encode())).bit_generator.state


# An operator, its operands, results and options.
Sample = tuple[str, Sequence[Told | None], Sequence[Told], Mapping[str, Any]]


def check(
    name: str,
    operands: Sequence[Told | None],
    how: Mapping[str, Any] | None,
    results: Sequence[Told],
    inputs: Sequence[Array] | None = None,
) -> None:
    data = one(name, operands, results, how)
    given = random_inputs(data) if inputs is None else list(inputs)
    (wanted,) = reference(data, [given], fast=name == "SUM")  # the reference's wraps around
    found = hetnn.compile(data)(*given)
    found = found if isinstance(found, tuple) else (found,)
    for mine, theirs in zip(found, wanted, strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(mine, theirs)


def options(table: str, **fields: Any) -> dict[str, Any]:
    return {"": f"{table}Options", **fields}


def scale(low: float = 0.005, high: float = 0.1) -> float:
    return float(np.float32(RNG.uniform(low, high)))


def quant(dtype: str) -> Quant:
    limits = np.iinfo({"i8": np.int8, "u8": np.uint8}[dtype])
    return Quant(scale(), int(RNG.integers(limits.min, limits.max + 1)))


FUNCTIONS: list[tuple[str, dict[str, Any], Quant | None]] = [
    ("ABS", {}, None),
    ("ELU", {}, None),
    ("EXP", {}, None),
    ("GELU", options("Gelu", Approximate=False), None),
    ("GELU", options("Gelu", Approximate=True), None),
    ("HARD_SWISH", {}, None),
    ("LEAKY_RELU", options("LeakyRelu", Alpha=0.3), None),
    ("LOGISTIC", {}, Quant(1 / 256, -128)),
    ("QUANTIZE", {}, None),
    ("RELU", {}, None),
    ("RELU6", {}, None),
    ("RELU_0_TO_1", {}, None),
    ("RELU_N1_TO_1", {}, None),
    ("TANH", {}, Quant(1 / 128, 0)),
]


def filters(shape: Sequence[int], axis: int | None = None, dtype: str = "i8") -> Told:
    """Weights with a scale of each filter along an axis, or one of all."""
    many = 1 if axis is None else shape[axis]
    scales = RNG.uniform(0.002, 0.02, many).astype(np.float32).tolist()
    numbers = RNG.integers(-127, 128, shape) if dtype == "i8" else RNG.integers(-7, 8, shape)
    return constant(numbers, dtype, Quant(scales, 0, axis or 0))


def biases(x: Told, weights: Told) -> Told:
    assert x.quant is not None
    assert weights.quant is not None
    scales = np.float32(x.quant.scale) * np.asarray(weights.quant.scale, np.float32)
    many = weights.shape[weights.quant.axis]
    return constant(RNG.integers(-4000, 4000, many), "i32", Quant(scales.tolist()))


def window(table: str, same: bool, stride: int, dilation: int = 1, act: int = 0, **more: Any) -> dict[str, Any]:
    factors = {} if dilation == 1 else {"DilationHFactor": dilation, "DilationWFactor": dilation}
    told = {"Padding": int(not same), "StrideH": stride, "StrideW": stride, "FusedActivationFunction": act}
    return options(table, **told, **factors, **more)


def x_of(*shape: int, dtype: str = "i8") -> Told:
    return Told(shape, dtype, quant=quant(dtype))


def y_of(dtype: str = "i8", low: float = 0.05, high: float = 0.3) -> Told:
    return Told([1], dtype, quant=Quant(scale(low, high), int(RNG.integers(-128, 128)) + 128 * (dtype == "u8")))


def unsigned(shape: Sequence[int]) -> Told:
    return constant(RNG.integers(0, 256, shape), "u8", Quant(scale(0.002, 0.02), int(RNG.integers(100, 150))))


def wide(*shape: int, high: float = 3e-4) -> Told:
    return Told(shape, "i16", quant=Quant(scale(1e-4, high)))


def wide_biases(x: Told, weights: Told) -> Told:
    told = biases(x, weights)
    assert told.data is not None
    return constant(np.frombuffer(told.data, np.int32), "i64", told.quant)


def layer(name: str, x: Told, weights: Told, how: Mapping[str, Any]) -> Sample:
    return name, [x, weights, biases(x, weights)], [y_of()], how


# An operator each, for those who alter files.
SAMPLES: list[Sample] = [
    layer("CONV_2D", x_of(1, 7, 9, 4), filters((6, 3, 3, 4), 0), window("Conv2D", True, 1)),
    layer("DEPTHWISE_CONV_2D", x_of(1, 7, 9, 4), filters((1, 3, 3, 8), 3), window("DepthwiseConv2D", True, 2)),
    layer("FULLY_CONNECTED", x_of(3, 40), filters((7, 40)), options("FullyConnected")),
    ("ADD", [x_of(2, 3, 4, 5), x_of(5)], [y_of()], options("Add", FusedActivationFunction=1)),
    ("MUL", [x_of(2, 3, dtype="u8"), x_of(3, dtype="u8")], [y_of("u8")], options("Mul")),
    *(
        (name, [Told([1, 8, 8, 4], "i8", quant=quant("i8"))], [Told([1], "i8", quant=of_y or quant("i8"))], how)
        for name, how, of_y in FUNCTIONS
    ),
]
