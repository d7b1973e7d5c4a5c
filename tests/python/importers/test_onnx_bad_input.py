"""ONNX files that are none, are broken, or have no end: each a typed error with its cause, in bounded time."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import hetnn
from hetnn.importers import import_model
from hetnn.importers.onnx import nodes as onnx_nodes
from hetnn.importers.onnx.functions import count_nodes
from importers.onnx_models import model_of as text_model


def value(name: str, shape: list[Any] | None, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model_of(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[str],
    functions: list[onnx.FunctionProto] | None = None,
    **parts: Any,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], **parts)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    return helper.make_model(graph, functions=functions or [], opset_imports=opsets)


def node(op: str, inputs: list[str], outputs: list[str], **attrs: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, name=outputs[0], **attrs)


X = value("x", [2, 3])


@pytest.mark.parametrize("data", [b"\x00", b"garbage", b"\x89PNG\r\n\x1a\n" + bytes(64), bytes(range(256)) * 8])
def test_bytes_that_are_no_model(data: bytes) -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"no ONNX model|has no graph"):
        hetnn.compile(data)


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08\xff")
    with pytest.raises(hetnn.InvalidModel, match=r"m\.onnx': no ONNX model: .*Export it again"):
        hetnn.compile(tmp_path / "m.onnx")


def small_model() -> bytes:
    weight = onnx.numpy_helper.from_array(np.ones((4, 3), np.float32), "w")
    nodes = [node("Gemm", ["x", "w"], ["h"], transB=1), node("Softmax", ["h"], ["y"], axis=-1)]
    return bytes(model_of(nodes, [X], ["y"], initializer=[weight]).SerializeToString())


def test_a_model_that_is_cut_short_or_altered() -> None:
    data, rng, messages = small_model(), random.Random(0), {}
    cut = [data[:size] for size in range(len(data))]
    for _ in range(300):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] = rng.randrange(256)
        cut.append(bytes(changed))
    for each in cut:
        try:
            hetnn.compile(each)
        except hetnn.Error as error:
            messages[str(error)] = type(error)
    assert hetnn.InvalidModel in messages.values()
    assert set(messages.values()) <= {hetnn.InvalidModel, hetnn.Unsupported, hetnn.DoesNotFit}
    assert "" not in messages


CYCLE = model_of([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])], [X], ["b"])
UNGIVEN = model_of([node("Add", ["x", "z"], ["y"])], [X], ["y"])
NO_OUTPUT = model_of([node("Relu", ["x"], ["y"])], [X], ["z"])
LACKING = model_of([node("Conv", ["x"], ["y"])], [X], ["y"])
VAST = model_of([node("Relu", ["x"], ["y"])], [value("x", [2**62, 2**62])], ["y"])
VAST_WEIGHT = model_of(
    [node("Add", ["x", "w"], ["y"])],
    [X],
    ["y"],
    initializer=[TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**62, 4], raw_data=bytes(8))],
)
SHORT_WEIGHT = model_of(
    [node("Add", ["x", "w"], ["y"])],
    [X],
    ["y"],
    initializer=[TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], raw_data=bytes(8))],
)
NEGATIVE_WEIGHT = model_of(
    [node("Add", ["x", "w"], ["y"])],
    [X],
    ["y"],
    initializer=[TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[-1], float_data=[1.0])],
)
TWO_NODES = model_of([node("Relu", ["x"], ["a"]), node("Neg", ["x"], ["a"]), node("Abs", ["a"], ["y"])], [X], ["y"])
TWO_WEIGHTS = model_of(
    [node("Add", ["x", "w"], ["y"])],
    [X],
    ["y"],
    initializer=[TensorProto(name="w", data_type=TensorProto.FLOAT, float_data=[number]) for number in (1.0, 2.0)],
)
LIKE_AN_INPUT = model_of([node("Relu", ["x"], ["x"]), node("Abs", ["x"], ["y"])], [X], ["y"])
STRAY_TYPE = model_of([node("Relu", ["x"], ["y"])], [value("x", [2], 99)], ["y"])
OTHER_TYPES = model_of([node("MatMul", ["x", "z"], ["y"])], [X, value("z", [3, 2], TensorProto.INT64)], ["y"])
ENDLESS = model_of(
    [helper.make_node("twice", ["x"], ["y"], domain="f")],
    [X],
    ["y"],
    [
        helper.make_function(
            "f",
            "twice",
            ["x"],
            ["y"],
            [helper.make_node("twice", ["x"], ["y"], domain="f")],
            [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)],
        )
    ],
)


def doubling(depth: int) -> onnx.ModelProto:
    """Functions that each call the next one twice."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    functions = []
    for k in range(depth):
        called = (f"f{k + 1}", "f") if k + 1 < depth else ("Relu", "")
        nodes = [
            helper.make_node(called[0], ["x"], ["h"], domain=called[1]),
            helper.make_node(called[0], ["h"], ["y"], domain=called[1]),
        ]
        functions.append(helper.make_function("f", f"f{k}", ["x"], ["y"], nodes, opsets))
    return model_of([helper.make_node("f0", ["x"], ["y"], domain="f")], [X], ["y"], functions)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (CYCLE, "the nodes 'a', 'b' read one another's results in a circle"),
        (TWO_NODES, "the node 'a' gives 'a', which is the name of another value of its graph"),
        (LIKE_AN_INPUT, "the node 'x' gives 'x', which is the name of another value of its graph"),
        (TWO_WEIGHTS, "has two initializers 'w'"),
        (UNGIVEN, "the node 'y' reads 'z', which nothing gives"),
        (NO_OUTPUT, "nothing gives the model's output 'z'"),
        (LACKING, "the node 'y': Conv: .*has input size 1 not in range"),
        (VAST, r"a value has at most 2\^48 elements"),
        (VAST_WEIGHT, "the tensor 'w' cannot be read"),
        (SHORT_WEIGHT, "the tensor 'w' cannot be read: .* Its data must fill its shape"),
        (NEGATIVE_WEIGHT, r"the tensor 'w' has the shape \[-1\]\. Sizes are not negative"),
        (OTHER_TYPES, "the node 'y': MatMul: .*f32.*i64"),
        (ENDLESS, "functions and bodies lie more than 64 deep in one another. Does a function call itself"),
    ],
)
def test_what_is_wrong_is_said(model: onnx.ModelProto, message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.compile(model.SerializeToString())


def test_a_number_that_is_no_type() -> None:
    with pytest.raises(hetnn.Unsupported, match="the input 'x' has the element type 99"):
        hetnn.compile(STRAY_TYPE.SerializeToString())


def test_a_number_of_elements_beyond_64_bits() -> None:
    model = text_model("agraph (float[2,4611686018427387904] x) => (int64 y) { y = Size(x) }")
    with pytest.raises(hetnn.InvalidModel, match=r"at most 2\^48 elements; found more in \[2,4611686018427387904\]"):
        hetnn.compile(model.SerializeToString())


@pytest.mark.parametrize(
    ("padding", "message"),
    [
        ('<auto_pad = "SAME_LOWER">', "a window of 1 axes over an input that has 2"),
        ("", r"an input \[1, 1, 5, 5\] and weights \[1, 1, 3\] of different ranks"),
    ],
)
def test_a_kernel_of_other_axes(padding: str, message: str) -> None:
    text = f"agraph (float[1,1,5,5] x, float[1,1,3] w) => (float[a,b,c,d] y) {{ y = Conv{padding}(x, w) }}"
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.compile(text_model(text))


def test_products_of_scalars() -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"input 0 of Gemm has the shape \[\]; its rank must be 2"):
        hetnn.compile(text_model("agraph (float x, float[2,2] w) => (float[2,2] y) { y = Gemm(x, w) }"))


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("LpPool(x)", "LpPool without its kernel_shape"),
        ('Resize<nearest_mode = "linear">(x, , , s)', "rounding must be one of round_prefer_floor, "),
    ],
)
def test_attributes_that_the_schema_lets_pass(node: str, message: str) -> None:
    text = f"agraph (float[1,1,4,4] x) => (float[a,b,c,d] y) <int64[4] s = {{1, 1, 2, 2}}> {{ y = {node} }}"
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.compile(text_model(text, 1 if node.startswith("Lp") else 18))


@pytest.mark.parametrize("sizes", ["4294967296,4294967296", "1048576,1048576"])
def test_a_triangle_of_a_vast_tensor(sizes: str) -> None:
    model = text_model(f"agraph (float[{sizes}] x) => (float[a,b] y) {{ y = Trilu(x) }}")
    with pytest.raises((hetnn.InvalidModel, hetnn.DoesNotFit)):
        hetnn.compile(model)(np.zeros((2, 2), np.float32))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(float[3,6] x, int64[4611686018427387904] n) => (seq(float[a,b]) y) { y = SplitToSequence(x, n) }", "2.48"),
        ("(float[2,2] x, int64[1099511627776] s) => (float[a,b] y) { y = Slice(x, s, s) }", "may be 64 axes"),
        ("(float[1,4,4] x, int64[100000] n, int64[2] k) => (y) { y = Col2Im(x, n, k) }", "may be 64 axes"),
        ("(float[0,4611686018427387904] x) => (y) { y = Trilu(x) }", "2.48"),
        ("(float[9999999,9999999,9999999] x) => (y) { y = NonZero(x) }", "2.48"),
        ("(float x) => (y) <int64[1] k = {0}> { y = Squeeze(x, k) }", "axis 0 of a tensor of rank 0"),
        ("() => (y) <float a = {nan}, float b = {1}> { y = Range(a, b, b) }", "a Range of nan numbers"),
        ("(float[3,2] x) => (seq(float[a,b]) y) <int64 n = {0}> { y = SplitToSequence(x, n) }", "into parts of 0"),
    ],
)
def test_sizes_and_numbers_out_of_bounds(text: str, message: str) -> None:
    with pytest.raises((hetnn.InvalidModel, hetnn.Unsupported), match=message):
        hetnn.compile(text_model(f"agraph {text}"))


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_layers_of_vast_tensors_are_planned_in_time(target: str) -> None:
    begun = time.process_time()
    hetnn.compile(text_model("agraph (float[2147483648] x) => (float[2147483648] y) { y = Softplus(x) }"), target)
    assert time.process_time() - begun < 10


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_a_transposed_convolution_by_a_tall_kernel(target: str) -> None:
    text = "agraph (double[1,1,3,3] x, double[1,1,100000,2] w) => (y) { y = ConvTranspose<dilations = [2, 1]>(x, w) }"
    begun = time.process_time()
    y = hetnn.compile(text_model(text), target)(np.ones((1, 1, 3, 3)), np.ones((1, 1, 100_000, 2)))
    assert y.shape == (1, 1, 200_001, 4)
    assert y.sum() == 9 * 200_000
    assert time.process_time() - begun < 10


def test_items_of_an_n_gram_far_apart() -> None:
    attrs = 'max_gram_length = 2, min_gram_length = 2, max_skip_count = {skips}, mode = "TF", ngram_counts = [0, 0], '
    attrs += "ngram_indexes = [0], pool_int64s = [1, 2]"
    text = f"agraph (int64[100000] x) => (y) {{{{ y = TfIdfVectorizer<{attrs}>(x) }}}}"
    with pytest.raises(hetnn.Unsupported, match="with up to 99999999 items between; there may be 1023"):
        hetnn.compile(text_model(text.format(skips=99_999_999)))
    x = np.zeros(100_000, np.int64)
    x[[5, 9, 70, 75]] = [1, 2, 1, 2]
    assert hetnn.compile(text_model(text.format(skips=4)))(x).tolist() == [2]
    assert hetnn.compile(text_model(text.format(skips=3)))(x).tolist() == [1]


@pytest.mark.parametrize("depth", [18, 60])
def test_functions_that_double_have_a_bound(depth: int) -> None:
    with pytest.raises(hetnn.InvalidModel, match="the model has more than 262144 nodes"):
        hetnn.compile(doubling(depth))


def test_functions_of_many_nodes() -> None:
    assert count_nodes(doubling(17)) == 1 + sum(2**k for k in range(1, 18))
    x = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
    assert hetnn.compile(doubling(8))(x).tolist() == [[0, 0, 0], [0, 1, 2]]


def test_loops_that_repeat_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_nodes, "MOST_NODES", 300)
    text = """agraph (float[2] x) => (y) <int64 n = {rounds}> {{
        y = Loop(n, "", x) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] s) {{
            d = Identity(c) s = Add(a, a) }}> }}"""
    x = np.ones(2, np.float32)
    assert hetnn.compile(text_model(text.format(rounds="{100}")))(x).tolist() == [2**100, 2**100]
    with pytest.raises(hetnn.InvalidModel, match=r"the node .* nodes with what its functions and loops repeat"):
        hetnn.compile(text_model(text.format(rounds="{160}")))


def test_bodies_ten_thousand_deep() -> None:
    graph = helper.make_graph([node("Relu", ["x"], ["y"])], "g", [], [onnx.ValueInfoProto(name="y")])
    condition = helper.make_tensor("c", TensorProto.BOOL, [], [True])
    data = graph.SerializeToString()
    for _ in range(10_000):  # by hand: protobuf itself refuses to build so deep a message

        def field(number: int, body: bytes) -> bytes:
            size, digits = len(body), b""
            while size > 127:
                digits += bytes([size & 127 | 128])
                size >>= 7
            return bytes([number << 3 | 2]) + digits + bytes([size]) + body

        attr = field(1, b"then_branch") + field(6, data) + bytes([20 << 3 & 255 | 128, 1, 5])
        data = field(1, field(1, b"c") + field(2, b"y") + field(4, b"If") + field(5, attr))
        if len(data) > 1 << 22:
            break
    model = model_of([], [X], ["y"], initializer=[condition])
    with pytest.raises(hetnn.InvalidModel, match="no ONNX model"):
        hetnn.compile(model.SerializeToString() + field(7, data))


def test_ten_thousand_nodes_in_a_row() -> None:
    nodes = [node("Sigmoid", [f"v{k}" if k else "x"], [f"v{k + 1}"]) for k in range(10_000)]
    assert import_model(model_of(nodes, [X], ["v10000"])).graph


def test_a_loop_without_end() -> None:
    going = helper.make_graph(
        [node("Identity", ["c"], ["d"])],
        "body",
        [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL)],
        [value("d", [], TensorProto.BOOL)],
    )
    condition = helper.make_tensor("c0", TensorProto.BOOL, [], [True])
    loop = helper.make_node("Loop", ["", "c0"], [], name="endless", body=going)
    model = model_of([loop, node("Relu", ["x"], ["y"])], [X], ["y"], initializer=[condition])
    with pytest.raises(hetnn.Unsupported, match=r"Loop: a Loop of more than 4096 rounds .*at endless"):
        hetnn.compile(model)


def test_nodes_with_bodies_that_lack_them() -> None:
    text = """agraph (bool c, float x) => (float y) {
      y = If(c) <then_branch = t () => (float a) { a = Identity(x) }, else_branch = e () => (float b) { b = Neg(x) }>
    }"""
    model = text_model(text)
    node = model.graph.node[0]
    del node.attribute[1]
    with pytest.raises(hetnn.InvalidModel, match="If needs the attribute else_branch, a graph"):
        hetnn.compile(model)
    node.attribute.append(onnx.helper.make_attribute("else_branch", 3))
    with pytest.raises(hetnn.InvalidModel, match="If needs the attribute else_branch, a graph"):
        hetnn.compile(model)


def test_an_identity_of_nothing_in_a_body() -> None:
    text = """agraph (bool c, float x) => (float y) {
      y = If(c) <then_branch = t () => (float a) { a = Identity(x) }, else_branch = e () => (float b) { b = Neg(x) }>
    }"""
    model = text_model(text)
    del model.graph.node[0].attribute[0].g.node[0].input[:]
    with pytest.raises(hetnn.InvalidModel, match="Identity"):
        hetnn.compile(model)


def nested(field: str) -> onnx.ModelProto:
    """Ten thousand optional types, or bodies of branches, in one another."""
    model = model_of([node("Relu", ["x"], ["y"])], [X, value("c", [], TensorProto.BOOL)], ["y"])
    graph: Any = model.graph
    given: Any = model.graph.input[1].type
    for _ in range(10_000):
        if field == "type":
            given = given.optional_type.elem_type
        else:
            graph = graph.node.add(op_type="If", input=["c"], output=["z"]).attribute.add(name="then_branch", type=5).g
    given.tensor_type.elem_type = TensorProto.FLOAT
    return model


@pytest.mark.parametrize("field", ["type", "body"])
def test_what_lies_ten_thousand_deep(field: str) -> None:
    model = nested(field)
    with pytest.raises(hetnn.InvalidModel, match="messages more than 100 deep"):
        hetnn.compile(model)
    with pytest.raises(hetnn.InvalidModel, match="no ONNX model"):
        hetnn.compile(model.SerializeToString())


def test_a_loop_whose_rounds_are_an_input_and_have_no_end() -> None:
    text = """agraph (float[2] x, bool c, int64 n) => (y) {
      y = Loop (n, c, x) <body = b (int64 i, bool g, float[2] s) => (bool h, float[2] t) {
        h = Identity (g) t = Relu (s) }>
    }"""
    exe = hetnn.compile(text_model(text))
    x, there = np.ones(2, np.float32), np.array(True)
    assert np.array_equal(exe(x, there, np.array(5)), x)
    with pytest.raises(hetnn.InvalidModel, match=r"more than 1048576 rounds\. Does it end"):
        exe(x, there, np.array(2**63 - 1))


# What the fuzzer of altered models found: each was an error of Python, or worse. A pattern of the error's text.
REFUSED = {
    "Pad: 3 amounts of padding for 2 axes": """agraph (float[2,3] x) => (y) <int64[3] p = {1, 1, 1}> {
      y = Pad (x, p) }""",
    "Pad: mode must be one of constant, reflect, edge, wrap; got 'NOTSET'": """agraph (float[2,3] x) => (y)
      <int64[4] p = {1, 1, 1, 1}> { y = Pad <mode = "NOTSET"> (x, p) }""",
    "Gemm: input 1 of Gemm has the shape .3.; its rank must be 2": """agraph (float[2,3] x, float[3] w) => (y) {
      y = Gemm (x, w) }""",
    "TopK: axis 0 of a tensor of rank 0": """agraph (float x) => (v, i) <int64[1] k = {1}> {
      v, i = TopK <axis = 0> (x, k) }""",
    "Resize: 1 sizes or scales for 2 axes": """agraph (float[2,3] x) => (y) <int64[1] s = {4}> {
      y = Resize (x, "", "", s) }""",
    "Resize: an axis of 2 elements resized by inf": """agraph (float[2,3] x) => (y) <float[2] s = {inf, 1}> {
      y = Resize (x, "", s) }""",
    "SpaceToDepth: input 0 of SpaceToDepth has the shape .*; its rank must be 4": """agraph (float[2,4,4] x) => (y) {
      y = SpaceToDepth <blocksize = 2> (x) }""",
    "Scan: a Scan over 3 of 2 inputs": """agraph (float[2] s, float[4,2] x) => (y, z) {
      y, z = Scan <num_scan_inputs = 3, body = b (float[2] a, float[2] e) => (float[2] c, float[2] d) {
        c = Add (a, e) d = Relu (c) }> (s, x) }""",
    r"Scan: scan_input_axes \[0, 0\], of which there must be 1": """agraph (float[2] s, float[4,2] x) => (y, z) {
      y, z = Scan <num_scan_inputs = 1, scan_input_axes = [0, 0],
                   body = b (float[2] a, float[2] e) => (float[2] c, float[2] d) { c = Add (a, e) d = Relu (c) }> (s, x)
    }""",
    "Loop: a body with 2 inputs, which is given 3": """agraph (float[2] x) => (y) <int64 n = {3}, bool c = {1}> {
      y = Loop (n, c, x) <body = b (int64 i, bool g) => (bool h, float[2] t) { h = Identity (g) t = Relu (x) }> }""",
    "Loop: a body with 1 output, of which there": """agraph (float[2] x) => (y) <int64 n = {3}, bool c = {1}> {
      y = Loop (n, c, x) <body = b (int64 i, bool g, float[2] s) => (bool h) { h = Identity (g) }> }""",
    "Mismatched attribute type .* Expected: 'INT', actual: 'INTS'": """agraph (float[2,3] x) => (y) {
      y = Softmax <axis = [1]> (x) }""",
    "Mismatched attribute type .* Expected: 'GRAPH', actual: 'INT'": """agraph (float[2] x) => (y) {
      y = Loop <body = 3> ("", "", x) }""",
    "ReverseSequence of batches on axis 1 and time on axis 1": """agraph (float[2,3] x, int64[3] n) => (y) {
      y = ReverseSequence <batch_axis = 1, time_axis = 1> (x, n) }""",
}


@pytest.mark.parametrize("text", REFUSED)
def test_models_that_were_altered_inside(text: str) -> None:
    with pytest.raises(hetnn.Error, match=text):
        hetnn.compile(text_model(REFUSED[text]))


def test_operator_sets_that_are_none() -> None:
    for version in (0, -1, 2**31):
        model = text_model("agraph (float[2] x) => (y) { y = Relu (x) }")
        model.opset_import[0].version = version
        with pytest.raises(hetnn.InvalidModel, match=f"operator set {version}; they begin with 1"):
            hetnn.compile(model)


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_an_output_as_large_as_values_say_that_is_read_further(target: str) -> None:
    """Beside others: its memory is the caller's, and what runs behind it must find it there."""
    text = """agraph (float[n,8] x, int64[1] starts, int64[1] ends) => (y, e, q) {
      y = Slice (x, starts, ends) e = Exp (x) q = Neg (y) }"""
    exe = hetnn.compile(text_model(text), target)
    for rows in (3, 1, 5):
        x = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8)
        y, e, q = exe(x, np.array([0]), np.array([2]))
        assert np.array_equal(y, x[:2])
        assert np.array_equal(q, -x[:2])
        np.testing.assert_allclose(e, np.exp(x), rtol=1e-6)
