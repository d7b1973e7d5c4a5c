"""ONNX models whose sizes are found when they run: results as large as values say, computed shapes, loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from onnx import numpy_helper, parser

import hetnn
from importers.onnx_models import agrees, f32, model_of, same_as_reference


def i64(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def test_nonzero_gives_as_many_columns_as_there_are() -> None:
    model = model_of("agraph (float[3,4] x) => (int64[2,n] y) { y = NonZero(x) }")
    x = np.zeros((3, 4), np.float32)
    exe = agrees(model, x)
    x[1, 2] = x[2, 0] = 5
    same_as_reference(exe, model, x)


def test_compress_with_and_without_an_axis() -> None:
    mask = np.array([True, False, True])
    for attrs, shape in (("<axis = -1>", "2,n"), ("", "n")):
        text = f"agraph (float[2,3] x, bool[3] c) => (float[{shape}] y) {{ y = Compress{attrs}(x, c) }}"
        agrees(model_of(text), f32(2, 3), mask)


@pytest.mark.parametrize("attrs", ["", "<axis = 1>"])
def test_unique(attrs: str) -> None:
    shape = "a,b" if "axis" in attrs else "a"
    outputs = f"float[{shape}] y, int64[c] i, int64[d] r, int64[e] n"
    text = f"agraph (float[2,4] x) => ({outputs}) {{ y, i, r, n = Unique{attrs}(x) }}"
    agrees(model_of(text), np.array([[2, 1, 2, 3], [4, 1, 4, 3]], np.float32))


def test_unique_in_the_order_in_which_values_stand() -> None:
    model = model_of("agraph (int64[5] x) => (int64[n] y, int64[m] i) { y, i = Unique<sorted = 0>(x) }")
    y, first = hetnn.compile(model)(i64(7, 3, 7, 1, 3))
    assert (y.tolist(), first.tolist()) == ([7, 3, 1], [0, 1, 3])


def test_suppression_without_a_number_of_boxes_gives_none() -> None:
    model = model_of("agraph (float[1,3,4] b, float[1,1,3] s) => (int64[n,3] y) { y = NonMaxSuppression(b, s) }")
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3]]], np.float32)
    assert hetnn.compile(model)(boxes, f32(1, 1, 3)).shape == (0, 3)
    inputs = "float[1,3,4] b, float[1,1,3] s, int64 m, float t"
    model = model_of(f"agraph ({inputs}) => (int64[n,3] y) {{ y = NonMaxSuppression(b, s, m, t) }}")
    scores = np.array([[[0.5, 0.9, 0.7]]], np.float32)
    y = hetnn.compile(model)(boxes, scores, np.array(9), np.array(0.5, np.float32))
    assert y.tolist() == [[0, 0, 1], [0, 0, 2]]


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ("y = Reshape(x, s)", i64(6, -1)),
        ("y = Expand(x, s)", i64(5, 3, 1)),
        ("y = Tile(x, s)", i64(2, 3)),
        ("y = ConstantOfShape(s)", i64(2, 0, 3)),
    ],
)
def test_shapes_that_are_inputs(body: str, values: np.ndarray[Any, Any]) -> None:
    rank = len(values)
    sizes = ",".join("abc"[:rank])
    model = model_of(f"agraph (float[3,4] x, int64[{rank}] s) => (float[{sizes}] y) {{ {body} }}")
    x = f32(3, 1) if "Expand" in body else f32(3, 4)
    model = model_of(f"agraph (float[3,{x.shape[1]}] x, int64[{rank}] s) => (float[{sizes}] y) {{ {body} }}")
    agrees(model, x, values)


def test_bounds_of_slices_and_ranges_that_are_inputs() -> None:
    text = "agraph (float[5,7] x, int64[1] a, int64[1] b) => (float[m,7] y) { y = Slice(x, a, b) }"
    exe = agrees(model_of(text), f32(5, 7), i64(1), i64(-1))
    same_as_reference(exe, model_of(text), f32(5, 7), i64(4), i64(2))
    text = "agraph (int64 a, int64 b, int64 d) => (int64[n] y) { y = Range(a, b, d) }"
    exe = agrees(model_of(text), np.array(2), np.array(11), np.array(3))
    same_as_reference(exe, model_of(text), np.array(5), np.array(-3), np.array(-2))


def test_sizes_that_the_model_declares_are_checked_when_it_runs() -> None:
    model = model_of("agraph (float[12] x, int64[2] s) => (float[3,4] y) { y = Reshape(x, s) }")
    exe = agrees(model, f32(12), i64(3, -1))
    with pytest.raises(hetnn.InvalidModel, match=r"the values give the shape \[2,6\]; the model declares \[3,4\]"):
        exe(f32(12), i64(2, 6))


def test_axes_that_are_inputs() -> None:
    text = "agraph (float[2,3,4] x, int64[1] a) => (float[b,c] y) { y = ReduceSum<keepdims = 0>(x, a) }"
    exe = agrees(model_of(text), f32(2, 3, 4), i64(1))
    same_as_reference(exe, model_of(text), f32(2, 3, 4), i64(-1))
    text = "agraph (float[1,10,6,1] x, int64 a) => (float[b,c,d,2] y) { y = DFT<onesided = 1>(x, , a) }"
    exe = agrees(model_of(text, 20), f32(1, 10, 6, 1), np.array(1))
    same_as_reference(exe, model_of(text, 20), f32(1, 10, 6, 1), np.array(-2))


def test_a_number_of_classes_and_of_best_ones_that_are_inputs() -> None:
    text = "agraph (int64[3] x, int64 d, float[2] v) => (float[3,n] y) { y = OneHot(x, d, v) }"
    agrees(model_of(text), i64(0, -1, 2), np.array(4), np.array([-1, 1], np.float32))
    text = "agraph (float[2,5] x, int64[1] k) => (float[2,n] v, int64[2,n] i) { v, i = TopK(x, k) }"
    agrees(model_of(text), f32(2, 5), i64(3))


def test_one_value_that_is_read_twice_is_one_size() -> None:
    text = """agraph (int64[2] size) => (float[h,w] y) {
      height, width = Split<num_outputs = 2>(size)
      zero = Constant<value_int = 0>()
      one = Constant<value_int = 1>()
      turned = Concat<axis = 0>(width, height)
      zeros = ConstantOfShape(turned)
      flat = Squeeze(height)
      steps = Range(zero, flat, one)
      reals = Cast<to = 1>(steps)
      sums = Add(zeros, reals)
      y = Transpose(sums)
    }"""
    exe = hetnn.compile(model_of(text))
    assert exe(i64(3, 2)).tolist() == [[0, 0], [1, 1], [2, 2]]
    assert exe(i64(1, 3)).tolist() == [[0, 0, 0]]


def test_branches_that_differ_by_an_axis_of_one_element_broadcast() -> None:
    text = """agraph (bool c, float[3] x) => (float[3] y) {
      z = If(c) <
        then_branch = t () => (float a) { a = Constant<value_float = 2.0>() },
        else_branch = e () => (float[1] b) { b = Constant<value_floats = [5.0]>() }>
      y = Mul(x, z)
    }"""
    exe = hetnn.compile(model_of(text))
    x = f32(3)
    np.testing.assert_array_equal(exe(np.array(True), x), 2 * x)
    np.testing.assert_array_equal(exe(np.array(False), x), 5 * x)
    direct = text.replace("float[3] y", "float[] y").replace("y = Mul(x, z)", "y = Relu(z)")
    exe = hetnn.compile(model_of(direct))
    assert [exe(np.array(given), x).tolist() for given in (True, False)] == [2, [5]]
    exe = hetnn.compile(model_of(direct.replace("float[] y", "float y")))
    assert exe(np.array(True), x).tolist() == 2
    with pytest.raises(hetnn.InvalidModel, match="a value of 1 axes, where the model declares 0"):
        exe(np.array(False), x)


# Loops

POWERS = """agraph (int64 rounds, bool go, float[2] x, float[2] factor) => (float[2] y, float[n,2] all) {
  y, all = Loop(rounds, go, x) <body = round (int64 i, bool c, float[2] v) => (bool d, float[2] w, float[2] v_) {
    d = Identity(c)
    w = Mul(v, factor)
    v_ = Identity(v)
  }>
}"""


@pytest.mark.parametrize(("rounds", "go"), [(4, True), (0, True), (3, False)])
def test_a_loop_of_an_unknown_number_of_rounds(rounds: int, go: bool) -> None:
    x, factor = f32(2), f32(2)
    y, each = hetnn.compile(model_of(POWERS))(np.array(rounds), np.array(go), x, factor)
    count = rounds if go else 0
    wanted = np.stack([x * factor**k for k in range(count + 1)]).astype(np.float32)
    np.testing.assert_allclose(y, wanted[count], rtol=1e-5)
    assert each.shape == (count, 2)
    np.testing.assert_allclose(each, wanted[:count], rtol=1e-5)


def test_a_loop_runs_after_saving(tmp_path: Any) -> None:
    hetnn.compile(model_of(POWERS)).save(tmp_path / "loop.hetnn")
    one = np.ones(2, np.float32)
    y, each = hetnn.load(tmp_path / "loop.hetnn")(np.array(3), np.array(True), one, 2 * one)
    assert (y.tolist(), each.shape) == ([8, 8], (3, 2))


def test_a_loop_until_values_say_stop_with_another_in_it() -> None:
    text = """agraph (float x, float limit, int64 inner) => (float y) {
      yes = Constant<value = bool {1}>()
      none = Constant<value = int64 {9223372036854775807}>()
      y = Loop(none, yes, x) <body = b (int64 i, bool c, float v) => (bool d, float w) {
        w = Loop(inner, c, v) <body = e (int64 j, bool f, float p) => (bool g, float q) {
          g = Identity(f)
          q = Add(p, x)
        }>
        d = Less(w, limit)
      }>
    }"""
    exe = hetnn.compile(model_of(text))
    assert exe(np.float32(1.5), np.float32(10), np.array(2)).item() == 10.5
    assert exe(np.float32(1.5), np.float32(11), np.array(3)).item() == 15


def test_a_loop_that_never_ends_is_stopped() -> None:
    text = """agraph (bool go, float x) => (float y) {
      y = Loop( , go, x) <body = b (int64 i, bool c, float v) => (bool d, float w) {
        d = Identity(c)
        w = Identity(v)
      }>
    }"""
    exe = hetnn.compile(model_of(text))
    assert exe(np.array(False), np.float32(3)).item() == 3


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("add 0 9 {}", "its body: there is no value 9 yet"),
        ("add 2 2 | give 1 2", r"a call must end with its attributes in \{\}"),
        ("nonsense 2 {} | give 1 2", "there is no operator 'nonsense'"),
        ("add 2 2 {axis=1} | give 1 3", "add has no attribute 'axis'"),
        ("add 2 2 {} | give 1 x", "'x' is no number of a value"),
        ("give 1 7", "its body gives no value 7"),
        ("give 2 2", "its body must give one bool, then the 1 values that are carried"),
        ("cast 2 {to=i32} | give 1 3", "a carried value must keep its type"),
    ],
)
def test_bodies_that_are_none(body: str, message: str) -> None:
    attrs = f'body = "{body}", carried = 1, count = n, sizes = []'
    text = (
        "graph @g {stage = imported, symbols = [n: 0..9 = 1]} (%x: f32[2], %k: i64[]) -> (%y) {\n"
        f"  %y = loop(%k, _, %x) {{{attrs}}} : f32[2]\n}}"
    )
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.compile(text)


def test_a_body_reads_sizes_of_the_graph_around_it() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    agraph (float[n] x, int64 k) => (float[n] y) {
      go = Constant<value = bool {1}>()
      y = Loop(k, go, x) <body = b (int64 i, bool c, float[n] v) => (bool d, float[n] w) {
        d = Identity(c)
        s = Shape(v)
        z = ConstantOfShape(s)
        w = Add(v, z)
      }>
    }"""
    exe = agrees(parser.parse_model(text), f32(3), np.array(2))
    assert exe(f32(5), np.array(0)).shape == (5,)


# Products by equations


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("...ii->...i", [(2, 3, 3)]),
        ("ii", [(4, 4)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]),
        ("bij,bjk,bkl->il", [(2, 3, 4), (2, 4, 5), (2, 5, 6)]),
        ("...i,...i", [(1, 2, 3), (4, 1, 3)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    names = "abc"[: len(shapes)]
    declared = ", ".join(
        f"float[{','.join(map(str, shape))}] {name}" for name, shape in zip(names, shapes, strict=True)
    )
    inputs = [f32(*shape) for shape in shapes]
    rank = np.einsum(equation, *inputs).ndim
    out = f"float[{','.join('uvwxyz'[:rank])}] r" if rank else "float r"
    text = f'agraph ({declared}) => ({out}) {{ r = Einsum<equation = "{equation}">({", ".join(names)}) }}'
    agrees(model_of(text), *inputs)


# Sequences


def test_outputs_that_are_sequences_are_lists() -> None:
    text = """agraph (float[3,2] x, int64[2] parts) => (seq(float[a,2]) y, seq(float[2]) z, int64 n) {
      y = SplitToSequence(x, parts)
      z = SplitToSequence<keepdims = 0>(x)
      n = SequenceLength(y)
    }"""
    exe = hetnn.compile(model_of(text))
    x = f32(3, 2)
    y, z, n = exe(x, i64(1, 2))
    assert [part.tolist() for part in y] == [x[:1].tolist(), x[1:].tolist()]
    assert [part.tolist() for part in z] == x.tolist()
    assert n.item() == 2
    y, *_ = exe(x, parts=i64(3, 0))
    assert [part.shape for part in y] == [(3, 2), (0, 2)]


def test_one_sequence_is_a_list_also_when_values_choose_it() -> None:
    text = """agraph (bool c, float[2] x) => (seq(float[2]) y) {
      y = If(c) <
        then_branch = t () => (seq(float[2]) a) { a = SequenceConstruct(x) },
        else_branch = e () => (seq(float[2]) b) { n = Neg(x)  b = SequenceConstruct(n) }>
    }"""
    exe, x = hetnn.compile(model_of(text)), f32(2)
    assert [part.tolist() for part in exe(np.array(True), x)] == [x.tolist()]
    assert [part.tolist() for part in exe(np.array(False), x)] == [(-x).tolist()]


# Optimizers and trees


def test_steps_of_optimizers() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "ai.onnx.preview.training" : 1]>
    agraph (float rate, int64 step, float[3] x, float[3] g, float[3] v) => (float[3] y, float[3] w) {
      y, w = ai.onnx.preview.training.Momentum<
        alpha = 0.9, beta = 0.5, norm_coefficient = 0.1, mode = "standard">(rate, step, x, g, v)
    }"""
    exe = hetnn.compile(parser.parse_model(text))
    x, g, v = f32(3), f32(3), f32(3)
    for step, beta in ((0, 1.0), (2, 0.5)):
        y, w = exe(np.float32(0.1), np.array(step), x, g, v)
        wanted = 0.9 * v + beta * (0.1 * x + g)
        np.testing.assert_allclose(w, wanted, rtol=1e-5)
        np.testing.assert_allclose(y, x - 0.1 * wanted, rtol=1e-5)


def test_a_tree_whose_nodes_loop_is_refused() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "ai.onnx.ml" : 5]>
    agraph (float[n,1] x) => (float[n,1] y) {
      y = ai.onnx.ml.TreeEnsemble<n_targets = 1, tree_roots = [0], nodes_modes = uint8[1] {0},
        nodes_splits = float[1] {0.5}, nodes_featureids = [0], nodes_truenodeids = [0], nodes_trueleafs = [0],
        nodes_falsenodeids = [0], nodes_falseleafs = [1], leaf_targetids = [0], leaf_weights = float[1] {2.0}>(x)
    }"""
    model = parser.parse_model(text)
    with pytest.raises(hetnn.InvalidModel, match="a tree whose node 0 lies behind itself"):
        hetnn.compile(model)
    model.graph.node[0].attribute[6].ints[0] = 1  # the other side of the node is a leaf, too
    assert model.graph.node[0].attribute[6].name == "nodes_trueleafs"
    assert hetnn.compile(model)(np.array([[0.0], [1.0]], np.float32)).tolist() == [[2], [2]]


def test_a_tree_with_fewer_sets_of_members_than_nodes_that_ask_is_refused() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "ai.onnx.ml" : 5]>
    agraph (float[n,1] x) => (float[n,1] y) {
      y = ai.onnx.ml.TreeEnsemble<n_targets = 1, tree_roots = [0], nodes_modes = uint8[1] {6},
        nodes_splits = float[1] {0.5}, nodes_featureids = [0], nodes_truenodeids = [0], nodes_trueleafs = [1],
        nodes_falsenodeids = [0], nodes_falseleafs = [1], leaf_targetids = [0], leaf_weights = float[1] {2.0},
        membership_values = float[2] {1.0, 2.0}>(x)
    }"""
    model = parser.parse_model(text)
    (members,) = [attr for attr in model.graph.node[0].attribute if attr.name == "membership_values"]
    members.t.CopyFrom(numpy_helper.from_array(np.array([], np.float32)))
    with pytest.raises(hetnn.InvalidModel, match="with 1 nodes of mode 6 and 0 sets of members"):
        hetnn.compile(model)


def test_a_tree_without_roots_is_refused() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "ai.onnx.ml" : 5]>
    agraph (float[n,1] x) => (float[n,1] y) {
      y = ai.onnx.ml.TreeEnsemble<n_targets = 1, tree_roots = ROOTS, nodes_modes = uint8[1] {0},
        nodes_splits = float[1] {0.5}, nodes_featureids = [0], nodes_truenodeids = [0], nodes_trueleafs = [1],
        nodes_falsenodeids = [0], nodes_falseleafs = [1], leaf_targetids = [0], leaf_weights = float[1] {2.0}>(x)
    }"""
    whole = parser.parse_model(text.replace("ROOTS", "[0]"))
    hetnn.compile(whole)
    (roots,) = [attr for attr in whole.graph.node[0].attribute if attr.name == "tree_roots"]
    del roots.ints[:]
    with pytest.raises(hetnn.InvalidModel, match="without n_targets or tree_roots"):
        hetnn.compile(whole)


def test_frames_of_a_window_that_has_no_length_are_refused() -> None:
    text = "agraph (float[1,64,1] x, float w) => (y) { s = Constant <value_int = 8> () y = STFT (x, s, w) }"
    with pytest.raises(hetnn.InvalidModel, match="input 2 has 0 axes"):
        hetnn.compile(model_of(text))


def test_an_accelerator_may_work_behind_sizes_that_a_loop_finds() -> None:
    """For sizes that were not compiled for, from where a node inside the loop has defined another one."""
    model = model_of("""agraph (float[n,128,16,16] x, float[4] w, int64 rounds) => (y, c) <bool on = {1}> {
      y, c = Loop (rounds, on) <body = round (int64 i, bool go) => (bool still, float[n,128,16,16] z, int64 count) {
        still = Identity (go)
        found = NonZero (w) d = Cast <to = 1> (found) s = ReduceMax <keepdims = 0> (d)
        m = Mul (x, s) z = Conv <pads = [1,1,1,1]> (m, k) count = Size (found)
      }>
    }""")
    kernel = f32(128, 128, 3, 3)
    model.graph.initializer.append(numpy_helper.from_array(kernel, "k"))
    exe = hetnn.compile(model, "cpu+relu-only")
    (body,) = exe.report(format="dict")["bodies"]
    assert body["report"]["nodes_on"].get("relu-only")
    for n in (1, 3, 5):
        x = f32(n, 128, 16, 16)
        y, counts = exe(x, np.array([1, 0, 1, 0], np.float32), np.array(2))
        expected = torch.nn.functional.conv2d(torch.from_numpy(2 * x), torch.from_numpy(kernel), padding=1)
        for z in y:
            np.testing.assert_allclose(z, expected.numpy(), rtol=1e-4, atol=3e-3)
        assert counts.tolist() == [2, 2]


@pytest.mark.parametrize(("op", "of"), [("Max", max), ("Min", min)])
def test_the_largest_and_least_of_any_number_of_sizes(op: str, of: Any) -> None:
    sizes = " ".join(f"{name} = Shape <start = {k}, end = {k + 1}> (x)" for k, name in enumerate("stu"))
    for names in ("s", "s, t", "s, t, u"):
        exe = hetnn.compile(model_of(f"agraph (float[a,b,c] x) => (y) {{ {sizes} y = {op} ({names}) }}"))
        for shape in ((2, 3, 5), (5, 3, 2), (3, 5, 2)):
            assert exe(f32(*shape)).tolist() == [of(shape[: names.count(",") + 1])]


def test_axes_that_sizes_and_values_do_not_have_are_refused() -> None:
    for body in (
        "s = Shape (x) y = Concat <axis = 9223372036854775807> (s, s)",
        "s = Shape (x) y = Concat <axis = 1> (s, s)",
        "k = Constant <value_ints = [0, 0, 0]> () y = Slice (x, k, k)",
        "k = Constant <value_ints = [0]> () r = ReduceSum <keepdims = 0> (x) y = Slice (r, k, k)",
    ):
        with pytest.raises(hetnn.InvalidModel):
            hetnn.compile(model_of(f"agraph (float[n,3] x) => (y) {{ {body} }}"))


def test_sizes_are_split_as_values_are() -> None:
    text = """agraph (float[a,b,c] x) => (y, z) { s = Shape (x) PARTS y = Identity (p) z = Identity (q) }"""
    exe = hetnn.compile(model_of(text.replace("PARTS", "p, q = Split <num_outputs = 2> (s)")))
    assert [value.tolist() for value in exe(f32(4, 5, 6))] == [[4, 5], [6]]
    sizes = "k = Constant <value_ints = [2, 2]> () p, q = Split (s, k)"
    with pytest.raises(hetnn.InvalidModel, match=r"an axis of 3 into parts of \[2, 2\], which are 4 in all"):
        hetnn.compile(model_of(text.replace("PARTS", sizes)))


def test_a_split_has_a_part_for_each_output_and_they_add_up() -> None:
    text = "agraph (float[SIZE,3] x) => (y, z) { PARTS y = Identity (p) z = Identity (q) }"

    def split(size: str, parts: str, opset: int = 18) -> hetnn.Executable:
        return hetnn.compile(model_of(text.replace("SIZE", size).replace("PARTS", parts), opset))

    for size, parts, message in (
        ("4", "p, q = Split <num_outputs = 9223372036854775807> (x)", "9223372036854775807 and 2 outputs"),
        ("4", "p, q = Split <num_outputs = -1> (x)", "num_outputs = -1 and 2 outputs"),
        ("n", "k = Constant <value_ints = [1, 1, 2]> () p, q = Split (x, k)", r"of \[1, 1, 2\] with 2 outputs"),
        ("4", "k = Constant <value_ints = [5, -1]> () p, q = Split (x, k)", "no part is smaller than 0"),
        ("5", "k = Constant <value_ints = [2, 2]> () p, q = Split (x, k)", "an axis of 5 .* 4 in all"),
    ):
        with pytest.raises(hetnn.InvalidModel, match=message):
            split(size, parts)
    exe = split("n", "k = Constant <value_ints = [1, 3]> () p, q = Split (x, k)")
    assert [part.shape for part in exe(f32(4, 3))] == [(1, 3), (3, 3)]
    for n in (3, 5):
        with pytest.raises(hetnn.InvalidModel):
            exe(f32(n, 3))
    halves = split("n", "p, q = Split <num_outputs = 2> (x)")
    assert [[part.shape[0] for part in halves(f32(n, 3))] for n in (4, 5)] == [[2, 2], [3, 2]]
    checked = ["match_shape" in str(each.report(format="dict")["graph"]) for each in (exe, halves)]
    assert checked == [True, False], "halves add up whatever the size is"


def test_parts_whose_sizes_are_values_add_up_when_they_run() -> None:
    text = "agraph (float[4,n] x, int64[2] k) => (y, z) { y, z = Split (x, k) }"
    exe = hetnn.compile(model_of(text))
    x = f32(4, 3)
    for sizes in ([1, 3], [0, 4], [4, 0]):
        np.testing.assert_array_equal(np.concatenate(exe(x, np.array(sizes))), x)
    for sizes in ([2, 1], [2, 3], [5, -1], [-1, 5], [2**63 - 1, 2**63 - 1]):
        with pytest.raises(hetnn.InvalidModel, match="must add up to 4"):
            exe(x, np.array(sizes))


SCAN = """agraph (float[2] s, float[n,2] x, float[2,n] w) => (y, z, q) {
  y, z, q = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, BACK],
                  scan_output_directions = [0, BACK], scan_output_axes = [0, AXIS],
                  body = step (float[2] a, float[2] b, float[2] c) => (float[2] d, float[2] e, float[2] f) {
    d = Add (a, b) h = Mul (d, c) e = Relu (h) f = Sub (c, s)
  }> (s, x, w)
}"""


@pytest.mark.parametrize("back", ["0", "1"])
@pytest.mark.parametrize("axis", ["0", "1"])
def test_scans_over_axes_of_any_length(back: str, axis: str) -> None:
    """Backwards, along inner axes, reading values of the graph around, and over nothing at all."""
    exe = hetnn.compile(model_of(SCAN.replace("BACK", back).replace("AXIS", axis)))
    for count in (3, 1, 8, 0):
        s, x, w = np.abs(f32(2)), np.abs(f32(count, 2)), f32(2, count)  # sums that cancel nothing
        columns = w.T[::-1] if back == "1" else w.T
        sums = s + np.cumsum(x, axis=0)
        y, z, q = exe(s, x, w)
        np.testing.assert_allclose(y, sums[-1] if count else s, rtol=1e-5)
        np.testing.assert_allclose(z.reshape(count, 2), np.maximum(sums * columns, 0), rtol=1e-5)
        wanted = (columns - s)[::-1] if back == "1" else columns - s
        if count:
            np.testing.assert_allclose(q, np.moveaxis(wanted, 0, int(axis)), rtol=1e-5)
        assert q.size == 2 * count


def test_scans_of_which_the_axes_differ() -> None:
    text = SCAN.replace("BACK", "0").replace("AXIS", "0").replace("float[2,n] w", "float[2,m] w")
    with pytest.raises(hetnn.InvalidModel, match=r"a Scan over axes of sizes \['m', 'n'\], which must be equal"):
        hetnn.compile(model_of(text))


def test_orders_of_what_may_be_empty() -> None:
    """Of as many elements as a condition keeps."""
    text = """agraph (float[n] x) => (float[k] y, int64[k] i) {
      zero = Constant<value_float = 0.0>() keep = Greater(x, zero) kept = Compress<axis = 0>(x, keep)
      k = Shape(kept) y, i = TopK(kept, k) }"""
    exe = agrees(model_of(text), np.float32([1, -1, 3, 2]))
    y, i = exe(np.float32([-1, -2]))
    assert y.shape == i.shape == (0,)


def test_what_a_negative_pad_crops_is_wrapped_no_more() -> None:
    x = f32(3, 5)
    for amounts in ([0, -2, 0, 3], [0, 3, 0, -1], [1, -1, -1, -1]):
        values = ",".join(map(str, amounts))
        body = f'p = Constant<value_ints = [{values}]>() y = Pad<mode = "wrap">(x, p)'
        got = hetnn.compile(model_of(f"agraph (float[3,5] x) => (float[a,b] y) {{ {body} }}", 19))(x)
        above, before, below, behind = amounts
        want = torch.nn.functional.pad(torch.tensor(x)[None, None], (before, behind, above, below), "circular")
        np.testing.assert_array_equal(got, want[0, 0])


def test_the_first_definition_of_group_normalization_has_a_factor_a_group() -> None:
    body = "s = Constant<value_floats = [2.0, 3.0]>() b = Constant<value_floats = [1.0, -1.0]>()"
    text = f"agraph (float[2,4,3] x) => (float[2,4,3] y) {{ {body} y = GroupNormalization<num_groups = 2>(x, s, b) }}"
    x = f32(2, 4, 3)
    factors = (torch.tensor(each).repeat_interleave(2) for each in ([2.0, 3.0], [1.0, -1.0]))
    want = torch.nn.functional.group_norm(torch.tensor(x), 2, *factors)
    np.testing.assert_allclose(hetnn.compile(model_of(text))(x), want, 1e-5, 1e-5)


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("axes", [[1], [1, 2], [-2], [2], None])
def test_the_extreme_of_no_elements_is_the_outermost_number(keep: int, axes: list[int] | None) -> None:
    given = "" if axes is None else f"axes = Constant<value_ints = {axes}>()"
    read = "x" if axes is None else "x, axes"
    rank = 3 if keep else 3 - len(axes or range(3))
    sizes = ",".join("abc"[:rank])
    for op, dtype, kind in (("ReduceMax", "float", "f4"), ("ReduceMin", "float", "f4"), ("ReduceMax", "int32", "i4")):
        text = f"agraph ({dtype}[2,0,3] x) => ({dtype}[{sizes}] y) {{ {given} y = {op}<keepdims = {keep}>({read}) }}"
        x = np.zeros((2, 0, 3), kind)
        same_as_reference(hetnn.compile(model_of(text)), model_of(text), x)


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("axes", ["1", "0", "0, 1"])
def test_logarithms_of_sums_of_powers_too_large_to_write(axes: str, keep: int) -> None:
    """Values of any size, and such as are infinite; torch is asked, as ONNX' reference lets powers overflow."""
    count = axes.count(",") + 1
    body = f"<int64[{count}] axes = {{{axes}}}> {{ y = ReduceLogSumExp<keepdims = {keep}>(x, axes) }}"
    exe = hetnn.compile(model_of(f"agraph (float[a,b] x) => (float y) {body}"))
    rows = [[1000, 999], [-1000, -1001], [-np.inf, -np.inf], [np.inf, 1], [0.5, -0.5]]
    for chosen in (rows, rows[:2], rows[1:3], rows[4:]):
        x = np.array(chosen, np.float32)
        wanted = torch.logsumexp(torch.from_numpy(x), [int(axis) for axis in axes.split(",")], bool(keep))
        np.testing.assert_allclose(exe(x), wanted.numpy(), rtol=1e-6)


def test_determinants_of_any_number_of_matrices() -> None:
    model = model_of("agraph (float[n,3,3] x) => (float[n] y) { y = Det(x) }")
    exe = agrees(model, f32(2, 3, 3))
    same_as_reference(exe, model, f32(5, 3, 3))


def test_normalization_by_statistics_of_every_place() -> None:
    """As operator sets before 9 could say; ONNX' reference does not."""
    tables = ", ".join(f"float[3,2] {name} = {{1, 2, 0.5, {k}, 3, 4}}" for k, name in enumerate("sbmv", 1))
    body = f"<{tables}> {{ y = BatchNormalization<spatial = 0>(x, s, b, m, v) }}"
    text = f"agraph (float[n,3,2] x) => (float[n,3,2] y) {body}"
    exe, x = hetnn.compile(model_of(text, opset=7)), f32(4, 3, 2)
    scale, bias, mean, variance = (np.array([[1, 2], [0.5, k], [3, 4]], np.float32) for k in range(1, 5))
    np.testing.assert_allclose(exe(x), (x - mean) / np.sqrt(variance + 1e-5) * scale + bias, rtol=1e-4, atol=1e-5)


def test_the_sign_of_what_is_no_number_is_none() -> None:
    model = model_of("agraph (float[n] x) => (float[n] y) { y = Sign(x) }")
    agrees(model, np.array([np.nan, -np.inf, -2, -0.0, 0, 3, np.inf], np.float32))


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("dtype", ["float", "int64"])
def test_the_extreme_of_what_values_leave_none_of(op: str, dtype: str) -> None:
    """As where a detector finds nothing; ONNX Runtime gives the outermost number."""
    body = f"k = Greater(x, z) v = Compress(x, k) y = {op}<keepdims = 0>(v)"
    model = model_of(f"agraph ({dtype}[n] x) => ({dtype} y) <{dtype} z = {{0}}> {{ {body} }}", opset=20)
    exe = hetnn.compile(model)
    kind = np.float32 if dtype == "float" else np.int64
    for numbers in ([3, -1, 7], [-1, -2], [4], []):
        x = np.array(numbers, kind)
        limits = (-np.inf, np.inf) if dtype == "float" else (np.iinfo(kind).min, np.iinfo(kind).max)
        wanted = x[x > 0].max(initial=limits[0]) if op == "ReduceMax" else x[x > 0].min(initial=limits[1])
        assert exe(x) == wanted


@pytest.mark.parametrize("body", ["Reshape(x, s)", "ConstantOfShape(s)"])
def test_a_shape_of_an_open_number_of_axes_has_those_that_the_result_is_declared_with(body: str) -> None:
    model = model_of(f"agraph (float[2,6] x, int64[p] s) => (float[a,b,c] y) {{ y = {body} }}")
    exe = agrees(model, f32(2, 6), i64(2, 3, 2))
    with pytest.raises(hetnn.InvalidModel, match=r"must have the shape \[3\]; got i64\[2\]"):
        exe(f32(2, 6), i64(4, 3))
