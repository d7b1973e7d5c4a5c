"""ONNX operators that prepare features, and linear models over them, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import hetnn

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
RNG = np.random.default_rng(5)
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
ROWS = np.array([[0.1, 0.2, -0.3], [1, -2, 0.5], [-0.7, 0.1, 0.9], [0, 0, 0]], np.float32)
NAN = float("nan")


def model_of(op: str, outputs: dict[str, int], inputs: dict[str, tuple[int, list[Any]]], **attrs: Any) -> Any:
    node = helper.make_node(op, list(inputs), list(outputs), domain="ai.onnx.ml", **attrs)
    taken = [helper.make_tensor_value_info(name, dtype, shape) for name, (dtype, shape) in inputs.items()]
    given = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in outputs.items()]
    graph = helper.make_graph([node], "g", taken, given)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 8
    return model


def agrees(model: Any, *inputs: np.ndarray[Any, Any], rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """hetnn gives what ONNX Runtime gives, also for the first row alone."""
    exe, session = hetnn.compile(model), onnxruntime.InferenceSession(model.SerializeToString())
    names = [port.name for port in session.get_inputs()]
    for given in (inputs, [x[:1] for x in inputs]):
        wanted = session.run(None, dict(zip(names, given, strict=True)))
        found = exe(*given)
        for mine, theirs in zip(found if isinstance(found, tuple) else [found], wanted, strict=True):
            assert mine.shape == theirs.shape
            if theirs.dtype.kind == "f":
                assert mine.dtype == theirs.dtype
                np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol)
            else:
                np.testing.assert_array_equal(mine, theirs)


X = {"x": (FLOAT, ["n", 3])}


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("Scaler", {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 1.0, 2.0]}),
        ("Scaler", {"offset": [1.0], "scale": [0.5]}),
        ("Normalizer", {"norm": "MAX"}),
        ("Normalizer", {"norm": "L1"}),
        ("Normalizer", {"norm": "L2"}),
        ("Imputer", {"imputed_value_floats": [1.0, 2.0, 3.0], "replaced_value_float": NAN}),
        ("Imputer", {"imputed_value_floats": [7.0], "replaced_value_float": 0.5}),
        ("LinearRegressor", {"coefficients": [1.0, 2, 3, 4, 5, 6], "intercepts": [0.1, 0.2], "targets": 2}),
        ("LinearRegressor", {"coefficients": [1.0, 2, 3]}),
    ],
)
def test_features_are_prepared(op: str, attrs: dict[str, Any]) -> None:
    rows = ROWS.copy()
    if op == "Imputer":
        rows[0, 1] = rows[2, 2] = NAN
    agrees(model_of(op, {"y": FLOAT}, X, **attrs), rows)


def test_missing_integers() -> None:
    attrs = {"imputed_value_int64s": [7, 8], "replaced_value_int64": -1}
    agrees(model_of("Imputer", {"y": INT64}, {"x": (INT64, ["n", 2])}, **attrs), np.array([[-1, 2], [3, -1]]))


def test_features_side_by_side() -> None:
    inputs = {"x": (FLOAT, ["n", 2]), "z": (FLOAT, ["n", 1])}
    agrees(model_of("FeatureVectorizer", {"y": FLOAT}, inputs, inputdimensions=[2, 1]), ROWS[:, :2], ROWS[:, 2:])


@pytest.mark.parametrize("zeros", [0, 1])
def test_categories(zeros: int) -> None:
    """Of integers and of texts; what is none ends the run where it may not be."""
    numbers = model_of("OneHotEncoder", {"y": FLOAT}, {"x": (INT64, ["n", "m"])}, cats_int64s=[1, 2, 5], zeros=zeros)
    agrees(numbers, np.array([[1, 5], [2, 2], [1, 1]]))
    texts = model_of("OneHotEncoder", {"y": FLOAT}, {"x": (STRING, ["n"])}, cats_strings=["a", "été"], zeros=zeros)
    agrees(texts, np.array(["été", "a", "a"], object))
    if zeros:
        agrees(numbers, np.array([[1, 4], [0, 2]]))
        agrees(texts, np.array(["", "a"], object))
    else:
        with pytest.raises(hetnn.InvalidModel, match="outside an axis of 1"):
            hetnn.compile(numbers)(np.array([[1, 4]]))


def test_numbers_of_categories_and_categories_of_numbers() -> None:
    told = {"cats_strings": ["a", "été", ""], "cats_int64s": [4, -2, 7], "default_int64": 9, "default_string": "none"}
    numbers = model_of("CategoryMapper", {"y": INT64}, {"x": (STRING, ["n"])}, **told)
    agrees(numbers, np.array(["été", "b", "a", ""], object))
    texts = model_of("CategoryMapper", {"y": STRING}, {"x": (INT64, ["n", 2])}, **told)
    agrees(texts, np.array([[7, 4], [0, -2]]))
    with pytest.raises(hetnn.InvalidModel, match="3 cats_strings and 1 cats_int64s"):
        hetnn.compile(model_of("CategoryMapper", {"y": INT64}, {"x": (STRING, ["n"])}, **{**told, "cats_int64s": [1]}))


def test_labels_of_the_first_operator_set() -> None:
    told = {"classes_strings": ["a", "été", ""], "default_int64": -1, "default_string": "none"}
    numbers = model_of("LabelEncoder", {"y": INT64}, {"x": (STRING, ["n"])}, **told)
    agrees(numbers, np.array(["été", "b", "a", ""], object))
    texts = model_of("LabelEncoder", {"y": STRING}, {"x": (INT64, ["n"])}, **told)
    agrees(texts, np.array([2, 0, 5, -1]))


@pytest.mark.parametrize("labels", [{"classlabels_ints": [3, 9, 5]}, {"classlabels_strings": ["a", "b", "c"]}])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_classifiers(transform: str, labels: dict[str, Any]) -> None:
    name, values = next(iter(labels.items()))
    outputs = {"label": STRING if "strings" in name else INT64, "scores": FLOAT}
    for count, rows in ((3, 3), (2, 2), (2, 1)):
        if transform == "PROBIT":  # is of scores between 0 and 1 alone
            attrs = {
                "coefficients": [0.05 * k for k in range(3 * rows)],
                "intercepts": [0.3 + 0.1 * k for k in range(rows)],
            }
        else:
            attrs = {"coefficients": RNG.standard_normal(3 * rows).tolist(), "intercepts": [0.1] * rows}
        attrs |= {name: values[:count], "post_transform": transform, "multi_class": 1}
        model = model_of("LinearClassifier", outputs, X, **attrs)
        if transform == "PROBIT" and rows == 1:
            with pytest.raises(hetnn.Unsupported, match="PROBIT of one score for two classes"):
                hetnn.compile(model)
        else:
            # PROBIT is an approximation, whose logarithm loses digits near a half.
            agrees(model, ROWS, rtol=1e-4, atol=2e-5 if transform == "PROBIT" else 1e-6)


@pytest.mark.parametrize("kernel", ["RBF", "LINEAR", "POLY", "SIGMOID"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_support_vectors(kernel: str, one_class: int) -> None:
    attrs = {"kernel_type": kernel, "kernel_params": [0.5, 0.25, 3.0], "coefficients": [1.0, -2.0], "rho": [0.3]}
    attrs |= {"n_supports": 2, "support_vectors": [1.0, 2, 3, 4, 5, 6], "one_class": one_class}
    agrees(model_of("SVMRegressor", {"y": FLOAT}, X, **attrs), ROWS, rtol=1e-4)


def test_support_vectors_of_a_linear_model() -> None:
    attrs = {"coefficients": [1.0, -2.0, 0.5], "rho": [0.3], "kernel_params": [0.0, 0.0, 3.0]}
    agrees(model_of("SVMRegressor", {"y": FLOAT}, X, **attrs), ROWS)


def classifier(per_class: list[int], **attrs: Any) -> Any:
    """Of so many vectors for each class, or linear; of random numbers."""
    rows, classes = np.random.default_rng(len(per_class)), len(per_class)
    count, pairs = sum(per_class), classes * (classes - 1) // 2
    if count:
        attrs |= {"vectors_per_class": per_class, "support_vectors": rows.standard_normal(3 * count).tolist()}
    sizes = ((classes - 1) * count or classes * 3, pairs if count else 1)
    coefficients, rho = (rows.standard_normal(size) for size in sizes)
    if attrs.pop("positive", False):
        coefficients = np.abs(coefficients)
    if attrs.pop("probable", False):
        attrs |= {"prob_a": (-1 - rows.random(pairs)).tolist(), "prob_b": rows.standard_normal(pairs).tolist()}
    if attrs.pop("texts", False):
        labels, attrs["classlabels_strings"] = STRING, ["a", "b", "c", "d", "e"][:classes]
    else:
        labels, attrs["classlabels_ints"] = INT64, [3, 9, 5, 7, 1][:classes]
    attrs |= {"coefficients": coefficients.tolist(), "rho": rho.tolist(), "kernel_params": [0.3, 0.2, 2.0]}
    return model_of("SVMClassifier", {"label": labels, "scores": FLOAT}, X, **attrs)


MANY = np.random.default_rng(1).standard_normal((40, 3)).astype(np.float32)
CLASSES = ([3, 4], [2, 3, 4], [2, 1, 3, 2, 2])


@pytest.mark.parametrize("probable", [False, True])
@pytest.mark.parametrize("kernel", ["RBF", "LINEAR", "POLY", "SIGMOID"])
def test_classes_by_support_vectors(kernel: str, probable: bool) -> None:
    """Scores of pairs, or probabilities that a search finds from them, as far as onnxruntime's goes."""
    for per_class in CLASSES:
        agrees(classifier(per_class, kernel_type=kernel, probable=probable), MANY, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("transform", ["SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_transforms_of_scores_by_support_vectors(transform: str) -> None:
    for per_class in CLASSES[:2]:
        for probable in (False, True):
            model = classifier(per_class, kernel_type="RBF", probable=probable, texts=True, post_transform=transform)
            agrees(model, MANY, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_classes_without_support_vectors(classes: int, positive: bool) -> None:
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        for probable in (False, True):
            model = classifier([0] * classes, positive=positive, probable=probable, post_transform=transform)
            agrees(model, MANY, rtol=1e-4)


def scores_by_label(shape: list[Any], **labels: Any) -> Any:
    """A classifier as skl2onnx exports it: scores, made records at the end."""
    records = helper.make_sequence_type_proto(
        helper.make_map_type_proto(
            INT64 if "classlabels_int64s" in labels else STRING, helper.make_tensor_type_proto(FLOAT, None)
        )
    )
    nodes = [
        helper.make_node("Softmax", ["x"], ["scores"]),
        helper.make_node("ZipMap", ["scores"], ["z"], domain="ai.onnx.ml", **labels),
    ]
    given = [helper.make_tensor_value_info("x", FLOAT, shape)]
    outputs = [helper.make_value_info("z", records), helper.make_tensor_value_info("scores", FLOAT, None)]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(helper.make_graph(nodes, "g", given, outputs), opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("labels", [{"classlabels_int64s": [4, 0, -1]}, {"classlabels_strings": ["a", "été", ""]}])
@pytest.mark.parametrize("shape", [["n", 3], ["n", "classes"], [3]])
def test_records_of_scores(shape: list[Any], labels: dict[str, Any], tmp_path: Path) -> None:
    """As onnxruntime gives them, from an executable that was saved too; the matrix is an output of that name."""
    model = scores_by_label(shape, **labels)
    exe = hetnn.compile(model)
    exe.save(tmp_path / "scores.hetnn")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for rows in (ROWS, ROWS[:1]):
        x = rows if len(shape) == 2 else rows[0]
        wanted, scores = session.run(None, {"x": x})
        for each in (exe, hetnn.load(tmp_path / "scores.hetnn")):
            found, matrix = each(x)
            np.testing.assert_allclose(matrix, scores, rtol=1e-5)
            assert len(found) == len(wanted)
            for mine, theirs in zip(found, wanted, strict=True):
                assert mine == pytest.approx(theirs)


def test_labels_that_do_not_fit_records_are_told() -> None:
    with pytest.raises(hetnn.InvalidModel, match="ZipMap of 3 scores by 2 labels"):
        hetnn.compile(scores_by_label(["n", 3], classlabels_int64s=[0, 1]))


@pytest.mark.parametrize(
    ("op", "attrs", "message"),
    [
        ("Scaler", {"offset": [1.0, 2.0], "scale": [0.5]}, "2 offset for 3 features"),
        ("Imputer", {"imputed_value_floats": [1.0, 2.0]}, "2 values for 3 features"),
        ("Normalizer", {"norm": "L3"}, "must be one of MAX, L1, L2"),
        ("LinearRegressor", {"coefficients": [1.0, 2.0]}, "2 coefficients and 0 intercepts for 1 by 3"),
        ("SVMRegressor", {"coefficients": [1.0, 2.0], "rho": [0.0]}, "2 coefficients and 1 rho"),
    ],
)
def test_tables_that_do_not_fit_are_told(op: str, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.compile(model_of(op, {"y": FLOAT}, X, **attrs))


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({}, "of 2 classes with 2 coefficients and 1 rho for 3 features"),
        (
            {"vectors_per_class": [1, 1], "support_vectors": [1.0] * 5},
            "2 vectors of 3 features in 2 classes with 5 numbers, 2 coefficients and 1 rho",
        ),
        (
            {"vectors_per_class": [1, 1], "support_vectors": [1.0] * 6, "prob_a": [1.0, 2.0]},
            "2 prob_a and 0 prob_b for 1 pairs of classes",
        ),
    ],
)
def test_tables_of_a_classifier_that_do_not_fit_are_told(attrs: dict[str, Any], message: str) -> None:
    attrs = {"coefficients": [1.0, 2.0], "rho": [0.0], "classlabels_ints": [0, 1], **attrs}
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.compile(model_of("SVMClassifier", {"label": INT64, "scores": FLOAT}, X, **attrs))


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_texts_are_classified_as_a_pipeline_is_exported(target: str) -> None:
    """Lower case, tokens, counts of n-grams, a linear model, records by label."""
    labels = ["x", "y", "z"]
    split = {"mark": 0, "mincharnum": 1, "pad_value": "#", "separators": ["[ ]", "[,]", "[.]"]}
    pool = ["cat", "dog", "the", "bird", "the", "cat", "the", "dog", "a", "bird"]
    counts = {"ngram_counts": [0, 4], "ngram_indexes": list(range(7)), "pool_strings": pool, "mode": "TFIDF"}
    lengths = {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, "weights": [1.0, 2, 3, 4, 5, 6, 7]}
    model = {
        "coefficients": RNG.standard_normal(21).tolist(),
        "intercepts": [0.1, 0.2, 0.3],
        "classlabels_strings": labels,
        "post_transform": "SOFTMAX",
    }
    ml, runtime = {"domain": "ai.onnx.ml"}, {"domain": "com.microsoft"}
    nodes = [
        helper.make_node("Constant", [], ["all"], value_ints=[-1]),
        helper.make_node("Reshape", ["texts", "all"], ["flat"]),
        helper.make_node("StringNormalizer", ["flat"], ["lower"], case_change_action="LOWER", locale="C"),
        helper.make_node("Tokenizer", ["lower"], ["tokens"], **split, **runtime),
        helper.make_node("TfIdfVectorizer", ["tokens"], ["counts"], **counts, **lengths),
        helper.make_node("Normalizer", ["counts"], ["features"], norm="L2", **ml),
        helper.make_node("LinearClassifier", ["features"], ["label", "scores"], **model, **ml),
        helper.make_node("ZipMap", ["scores"], ["records"], classlabels_strings=labels, **ml),
    ]
    record = helper.make_map_type_proto(STRING, helper.make_tensor_type_proto(FLOAT, None))
    outputs = [
        helper.make_tensor_value_info("label", STRING, None),
        helper.make_value_info("records", helper.make_sequence_type_proto(record)),
    ]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("texts", STRING, ["n", 1])], outputs)
    opsets = [helper.make_opsetid(*each) for each in (("", 17), ("ai.onnx.ml", 1), ("com.microsoft", 1))]
    whole = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    exe, session = hetnn.compile(whole, target), onnxruntime.InferenceSession(whole.SerializeToString())
    for texts in (["The cat. the Dog", "a bird", "the the"], ["zzz"]):
        given = np.array(texts, object).reshape(-1, 1)
        (mine, records), (theirs, wanted) = exe(given), session.run(None, {"texts": given})
        np.testing.assert_array_equal(mine, theirs)
        for one, other in zip(records, wanted, strict=True):
            assert one == pytest.approx(other, rel=1e-5)
