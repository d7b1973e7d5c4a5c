"""Networks of TFLite's integers on every device: what an NPU is given, and that no result differs from LiteRT's."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from importers.tflite_files import Graph, Quant, Told, constant, model_bytes, one, random_inputs, reference
from importers.tflite_integers import biases, filters, options, window, x_of, y_of

pytestmark = pytest.mark.usefixtures("own_numbers")


def network() -> Graph:
    """Convolutions, activations, a sum, pools, a mean, a linear layer and a softmax, all of integers."""
    graph = Graph()
    x = graph.input(Told([1, 16, 16, 3], "i8", quant=Quant(1 / 128, -1)))

    def conv(name: str, place: int, shape: Sequence[int], axis: int, how: dict[str, Any]) -> int:
        told, weights = graph.tensors[place], filters(shape, axis)
        more = [graph.tensor(weights), graph.tensor(biases(told, weights))]
        (y,) = graph.op(name, [place, *more], [y_of(low=0.02, high=0.05)], how)
        return y

    a = conv("CONV_2D", x, (8, 3, 3, 3), 0, window("Conv2D", True, 2, act=3))
    b = conv("DEPTHWISE_CONV_2D", a, (1, 3, 3, 8), 3, window("DepthwiseConv2D", True, 1, DepthMultiplier=1))
    (b,) = graph.op("HARD_SWISH", [b], [y_of(low=0.02, high=0.05)])
    c = conv("CONV_2D", b, (8, 1, 1, 8), 0, window("Conv2D", True, 1))
    (d,) = graph.op("ADD", [a, c], [y_of(low=0.03, high=0.06)], options("Add", FusedActivationFunction=1))
    (d,) = graph.op("LEAKY_RELU", [d], [y_of(low=0.03, high=0.06)], options("LeakyRelu", Alpha=0.1))
    same = Told([1], "i8", quant=graph.tensors[d].quant)
    (e,) = graph.op("MAX_POOL_2D", [d], [same], window("Pool2D", True, 2, FilterHeight=3, FilterWidth=3))
    (f,) = graph.op("CONCATENATION", [e, e], [same], options("Concatenation", Axis=3))
    axes = graph.tensor(constant([1, 2], "i32"))
    (g,) = graph.op("MEAN", [f, axes], [y_of(low=0.01, high=0.02)], options("Reducer", KeepDims=False))
    h = conv("FULLY_CONNECTED", g, (5, 16), 0, options("FullyConnected"))
    last = Told([1, 5], "i8", quant=Quant(1 / 256, -128))
    graph.outputs = [*graph.op("SOFTMAX", [h], [last], options("Softmax", Beta=1.0)), d]
    return graph


def attention() -> Graph:
    """Attention of four heads with its linear layers, a sum with what it reads, and GELU."""
    graph = Graph()
    x = graph.input(Told([1, 16, 32], "i8", quant=Quant(1 / 32, 5)))

    def dense(place: int) -> int:
        told, weights = graph.tensors[place], filters((32, 32), 0)
        more = [graph.tensor(weights), graph.tensor(biases(told, weights))]
        return graph.op("FULLY_CONNECTED", [place, *more], [y_of()], options("FullyConnected", KeepNumDims=True))[0]

    def moved(place: int, name: str, figures: Sequence[int]) -> int:
        result = Told([1], "i8", quant=graph.tensors[place].quant)
        return graph.op(name, [place, graph.tensor(constant(figures, "i32"))], [result])[0]

    def product(a: int, b: int, turned: bool, low: float) -> int:
        how = options("BatchMatMul", AdjX=False, AdjY=turned)
        return graph.op("BATCH_MATMUL", [a, b], [y_of(low=low, high=2 * low)], how)[0]

    q, k, v = (moved(moved(dense(x), "RESHAPE", [1, 16, 4, 8]), "TRANSPOSE", [0, 2, 1, 3]) for _ in range(3))
    root = graph.tensor(constant(np.array([50], np.int8), "i8", Quant(0.007)))
    (scores,) = graph.op("MUL", [product(q, k, True, 0.3), root], [y_of(low=0.1)], options("Mul"))
    shares = Told([1], "i8", quant=Quant(1 / 256, -128))
    (weights,) = graph.op("SOFTMAX", [scores], [shares], options("Softmax", Beta=1.0))
    joined = moved(moved(product(weights, v, False, 0.05), "TRANSPOSE", [0, 2, 1, 3]), "RESHAPE", [1, 16, 32])
    (y,) = graph.op("ADD", [dense(joined), x], [y_of()], options("Add"))
    graph.outputs = graph.op("GELU", [dense(y)], [y_of()], options("Gelu"))
    return graph


@pytest.mark.parametrize("make", [network, attention])
@pytest.mark.parametrize("target", ["cpu", "reference", "cpu+relu-only", "cpu+relu-table", "cpu+relu-rows"])
def test_a_network_is_litert_s_on_every_device(target: str, make: Callable[[], Graph]) -> None:
    data = model_bytes([make()])
    executable = hetnn.compile(data, target)
    for seed in range(3):
        inputs = random_inputs(data, seed)
        for mine, theirs in zip(executable.run(inputs), reference(data, [inputs])[0], strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(("own", "is_placed"), [("double", True), ("single", False), ("half_even_fp32", False)])
def test_an_npu_of_another_rounding_is_not_given_the_layer(own: str, is_placed: bool, tmp_path: Path) -> None:
    sheet = json.loads((files("hetnn") / "targets" / "relu-only.json").read_text())
    sheet.setdefault("numerics", {})["rounding"] = own
    path = tmp_path / "own.json"
    path.write_text(json.dumps(sheet))
    x, weights = x_of(1, 32, 32, 16), filters((16, 3, 3, 16), 0)
    how = window("Conv2D", True, 1)
    data = one("CONV_2D", [x, weights, biases(x, weights)], [y_of(low=0.5, high=1.0)], how)
    executable = hetnn.compile(data, f"cpu+{path}")
    rows = executable.report(format="dict")["not_on_preferred"]
    assert is_placed == ("conv2d_rounding" not in [reason["label"] for row in rows for reason in row["reasons"]])
    inputs = random_inputs(data)
    np.testing.assert_array_equal(executable(*inputs), reference(data, [inputs])[0][0])


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("shape", [(1, 7, 7, 24), (2, 5, 3, 7), (1, 1, 1, 9)])
def test_a_mean_of_pixels_stays_on_the_npu(shape: tuple[int, ...], keeps: bool) -> None:
    x, axes = Told(list(shape), "i8", quant=Quant(0.047, -13)), constant([1, 2], "i32")
    data = one("MEAN", [x, axes], [Told([], "i8", quant=Quant(0.0213, 5))], options("Reducer", KeepDims=keeps))
    executable = hetnn.compile(data, "cpu+relu-only", strategy="take-all")
    report = executable.report("dict")
    assert "conv2d" not in [row["op"] for row in report["not_on_preferred"]]
    assert report["macs_on"]["relu-only"] == int(np.prod(shape))
    inputs = random_inputs(data)
    np.testing.assert_array_equal(executable(*inputs), reference(data, [inputs])[0][0])


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("shape", [(1, 7, 7, 24), (2, 5, 3, 7), (1, 1, 1, 9)])
@pytest.mark.parametrize("name", ["REDUCE_MAX", "REDUCE_MIN"])
def test_extremes_of_pixels_stay_on_the_npu(name: str, shape: tuple[int, ...], keeps: bool) -> None:
    x, axes = Told(list(shape), "i8", quant=Quant(0.047, -13)), constant([1, 2], "i32")
    data = one(name, [x, axes], [Told([], "i8", quant=x.quant)], options("Reducer", KeepDims=keeps))
    executable = hetnn.compile(data, "cpu+relu-only", strategy="take-all")
    on_cpu = {row["op"] for row in executable.report("dict")["not_on_preferred"]}
    assert not on_cpu & {"max_pool2d", "reduce_max", "reduce_min"}
    inputs = random_inputs(data)
    np.testing.assert_array_equal(executable(*inputs), reference(data, [inputs])[0][0])


BY_EDGES = [((2, 3), (4, 6)), ((5, 4), (20, 16)), ((3, 3), (3, 12)), ((1, 1), (2, 4)), ((9, 7), (18, 28))]
BY_CORNERS = [((2, 3), (3, 5)), ((5, 4), (17, 7)), ((3, 3), (3, 17)), ((1, 3), (1, 9)), ((5, 9), (17, 65))]


@pytest.mark.parametrize(
    ("size", "goal", "corners", "centred"),
    [
        *((*sizes, False, centred) for sizes in BY_EDGES for centred in (False, True)),
        *((*sizes, True, False) for sizes in BY_CORNERS),
    ],
)
def test_images_that_grow_by_powers_of_2_are_layers_of_an_npu(
    size: Sequence[int], goal: Sequence[int], corners: bool, centred: bool
) -> None:
    """A transposed convolution: LiteRT's integers, of which halves lie away from 0 and not from the zero point."""
    x = Told([2, *size, 3], "i8", quant=Quant(0.05, -5))
    how = options("ResizeBilinear", AlignCorners=corners, HalfPixelCenters=centred)
    data = one("RESIZE_BILINEAR", [x, constant(list(goal), "i32")], [Told([1], "i8", quant=x.quant)], how)
    inputs = random_inputs(data)
    (want,) = reference(data, [inputs])[0]
    executable = hetnn.compile(data, "cpu+relu-only", strategy="take-all")
    assert {row["op"] for row in executable.report("dict")["not_on_preferred"]} <= {"bitcast"}
    assert len(executable.report("dict")["subgraphs"]) <= 2
    np.testing.assert_array_equal(executable(*inputs), want)
    np.testing.assert_array_equal(hetnn.compile(data, "cpu")(*inputs), want)
