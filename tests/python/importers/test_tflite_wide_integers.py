"""TFLite's operators on integers of 16 bits, bit for bit as LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from importers.tflite_files import Quant, Told, constant
from importers.tflite_integers import RNG, check, filters, options, scale, wide, wide_biases, window

pytestmark = pytest.mark.usefixtures("own_numbers")


def test_linear_layers_of_16_bits() -> None:
    x, weights = wide(30, 40), filters((7, 40))
    how, y = options("FullyConnected"), wide(1, high=5e-3)
    check("FULLY_CONNECTED", [x, weights, wide_biases(x, weights)], how, [y])
    check("FULLY_CONNECTED", [x, weights, None], how, [y])


def test_layers_of_16_bits() -> None:
    x, weights = wide(1, 7, 9, 4), filters((6, 3, 3, 4), 0)
    y = wide(1, high=2e-3)
    check("CONV_2D", [x, weights, wide_biases(x, weights)], window("Conv2D", True, 1), [y])
    weights = filters((1, 3, 3, 4), 3)
    how = window("DepthwiseConv2D", True, 1, DepthMultiplier=1)
    check("DEPTHWISE_CONV_2D", [x, weights, wide_biases(x, weights)], how, [y])


@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
def test_sums_of_16_bits(name: str) -> None:
    check(name, [wide(3, 40), wide(40)], options(name.capitalize()), [wide(1, high=6e-4)])


@pytest.mark.parametrize("name", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
def test_pools_of_16_bits(name: str) -> None:
    x = wide(1, 7, 9, 4)
    how = window("Pool2D", True, 2, FilterHeight=3, FilterWidth=2)
    check(name, [x], how, [Told([1], "i16", quant=x.quant)])


def test_rectifiers_of_16_bits() -> None:
    x = wide(300)
    check("RELU", [x], {}, [wide(1)])
    check("RELU6", [x], {}, [Told([1], "i16", quant=x.quant)])
    check("RELU6", [x], {}, [wide(1, high=9e-4)])
    check("ABS", [x], {}, [wide(1, high=9e-4)])
    check("LEAKY_RELU", [wide(4, 60)], options("LeakyRelu", Alpha=0.3), [wide(1, high=9e-4)])


@pytest.mark.parametrize("name", ["EXP", "GELU", "LOGISTIC", "TANH"])
@pytest.mark.parametrize("is_power", [False, True])
def test_functions_of_16_bits(name: str, is_power: bool) -> None:
    """Every integer: LiteRT looks between points, and a scale of a power of two has its own way."""
    every = np.arange(-32768, 32768).astype(np.int16)
    x = Told([65536], "i16", quant=Quant(2.0**-13 if is_power else scale(1e-4, 3e-4)))
    y = Told([1], "i16", quant=Quant(1 / 32768 if name in ("LOGISTIC", "TANH") else 2e-4))
    check(name, [x], options("Gelu", Approximate=True) if name == "GELU" else {}, [y], [every])


@pytest.mark.parametrize(("size", "beta"), [(2, 1.0), (10, 1.0), (700, 1.0), (33, 0.5)])
def test_softmax_of_16_bits(size: int, beta: float) -> None:
    y = Told([1], "i16", quant=Quant(1 / 32768))
    check("SOFTMAX", [wide(5, size, high=1e-3)], options("Softmax", Beta=beta), [y])


@pytest.mark.parametrize("size", [5, 1])
def test_prelu_of_16_bits_has_slopes_of_8(size: int) -> None:
    slopes = constant(RNG.integers(-128, 128, (1, 1, size)), "i8", Quant(0.01))
    check("PRELU", [wide(1, 6, 7, 5), slopes], {}, [wide(1, high=6e-4)])


def test_leaky_relus_of_16_bits_in_a_row() -> None:
    for slope in (0.3, 0.0, -0.5):
        check("LEAKY_RELU", [wide(300)], options("LeakyRelu", Alpha=slope), [wide(1, high=9e-4)])


@pytest.mark.parametrize("name", ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"])
def test_comparisons_of_16_bits(name: str) -> None:
    check(name, [wide(30, 40), wide(40)], {}, [Told([1], "bool")])


@pytest.mark.parametrize("name", ["LOG", "RSQRT"])
def test_functions_of_16_bits_of_what_is_positive(name: str) -> None:
    check(name, [wide(32767)], {}, [wide(1, high=9e-4)], [np.arange(1, 32768).astype(np.int16)])
