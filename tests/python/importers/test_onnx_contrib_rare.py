"""What few models have of ONNX Runtime's operators, each beside ONNX Runtime: tokens, paths, packed weights, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import hetnn
from importers.onnx_runtime_nodes import RNG, Array, Fixed, Node, agrees, f32, restart, same

restart()

STRING = {"types": {0: TensorProto.STRING}}


def texts(*values: Any) -> Array:
    return np.array(values, object)


class TextNode(Node):
    """A node that takes and gives texts."""

    def port(self, name: str, value: Array) -> onnx.ValueInfoProto:
        kind = TensorProto.STRING if value.dtype == object else helper.np_dtype_to_tensor_dtype(value.dtype)
        return helper.make_tensor_value_info(name, kind, [f"{name}_{k}" for k in range(value.ndim)])


WORDS = texts("hello world a", "été  b", "", "x--y z")
SPLITS: list[dict[str, Any]] = [
    {"separators": [" "]},
    {"separators": [""]},
    {"separators": [" ", "-"]},
    {"separators": ["l+", "o"]},
    {"separators": ["--", "-", "\\s"]},
    {"tokenexp": "."},
    {"tokenexp": "[a-z]+"},
    {"tokenexp": "a|el|ell|[^ ]"},
]
TOKENS = [
    TextNode("Tokenizer", words, mark=mark, mincharnum=least, pad_value="#", **told, **STRING)
    for told in SPLITS
    for mark in (0, 1)
    for least in (1, 2)
    for words in (WORDS, WORDS.reshape(2, 2), texts("", ""))
    if least == 1 or told not in (SPLITS[1], SPLITS[5])
]


def guess(seed: int) -> Node:
    """A source, tokens so far, where the source went on, and what is guessed: right up to a place, or not given."""
    rng = np.random.default_rng(seed)
    source, begin = rng.integers(0, 3, 9), rng.integers(0, 10)
    guessed = np.append(source[begin:], 1)
    guessed[rng.integers(0, len(guessed))] = 2
    inputs = [source, rng.integers(0, 3, 4), np.array([begin]), *([guessed] if seed % 3 else [])]
    return Node("BifurcationDetector", *inputs, outputs=2, min_ngram_size=1 + seed % 2, max_ngram_size=3)


def masked(x: tuple[int, ...], planes: tuple[int, int], **told: Any) -> Node:
    mask = (RNG.random((*planes, *x[2:])) > 0.25).astype(np.int32)
    return Node("MaxpoolWithMask", f32(*x), mask, **told)


def attending(direction: str, with_output: bool, lengths: bool, **told: Any) -> Node:
    """An LSTM that attends to a memory."""
    ways, hidden, depth, width = 2 if direction == "bidirectional" else 1, 4, 6, 3
    attended = 5 if with_output else depth

    def small(*shape: int) -> Array:
        return f32(*shape) / 2

    return Node(
        "AttnLSTM",
        small(4, 2, 5),
        *(Fixed(small(ways, 4 * hidden, size)) for size in (5 + attended, hidden)),
        Fixed(small(ways, 8 * hidden)),
        np.array([3, 4], np.int32) if lengths else None,
        *(small(ways, 2, hidden) for _ in range(2)),
        Fixed(small(ways, 3 * hidden)),
        *(Fixed(small(ways, size, width)) for size in (hidden, depth)),
        Fixed(small(ways, width)),
        small(2, 7, depth),
        np.array([5, 7], np.int32) if lengths else None,
        *([Fixed(small(ways, depth + hidden, attended))] if with_output else []),
        outputs=3,
        hidden_size=hidden,
        direction=direction,
        **told,
    ).within(1e-4)


def blocks(rows: int, columns: int, with_zero: int) -> Fixed:
    """Weights in blocks of 32, each column by itself."""
    count = -(-rows // 32) * columns
    scales = (RNG.random((count, 1)) + 0.1).astype(np.float32).view(np.uint8)
    zeros = RNG.integers(0, 16, (count, with_zero), np.uint8)
    return Fixed(np.concatenate([scales, zeros, RNG.integers(0, 256, (count, 16), np.uint8)], axis=1).reshape(-1))


# Of GGML's formats: elements and bytes of a block, and where in it the scales in f16 are.
FORMATS: dict[int, tuple[int, int, list[int]]] = {
    2: (32, 18, [0]),
    6: (32, 22, [0]),
    8: (32, 34, [0]),
    13: (256, 176, [0, 2]),
    14: (256, 210, [208]),
    20: (32, 18, [0]),
    23: (256, 136, [0]),
}


def packed(kind: int, rows: int = 3, width: int = 512, **told: Any) -> Node:
    if kind in FORMATS:
        length, size, scales = FORMATS[kind]
        table = RNG.integers(0, 256, (rows * width // length, size), np.uint8)
        for at in scales:
            table[:, at : at + 2] = (RNG.random((len(table), 1)) / 10).astype(np.float16).view(np.uint8)
    else:  # reals as they are: f32, f16, bf16
        reals = f32(rows, width)
        wide = {0: reals, 1: reals.astype(np.float16), 30: reals.view(np.uint16)[:, 1::2].copy()}[kind]
        table = wide.view(np.uint8)
    places = np.array([[0, 2], [1, -1], [3, 1]])
    return Node("GatherPacked", Fixed(table.reshape(rows, -1)), places, packed_type=kind, K=width, **told)


CASES = [
    *(Node("DynamicTimeWarping", f32(*shape)) for shape in ((3, 4), (1, 7, 5), (1, 6), (6, 1))),
    # Ways that cost as much.
    *(Node("DynamicTimeWarping", RNG.integers(0, 2, shape).astype(np.float32)) for shape in ((5, 4), (4, 7))),
    *map(guess, range(12)),
    masked((1, 1, 9), (1, 1), kernel_shape=[3], strides=[2], pads=[1, 1]),
    masked((2, 3, 9), (2, 3), kernel_shape=[3]),
    masked((2, 3, 5, 6), (2, 1), kernel_shape=[2, 3], strides=[1, 2], pads=[1, 0, 0, 1]),
    masked((1, 2, 4, 5), (1, 1), kernel_shape=[2, 2], auto_pad="SAME_UPPER"),
    masked((1, 2, 4, 5, 4), (1, 2), kernel_shape=[2, 2, 2], strides=[2, 1, 1]),
    attending("forward", with_output=False, lengths=False),
    attending("reverse", with_output=True, lengths=True),
    attending("bidirectional", with_output=True, lengths=True, clip=0.4),
    attending("bidirectional", with_output=False, lengths=True),
    *(
        Node("MatMulFpQ4", f32(3, 70), blocks(70, 5, kind), Fixed(np.array([70, 5])), blk_quant_type=kind).within(1e-4)
        for kind in (0, 1)
    ),
    *(packed(kind, output_dtype=TensorProto.FLOAT) for kind in (0, 1, 30, *FORMATS)),
    packed(8, output_dtype=TensorProto.FLOAT16),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_onnx_runtime(case: Node) -> None:
    agrees(case, case.fixed_sizes())
    agrees(case, case.model)


@pytest.mark.parametrize("case", TOKENS, ids=str)
def test_texts_are_tokens(case: Node) -> None:
    agrees(case, case.model)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (TextNode("Tokenizer", WORDS, mark=0, mincharnum=0, pad_value="", separators=[" "]), "0 characters at least"),
        (TextNode("Tokenizer", WORDS, mark=0, mincharnum=1, pad_value=""), "0 separators and tokenexp ''"),
        (
            Node("BifurcationDetector", *[np.array([1])] * 3, outputs=2, min_ngram_size=2, max_ngram_size=1),
            "runs of 2 to 1 tokens",
        ),
        (
            Node("AttnLSTM", f32(4, 2, 5), Fixed(f32(1, 16, 9)), Fixed(f32(1, 16, 4)), outputs=3),
            "without QW, MW, V or M",
        ),
        (
            Node("MatMulFpQ4", f32(3, 70), Fixed(np.zeros(9, np.uint8)), Fixed(np.array([70, 5]))),
            r"weights \[70, 5\] in 9 bytes of blocks of 32",
        ),
        (
            Node("GatherPacked", Fixed(np.zeros((2, 17), np.uint8)), np.array([0]), packed_type=2, K=32),
            r"32 elements in rows \[2, 17\] of blocks of 18 bytes",
        ),
    ],
    ids=str,
)
def test_what_a_node_lacks_is_told(case: Node, message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.compile(case.model)


@pytest.mark.parametrize("told", [{}, {"transA": 1, "alpha": 0.5}, {"transB": 1}], ids=str)
def test_a_sparse_matrix_is_given_dense(told: dict[str, Any]) -> None:
    a, b = f32(3, 3), f32(3, 3)
    a[RNG.random((3, 3)) > 0.5] = 0
    node = helper.make_node("SparseToDenseMatMul", ["a", "b"], ["y"], domain="com.microsoft", **told)
    sparse = helper.make_value_info("a", helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [3, 3]))
    ports = [sparse, helper.make_tensor_value_info("b", TensorProto.FLOAT, ["k", "n"])]
    graph = helper.make_graph([node], "g", ports, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    sets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    places = np.argwhere(a)
    given = onnxruntime.SparseTensor.sparse_coo_from_numpy(
        np.array([3, 3]), a[a != 0], places.reshape(-1), onnxruntime.OrtDevice.make("cpu", 0)
    )
    feeds = {
        "a": onnxruntime.OrtValue.ort_value_from_sparse_tensor(given),
        "b": onnxruntime.OrtValue.ortvalue_from_numpy(b),
    }
    (wanted,) = session.run_with_ort_values(["y"], feeds)
    same(hetnn.compile(model)(a, b), wanted.numpy(), 1e-5, 0)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("as_node", [False, True])
def test_sparse_constants_are_made_dense(as_node: bool, flat: bool) -> None:
    """Places are numbers of elements, or an index for each axis."""
    places = np.array([1, 5]) if flat else np.array([[0, 1], [1, 2]])
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.float32([3, -2]), "" if as_node else "w"), numpy_helper.from_array(places), [2, 3]
    )
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    if as_node:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=sparse))
    port = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph(nodes, "g", [port], [out], sparse_initializer=[] if as_node else [sparse])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    x = f32(2, 3)
    same(hetnn.compile(model)(x), x + np.float32([[0, 3, 0], [0, 0, -2]]), 1e-6, 0)


def test_sparse_constants_whose_parts_disagree_are_told() -> None:
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.float32([3, -2]), "w"), numpy_helper.from_array(np.array([1, 6])), [2, 3]
    )
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph([helper.make_node("Abs", ["w"], ["y"])], "g", [], [out], sparse_initializer=[sparse])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    with pytest.raises(hetnn.InvalidModel, match=r"'w' of \[2, 3\] with \[2\] values at places \[2\]"):
        hetnn.compile(model)
