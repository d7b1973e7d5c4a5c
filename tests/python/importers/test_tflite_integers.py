"""TFLite's operators on integers, bit for bit as LiteRT's reference kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import hetnn
from hetnn.importers import import_model
from hetnn.importers.tflite.c_library import of_c
from hetnn.importers.tflite.fixed_point import quotient
from importers.tflite_files import Quant, Told, constant, one, random_inputs, reference
from importers.tflite_integers import (
    FUNCTIONS,
    RNG,
    biases,
    check,
    filters,
    options,
    quant,
    unsigned,
    wide,
    window,
    x_of,
    y_of,
)

pytestmark = pytest.mark.usefixtures("own_numbers")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "how", "of_y"), FUNCTIONS, ids=[row[0] for row in FUNCTIONS])
def test_functions_of_one_integer(name: str, how: dict[str, Any], of_y: Quant | None, seed: int) -> None:
    every = np.arange(-128, 128).astype(np.int8)
    check(name, [Told([256], "i8", quant=quant("i8"))], how, [Told([256], "i8", quant=of_y or quant("i8"))], [every])


@pytest.mark.parametrize("act", [0, 1, 2, 3])
@pytest.mark.parametrize(("same", "stride", "dilation"), [(True, 1, 1), (False, 2, 1), (True, 1, 2)])
def test_convolutions(same: bool, stride: int, dilation: int, act: int) -> None:
    x, weights = x_of(1, 7, 9, 4), filters((6, 3, 3, 4), 0)
    check(
        "CONV_2D",
        [x, weights, biases(x, weights)],
        window("Conv2D", same, stride, dilation, act),
        [y_of()],
    )


@pytest.mark.parametrize(("same", "stride", "many"), [(True, 1, 1), (False, 2, 1), (True, 1, 2)])
def test_depthwise_convolutions(same: bool, stride: int, many: int) -> None:
    x, weights = x_of(1, 7, 9, 4), filters((1, 3, 3, 4 * many), 3)
    how = window("DepthwiseConv2D", same, stride, DepthMultiplier=many)
    check("DEPTHWISE_CONV_2D", [x, weights, biases(x, weights)], how, [y_of()])


@pytest.mark.parametrize("act", [0, 1])
@pytest.mark.parametrize("axis", [None, 0])
def test_fully_connected_layers(axis: int | None, act: int) -> None:
    x, weights = x_of(3, 40), filters((7, 40), axis)
    how = options("FullyConnected", FusedActivationFunction=act)
    check("FULLY_CONNECTED", [x, weights, biases(x, weights)], how, [y_of()])


@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
@pytest.mark.parametrize("act", [0, 1, 3])
@pytest.mark.parametrize("other", [(2, 3, 4, 5), (5,)])
def test_sums_and_products(name: str, act: int, other: Sequence[int]) -> None:
    how = options(name.capitalize(), FusedActivationFunction=act)
    check(name, [x_of(2, 3, 4, 5), x_of(*other)], how, [y_of()])


@pytest.mark.parametrize("name", ["MAXIMUM", "MINIMUM"])
def test_extremes(name: str) -> None:
    one_scale = quant("i8")
    told = [Told([3, 40], "i8", quant=one_scale), Told([40], "i8", quant=one_scale)]
    check(name, told, {}, [Told([1], "i8", quant=one_scale)])


@pytest.mark.parametrize("act", [0, 1])
@pytest.mark.parametrize("name", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_pools(name: str, act: int, dtype: str) -> None:
    one_scale = quant(dtype)
    how = window("Pool2D", True, 2, act=act, FilterHeight=3, FilterWidth=2)
    check(name, [Told([1, 7, 9, 4], dtype, quant=one_scale)], how, [Told([1], dtype, quant=one_scale)])


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("axes", [(1, 2), (3,), (1,)])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"])
def test_reductions(name: str, keep: bool, axes: Sequence[int], same: bool) -> None:
    x = x_of(2, 5, 7, 9)
    y = Told([1], "i8", quant=x.quant) if same or name.startswith("REDUCE_M") else y_of()
    check(name, [x, constant(list(axes), "i32")], options("Reducer", KeepDims=keep), [y])


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_log_softmax_is_least_beyond_litert_s_differences(dtype: str) -> None:
    x = Told([40, 6], dtype, quant=Quant(0.1251, 3))  # 16 is 128 steps, of which LiteRT keeps 124
    check("LOG_SOFTMAX", [x], {}, [Told([1], dtype, quant=Quant(1 / 16, 127 if dtype == "i8" else 255))])


@pytest.mark.parametrize("dtype", ["i8", "u8"])
@pytest.mark.parametrize(("rows", "size", "scale"), [(40, 6, 0.03), (1, 300, 0.2), (9, 1, 0.1), (20, 17, 4.0)])
def test_log_softmax_is_litert_s_quotient_of_polynomials(rows: int, size: int, scale: float, dtype: str) -> None:
    x = Told([rows, size], dtype, quant=Quant(scale, 3))
    check("LOG_SOFTMAX", [x], {}, [Told([1], dtype, quant=Quant(1 / 16, 127 if dtype == "i8" else 255))])


@pytest.mark.parametrize("dtype", ["i8", "u8"])
@pytest.mark.parametrize("shape", [(3, 4, 5), (7, 1), (2, 2, 3, 6), (1, 2000), (9,)])
def test_rows_of_length_1(shape: Sequence[int], dtype: str) -> None:
    y = Told([1], dtype, quant=Quant(1 / 128, 0 if dtype == "i8" else 128))
    check("L2_NORMALIZATION", [x_of(*shape, dtype=dtype)], options("L2Norm"), [y])


@pytest.mark.parametrize("dtype", ["i8", "u8"])
@pytest.mark.parametrize(("size", "beta"), [(2, 1.0), (10, 1.0), (1000, 1.0), (33, 0.5)])
def test_softmax(size: int, beta: float, dtype: str) -> None:
    y = Told([1], dtype, quant=Quant(1 / 256, -128 if dtype == "i8" else 0))
    check("SOFTMAX", [x_of(5, size, dtype=dtype)], options("Softmax", Beta=beta), [y])
    data = one("SOFTMAX", [x_of(5, size, dtype=dtype)], [y], options("Softmax", Beta=beta))
    executable, inputs = hetnn.compile(data, "cpu+relu-rows", strategy="take-all"), random_inputs(data)
    assert executable.report(format="dict")["nodes_on"]["relu-rows"] == 1
    np.testing.assert_array_equal(executable(*inputs), reference(data, [inputs])[0][0])


@pytest.mark.parametrize("dtype", ["i8", "u8"])
@pytest.mark.parametrize("name", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
@pytest.mark.parametrize("goal", [(10, 8), (7, 9), (3, 2), (5, 4)])
@pytest.mark.parametrize(("corners", "centred"), [(False, False), (True, False), (False, True)])
def test_resizing(name: str, goal: Sequence[int], corners: bool, centred: bool, dtype: str) -> None:
    x = x_of(2, 5, 4, 3, dtype=dtype)
    table = {"RESIZE_BILINEAR": "ResizeBilinear"}.get(name, "ResizeNearestNeighbor")
    how = options(table, AlignCorners=corners, HalfPixelCenters=centred)
    check(name, [x, constant(list(goal), "i32")], how, [Told([1], dtype, quant=x.quant)])


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("same", "goal"), [(True, (8, 10)), (True, (7, 9)), (False, (9, 11)), (False, (10, 12))])
def test_transposed_convolutions(same: bool, goal: Sequence[int], biased: bool) -> None:
    x, weights = x_of(1, 4, 5, 4), filters((3, 3, 3, 4), 0)
    more = [biases(x, weights)] if biased else []
    how = window("TransposeConv", same, 2)
    check("TRANSPOSE_CONV", [constant([1, *goal, 3], "i32"), weights, x, *more], how, [y_of()])


@pytest.mark.parametrize("size", [5, 1])
def test_prelu(size: int) -> None:
    slopes = constant(RNG.integers(-128, 128, (1, 1, size)), "i8", quant("i8"))
    check("PRELU", [x_of(1, 6, 7, 5), slopes], {}, [y_of(low=0.02)])


def test_a_leaky_relu_is_a_prelu() -> None:
    data = one("LEAKY_RELU", [x_of(4, 64)], [y_of(low=0.02)], options("LeakyRelu", Alpha=0.3))
    assert "prelu(" in import_model(data).graph.print()


@pytest.mark.parametrize("turned", [False, True])
def test_products_of_matrices(turned: bool) -> None:
    b = x_of(2, 5, 40) if turned else x_of(2, 40, 5)
    check("BATCH_MATMUL", [x_of(2, 3, 40), b], options("BatchMatMul", AdjY=turned), [y_of(low=0.5, high=1.0)])


MOVED: list[tuple[str, list[Told], dict[str, Any]]] = [
    ("RESHAPE", [constant([4, 15], "i32")], {}),
    ("TRANSPOSE", [constant([2, 0, 1], "i32")], {}),
    ("PAD", [constant([[1, 0], [0, 2], [1, 1]], "i32")], {}),
    ("MIRROR_PAD", [constant([[1, 0], [0, 2], [1, 1]], "i32")], options("MirrorPad", Mode=1)),
    ("GATHER", [constant([1, 0, 1], "i32")], options("Gather", Axis=1)),
    ("STRIDED_SLICE", [constant(n, "i32") for n in ([0, 1, 0], [3, 4, 5], [1, 2, 2])], options("StridedSlice")),
    ("TILE", [constant([1, 2, 1], "i32")], {}),
    ("REVERSE_V2", [constant([1], "i32")], {}),
    ("EXPAND_DIMS", [constant(np.int32(0))], {}),
]


@pytest.mark.parametrize("dtype", ["i8", "u8"])
@pytest.mark.parametrize("row", MOVED, ids=[row[0] for row in MOVED])
def test_movement(row: tuple[str, list[Told], dict[str, Any]], dtype: str) -> None:
    name, more, how = row
    x = x_of(3, 4, 5, dtype=dtype)
    check(name, [x, *more], how, [Told([1], dtype, quant=x.quant)])


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_joins_and_parts(dtype: str) -> None:
    x = x_of(3, 4, dtype=dtype)
    y = Told([1], dtype, quant=x.quant)
    check("CONCATENATION", [x, x], options("Concatenation", Axis=1), [y])
    check("PACK", [x, x], options("Pack", Axis=1, ValuesCount=2), [y])
    check("SPLIT", [constant(np.int32(1)), x], options("Split", NumSplits=2), [y, y])
    check("UNPACK", [x], options("Unpack", Axis=0, Num=3), [y, y, y])
    check("ARG_MAX", [x, constant(np.int32(1))], options("ArgMax", OutputType=2), [Told([1], "i32")])
    check("DEQUANTIZE", [x], {}, [Told([1])])


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_reals_become_integers(dtype: str) -> None:
    check("QUANTIZE", [Told([300])], {}, [Told([1], dtype, quant=quant(dtype))])
    ties = (np.arange(-20, 20) / 8).astype(np.float32)
    check("QUANTIZE", [Told([40])], {}, [Told([1], dtype, quant=Quant(0.25, 3))], [ties])


def test_convolutions_of_unsigned_bytes() -> None:
    x, weights = x_of(1, 7, 9, 4, dtype="u8"), unsigned((6, 3, 3, 4))
    check("CONV_2D", [x, weights, biases(x, weights)], window("Conv2D", True, 1, act=1), [y_of("u8")])
    weights = unsigned((1, 3, 3, 4))
    how = window("DepthwiseConv2D", True, 1, DepthMultiplier=1)
    one_bias = constant(RNG.integers(-4000, 4000, 4), "i32", Quant(1e-4))
    check("DEPTHWISE_CONV_2D", [x, weights, one_bias], how, [y_of("u8")])
    rows, weights = x_of(3, 40, dtype="u8"), unsigned((7, 40))
    check("FULLY_CONNECTED", [rows, weights, biases(rows, weights)], options("FullyConnected"), [y_of("u8")])


@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
def test_sums_of_unsigned_bytes(name: str) -> None:
    check(name, [x_of(3, 40, dtype="u8"), x_of(40, dtype="u8")], options(name.capitalize()), [y_of("u8")])


@pytest.mark.parametrize("zero", [0, 255])
def test_quotients_of_unsigned_bytes(zero: int) -> None:
    """Of a quarter of a step or more; LiteRT shifts smaller ones by more bits than they have."""
    x, y = Told([30, 40], "u8", quant=Quant(0.1, 100)), Told([1], "u8", quant=Quant(0.05, 90))
    below = constant(RNG.integers(1, 255, 40), "u8", Quant(0.01, zero))
    check("DIV", [x, below], options("Div"), [y])


def test_a_quotient_of_signed_bytes_by_a_number_is_a_table() -> None:
    """LiteRT has none; it is the reals' quotient, rounded."""
    x, of_y = Told([1, 256], "i8", quant=Quant(0.07, 5)), Quant(0.043, -9)
    data = one("DIV", [x, constant([77], "i8", Quant(0.031, 3))], [Told([1, 256], "i8", quant=of_y)], options("Div"))
    exe = hetnn.compile(data, "cpu")
    ops = {row["op"] for row in exe.report("dict")["graph"]}
    assert "lookup" in ops
    assert "div" not in ops
    held = np.arange(-128, 128).astype(np.int8).reshape(1, 256)
    exact = (held.astype(float) - 5) * 0.07 / ((77 - 3) * 0.031) / 0.043 - 9
    np.testing.assert_array_equal(exe.run([held])[0], np.clip(np.rint(exact), -128, 127))


def test_small_quotients_are_rounded() -> None:
    a, b = np.meshgrid(np.arange(-255, 256), [*range(-255, 0), *range(1, 256)])
    for factor in (0.003, 0.4, 1.0, 7.3):
        exact = a / b * factor
        assert np.abs(quotient(a, b, factor) - exact).max() < 0.5 + 1e-6 * np.abs(exact).max()


def test_indices_stand_for_themselves_whatever_a_file_says() -> None:
    x, told = x_of(3, 40), Quant(0.5, 3)
    check("GATHER", [x, constant([2, 0, 1, 1], "i32", told)], options("Gather"), [Told([1], "i8", quant=x.quant)])
    check("GATHER", [Told([3, 40], "f32"), constant([2, 0], "i32", told)], options("Gather"), [Told([1], "f32")])


def test_weights_of_4_bits() -> None:
    x, weights = x_of(3, 40), filters((7, 40), 0, "i4")
    check("FULLY_CONNECTED", [x, weights, biases(x, weights)], options("FullyConnected"), [y_of(low=0.01)])
    x, weights = x_of(1, 7, 9, 4), filters((6, 3, 3, 4), 0, "i4")
    check("CONV_2D", [x, weights, biases(x, weights)], window("Conv2D", True, 1), [y_of(low=0.01)])


@pytest.mark.parametrize(("of_x", "of_y"), [("i8", "i16"), ("i16", "i8"), ("i16", "i16"), ("u8", "i8"), ("i8", "u8")])
def test_integers_become_others(of_x: str, of_y: str) -> None:
    x = wide(300) if of_x == "i16" else x_of(300, dtype=of_x)
    y = wide(1, high=5e-3) if of_y == "i16" else Told([1], of_y, quant=quant(of_y))
    check("QUANTIZE", [x], {}, [y])


def test_prelu_with_a_slope_for_each_pixel() -> None:
    slopes = constant(RNG.integers(-128, 128, (1, 6, 7, 5)), "i8", Quant(0.01, 3))
    check("PRELU", [x_of(2, 6, 7, 5), slopes], {}, [y_of(low=0.02)])


@pytest.mark.parametrize("name", ["MAXIMUM", "MINIMUM", "FLOOR_DIV", "FLOOR_MOD"])
@pytest.mark.parametrize("dtype", ["i8", "i16"])
def test_the_files_integers_whatever_they_stand_for(name: str, dtype: str) -> None:
    x, y = (wide(30, 40), wide(1)) if dtype == "i16" else (x_of(30, 40), y_of())
    other = constant(RNG.integers(1, 100, 40), dtype, y.quant)
    check(name, [x, other], {}, [y])


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("dtype", "held"), [("i8", np.int8), ("i16", np.int16)])
def test_a_quotient_above_the_greatest_is_the_greatest(dtype: str, held: Any, known: bool) -> None:
    x = wide(64) if dtype == "i16" else Told([64], "i8", quant=Quant(0.05, 3))
    least, most = int(np.iinfo(held).min), int(np.iinfo(held).max)
    a, b = np.full(64, least, held), np.tile(np.array([-1, 1, -2, 3], held), 16)
    divisor = constant(b, dtype, x.quant) if known else Told([64], dtype, quant=x.quant)
    data = one("FLOOR_DIV", [x, divisor], [x], {})
    given = [a] if known else [a, b]
    found = hetnn.compile(data)(*given)
    np.testing.assert_array_equal(found, np.minimum(a.astype(np.int64) // b, most))
    ((theirs,),) = reference(data, [given])  # whose least by -1 is one or the other, by its place in a vector
    np.testing.assert_array_equal(found[b != -1], theirs[b != -1])
    assert set(theirs[b == -1].tolist()) <= {least, most}


def test_logs() -> None:
    every = np.arange(-128, 128).astype(np.int8)
    check("LOG", [x_of(256)], {}, [y_of()], [every])


@pytest.mark.parametrize(("scale", "to"), [(0.02, 0.05), (1.5, 0.004), (0.0007, 0.3)])
def test_inverse_roots_are_newton_s(scale: float, to: float) -> None:
    every = np.arange(-100, 128).astype(np.int8)
    check("RSQRT", [Told([228], "i8", quant=Quant(scale, -100))], {}, [Told([1], "i8", quant=Quant(to, -90))], [every])


# Where the last bit of C's functions of f32 decides.


@pytest.mark.parametrize(
    ("name", "x", "y", "dtype"),
    [
        ("GELU", Quant(7.026276580290869e-05), Quant(3.907505379174836e-05), "i16"),
        ("GELU", Quant(8.796264410193544e-06), Quant(5.681759375875117e-06), "i16"),
        ("TANH", Quant(0.02844633348286152, 26), Quant(0.0078125, 128), "u8"),
    ],
)
def test_tables_are_filled_by_c_s_functions(name: str, x: Quant, y: Quant, dtype: str) -> None:
    every = np.arange(-32768, 32768).astype(np.int16) if dtype == "i16" else np.arange(256).astype(np.uint8)
    how = options("Gelu", Approximate=False) if name == "GELU" else {}
    check(name, [Told([len(every)], dtype, quant=x)], how, [Told([1], dtype, quant=y)], [every])


@pytest.mark.parametrize("name", ["erfcf", "expf", "expm1f", "logf", "tanhf"])
def test_functions_of_f32_are_known_without_a_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reals = np.array([0.3, 1.7, 80.0, 0.0, -0.5, -2.0, np.inf, -np.inf], np.float32)
    theirs = of_c(name)(reals)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: None)
    np.testing.assert_allclose(of_c(name)(reals), theirs, rtol=3e-7, equal_nan=True)


def test_roots_are_cut_to_whole_numbers() -> None:
    x = Told([256], "i8", quant=Quant(0.07, -128))
    check("SQRT", [x], {}, [y_of(low=0.02)], [np.arange(-128, 128).astype(np.int8)])
    positive = np.arange(32768).astype(np.int16)
    check("SQRT", [wide(32768)], {}, [wide(1)], [positive])


def test_negated_integers() -> None:
    x = Told([300], "i8", quant=Quant(0.05))
    check("NEG", [x], {}, [Told([1], "i8", quant=x.quant)])


@pytest.mark.parametrize("name", ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"])
def test_comparisons(name: str) -> None:
    check(name, [x_of(30, 40), x_of(40)], {}, [Told([1], "bool")])
    fine = Quant(0.0005, 3)
    check(name, [Told([30, 40], "i8", quant=fine), Told([40], "i8", quant=fine)], {}, [Told([1], "bool")])


def test_squared_differences() -> None:
    check("SQUARED_DIFFERENCE", [x_of(30, 40), x_of(40)], {}, [y_of(low=0.5, high=1.0)])


def test_channels_of_zeros_may_have_denormal_scales() -> None:
    scales = np.array([0.02, 1e-42, 1e-38, 0.01], np.float32)
    weights = RNG.integers(-127, 128, (4, 3, 3, 5))
    weights[1:3] = 0
    of_sums = [float(np.float32(0.05) * each) for each in scales]
    bias = constant(np.array([100, 0, 0, -300]), "i32", Quant(of_sums, [0] * 4))
    operands = [x_of(1, 8, 8, 5), constant(weights, "i8", Quant(scales.tolist(), [0] * 4)), bias]
    check("CONV_2D", operands, options("Conv2D", StrideH=1, StrideW=1, DilationHFactor=1, DilationWFactor=1), [y_of()])


def test_integers_of_a_denormal_scale_become_its_multiples() -> None:
    check("DEQUANTIZE", [Told([300], "i8", quant=Quant(1e-42, 3))], {}, [Told([300])])
    zeros, x = np.zeros(300, np.float32), RNG.normal(size=300).astype(np.float32) * np.float32(1e-37)
    for given in (zeros, x):
        check("QUANTIZE", [Told([300])], {}, [Told([300], "i8", quant=Quant(1e-38, 3))], [given])
