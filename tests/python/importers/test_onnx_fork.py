"""Values whose rank depends on a condition that is known only when the model runs, as ONNX Runtime has them."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import hetnn
from importers.onnx_models import f32, model_of

Array = np.ndarray[Any, Any]


def agrees(text: str, *runs: list[Array]) -> None:
    """The same values for every run; where ONNX Runtime refuses one, so does hetnn."""
    model = model_of(text, 18)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    reference = onnxruntime.InferenceSession(model.SerializeToString(), options)
    exe = hetnn.compile(model)
    for given in runs:
        feeds = dict(zip((port.name for port in reference.get_inputs()), given, strict=True))
        try:
            theirs = reference.run(None, feeds)
        except Exception:
            with pytest.raises(hetnn.InvalidModel):
                exe(*given)
            continue
        mine = exe(*given)
        for a, b in zip(mine if isinstance(mine, tuple) else [mine], theirs, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def true(yes: bool) -> Array:
    return np.array(yes)


# What torch exports for x.squeeze(1) where the size is open.
SQUEEZED = """
  one = Constant<value_ints = [1]>()
  size = Shape<start = 1, end = 2>(x)
  is_one = Equal(size, one)
  c = Squeeze(is_one)
  s = If(c) <then_branch = t () => (a) { a = Squeeze(x, one) }, else_branch = e () => (b) { b = Identity(x) }>
"""
SIZES = [(2, 1, 4), (2, 3, 4), (1, 1, 4), (0, 1, 4), (0, 2, 4)]


@pytest.mark.parametrize(
    "rest",
    [
        "=> (float y) {BEGIN y = ReduceSum<keepdims = 0>(s) }",
        "=> (float[k,4] y) {BEGIN h = Sin(s) shape = Constant<value_ints = [-1,4]>() y = Reshape(h, shape) }",
        "=> (float[a,b,4] y) {BEGIN h = Exp(s) z = Shape(x) y = Reshape(h, z) }",
        "=> (float[a,b,c] y) {BEGIN h = Exp(s) y = Add(x, h) }",
        "=> (int64[k] y) {BEGIN h = Exp(s) y = Shape(h) }",
        "=> (float[a,b,4] y) {BEGIN two = Constant<value_int = 2>() ranks = Shape(s) rank = Size(ranks)"
        " is_two = Equal(rank, two) h = Exp(s) y = If(is_two) <"
        " then_branch = p () => (q) { q = Unsqueeze(h, one) }, else_branch = u () => (v) { v = Identity(h) }> }",
    ],
)
def test_a_squeeze_of_an_open_axis_and_what_makes_ranks_alike_again(rest: str) -> None:
    text = "agraph (float[n,m,4] x) " + rest.replace("BEGIN", SQUEEZED)
    agrees(text, *([f32(*sizes)] for sizes in SIZES))


def test_products_and_indices_run_on_their_side_only() -> None:
    text = "agraph (float[n,m,4] x, float[4,3] w) => (float[1,k] y) {" + SQUEEZED
    text += "h = MatMul(s, w) r = Relu(h) shape = Constant<value_ints = [1,-1]>() y = Reshape(r, shape) }"
    agrees(text, *([f32(*sizes), f32(4, 3)] for sizes in SIZES if sizes[0]))
    text = "agraph (float[n,m,4] x, int64[k] i) => (float y) {" + SQUEEZED
    text += "g = Gather<axis = 1>(s, i) y = ReduceSum<keepdims = 0>(g) }"
    agrees(text, *([f32(*n), np.array(i)] for n in SIZES[:2] for i in ([3, 2], [2, -3], [3], [4], [-4])))


def test_a_division_by_zero_is_none_on_the_other_side() -> None:
    text = """agraph (int64[n,m] x, int64 d) => (int64 y) {
      one = Constant<value_ints = [1]>()
      two = Constant<value_int = 2>()
      size = Shape<start = 1, end = 2>(x)
      is_one = Equal(size, one)
      c = Squeeze(is_one)
      s = If(c) <then_branch = t () => (a) { a = Squeeze(x, one) }, else_branch = e () => (b) { b = Identity(x) }>
      ranks = Shape(s)
      rank = Size(ranks)
      is_two = Equal(rank, two)
      q = If(is_two) <then_branch = p () => (f) { f = Div(s, d) }, else_branch = u () => (g) { g = Identity(s) }>
      y = ReduceSum<keepdims = 0>(q)
    }"""
    agrees(text, [np.array([[3], [5]]), np.array(0)], [np.array([[3, 4], [5, 9]]), np.array(2)])


@pytest.mark.parametrize("other", ["q = Identity(x)", "five = Constant<value_ints = [5,1]>() q = Expand(x, five)"])
def test_a_shape_that_does_not_fit_is_refused_where_it_is_taken(other: str) -> None:
    text = """agraph (bool c, float[n] x) => (float y) {
      shape = Constant<value_ints = [2,3]>()
      s = If(c) <then_branch = t () => (p) { p = Reshape(x, shape) }, else_branch = e () => (q) { OTHER }>
      y = ReduceSum<keepdims = 0>(s)
    }""".replace("OTHER", other)
    agrees(text, [true(True), f32(6)], [true(False), f32(5)], [true(True), f32(5)], [true(False), f32(1)])
    alike = text.replace("[2,3]", "[6]").replace("[5,1]", "[5]")
    agrees(alike, [true(True), f32(6)], [true(False), f32(5)], [true(True), f32(5)], [true(False), f32(1)])


@pytest.mark.parametrize("rank", ["q = Neg(x)", "front = Constant<value_ints = [0]>() q = Unsqueeze(x, front)"])
@pytest.mark.parametrize(
    ("node", "sizes"),
    [
        ("long = Constant<value_ints = [0,0,-2,0,0,-3]>() p = Pad(x, long)", [(1, 2, 3), (2, 3, 8)]),
        ('long = Constant<value_ints = [0,0,2,0,0,3]>() p = Pad<mode = "reflect">(x, long)', [(1, 1, 1), (2, 3, 8)]),
        ("third = Constant<value_ints = [2]>() p = Gather<axis = 2>(x, third)", [(1, 1, 1), (2, 3, 4)]),
        ("p = MaxPool<kernel_shape = [11]>(x)", [(1, 2, 3), (1, 2, 20)]),
        ("p = ReduceMax(x)", [(2, 3, 4)]),
    ],
)
def test_what_a_size_is_too_small_for_is_refused_where_it_is_taken(
    node: str, sizes: list[tuple[int, ...]], rank: str
) -> None:
    text = """agraph (bool c, float[n,m,k] x) => (float y) {
      s = If(c) <then_branch = t () => (p) { NODE }, else_branch = e () => (q) { RANK }>
      y = ReduceSum<keepdims = 0>(s)
    }"""
    text = text.replace("NODE", node).replace("RANK", rank)
    agrees(text, *([true(c), f32(*size)] for c in (True, False) for size in sizes))
    agrees(text, [true(False), f32(0, 2, 4)])


NESTED = """agraph (bool c, bool d, float[n,m,4] x, float[4,5] w) => (float[k,5] y) {
  one = Constant<value_ints = [1]>()
  zero = Constant<value_ints = [0]>()
  s = If(c) <
    then_branch = t () => (a) { a = If(d) <
      then_branch = p () => (q) { q = ReduceMax<keepdims = 0>(x, one) },
      else_branch = u () => (v) { r = ReduceMax<keepdims = 0>(x, zero) v = ReduceMax<keepdims = 0>(r, zero) }> },
    else_branch = e () => (b) { b = Identity(x) }>
  z = Exp(s)
  h = MatMul(z, w)
  shape = Constant<value_ints = [-1,5]>()
  y = Reshape(h, shape)
}"""


def test_branches_in_branches() -> None:
    agrees(NESTED, *([true(c), true(d), f32(2, 3, 4), f32(4, 5)] for c in (True, False) for d in (True, False)))


def test_two_axes_squeezed_one_after_the_other() -> None:
    text = "agraph (float[n,m,k] x) => (float[n,m,k] y) {" + SQUEEZED
    text += """
      width = Shape<start = 2, end = 3>(x)
      is_thin = Equal(width, one)
      c2 = Squeeze(is_thin)
      last = Constant<value_ints = [-1]>()
      s2 = If(c2) <then_branch = p () => (q) { q = Squeeze(s, last) }, else_branch = u () => (v) { v = Identity(s) }>
      h = Exp(s2)
      shape = Shape(x)
      y = Reshape(h, shape)
    }"""
    agrees(text, *([f32(*sizes)] for sizes in [(2, 3, 4), (2, 1, 4), (2, 3, 1), (2, 1, 1), (1, 1, 1)]))


def test_in_a_loop_and_around_it() -> None:
    text = """agraph (int64 rounds, bool go, float[n,m,4] x) => (float[n,m,4] y, float[r] all) {
      y, all = Loop(rounds, go, x) <body = round (int64 i, bool g, float[n,m,4] v)
          => (bool h, float[n,m,4] w, float a) {
        h = Identity(g)
        axis = Constant<value_ints = [1]>()
        two = Constant<value_int = 2>()
        zero = Constant<value_int = 0>()
        half = Mod(i, two)
        c = Equal(half, zero)
        s = If(c) <then_branch = t () => (p) { p = ReduceMean<keepdims = 0>(v, axis) },
                   else_branch = e () => (q) { q = Neg(v) }>
        z = Sin(s)
        a = ReduceSum<keepdims = 0>(z)
        middle = ReduceMean(z)
        w = Sub(v, middle)
      }>
    }"""
    agrees(text, *([np.array(n), true(True), f32(2, 3, 4)] for n in (4, 1, 0)))
    around = "agraph (int64 rounds, bool go, float[n,m,4] x) => (float y) {" + SQUEEZED
    around += """
      none = Constant<value_float = 0.0>()
      z = Loop(rounds, go, s) <body = p (int64 i, bool g, v) => (bool h, w) { h = Identity(g) w = Add(v, v) }>
      sum = ReduceSum<keepdims = 0>(z)
      times = Loop(rounds, go, none) <body = q (int64 i2, bool g2, float v2) => (bool h2, float w2) {
        h2 = Identity(g2) f = Sin(s) sum2 = ReduceSum<keepdims = 0>(f) w2 = Add(v2, sum2) }>
      y = Add(sum, times)
    }"""
    agrees(around, *([np.array(n), true(True), f32(2, m, 4)] for n in (3, 0) for m in (1, 3)))


def test_shapes_unlike_in_length() -> None:
    text = """agraph (bool c, float[n,2] x) => (float[k,2] y, int64[r] s) {
      s = If(c) <then_branch = t () => (a) { a = Shape(x) },
                 else_branch = e () => (b) { own = Shape(x) one = Constant<value_ints = [3]>()
                                             b = Concat<axis = 0>(one, own) }>
      z = Expand(x, s)
      shape = Constant<value_ints = [-1,2]>()
      y = Reshape(z, shape)
    }"""
    agrees(text, [true(True), f32(6, 2)], [true(False), f32(5, 2)])


def test_outputs_have_the_rank_that_a_run_says(tmp_path: Path) -> None:
    text = "agraph (float[n,m,4] x) => (float[] y, float[] z, int64[] r) {" + SQUEEZED
    text += " y = Relu(s) z = Squeeze(x) t = Shape(s) r = Size(t) }"
    runs = [(3, 1, 4), (3, 2, 4), (1, 1, 4), (1, 5, 4), (0, 1, 4)]
    agrees(text, *([f32(*shape)] for shape in runs))
    hetnn.compile(model_of(text, 18)).save(tmp_path / "open.hetnn")
    exe = hetnn.load(tmp_path / "open.hetnn")
    for shape in runs:
        x = f32(*shape)
        y, z, _ = exe(x)
        np.testing.assert_array_equal(y, np.maximum(x[:, 0] if shape[1] == 1 else x, 0))
        np.testing.assert_array_equal(z, x.squeeze())


def test_every_axis_may_be_the_one_that_is_dropped() -> None:
    runs = [[f32(*shape)] for shape in product((1, 3), repeat=3)]
    agrees("agraph (float[n,m,k] x) => (float[] y) { y = Squeeze(x) }", *runs)
    agrees("agraph (float[n,m,k] x) => (float[] z, float[] y) { y = Squeeze(x) z = Neg(y) }", *runs)


def test_a_declared_rank_is_what_runs_must_give() -> None:
    begun = "agraph (float[n,m] x, bool c) => (float[k] y) {"
    exe = hetnn.compile(model_of(begun + " y = Squeeze(x) }", 18))
    np.testing.assert_array_equal(exe(np.ones((1, 3), np.float32), true(True)), np.ones(3))
    np.testing.assert_array_equal(exe(np.ones((3, 1), np.float32), true(True)), np.ones(3))
    for shape in ((1, 1), (2, 3)):
        with pytest.raises(hetnn.InvalidModel):
            exe(np.ones(shape, np.float32), true(True))
    branches = """ flat = Constant<value_ints = [-1]>() y = If(c) <
      then_branch = t () => (a) { a = Identity(x) }, else_branch = e () => (b) { b = Reshape(x, flat) }> }"""
    exe = hetnn.compile(model_of(begun + branches, 18))
    np.testing.assert_array_equal(exe(np.ones((2, 3), np.float32), true(False)), np.ones(6))
    with pytest.raises(hetnn.InvalidModel, match="a value of 2 axes, where the model declares 1"):
        exe(np.ones((2, 3), np.float32), true(True))


def test_an_output_of_two_element_types_is_refused() -> None:
    text = """agraph (float[n,m] x, bool c) => (y) { y = If(c) <
      then_branch = t () => (a) { a = Identity(x) }, else_branch = e () => (b) { b = Shape(x) }> }"""
    with pytest.raises(hetnn.Unsupported, match=r"a value whose element type depends on a condition.*fix="):
        hetnn.compile(model_of(text, 18))


def test_states_of_loops_have_one_rank() -> None:
    text = """agraph (float[n,m] x, int64 k) => (float[] y) {
      y = Loop(k, "", x) <body = b (i, go, s) => (go2, t) { go2 = Identity(go) t = Squeeze(s) }> }"""
    with pytest.raises(hetnn.Unsupported, match="Loop: a value whose rank or element type depends on a condition"):
        hetnn.compile(model_of(text.replace('""', ""), 18))


def test_more_conditions_than_sides_are_kept_for_are_refused() -> None:
    inputs, nodes = "", ""
    for k in range(4):
        inputs += f"bool c{k}, "
        nodes += f"""s{k + 1} = If(c{k}) <
          then_branch = t{k} () => (p{k}) {{ p{k} = Unsqueeze(s{k}, zero) }},
          else_branch = e{k} () => (q{k}) {{ q{k} = Identity(s{k}) }}>\n"""
    text = f"agraph ({inputs} float[n] x) => (float y) {{ zero = Constant<value_ints = [0]>() s0 = Neg(x) {nodes}"
    with pytest.raises(hetnn.Unsupported, match="one of more than 8 values unlike in rank"):
        hetnn.compile(model_of(text + " y = ReduceSum<keepdims = 0>(s4) }", 18))
    three = text.replace("bool c3,", "")[: text.index("s4 = If") - len("bool c3, ")]
    runs = [[*(true(bool(k >> bit & 1)) for bit in range(3)), f32(3)] for k in range(8)]
    agrees(three + " y = ReduceSum<keepdims = 0>(s3) }", *runs)
