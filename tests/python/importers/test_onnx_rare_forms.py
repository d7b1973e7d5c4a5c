"""Forms of ONNX operators that few files have, beside ONNX Runtime or, where it lacks them, what the standard says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import hetnn
from importers.onnx_ports import FLOAT, INT32, INT64, STRING, Port, agrees, model_of
from importers.onnx_runtime_nodes import f32, restart

restart()


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


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("sizes", [["a", "b", "c"], [2, 0, 3]], ids=["open", "none"])
def test_a_hardmax_of_nothing_marks_nothing(opset: int, sizes: list[Any]) -> None:
    node = helper.make_node("Hardmax", ["x"], ["y"], axis=1)
    model = model_of([node], {"x": (FLOAT, sizes)}, {"y": FLOAT}, opset=opset)
    agrees(model, x=f32(2, 0, 3))
    if sizes[1] == "b":
        agrees(model, x=f32(2, 3, 3))
        agrees(model, x=np.full((1, 2, 2), -np.inf, np.float32))


@pytest.mark.parametrize("equation", ["ij,ij->ij", "ij,kj->ik", "ij,ij,j->i"])
def test_named_axes_of_one_element_are_repeated(equation: str) -> None:
    shapes = {"ij,ij->ij": [(2, 3), (1, 3)], "ij,kj->ik": [(2, 1), (4, 3)], "ij,ij,j->i": [(2, 1), (1, 3), (3,)]}[
        equation
    ]
    feeds = {f"x{k}": f32(*shape) for k, shape in enumerate(shapes)}
    node = helper.make_node("Einsum", list(feeds), ["y"], equation=equation)
    wanted = [np.einsum(equation, *feeds.values())]
    agrees(model_of([node], {name: (FLOAT, list(x.shape)) for name, x in feeds.items()}, {"y": FLOAT}), wanted, **feeds)


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
