"""Forms of ONNX operators that few files have, beside ONNX Runtime or, where it lacks them, what the standard says."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import hetnn
from importers.onnx_runtime_nodes import Array, of_runtime, same

FLOAT, INT64, INT32, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.STRING
RNG = np.random.default_rng(11)
Port = tuple[int, "list[Any] | None"]
KINDS = {TensorProto.UINT8: np.uint8, TensorProto.INT8: np.int8, INT32: np.int32}


def f32(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def model_of(
    nodes: list[Any], inputs: dict[str, Port], outputs: dict[str, int], opset: int = 18, **constants: Array
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, *port) for name, port in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return model


def agrees(model: onnx.ModelProto, wanted: list[Array] | None = None, **feeds: Array) -> None:
    given = hetnn.compile(model)(**feeds)
    wanted = of_runtime(model, feeds) if wanted is None else wanted
    for mine, theirs in zip(given if isinstance(given, tuple) else [given], wanted, strict=True):
        same(np.asarray(mine), np.asarray(theirs), 1e-4, 0)


@pytest.mark.parametrize("ordered", [0, 1])
def test_texts_that_differ(ordered: int) -> None:
    node = helper.make_node("Unique", ["x"], ["y", "first", "where", "counts"], sorted=ordered)
    kinds = {"y": STRING, "first": INT64, "where": INT64, "counts": INT64}
    words = np.array(["b", "a", "été", "b", "", "a", "Z", "𝄞", "\uffff", "ab"], object)
    agrees(model_of([node], {"x": (STRING, ["n"])}, kinds), x=words)
    agrees(model_of([node], {"x": (STRING, ["n", 5])}, kinds), x=words.reshape(2, 5))
    rows = helper.make_node("Unique", ["x"], ["y", "first", "where", "counts"], sorted=ordered, axis=0)
    pairs = np.array([["b", "a"], ["a", "c"], ["b", "a"], ["a", "b"]], object)
    agrees(model_of([rows], {"x": (STRING, ["n", 2])}, kinds), x=pairs)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("shape", [["n"], ["rows", "n"]])
def test_counts_of_n_grams_in_rows_of_any_length(shape: list[str], mode: str) -> None:
    told = {
        "mode": mode,
        "min_gram_length": 1,
        "max_gram_length": 2,
        "max_skip_count": 2,
        "ngram_counts": [0, 3],
        "ngram_indexes": [0, 1, 2, 3, 4],
        "weights": [1.0, 2.0, 3.0, 4.0, 5.0],
    }
    numbers = helper.make_node("TfIdfVectorizer", ["x"], ["y"], pool_int64s=[1, 2, 3, 1, 2, 2, 3], **told)
    texts = helper.make_node("TfIdfVectorizer", ["x"], ["y"], pool_strings=list("abcabbc"), **told)
    # One item alone has no neighbour.
    for row in ([1, 2, 3, 2, 1, 3, 7], [2]):
        x = np.array(row if len(shape) == 1 else [row, row[::-1]])
        agrees(model_of([numbers], {"x": (INT64, shape)}, {"y": FLOAT}), x=x)
        words = np.array([" abc   z"[k] for k in x.reshape(-1)], object).reshape(x.shape)
        agrees(model_of([texts], {"x": (STRING, shape)}, {"y": FLOAT}), x=words)


@pytest.mark.parametrize("backwards", [0, 1])
@pytest.mark.parametrize("unlike", [False, True])
@pytest.mark.parametrize("sizes", [[2, 4], ["b", 4], [2, "t"], ["b", "t"]])
def test_scans_of_operator_set_8(sizes: list[Any], unlike: bool, backwards: int) -> None:
    """Of any number of sequences, any length, and each of its own."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["next"]), helper.make_node("Mul", ["next", "x"], ["row"])],
        "body",
        [helper.make_tensor_value_info(name, FLOAT, [3]) for name in ("s", "x")],
        [helper.make_tensor_value_info(name, FLOAT, [3]) for name in ("next", "row")],
    )
    names = ["lengths" if unlike else "", "state", "xs"]
    node = helper.make_node("Scan", names, ["last", "ys"], body=body, num_scan_inputs=1, directions=[backwards])
    ports: dict[str, Port] = {"state": (FLOAT, [sizes[0], 3]), "xs": (FLOAT, [*sizes, 3])}
    feeds = {"state": f32(2, 3), "xs": f32(2, 4, 3)}
    if unlike:
        ports["lengths"], feeds["lengths"] = (INT64, [sizes[0]]), np.array([4, 2])
    agrees(model_of([node], ports, {"last": FLOAT, "ys": FLOAT}, opset=8), **feeds)


@pytest.mark.parametrize("late", [False, True])
def test_tiles_of_operator_set_1(late: bool) -> None:
    """How often and along which axis are numbers of the input's type; onnxruntime has none of it."""
    node = helper.make_node("Tile", ["x", "times", "axis"], ["y"])
    x, numbers = f32(2, 3), {"times": np.array([2], np.float32), "axis": np.array([1], np.float32)}
    ports: dict[str, Port] = {"x": (FLOAT, ["n", 3])}
    ports |= {name: (FLOAT, [1]) for name in numbers if late}
    model = model_of([node], ports, {"y": FLOAT}, opset=5, **({} if late else numbers))
    agrees(model, [np.tile(x, (1, 2))], x=x, **(numbers if late else {}))


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


@pytest.mark.parametrize("number", [0.0, 2.0, -2.0])
def test_steps_of_numbers_that_are_all_the_same(number: float) -> None:
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"])
    kinds = {"y": TensorProto.UINT8, "scale": FLOAT, "zero": TensorProto.UINT8}
    agrees(model_of([node], {"x": (FLOAT, ["n", 3])}, kinds), x=np.full((2, 3), number, np.float32))


@pytest.mark.parametrize("steps", [3, "t"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_a_sequence_of_no_step_leaves_no_state(op: str, gates: int, direction: str, steps: Any) -> None:
    ways = 2 if direction == "bidirectional" else 1
    begun = ["state", "cell"][: 2 if op == "LSTM" else 1]
    made = ["y", *(f"last_{name}" for name in begun)]
    node = helper.make_node(op, ["x", "w", "r", "", "lengths", *begun], made, hidden_size=4, direction=direction)
    ports: dict[str, Port] = {"x": (FLOAT, [steps, 2, 5]), "lengths": (INT32, [2])}
    ports |= {name: (FLOAT, [ways, 2, 4]) for name in begun}
    model = model_of([node], ports, dict.fromkeys(made, FLOAT), w=f32(ways, 4 * gates, 5), r=f32(ways, 4 * gates, 4))
    feeds = {name: f32(ways, 2, 4) for name in begun}
    for lengths in ([3, 0], [0, 2], [0, 0]):
        agrees(model, x=f32(3, 2, 5), lengths=np.array(lengths, np.int32), **feeds)


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


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMean"])
@pytest.mark.parametrize("noop", [0, 1])
def test_any_number_of_axes_is_reduced(op: str, noop: int) -> None:
    """That stay as axes of one element, so that the rank is known."""
    node = helper.make_node(op, ["x", "axes"], ["y"], noop_with_empty_axes=noop)
    model = model_of([node], {"x": (FLOAT, ["a", "b", "c"]), "axes": (INT64, ["k"])}, {"y": FLOAT})
    for axes in ([1], [-1, 0], [], [0, 1, 2]):
        agrees(model, x=f32(2, 3, 4), axes=np.array(axes, np.int64))


@pytest.mark.parametrize("ordered", [0, 1])
def test_numbers_that_differ_hold_nan_once(ordered: int) -> None:
    """As numpy says, which the standard names; ONNX Runtime takes NaN for whatever it meets."""
    node = helper.make_node("Unique", ["x"], ["y", "first", "where", "counts"], sorted=ordered)
    rows = helper.make_node("Unique", ["x"], ["y", "first", "where", "counts"], sorted=ordered, axis=0)
    kinds = {"y": FLOAT, "first": INT64, "where": INT64, "counts": INT64}
    x = np.array([1, np.nan, 0, np.nan, 1, -0.0, np.inf, np.nan], np.float32)
    for made, given in ((node, x), (rows, x.reshape(4, 2)), (rows, np.full((3, 1), np.nan, np.float32))):
        model = model_of([made], {"x": (FLOAT, ["n", *given.shape[1:]])}, kinds)
        agrees(model, ReferenceEvaluator(model).run(None, {"x": given}), x=given)


def declared(model: onnx.ModelProto, shape: list[Any]) -> onnx.ModelProto:
    """The model, its first output of a shape that it declares."""
    kind = model.graph.output[0].type.tensor_type.elem_type
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(model.graph.output[0].name, kind, shape))
    return model


def test_how_many_numbers_say_a_shape_or_a_place_follows_from_the_result() -> None:
    """A shape or rows of indices of open length: the axes of the result, or of what is put there, say it."""
    wide = helper.make_node("Expand", ["x", "s"], ["y"])
    model = declared(model_of([wide], {"x": (FLOAT, ["a", "b"]), "s": (INT64, ["r"])}, {"y": FLOAT}), ["p", "q", "t"])
    x = f32(1, 3)
    for s in ([4, 2, 3], [2, 1, 1], [0, 2, 3]):
        agrees(model, s=np.array(s), x=x)
    with pytest.raises(hetnn.InvalidModel, match=r"the values give the shape \[2,3\]"):
        hetnn.compile(model)(x=x, s=np.array([2, 3]))

    ports: dict[str, Port] = {"x": (FLOAT, ["a", "b", 2]), "i": (INT64, ["n", "k"])}
    picked = model_of([helper.make_node("GatherND", ["x", "i"], ["y"])], ports, {"y": FLOAT})
    x, pairs, ones = f32(2, 3, 2), np.array([[0, 1], [1, -1], [-2, 0]]), np.array([[1], [-2]])
    agrees(declared(picked, ["n", 2]), x=x, i=pairs)
    agrees(declared(picked, ["n", "b", "c"]), x=x, i=ones)
    with pytest.raises(hetnn.InvalidModel, match="match_shape"):
        hetnn.compile(declared(picked, ["n", 2]))(x=x, i=ones)
    shared = helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=1)
    batched = model_of([shared], {"x": (FLOAT, ["a", "b", 2]), "i": (INT64, ["a", "n", "k"])}, {"y": FLOAT})
    agrees(declared(batched, ["a", "n", 2]), x=x, i=np.array([[[0], [1]], [[-1], [2]]]))

    for axes, where in ((["n", 2], pairs), (["n", "b", "c"], ones)):
        put = model_of(
            [helper.make_node("ScatterND", ["x", "i", "u"], ["y"])], {**ports, "u": (FLOAT, axes)}, {"y": FLOAT}
        )
        agrees(put, x=x, i=where, u=f32(len(where), *([3, 2] if len(axes) == 3 else [2])))


def test_open_sizes_meet_in_caches_regions_and_reductions() -> None:
    ports: dict[str, Port] = {"x": (FLOAT, ["b", "t", "w"]), "u": (FLOAT, ["c", "s", "v"]), "i": (INT64, ["d"])}
    put = helper.make_node("TensorScatter", ["x", "u", "i"], ["y"], axis=1)
    x, u = f32(2, 5, 3), f32(2, 2, 3)
    wanted = x.copy()
    wanted[0, 1:3], wanted[1, 3:5] = u
    model = model_of([put], ports, {"y": FLOAT}, opset=24)
    np.testing.assert_array_equal(hetnn.compile(model)(x=x, u=u, i=np.array([1, 3])), wanted)
    align = helper.make_node("RoiAlign", ["x", "r", "i"], ["y"], output_height=2, output_width=2)
    known = model_of([align], {"x": (FLOAT, ["n", "c", "h", "w"]), "r": (FLOAT, ["k", "l"])}, {"y": FLOAT}, opset=16)
    known.graph.initializer.append(helper.make_tensor("i", INT64, [2], [1, 0]))
    agrees(known, x=f32(2, 3, 6, 5), r=np.array([[0, 0, 3, 3], [1, 1, 4, 2]], np.float32))
    total = model_of(
        [helper.make_node("ReduceSum", ["x", "i"], ["y"], keepdims=0)],
        {"x": (FLOAT, ["a", "b", 2]), "i": (INT64, ["k"])},
        {"y": FLOAT},
    )
    for axes in ([0], [1], [-1]):
        agrees(declared(total, ["p", "q"]), x=f32(2, 3, 2), i=np.array(axes))
    agrees(declared(total, ["p"]), x=f32(2, 3, 2), i=np.array([0, 2]))


def test_a_rank_that_nothing_says_is_refused_with_what_would() -> None:
    ports: dict[str, Port] = {"x": (FLOAT, ["a", "b"]), "s": (INT64, ["r"])}
    for op in ("Reshape", "Expand", "Squeeze", "Unsqueeze"):
        model = model_of([helper.make_node(op, ["x", "s"], ["y"])], ports, {"y": FLOAT})
        with pytest.raises(hetnn.Unsupported, match=f"{op}: .* r numbers.*declare its shape.*give r by fix="):
            hetnn.compile(model)
    model = model_of([helper.make_node("Reshape", ["x", "s"], ["y"])], ports, {"y": FLOAT})
    x = f32(2, 3)
    np.testing.assert_array_equal(hetnn.compile(model, fix={"r": 1})(x, np.array([6])), x.reshape(6))
    squeezed = model_of([helper.make_node("Squeeze", ["x", "s"], ["y"])], ports, {"y": FLOAT})
    agrees(declared(squeezed, ["p"]), x=f32(1, 3), s=np.array([0]))
    agrees(declared(squeezed, ["p"]), x=f32(3, 1), s=np.array([-1]))
    added = model_of([helper.make_node("Unsqueeze", ["x", "s"], ["y"])], ports, {"y": FLOAT})
    agrees(declared(added, ["p", "q", "t", "u"]), x=x, s=np.array([0, -1]))
    with pytest.raises(hetnn.InvalidModel, match="of which the model declares 1 axes"):
        hetnn.compile(declared(added, ["p"]))


def test_a_size_of_none_that_stands_for_another_one_ends_the_run() -> None:
    """In a shape 0 copies an axis of the input: an open size that is 0 makes no other shape than that."""
    names = helper.make_tensor("minus", INT64, [1], [-1])
    nodes = [
        helper.make_node("Shape", ["x"], ["last"], start=1),
        helper.make_node("Concat", ["last", "minus"], ["s"], axis=0),
        helper.make_node("Reshape", ["x", "s"], ["y"]),
    ]
    model = model_of(nodes, {"x": (FLOAT, ["a", "b"])}, {"y": FLOAT})
    model.graph.initializer.append(names)
    agrees(model, x=f32(2, 3))
    agrees(model, x=f32(0, 3))
    with pytest.raises(hetnn.InvalidModel, match=r"for sizes with b > 0 or a = 0 alone"):
        hetnn.compile(model)(f32(2, 0))
    nodes[2].attribute.append(helper.make_attribute("allowzero", 1))
    with pytest.raises(hetnn.InvalidModel):
        hetnn.compile(model)(f32(2, 3)[:, :0])


@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
@pytest.mark.parametrize("alpha", [1.0, 0.3, -2.0])
def test_a_celu_keeps_its_type(kind: str, alpha: float) -> None:
    port = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    model = model_of([helper.make_node("Celu", ["x"], ["y"], alpha=alpha)], {"x": (port, ["n"])}, {"y": port})
    x = np.array([-3, -1e-3, 0, 0.5, np.nan, 2, np.inf], kind)
    exact = x.astype(np.float64)
    with np.errstate(over="ignore"):
        wanted = np.where(exact > 0, exact, alpha * np.expm1(exact / alpha)).astype(kind)
    given = hetnn.compile(model)(x)
    assert given.dtype == kind
    np.testing.assert_allclose(given, wanted, rtol=2e-3 if kind == "float16" else 1e-5)


@pytest.mark.parametrize(
    ("node", "places", "rest"),
    [
        (helper.make_node("Gather", ["x", "i"], ["y"], axis=1), [1, 3], {}),
        (helper.make_node("Gather", ["x", "i"], ["y"], axis=1), [-4], {}),
        (helper.make_node("GatherElements", ["x", "i"], ["y"], axis=1), [[0], [3]], {}),
        (helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=1), [[0], [3]], {"u": f32(2, 1)}),
    ],
    ids=["behind", "before", "elements", "scatter"],
)
def test_constant_places_outside_are_told_when_compiling(node: Any, places: Any, rest: dict[str, Array]) -> None:
    ports: dict[str, Port] = {"x": (FLOAT, [2, 3])}
    with pytest.raises(hetnn.InvalidModel, match=r"index -?\d is outside an axis of 3"):
        hetnn.compile(model_of([node], ports, {"y": FLOAT}, i=np.array(places), **rest))


def test_constant_places_along_an_open_axis_are_told_when_running() -> None:
    node = helper.make_node("Gather", ["x", "i"], ["y"])
    exe = hetnn.compile(model_of([node], {"x": (FLOAT, ["n"])}, {"y": FLOAT}, i=np.array([3, -5])))
    x = f32(5)
    np.testing.assert_array_equal(exe(x), x[[3, 0]])
    with pytest.raises(hetnn.InvalidModel, match="index -5 is outside an axis of 4"):
        exe(x[:4])


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [[1, 1, 2, 0.6], [1, 1, 0.5, 0.5], [1, 1, 1.5, 3], [1, 1, 2, 2]], ids=str)
@pytest.mark.parametrize("shape", [[1, 2, 5, 7], ["n", 2, "h", "w"]], ids=["known", "open"])
def test_images_resized_as_before_operator_set_11(mode: str, scales: list[float], shape: list[Any]) -> None:
    """An axis that shrinks takes the entries behind, one that grows those before."""
    node = helper.make_node("Resize", ["x", "scales"], ["y"], mode=mode)
    model = model_of([node], {"x": (FLOAT, shape)}, {"y": FLOAT}, opset=10, scales=np.array(scales, np.float32))
    agrees(model, x=f32(1, 2, 5, 7))


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("sizes", [["a", "b", "c"], [2, 0, 3]], ids=["open", "none"])
def test_a_hardmax_of_nothing_marks_nothing(opset: int, sizes: list[Any]) -> None:
    node = helper.make_node("Hardmax", ["x"], ["y"], axis=1)
    model = model_of([node], {"x": (FLOAT, sizes)}, {"y": FLOAT}, opset=opset)
    agrees(model, x=f32(2, 0, 3))
    if sizes[1] == "b":
        agrees(model, x=f32(2, 3, 3))
        agrees(model, x=np.full((1, 2, 2), -np.inf, np.float32))


OF_A_HEIGHT = [
    helper.make_node("Shape", ["x"], ["sizes"], end=1),  # [h]
    helper.make_node("Mod", ["sizes", "two"], ["axis"]),
    helper.make_node("Div", ["sizes", "three"], ["step"]),
]
NUMBERS = {"two": np.array([2]), "three": np.array([3]), "none": np.array([0]), "end": np.array([2**31 - 1])}


@pytest.mark.parametrize(
    ("op", "read", "told"),
    [
        ("Slice", ["x", "none", "end", "none", "step"], {}),
        ("Slice", ["x", "two", "end", "axis"], {}),
        ("ReduceSum", ["x", "axis"], {}),
        ("ReduceLogSumExp", ["x", "axis"], {"keepdims": 0}),
        ("Unsqueeze", ["x", "axis"], {}),
        ("CumSum", ["x", "axis"], {}),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_axes_and_steps_that_open_sizes_say(op: str, read: list[str], told: dict[str, Any]) -> None:
    nodes = [*OF_A_HEIGHT, helper.make_node(op, read, ["y"], **told)]
    model = model_of(nodes, {"x": (FLOAT, ["h", 4])}, {"y": FLOAT}, **NUMBERS)
    for height in (6, 7, 3):
        agrees(model, x=f32(height, 4))


def test_a_place_in_a_sequence_that_an_open_size_says() -> None:
    nodes = [
        *OF_A_HEIGHT,
        helper.make_node("Squeeze", ["axis"], ["place"]),
        helper.make_node("SequenceConstruct", ["x", "other"], ["items"]),
        helper.make_node("SequenceAt", ["items", "place"], ["y"]),
    ]
    model = model_of(nodes, {"x": (FLOAT, ["h", 4])}, {"y": FLOAT}, **NUMBERS, other=f32(2, 4))
    for height in (6, 7):
        agrees(declared(model, ["q", 4]), x=f32(height, 4))


KEPT = {
    "greatest": [helper.make_node("Max", ["m", "zero"], ["k"])],
    "clipped": [helper.make_node("Clip", ["m", "zero", "nine"], ["k"])],
    "distance": [helper.make_node("Abs", ["m"], ["k"])],
    "from behind": [  # as programs that count from both ends have it
        helper.make_node("Less", ["m", "zero"], ["behind"]),
        helper.make_node("Size", ["x"], ["all"]),
        helper.make_node("Add", ["m", "all"], ["after"]),
        helper.make_node("Where", ["behind", "after", "m"], ["k"]),
    ],
}


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT)
@pytest.mark.parametrize("use", ["ConstantOfShape", "Range", "Slice"])
def test_integers_below_0_that_become_sizes(kept: list[Any], use: str) -> None:
    read = {"ConstantOfShape": ["row"], "Range": ["zero", "k", "one"], "Slice": ["x", "none", "row"]}[use]
    nodes = [*kept, helper.make_node("Unsqueeze", ["k", "none"], ["row"]), helper.make_node(use, read, ["y"])]
    numbers = {"zero": np.array(0), "one": np.array(1), "nine": np.array(9), "none": np.array([0])}
    ports: dict[str, Port] = {"x": (FLOAT, ["n"]), "m": (INT64, [])}
    model = model_of(nodes, ports, {"y": INT64 if use == "Range" else FLOAT}, **numbers)
    for m in (3, 0, -2):
        agrees(model, x=f32(7), m=np.array(m))


@pytest.mark.parametrize("open_sizes", [False, True])
@pytest.mark.parametrize(("start", "end"), [(-4, -9), (-3, -9), (-9, -6), (-5, 0), (2, -9), (9, -2)])
def test_slices_backwards_from_before_the_first_element(start: int, end: int, open_sizes: bool) -> None:
    """By the standard they begin at the first one, unlike Python's."""
    node = helper.make_node("Slice", ["x", "start", "end", "axis", "step"], ["y"])
    bounds = {"start": np.array([start]), "end": np.array([end]), "axis": np.array([1]), "step": np.array([-1])}
    for size in (0, 1, 2, 3, 5):
        x = f32(2, size)
        shape = ["n", "m"] if open_sizes else [2, size]
        agrees(model_of([node], {"x": (FLOAT, shape)}, {"y": FLOAT}, **bounds), x=x)
        late: dict[str, Port] = {"x": (FLOAT, shape), "start": (INT64, [1]), "end": (INT64, [1])}
        rest = {"axis": bounds["axis"], "step": bounds["step"]}
        agrees(model_of([node], late, {"y": FLOAT}, **rest), x=x, start=bounds["start"], end=bounds["end"])


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


@pytest.mark.parametrize("equation", ["ij,ij->ij", "ij,kj->ik", "ij,ij,j->i"])
def test_named_axes_of_one_element_are_repeated(equation: str) -> None:
    shapes = {"ij,ij->ij": [(2, 3), (1, 3)], "ij,kj->ik": [(2, 1), (4, 3)], "ij,ij,j->i": [(2, 1), (1, 3), (3,)]}[
        equation
    ]
    feeds = {f"x{k}": f32(*shape) for k, shape in enumerate(shapes)}
    node = helper.make_node("Einsum", list(feeds), ["y"], equation=equation)
    wanted = [np.einsum(equation, *feeds.values())]
    agrees(model_of([node], {name: (FLOAT, list(x.shape)) for name, x in feeds.items()}, {"y": FLOAT}), wanted, **feeds)


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


@pytest.mark.parametrize(
    "counts", [[2, 1, 1, 3, 1], [2, 3, 2, 1, 2, 3], [1, 1, 1, 1, 1, 1, 1, 2], [2, 2, 1, 2, 2, 2, 1, 2]]
)
@pytest.mark.parametrize("open_sizes", [False, True])
def test_values_of_many_axes_are_repeated(counts: list[int], open_sizes: bool) -> None:
    x = f32(*[1 + k % 2 for k in range(len(counts))])
    shape: list[Any] = ["n", "m", *x.shape[2:]] if open_sizes else list(x.shape)
    node = helper.make_node("Tile", ["x", "counts"], ["y"])
    agrees(model_of([node], {"x": (FLOAT, shape)}, {"y": FLOAT}, counts=np.array(counts)), [np.tile(x, counts)], x=x)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin", "ReduceLogSumExp"])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("late", [False, True])
def test_the_extremes_of_no_elements_of_open_axes(op: str, kind: type[np.generic], late: bool) -> None:
    """By the standard the infinities, or the ends of a type without."""
    node = helper.make_node(op, ["x", "axes"], ["y"], keepdims=0)
    told = {np.float32: FLOAT, np.float64: TensorProto.DOUBLE, np.int64: INT64}[kind]
    axes, x = np.array([1]), np.arange(24).reshape(2, 3, 4).astype(kind)
    ports: dict[str, Port] = {"x": (told, ["n", "m", "k"])}
    if late:
        model, given = model_of([node], {**ports, "axes": (INT64, [1])}, {"y": told}), {"axes": axes}
    else:
        model, given = model_of([node], ports, {"y": told}, axes=axes), {}
    for part in (x, x[:, :0], x[:0], x[:, :1]):
        agrees(model, x=part, **given)
