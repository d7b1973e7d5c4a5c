"""Filters, poolings and images of other sizes in forms that few ONNX files have, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from importers.onnx_ports import FLOAT, INT32, INT64, Port, agrees, model_of
from importers.onnx_runtime_nodes import RNG, f32, restart

restart()


KINDS = {TensorProto.UINT8: np.uint8, TensorProto.INT8: np.int8, INT32: np.int32}
WINDOWS: list[dict[str, Any]] = [
    {},
    {"auto_pad": "SAME_UPPER"},
    {"auto_pad": "SAME_LOWER", "strides": [2, 1]},
    {"pads": [1, 1, 0, 1], "strides": [2, 2]},
    {"kernel_shape": [3, 3], "dilations": [2, 1]},
]


@pytest.mark.parametrize("told", WINDOWS, ids=str)
@pytest.mark.parametrize(
    "sizes", [["m", "c", "kh", "kw"], ["m", 3, 3, 3], [4, 3, "kh", "kw"]], ids=lambda sizes: "-".join(map(str, sizes))
)
def test_filters_of_any_size(sizes: list[Any], told: dict[str, Any]) -> None:
    for bias in (False, True):
        node = helper.make_node("Conv", ["x", "w", "b"][: 2 + bias], ["y"], **told)
        ports: dict[str, Port] = {"x": (FLOAT, ["n", "c", "h", "wide"]), "w": (FLOAT, sizes)}
        feeds = {"x": f32(2, 3, 8, 9), "w": f32(4, 3, 3, 3)}
        if bias:
            ports["b"], feeds["b"] = (FLOAT, ["m"]), f32(4)
        agrees(model_of([node], ports, {"y": FLOAT}), **feeds)


def test_filters_of_any_size_over_one_and_three_axes() -> None:
    grouped = helper.make_node("Conv", ["x", "w"], ["y"], group=2)
    ports: dict[str, Port] = {"x": (FLOAT, ["n", 4, "h"]), "w": (FLOAT, ["m", 2, "k"])}
    agrees(model_of([grouped], ports, {"y": FLOAT}), x=f32(2, 4, 9), w=f32(6, 2, 3))
    deep = helper.make_node("Conv", ["x", "w"], ["y"])
    ports = {"x": (FLOAT, ["n", 2, "d", "h", "wide"]), "w": (FLOAT, ["m", 2, "k", "k", "k"])}
    agrees(model_of([deep], ports, {"y": FLOAT}), x=f32(2, 2, 5, 4, 6), w=f32(3, 2, 3, 3, 3))


def test_transposed_filters_of_open_channels() -> None:
    """Whose sizes the input, the bias and kernel_shape say."""
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], kernel_shape=[3, 3], group=2, strides=[2, 1])
    ports: dict[str, Port] = {
        "x": (FLOAT, ["n", 4, "h", "wide"]),
        "w": (FLOAT, ["c", "m", "kh", "kw"]),
        "b": (FLOAT, [6]),
    }
    agrees(model_of([node], ports, {"y": FLOAT}), x=f32(2, 4, 4, 6), w=f32(4, 3, 3, 3), b=f32(6))


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"strides": [2, 3], "pads": [1, 0, 1, 2]},
        {"strides": [2, 1], "output_padding": [1, 0], "dilations": [1, 2]},
        {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
        {"group": 2, "strides": [2, 1]},
    ],
    ids=str,
)
def test_transposed_filters_of_any_size(told: dict[str, Any]) -> None:
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], **told)
    ports: dict[str, Port] = {
        "x": (FLOAT, ["n", "c", "h", "wide"]),
        "w": (FLOAT, ["c", "m", "kh", "kw"]),
        "b": (FLOAT, ["o"]),
    }
    filters = 3 * told.get("group", 1)
    agrees(model_of([node], ports, {"y": FLOAT}), x=f32(2, 4, 5, 6), w=f32(4, 3, 3, 2), b=f32(filters))


POOLS: list[tuple[dict[str, Any], tuple[int, ...]]] = [
    ({"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, (7, 8)),
    ({"kernel_shape": [2, 3], "strides": [1, 3]}, (7, 8)),
    ({"kernel_shape": [2, 2], "strides": [2, 2]}, (7, 9)),
    ({"kernel_shape": [3], "strides": [2]}, (9,)),
    ({"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]}, (5, 6, 7)),
]


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(("told", "sizes"), POOLS, ids=str)
def test_a_pooling_is_undone_into_the_shape_that_it_had(
    told: dict[str, Any], sizes: tuple[int, ...], is_open: bool
) -> None:
    """Also where windows do not span it, so that the places are of another shape than theirs."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["pooled", "places"], **told),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("MaxUnpool", ["pooled", "places", "shape"], ["y"], **told),
    ]
    shape = ["n", "c", *(f"s{k}" for k in range(len(sizes)))] if is_open else [2, 3, *sizes]
    agrees(model_of(nodes, {"x": (FLOAT, shape)}, {"y": FLOAT}), x=f32(2, 3, *sizes))


PLACES: list[tuple[dict[str, Any], tuple[int, ...]]] = [
    ({"kernel_shape": [2, 2], "pads": [0, 0, 1, 1]}, (5, 6)),
    ({"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}, (7, 8)),
    ({"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}, (7, 8)),
    ({"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1, "pads": [0, 0, 1, 0]}, (5, 5)),
    ({"kernel_shape": [2, 2], "dilations": [2, 2], "pads": [0, 0, 1, 0]}, (5, 5)),
    ({"kernel_shape": [3], "pads": [0, 2]}, (7,)),
    ({"kernel_shape": [2, 2], "storage_order": 1, "pads": [1, 0, 0, 0]}, (5, 6)),
    ({"kernel_shape": [2, 2, 2], "storage_order": 1}, (3, 4, 5)),
    # A window that would begin in the padding behind is none.
    ({"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 0, 1], "ceil_mode": 1}, (7, 6)),
    ({"kernel_shape": [1], "strides": [3], "auto_pad": "SAME_UPPER", "ceil_mode": 1}, (8,)),
    ({"kernel_shape": [3], "pads": [2, 2]}, (5,)),
    ({"kernel_shape": [3], "strides": [2], "pads": [1, 2], "ceil_mode": 1}, (6,)),
]


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(("told", "sizes"), PLACES, ids=str)
def test_places_of_the_greatest_values(told: dict[str, Any], sizes: tuple[int, ...], is_open: bool) -> None:
    """With more padding on one side, counted column by column, and of the least number of all."""
    node = helper.make_node("MaxPool", ["x"], ["y", "places"], **told)
    x = f32(2, 3, *sizes)
    for given in (x, np.full_like(x, -np.inf), (50 * x).astype(np.int8)):
        kind = helper.np_dtype_to_tensor_dtype(given.dtype)
        shape = ["n", "c", *(f"s{k}" for k in range(len(sizes)))] if is_open else list(x.shape)
        agrees(model_of([node], {"x": (kind, shape)}, {"y": kind, "places": INT64}), x=given)


def test_a_pooling_is_undone_into_a_larger_shape() -> None:
    """The standard's own example, whose places are of what the windows span; onnxruntime has it otherwise."""
    node = helper.make_node("MaxUnpool", ["x", "places", "shape"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    ports: dict[str, Port] = {"x": (FLOAT, [1, 1, 2, 2]), "places": (INT64, [1, 1, 2, 2]), "shape": (INT64, [4])}
    model = model_of([node], ports, {"y": FLOAT})
    feeds = {"x": f32(1, 1, 2, 2), "places": np.array([[[[5, 7], [13, 15]]]]), "shape": np.array([1, 1, 5, 5])}
    agrees(model, ReferenceEvaluator(model).run(None, feeds), **feeds)


@pytest.mark.parametrize("op", ["AveragePool", "LpPool"])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 0, 1]])
def test_windows_with_gaps_over_any_number_of_channels(op: str, pads: list[int]) -> None:
    node = helper.make_node(op, ["x"], ["y"], kernel_shape=[2, 2], dilations=[2, 1], pads=pads)
    agrees(model_of([node], {"x": (FLOAT, ["n", "c", "h", "w"])}, {"y": FLOAT}, opset=19), x=f32(2, 3, 6, 7))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [[1, 1, 2, 0.6], [1, 1, 0.5, 0.5], [1, 1, 1.5, 3], [1, 1, 2, 2]], ids=str)
@pytest.mark.parametrize("shape", [[1, 2, 5, 7], ["n", 2, "h", "w"]], ids=["known", "open"])
def test_images_resized_as_before_operator_set_11(mode: str, scales: list[float], shape: list[Any]) -> None:
    """An axis that shrinks takes the entries behind, one that grows those before."""
    node = helper.make_node("Resize", ["x", "scales"], ["y"], mode=mode)
    model = model_of([node], {"x": (FLOAT, shape)}, {"y": FLOAT}, opset=10, scales=np.array(scales, np.float32))
    agrees(model, x=f32(1, 2, 5, 7))


@pytest.mark.parametrize("open_sizes", [False, True])
@pytest.mark.parametrize(
    ("scale", "size"), [(0.7, 10), (0.9, 30), (1.3, 10), (1.4, 5), (0.6, 8), (1 / 3, 9), (2.3, 20)]
)
@pytest.mark.parametrize("rounding", ["floor", "round_prefer_ceil"])
def test_sizes_and_nearest_entries_by_scales_in_single_precision(
    scale: float, size: int, rounding: str, open_sizes: bool
) -> None:
    """As the standard infers them: 0.7 of 10 are 7, though 0.7 in f32 is less."""
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest", nearest_mode=rounding)
    x = np.arange(2 * size, dtype=np.float32).reshape(1, 1, 2, size)
    scales = np.array([1, 1, 1, scale], np.float32)
    shape = ["n", "c", "h", "w"] if open_sizes else [1, 1, 2, size]
    agrees(model_of([node], {"x": (FLOAT, shape)}, {"y": FLOAT}, **{"scales": scales}), x=x)


@pytest.mark.parametrize("goal", [1, 2, 7])
def test_nearest_entries_of_a_region(goal: int) -> None:
    """Along the whole result's length; its edges are in f32, as 0.1 of 10 is 1 there."""
    told = {"mode": "nearest", "nearest_mode": "ceil", "coordinate_transformation_mode": "tf_crop_and_resize"}
    x = np.arange(22, dtype=np.float32).reshape(1, 1, 2, 11)
    region = np.array([0, 0, 0, 0.1, 1, 1, 1, 0.8], np.float32)
    sizes = helper.make_node("Resize", ["x", "region", "", "sizes"], ["y"], **told)
    goals = np.array([1, 1, 2, goal])
    agrees(model_of([sizes], {"x": (FLOAT, ["n", "c", "h", "w"])}, {"y": FLOAT}, region=region, sizes=goals), x=x)
    scales = helper.make_node("Resize", ["x", "region", "scales"], ["y"], **told)
    by = np.array([1, 1, 1, (goal + 0.5) / 11], np.float32)
    agrees(model_of([scales], {"x": (FLOAT, [1, 1, 2, 11])}, {"y": FLOAT}, region=region, scales=by), x=x)


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int32])
@pytest.mark.parametrize("antialias", [0, 1])
@pytest.mark.parametrize("shape", [[1, 2, 6, 8], ["n", "c", "h", "w"]])
def test_integers_between_others(kind: type[np.generic], antialias: int, shape: list[Any]) -> None:
    """Cut towards zero, as ONNX Runtime does; what it smooths it rounds."""
    lowest = 0 if kind is np.uint8 else -100
    x = (RNG.integers(lowest, 100, (1, 2, 6, 8)) if not antialias else np.full((1, 2, 6, 8), 77)).astype(kind)
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear", antialias=antialias)
    (told,) = (number for number, own in KINDS.items() if own is kind)
    for goal in ([1, 2, 12, 16], [1, 2, 3, 8], [1, 2, 24, 4]):
        agrees(model_of([node], {"x": (told, shape)}, {"y": told}, sizes=np.array(goal)), x=x)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_greatest_pixels_of_regions(scale: float) -> None:
    node = helper.make_node("MaxRoiPool", ["x", "regions"], ["y"], pooled_shape=[3, 2], spatial_scale=scale)
    regions = np.array(
        [[0, 0, 0, 3, 3], [1, 1, 2, 5, 5], [1, 2, 2, 2, 2], [0, 5, 5, 1, 1], [0, 4, 5, 20, 30], [1, -3, -9, 2.5, 0.5]],
        np.float32,
    )
    ports: dict[str, Port] = {"x": (FLOAT, ["n", 2, "h", "w"]), "regions": (FLOAT, ["r", 5])}
    agrees(model_of([node], ports, {"y": FLOAT}), x=f32(2, 2, 6, 7), regions=regions)
