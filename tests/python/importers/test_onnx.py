"""ONNX models: what their operators mean, how symbols, functions and loops are treated, what is refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import hetnn
from hetnn.importers import import_model
from importers.onnx_models import agrees, f32, model_of

# Symbols and shapes
FLATTEN = """agraph (float[batch, 3, H, W] x) => (float[batch, K] y) {
  shape = Shape(x)
  zero = Constant<value_ints = [0]>()
  batch = Gather(shape, zero)
  rest = Constant<value_ints = [-1]>()
  wanted = Concat<axis = 0>(batch, rest)
  r = Relu(x)
  y = Reshape(r, wanted)
}"""


def test_shapes_made_from_shapes_need_no_node() -> None:
    model = model_of(FLATTEN)
    exe = agrees(model, f32(2, 3, 4, 5))
    x = f32(7, 3, 2, 2)
    assert np.array_equal(exe(x), np.maximum(x, 0).reshape(7, 12))
    assert {node["op"] for node in import_model(model).graph.nodes()} == {"relu", "reshape"}


def test_sizes_are_computed_with_symbols() -> None:
    text = """agraph (float[n, m] x) => (float[a, b] y, int64[2] s, float[c] z) {
      s = Shape(x)
      two = Constant<value_ints = [2]>()
      half = Div(s, two)
      first, second = Split<axis = 0, num_outputs = 2>(half)
      minus = Constant<value_ints = [-1]>()
      shape = Concat<axis = 0>(minus, two, second)
      t = Reshape(x, shape)
      axes = Constant<value_ints = [0]>()
      y = ReduceSum<keepdims = 0>(t, axes)
      count = Size(x)
      flat = Unsqueeze(count, axes)
      z = Reshape(x, flat)
    }"""
    agrees(model_of(text), f32(6, 8))


def test_a_size_without_a_name_is_a_symbol() -> None:
    model = model_of("agraph (float[?, 4] x) => (float[?, 4] y) { y = Relu(x) }")
    assert [row[0] for row in import_model(model).graph.symbols] == ["x_0"]
    assert hetnn.compile(model)(f32(3, 4)).shape == (3, 4)


def test_constants_of_nodes_are_folded_by_meaning() -> None:
    text = """agraph (float[4, 6] x) => (float[a, b] y) {
      a = Constant<value_floats = [2.0, 3.5]>()
      b = Floor(a)
      c = Cast<to = 7>(b)
      d = Constant<value_ints = [4]>()
      e = Concat<axis = 0>(d, c)
      y = Reshape(x, e)
    }"""
    agrees(model_of(text), f32(4, 6))


# Operators of many versions


@pytest.mark.parametrize(
    ("node", "opset", "shapes"),
    [
        ("LogSoftmax<axis = 1>(a)", 13, [(2, 3, 4)]),
        ("Clip<min = -0.5, max = 0.5>(a)", 6, [(2, 3, 4)]),
        ("ReduceSum<axes = [1], keepdims = 0>(a)", 11, [(2, 3, 4)]),
        ("Slice<axes = [1], starts = [-6], ends = [7]>(a)", 9, [(2, 8, 4)]),
        ("Squeeze<axes = [0, 2]>(a)", 11, [(1, 3, 1)]),
        ("Unsqueeze<axes = [0, 2]>(a)", 11, [(3,)]),
        ("Pad<pads = [0, 1, 2, 0], value = 3.0>(a)", 10, [(2, 3)]),
        ("Gemm<alpha = 0.5, beta = 2.0>(a, b, c)", 13, [(3, 4), (4, 5), (5,)]),
        ("Gemm<transA = 1, transB = 1>(a, b)", 13, [(4, 3), (5, 4)]),
        ("MatMul(a, b)", 13, [(2, 3, 4), (4,)]),
        ('Einsum<equation = "bij,kj->bki">(a, b)', 13, [(2, 3, 4), (5, 4)]),
        ("MaxPool<kernel_shape = [3], strides = [2]>(a)", 13, [(1, 2, 9)]),
        ("AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(a)", 13, [(2, 3, 5, 5)]),
        ("AveragePool<kernel_shape = [3, 3], pads = [2, 2, 2, 2]>(a)", 13, [(2, 3, 5, 5)]),
        ("Hardmax<axis = 1>(a)", 13, [(2, 4, 6)]),
        ("ArgMax<axis = 1, keepdims = 0>(a)", 13, [(2, 4, 6)]),
        ('DepthToSpace<blocksize = 2, mode = "CRD">(a)', 13, [(1, 8, 2, 3)]),
        ("LRN<size = 3, alpha = 0.1>(a)", 13, [(4, 4, 3, 3)]),
    ],
)
def test_an_operator_means_what_its_version_says(node: str, opset: int, shapes: list[tuple[int, ...]]) -> None:
    ports = ", ".join(f"float{list(shape)} {name}" for name, shape in zip("abc", shapes, strict=False))
    agrees(model_of(f"agraph ({ports}) => (float[?] y) {{ y = {node} }}", opset), *(f32(*shape) for shape in shapes))


def test_before_version_13_softmax_was_over_all_axes_behind() -> None:
    x = f32(2, 3, 4)
    exe = hetnn.compile(model_of("agraph (float[2,3,4] a) => (float[2,3,4] y) { y = Softmax<axis = 1>(a) }", 11))
    powers = np.exp(x.reshape(2, 12))
    np.testing.assert_allclose(exe(x).reshape(2, 12), powers / powers.sum(1, keepdims=True), rtol=1e-5)


def test_before_version_7_operands_were_placed_along_an_axis() -> None:
    text = "agraph (float[2,3,4] x, float[3] y) => (float[2,3,4] z) { z = Add<broadcast = 1, axis = 1>(x, y) }"
    x, y = f32(2, 3, 4), f32(3)
    np.testing.assert_array_equal(hetnn.compile(model_of(text, 6))(x, y), x + y[:, None])


def test_a_convolution_keeps_its_weights_and_padding() -> None:
    x, weights = f32(2, 3, 9, 8), {"w": f32(4, 3, 3, 3), "b": f32(4)}

    def padded(how: str) -> onnx.ModelProto:
        model = model_of(
            "agraph (float[N,3,9,8] x, float[4,3,3,3] w, float[4] b) => (float[N,4,h,v] y) "
            f"{{ y = Conv<{how}, strides = [2, 2]>(x, w, b) }}"
        )
        model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
        return model

    written = padded("pads = [1, 1, 1, 0]")
    assert np.array_equal(hetnn.compile(padded('auto_pad = "SAME_LOWER"'))(x), hetnn.compile(written)(x))
    del written.graph.input[1:]
    agrees(written, x)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("place", ["asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"])
@pytest.mark.parametrize("scales", [[1.0, 1.0, 2.0, 3.0], [1.0, 1.0, 0.8, 1.5]])
def test_images_are_resized(mode: str, place: str, scales: list[float]) -> None:
    node = helper.make_node(
        "Resize",
        ["x", "", "scales"],
        ["y"],
        mode=mode,
        coordinate_transformation_mode=place,
        nearest_mode="round_prefer_floor",
    )
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 5, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)
    given = [numpy_helper.from_array(np.float32(scales), "scales")]
    model = helper.make_model(
        helper.make_graph([node], "g", [x], [y], given), opset_imports=[helper.make_opsetid("", 18)]
    )
    agrees(model, f32(1, 2, 5, 4))


# Functions
LOCAL = """<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
agraph (float[4] x) => (float[4] y) { y = own.scaled <by = 3.0> (x) }
<domain: "own", opset_import: ["" : 18]>
scaled <by> (x) => (y) { f = Constant<value_float: float = @by>()  m = Mul(x, f)  y = Relu(m) }
"""


def test_functions_are_opened_with_their_attributes() -> None:
    model, x = parser.parse_model(LOCAL), f32(4)
    np.testing.assert_allclose(hetnn.compile(model)(x), np.maximum(3 * x, 0))


def test_an_operator_without_a_name_here_is_what_the_standard_defines_it_by() -> None:
    for node in ("Celu<alpha = 2.0>(x)", "MeanVarianceNormalization(x)"):
        agrees(model_of(f"agraph (float[2,3,4,5] x) => (float[?] y) {{ y = {node} }}"), f32(2, 3, 4, 5))


def test_a_branch_is_taken_where_the_condition_is_known() -> None:
    text = """agraph (float[2] x) => (float[2] y) {
      r = Shape(x)
      two = Constant<value_ints = [2]>()
      same = Equal(r, two)
      one = Squeeze(same)
      y = If(one) <then_branch = t () => (float[2] a) { a = Neg(x) }, else_branch = e () => (float[2] b) { b = Abs(x) }>
    }"""
    x = f32(2)
    np.testing.assert_array_equal(hetnn.compile(model_of(text))(x), -x)


# What is refused


def test_everything_that_is_lacking_is_named_at_once() -> None:
    text = """agraph (float[3] x, int64[1] k) => (float[a] v, float[b] y) {
      v = ai.onnx.ml.CastMap(x)
      y = Reshape(v, k)
      w = ai.onnx.ml.DictVectorizer(k)
    }"""
    model = model_of(text, 20)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 4))
    with pytest.raises(hetnn.Unsupported) as caught:
        hetnn.compile(model)
    assert str(caught.value).splitlines()[0] == (
        "the model uses operators that hetnn lacks. Replace them or run those parts elsewhere:"
    )
    assert [line.strip() for line in str(caught.value).splitlines()[1:]] == [
        "ai.onnx.ml.CastMap (1 time) at v",
        "ai.onnx.ml.DictVectorizer (1 time) at w",
    ]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "(seq(complex64) x) => (int64 y) { y = SequenceLength(x) }",
            hetnn.Unsupported,
            "'x' has the element type COMPLEX64",
        ),
        (
            "(seq(seq(float[3])) x) => (int64 y) { y = SequenceLength(x) }",
            hetnn.Unsupported,
            "the input 'x' is a sequence of sequence_type; hetnn takes tensors",
        ),
        (
            "(float[2,3] x) => (float[4] y) { y = Reshape<shape = [4]>(x) }",
            hetnn.InvalidModel,
            "the node 'y': Reshape: reshape 'y': shape must hold as many elements",
        ),
        (
            "(float[2,3] x) => (float[4] y) { y = Gather<sides = 3>(x, x) }",
            hetnn.InvalidModel,
            "the node 'y': Gather: Unrecognized attribute: sides for operator Gather",
        ),
        (
            "(float[2,3] x) => (float[4] y) { y = MaxPool(x) }",
            hetnn.InvalidModel,
            "the node 'y': MaxPool: Required attribute 'kernel_shape' is missing",
        ),
        (
            "(float[2,3] x) => (float[4] y) { y = Add(x) }",
            hetnn.InvalidModel,
            r"the node 'y': Add: Node with schema.* has input size 1 not in range",
        ),
        (
            "(float[2,3] x) => (float[4] y) { y = Relu(z) }",
            hetnn.InvalidModel,
            "the node 'y' reads 'z', which nothing gives",
        ),
        (
            "(float[4,2] x) => (seq(float[2,2]) y) <int64[2,1] k = {2, 2}> { y = SplitToSequence(x, k) }",
            hetnn.InvalidModel,
            r"SplitToSequence of an axis of 4 into parts of \[2, 2\]",
        ),
        (
            "(int64[4] x, float[2] v) => (float[4,2] y) { d = Constant<value_float = inf>() y = OneHot(x, d, v) }",
            hetnn.InvalidModel,
            "OneHot with a depth of inf",
        ),
    ],
)
def test_what_is_refused_says_why(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        hetnn.compile(model_of(f"agraph {text}", 4 if "shape =" in text else 18))


def test_windows_with_gaps_are_as_large_as_a_constant_may_be() -> None:
    pooled = "AveragePool<kernel_shape = [100000, 100000], dilations = [2, 2]>"
    with pytest.raises(hetnn.Unsupported, match="averages of 2 channels over windows"):
        hetnn.compile(model_of(f"agraph (float[1,2,8,8] x) => (float[1,2,a,b] y) {{ y = {pooled}(x) }}", 19))


@pytest.mark.parametrize("k", [0, 1, -2, 2**40])
def test_identity_matrices_of_any_size(k: int) -> None:
    exe = hetnn.compile(model_of(f"agraph (float[m,n] x) => (float[m,n] y) {{ y = EyeLike<k = {k}>(x) }}", 9))
    for rows, columns in ((3, 4), (5, 2), (1, 1)):
        wanted = np.eye(rows, columns, min(k, 99), dtype=np.float32)
        np.testing.assert_array_equal(exe(np.zeros((rows, columns), np.float32)), wanted)


# What depends on values, and loops
LATE = {
    "y = ReduceSum(x, k)": ("float[1,3] y", [0]),
    "y = ReduceMax <keepdims = 0> (x, k)": ("float[2] y", [1]),
    "y = Reshape(x, k)": ("float[3,2] y", [3, -1]),
    "y = Expand(x, k)": ("float[4,2,3] y", [4, 1, 1]),
    "y = Tile(x, k)": ("float[4,3] y", [2, 1]),
    "y = Unsqueeze(x, k)": ("float[2,1,3] y", [1]),
    "y = Pad(x, k)": ("float[3,5] y", [0, 1, 1, 1]),
}


@pytest.mark.parametrize("node", LATE)
def test_axes_and_shapes_may_be_values(node: str) -> None:
    output, values = LATE[node]
    model = model_of(f"agraph (float[2,3] x, int64[{len(values)}] k) => ({output}) {{ {node} }}")
    agrees(model, f32(2, 3), np.array(values, np.int64))


def test_values_that_give_another_shape_than_the_model_declares() -> None:
    model = model_of("agraph (float[2,3] x, int64[2] k) => (float[3,2] y) { y = Reshape(x, k) }")
    exe = hetnn.compile(model)
    message = r"the values give the shape \[1,6\]; the model declares \[3,2\]\. Give other values"
    with pytest.raises(hetnn.InvalidModel, match=message):
        exe(f32(2, 3), np.array([1, 6], np.int64))


def test_values_slice_from_either_end() -> None:
    text = (
        "(float[5,4] x, int64[2] b, int64[2] e, int64[2] s) => (float[2,3] y) { a = Constant <value_ints = [0, 1]> () "
    )
    model = model_of(f"agraph {text} y = Slice(x, b, e, a, s) }}")
    agrees(model, f32(5, 4), np.array([3, -1]), np.array([-100, 0]), np.array([-2, -1]))


def test_scans_and_loops_are_unrolled() -> None:
    scanned = """agraph (float[2] h, float[3,2] x) => (float[2] y, float[3,2] z) {
      y, z = Scan <num_scan_inputs = 1, body = step (float[2] a, float[2] b) => (float[2] c, float[2] d) {
        c = Add(a, b)
        d = Mul(c, b)
      }> (h, x)
    }"""
    agrees(model_of(scanned), f32(2), f32(3, 2))
    looped = """agraph (float[2] x) => (float[2] y, float[4,2] z) {
      n = Constant <value_int = 4> ()
      going = Cast <to = 9> (n)
      y, z = Loop <body = step (int64 i, bool c, float[2] a) => (bool d, float[2] b, float[2] e) {
        d = Identity(c)
        k = Cast <to = 1> (i)
        b = Add(a, k)
        e = Neg(b)
      }> (n, going, x)
    }"""
    agrees(model_of(looped), f32(2))


def test_what_is_one_number_everywhere_is_a_constant_also_in_loops() -> None:
    text = """agraph (int64 n, float[1,300] x) => (float[1,300] y) {
      going = Constant <value = bool {1}> ()
      y = Loop <body = step (int64 i, bool c, float[1,300] a) => (bool d, float[1,300] b) {
        d = Identity(c)
        shape = Constant <value_ints = [300, 300]> ()
        weight = ConstantOfShape <value = float[1] {0.003}> (shape)
        b = MatMul(a, weight)
      }> (n, going, x)
    }"""
    (body,) = [line for line in import_model(model_of(text)).graph.print().splitlines() if " loop(" in line]
    assert "expand" not in body
    agrees(model_of(text), np.array(3), f32(1, 300))


def test_a_branch_is_chosen_when_the_model_runs() -> None:
    text = """agraph (bool c, float[3] x) => (float[3] y) {
      y = If <then_branch = a () => (float[3] p) { p = Neg(x) }, else_branch = b () => (float[3] q) { q = Abs(x) }> (c)
    }"""
    for chosen in (True, False):
        agrees(model_of(text), np.array(chosen), f32(3))


def test_sequences_of_known_length_need_no_node() -> None:
    text = """agraph (float[2,3] x, float[2,3] y) => (float[3,6] z, int64 n) {
      s = SequenceConstruct(x, y)
      at = Constant <value_int = 0> ()
      t = SequenceInsert(s, x, at)
      f = Constant <value_int = -1> ()
      last = SequenceAt(t, f)
      u = SequenceInsert(t, last, at)
      w = SequenceErase(u, f)
      n = SequenceLength(w)
      r = ConcatFromSequence <axis = 0> (w)
      shape = Constant <value_ints = [3, 6]> ()
      z = Reshape(r, shape)
    }"""
    agrees(model_of(text), f32(2, 3), f32(2, 3))
