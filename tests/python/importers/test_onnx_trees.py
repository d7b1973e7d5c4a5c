"""Ensembles of decision trees beside ONNX Runtime, and tables that are damaged."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import hetnn

Array = np.ndarray[Any, Any]
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
NUMPY = {
    TensorProto.FLOAT: np.float32,
    TensorProto.DOUBLE: np.float64,
    TensorProto.INT64: np.int64,
    TensorProto.INT32: np.int32,
}


def model_of(
    op: str, attrs: dict[str, Any], outputs: list[tuple[Any, ...]], x: int = 1, features: int = 3, opset: int = 3
) -> Any:
    node = helper.make_node(op, ["x"], [name for name, *_ in outputs], domain="ai.onnx.ml", **attrs)
    ports = [helper.make_tensor_value_info(*port) for port in (("x", x, ["n", features]), *outputs)]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", opset)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 8
    return model


def trees(
    rng: np.random.Generator, count: int, depth: int, features: int
) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Nodes of random trees, those of each in levels, and which are leaves."""
    table: dict[str, list[Any]] = {f"nodes_{key}": [] for key in KEYS}
    leaves = []
    for tree in range(count):
        todo, made = [(0, depth)], 1
        while todo:
            node, below = todo.pop(0)
            leaf = below == 0 or (below < depth and rng.random() < 0.2)
            children = (0, 0) if leaf else (made, made + 1)
            row = [tree, node, int(rng.integers(features)), "LEAF" if leaf else str(rng.choice(MODES))]
            row += [0.0 if leaf else float(rng.integers(-2, 3)), *children, int(rng.integers(2))]
            for values, value in zip(table.values(), row, strict=True):
                values.append(value)
            if leaf:
                leaves.append((tree, node))
            else:
                todo += [(made, below - 1), (made + 1, below - 1)]
                made += 2
    return table, leaves


KEYS = [
    "treeids",
    "nodeids",
    "featureids",
    "modes",
    "values",
    "truenodeids",
    "falsenodeids",
    "missing_value_tracks_true",
]


def weights(
    rng: np.random.Generator, leaves: list[tuple[int, int]], width: int, kind: str, prefix: str
) -> dict[str, Any]:
    columns = {"each": lambda tree: range(width), "one": lambda tree: [tree % width], "first": lambda tree: [0]}[kind]
    rows = [(tree, node, column) for tree, node in leaves for column in columns(tree)]
    numbers = rng.standard_normal(len(rows)).astype(np.float32)
    keys = ("treeids", "nodeids", "ids")
    out: dict[str, Any] = {f"{prefix}_{key}": [row[k] for row in rows] for k, key in enumerate(keys)}
    return {**out, f"{prefix}_weights": (abs(numbers) / 4 if rng.random() < 0.5 else numbers).tolist()}


def agrees(model: Any, x: Array) -> None:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    exe = hetnn.compile(model)
    for rows in (x, x[:1]):
        given = exe(rows)
        for mine, theirs in zip(
            given if isinstance(given, tuple) else [given], session.run(None, {"x": rows}), strict=True
        ):
            assert mine.shape == theirs.shape
            if theirs.dtype.kind == "f":
                assert mine.dtype == theirs.dtype
                np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
            else:
                assert mine.tolist() == theirs.tolist()


def features(rng: np.random.Generator, kind: int, count: int = 3) -> Array:
    x = rng.integers(-2, 3, (40, count)).astype(NUMPY[kind])
    if x.dtype.kind == "f":
        x[rng.random(x.shape) < 0.1] = np.nan
    return x


def in_f64(attrs: dict[str, Any], *names: str) -> dict[str, Any]:
    """Attributes by their second form, with digits that f32 has not."""
    taken = {name: np.array(attrs[name]) + 1e-9 for name in names if name in attrs}
    rest = {name: value for name, value in attrs.items() if name not in taken}
    return {**rest, **{f"{name}_as_tensor": numpy_helper.from_array(value, name) for name, value in taken.items()}}


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("width", [1, 3])
def test_regressors(kind: int, aggregate: str, width: int) -> None:
    for k, transform in enumerate(TRANSFORMS[:4]):
        rng = np.random.default_rng(k)
        nodes, leaves = trees(rng, 7, 4, 3)
        attrs = nodes | weights(rng, leaves, width, ["each", "one"][k % 2], "target")
        attrs |= {"n_targets": width, "aggregate_function": aggregate, "post_transform": transform}
        if k > 1:
            attrs["base_values"] = [0.5, -1.0, 0.25][:width]
        if kind == TensorProto.DOUBLE and k % 2:
            attrs = in_f64(attrs, "nodes_values", "target_weights", "base_values")
        agrees(model_of("TreeEnsembleRegressor", attrs, [("y", 1, ["n", width])], kind), features(rng, kind))


def test_a_forest_adds_up_as_onnx_runtime_does_bit_for_bit() -> None:
    rng = np.random.default_rng(0)
    nodes, leaves = trees(rng, 30, 6, 5)
    attrs = nodes | weights(rng, leaves, 2, "each", "target") | {"n_targets": 2}
    model, x = model_of("TreeEnsembleRegressor", attrs, [("y", 1, ["n", 2])], features=5), features(rng, 1, 5)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert hetnn.compile(model)(x).tobytes() == session.run(None, {"x": x})[0].tobytes()


@pytest.mark.parametrize("kind", list(NUMPY))
@pytest.mark.parametrize(("classes", "base"), [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, 3)])
def test_classifiers(kind: int, classes: int, base: int) -> None:
    for k, of in enumerate(("each", "one", "first")):
        for transform in TRANSFORMS[k % 2 : 4 : 2]:
            rng = np.random.default_rng(10 * base + k)
            nodes, leaves = trees(rng, 5, 3, 3)
            attrs = nodes | weights(rng, leaves, classes, of, "class") | {"post_transform": transform}
            if base:
                attrs["base_values"] = [0.5, -1.0, 0.25][:base]
            texts = k == 1 and classes > 1
            attrs["classlabels_strings" if texts else "classlabels_int64s"] = (
                ["one", "two", "three"] if texts else [4, 7, -1]
            )[:classes]
            if kind == TensorProto.DOUBLE and k:
                attrs = in_f64(attrs, "nodes_values", "class_weights", "base_values")
            outputs = [("label", TensorProto.STRING if texts else TensorProto.INT64, ["n"]), ("y", 1, ["n", classes])]
            agrees(model_of("TreeEnsembleClassifier", attrs, outputs, kind), features(rng, kind))


def test_of_two_classes_the_second_one_scores_by_itself_where_its_leaves_are_reached() -> None:
    for transform in TRANSFORMS[:4]:
        attrs = {
            **STUMP,
            "class_treeids": [0, 0],
            "class_nodeids": [1, 2],
            "class_ids": [0, 1],
            "class_weights": [-0.3, 0.7],
        }
        attrs |= {"classlabels_int64s": [0, 1], "post_transform": transform}
        outputs = [("label", TensorProto.INT64, ["n"]), ("y", 1, ["n", 2])]
        agrees(model_of("TreeEnsembleClassifier", attrs, outputs, features=1), np.array([[-1], [1]], np.float32))


STUMP: dict[str, Any] = {
    "nodes_treeids": [0] * 3,
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0] * 3,
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.0] * 3,
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}
TARGETS: dict[str, Any] = {
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [1.0, 2.0],
    "n_targets": 1,
}


def stump(**changed: Any) -> Any:
    return model_of("TreeEnsembleRegressor", STUMP | TARGETS | changed, [("y", 1, ["n", 1])], features=1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"nodes_truenodeids": [5, 0, 0]}, "the true branch of a node is node 5 of tree 0, which is none"),
        ({"nodes_truenodeids": [0, 0, 0]}, "a tree whose node 0 lies behind itself"),
        ({"nodes_nodeids": [0, 1, 1]}, "node 1 of tree 0 stands twice"),
        ({"nodes_featureids": [3, 0, 0]}, r"the feature of a node is 3, where \[0,1\) is"),
        ({"nodes_featureids": [-1, 0, 0]}, r"the feature of a node is -1, where \[0,1\) is"),
        ({"nodes_modes": ["BRANCH_UP", "LEAF", "LEAF"]}, "nodes_modes must be of BRANCH_LEQ, .*; got 'BRANCH_UP'"),
        ({"nodes_values": [0.0]}, "tables of unlike lengths: .*nodes_values 1"),
        ({"target_ids": [0, 1]}, r"a target or class of a leaf is 1, where \[0,1\) is"),
        ({"target_nodeids": [1, 9]}, "what a weight is of is node 9 of tree 0, which is none"),
        ({"aggregate_function": "MEAN"}, "aggregate_function must be one of AVERAGE, SUM, MIN, MAX; got 'MEAN'"),
        ({"post_transform": "TANH"}, "post_transform must be one of NONE, .*; got 'TANH'"),
        ({"base_values": [1.0, 2.0]}, "2 base values for 1 targets"),
    ],
)
def test_damaged_tables_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.compile(stump(**changed))


def test_two_branches_may_meet_in_one_node() -> None:
    agrees(stump(nodes_truenodeids=[2, 0, 0]), np.array([[-1], [1]], np.float32))


def test_nodes_may_stand_behind_those_that_they_lead_to() -> None:
    table = {"nodes_nodeids": [3, 1, 2, 0, 4], "nodes_modes": ["BRANCH_LT", "LEAF", "LEAF", "BRANCH_GT", "LEAF"]}
    table |= {"nodes_values": [-1.0, 0, 0, 1.0, 0], "nodes_treeids": [0] * 5, "nodes_featureids": [0] * 5}
    table |= {"nodes_truenodeids": [0, 0, 0, 1, 0], "nodes_falsenodeids": [2, 0, 0, 4, 0]}
    agrees(stump(**table), np.array([[-2], [0], [2]], np.float32))


def test_a_tree_as_deep_as_it_has_nodes() -> None:
    depth = 100_000
    table = {
        "nodes_treeids": [0] * (2 * depth + 1),
        "nodes_nodeids": list(range(2 * depth + 1)),
        "nodes_featureids": [0] * (2 * depth + 1),
        "nodes_modes": ["BRANCH_GT"] * depth + ["LEAF"] * (depth + 1),
        "nodes_values": [float(k) for k in range(2 * depth + 1)],
        "nodes_truenodeids": [*range(1, depth), 2 * depth, *[0] * (depth + 1)],
        "nodes_falsenodeids": [*range(depth, 2 * depth), *[0] * (depth + 1)],
        "target_treeids": [0] * (depth + 1),
        "target_nodeids": list(range(depth, 2 * depth + 1)),
        "target_ids": [0] * (depth + 1),
        "target_weights": [float(k) for k in range(depth + 1)],
    }
    exe = hetnn.compile(stump(**table))
    assert exe(np.array([[0], [7.5], [2e5]], np.float32)).reshape(-1).tolist() == [0, 8, depth]


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_trees_of_leaves_apart(kind: int) -> None:
    """The newest operator: a set, a split and a tree that is a leaf, by hand."""
    dtype = NUMPY.get(kind, np.float16)

    def tensor(name: str, values: list[float], to: Any = dtype) -> onnx.TensorProto:
        return numpy_helper.from_array(np.array(values, to), name)

    attrs = {
        "n_targets": 2,
        "tree_roots": [0, 2],
        "nodes_featureids": [0, 1, 0],
        "nodes_modes": tensor("modes", [6, 0, 0], np.uint8),
        "nodes_splits": tensor("splits", [0, 0.5, 0]),
        "nodes_truenodeids": [0, 1, 3],
        "nodes_falsenodeids": [1, 2, 3],
        "nodes_trueleafs": [1, 1, 1],
        "nodes_falseleafs": [0, 1, 1],
        "nodes_missing_value_tracks_true": [0, 1, 0],
        "leaf_targetids": [0, 0, 1, 1],
        "leaf_weights": tensor("weights", [1, 2, 4, 8]),
        "membership_values": tensor("members", [3, 5, np.nan]),
    }
    x = np.array([[3, 0], [5, 1], [4, 0], [4, 1], [4, np.nan], [np.nan, 1]], dtype)
    exe = hetnn.compile(model_of("TreeEnsemble", attrs, [("y", kind, ["n", 2])], kind, 2, 5))
    assert exe(x).tolist() == [[1, 8], [1, 8], [2, 8], [0, 12], [2, 8], [0, 12]]
    means = hetnn.compile(
        model_of("TreeEnsemble", {**attrs, "aggregate_function": 0}, [("y", kind, ["n", 2])], kind, 2, 5)
    )
    assert means(x)[:3].tolist() == [[0.5, 4], [0.5, 4], [1, 4]]


def tree_ensemble(rng: np.random.Generator, dtype: Any, width: int, **attrs: Any) -> dict[str, Any]:
    """Attributes of a random forest of the newest operator, whose modes go up to `MEMBER`."""
    nodes: list[list[Any]] = []
    leaves: list[tuple[int, float]] = []
    members: list[float] = []

    def grow(depth: int) -> tuple[int, int]:
        if depth == 0 or (depth < 4 and rng.random() < 0.2):
            leaves.append((int(rng.integers(width)), rng.random() / 8))
            return len(leaves) - 1, 1
        mode, place = int(rng.integers(7)), len(nodes)
        if mode == 6:
            members.extend([*rng.choice([1.0, 2.0, 3.0, 40.0], rng.integers(1, 4), replace=False), np.nan])
        row = [int(rng.integers(3)), mode, float(rng.integers(-2, 3)), int(rng.integers(2))]
        nodes.append(row)
        (true, true_leaf), (false, false_leaf) = grow(depth - 1), grow(depth - 1)
        row += [true, false, true_leaf, false_leaf]
        return place, 0

    roots = [grow(4)[0] for _ in range(6)]
    names = ("featureids", "modes", "splits", "missing_value_tracks_true", "truenodeids", "falsenodeids")
    table: dict[str, Any] = {
        f"nodes_{name}": list(column)
        for name, column in zip((*names, "trueleafs", "falseleafs"), zip(*nodes, strict=True), strict=True)
    }
    table |= {"leaf_weights": [weight for _, weight in leaves], "membership_values": members}
    for name in ("nodes_splits", "leaf_weights", "membership_values"):
        table[name] = numpy_helper.from_array(np.array(table[name], dtype), name)
    table["nodes_modes"] = numpy_helper.from_array(np.array(table["nodes_modes"], np.uint8), "modes")
    columns = [column for column, _ in leaves]
    return {**table, "leaf_targetids": columns, "tree_roots": roots, "n_targets": width, **attrs}


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_the_newest_operator_on_random_forests(kind: int) -> None:
    # By their numbers ONNX has softmax before the logistic function; ONNX Runtime has them the other way round.
    theirs = {0: 0, 1: 2, 2: 1, 3: 3, 4: 4}
    for seed, (aggregate, transform) in enumerate(itertools.product(range(4), theirs)):
        width = 1 + seed % 3

        def model(transform: int, width: int = width, aggregate: int = aggregate, seed: int = seed) -> Any:
            rng = np.random.default_rng(seed)
            attrs = tree_ensemble(rng, NUMPY[kind], width, aggregate_function=aggregate, post_transform=transform)
            return model_of("TreeEnsemble", attrs, [("y", kind, ["n", width])], kind, opset=5)

        x = features(np.random.default_rng(seed), kind)
        y = hetnn.compile(model(transform))(x)
        session = onnxruntime.InferenceSession(model(theirs[transform]).SerializeToString())
        # Close to a half PROBIT's square root takes a difference of which f32 keeps few digits.
        atol = 1e-4 if TRANSFORMS[transform] == "PROBIT" else 1e-6
        np.testing.assert_allclose(y, session.run(None, {"x": x})[0], rtol=1e-5, atol=atol)
        if transform == 0 and aggregate < 2:  # what least and greatest leaves are where there are none, only others say
            want = onnx.reference.ReferenceEvaluator(model(0)).run(None, {"x": x})[0]
            np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset", [1, 2, 3, 4])
def test_older_operators_in_every_set(opset: int) -> None:
    model = model_of("TreeEnsembleRegressor", STUMP | TARGETS, [("y", 1, ["n", 1])], features=1, opset=opset)
    assert hetnn.compile(model)(np.array([[-1], [1]], np.float32)).tolist() == [[1], [2]]


def test_what_training_left_behind_is_not_read() -> None:
    x = np.array([[-1], [1]], np.float32)
    hits = numpy_helper.from_array(np.array([3.0, 1.0, 2.0]), "hits")
    for given in ({"nodes_hitrates": [3.0, 1.0, 2.0]}, {"nodes_hitrates_as_tensor": hits}):
        assert hetnn.compile(stump(**given))(x).tolist() == [[1], [2]]


def test_an_empty_list_of_members_without_nodes_that_ask() -> None:
    attrs = tree_ensemble(np.random.default_rng(0), np.float32, 1)
    attrs["nodes_modes"] = numpy_helper.from_array(np.zeros(len(attrs["nodes_featureids"]), np.uint8), "modes")
    attrs["membership_values"] = numpy_helper.from_array(np.zeros(0, np.float32), "members")
    agrees(model_of("TreeEnsemble", attrs, [("y", 1, ["n", 1])], opset=5), features(np.random.default_rng(0), 1))


TABLES = "%nodes: i32[2,4], %splits: f32[2], %roots: i32[2], %weights: f32[3], %columns: i32[3], %ends: i32[2]"


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_tables_that_lead_out_of_themselves_end_the_run(target: str) -> None:
    text = f"""graph @g {{stage = imported}} (%x: f32[3,2], {TABLES}) -> (%y) {{
      %y, %v = tree_ensemble(%x, %nodes, %splits, %roots, %weights, %columns, %ends) {{width = 2}} : f32[3,2], bool[3,2]
    }}"""
    exe = hetnn.compile(text, target=target)
    right: dict[str, Array] = {
        "x": np.array([[0, 0], [1, 0], [1, 1]], np.float32),
        "nodes": np.array([[0, 3, 1, -1], [1, 8, -1, -2]], np.int32),
        "splits": np.array([0.5, 0.5], np.float32),
        "roots": np.array([0, -2], np.int32),
        "weights": np.array([1, 2, 4], np.float32),
        "columns": np.array([0, 1, 0], np.int32),
        "ends": np.array([2, 3], np.int32),
    }
    assert exe(*right.values()).tolist() == [[8, 0], [5, 2], [5, 2]]
    for name, place, value, message in [
        ("nodes", (0, 0), 2, r"the feature of node 0 is 2, where \[0,2\) is"),
        ("nodes", (0, 0), -(2**31), "the feature of node 0 is -2147483648"),
        ("nodes", (0, 2), 2, r"the left of node 0 is 2, where \[1,2\) is"),
        ("nodes", (0, 2), 0, r"the left of node 0 is 0, where \[1,2\) is"),
        ("nodes", (0, 3), -3, r"the right of node 0, a leaf, is 2, where \[0,2\) is"),
        ("nodes", (1, 3), -(2**31), "the right of node 1, a leaf, is 2147483647"),
        ("roots", 1, 2, r"root 1 is 2, where \[0,2\) is"),
        ("columns", 2, 2, r"column 2 is 2, where \[0,2\) is"),
        ("columns", 2, -1, "column 2 is -1"),
        ("ends", 1, 4, r"the end of leaf 1 is 4, where \[2,4\) is"),
        ("ends", 0, -1, "the end of leaf 0 is -1"),
    ]:
        wrong = {key: array.copy() for key, array in right.items()}
        wrong[name][place] = value
        with pytest.raises(hetnn.InvalidModel, match=message):
            exe(*wrong.values())
    assert exe(*right.values()).tolist() == [[8, 0], [5, 2], [5, 2]]


def test_constant_tables_that_lead_out_of_themselves_are_told_when_compiling() -> None:
    """Though no row ever comes to the node."""
    text = """graph @g {stage = imported, symbols = [n: 1..64 = 4]} (%x: f32[n,2]) -> (%y) {
      %nodes = constant() {value = i32[2,4] {0,15,-1,-1, 5,8,-1,-2}} : i32[2,4]
      %splits = constant() {value = f32[2] {0.5, 0.5}} : f32[2]
      %roots = constant() {value = i32[1] {0}} : i32[1]
      %weights = constant() {value = f32[2] {1, 2}} : f32[2]
      %y, %v = tree_ensemble(%x, %nodes, %splits, %roots, %weights) {width = 1} : f32[n,1], bool[n,1]
    }"""
    with pytest.raises(hetnn.InvalidModel, match=r"the feature of node 1 is 5, where \[0,2\) is"):
        hetnn.compile(text)
    assert hetnn.compile(text.replace("-1,-1, 5", "-1,-1, 1"))(np.zeros((3, 2), np.float32)).tolist() == [[1]] * 3
