"""Known numbers taken, repeated and shaped by symbolic sizes, as embeddings of positions are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hetnn
from importers.onnx_models import agrees, f32, model_of, same_as_reference

SIZE = " ".join(f"{name} = Constant<value_ints = [{n}]>()" for name, n in (("one", 1), ("two", 2), ("zero", 0)))
PLACED = {
    "Slice": "t = Shape<start = 1, end = 2>(x) y = Slice(table, zero, t, one)",
    "Slice from": "t = Shape<start = 1, end = 2>(x) y = Slice(table, t, two, one)",
    "Slice from far": "t = Shape<start = 1, end = 2>(x) n = Add(t, t) m = Add(n, n) y = Slice(table, m, minus, one)",
    "Expand what is cut": "t = Shape<start = 1, end = 2>(x) all = Shape(x) "
    "f = Slice(table, zero, t, one) y = Expand(f, all)",
    "Expand": "b = Shape<start = 0, end = 1>(x) s = Concat<axis = 0>(b, one) y = Expand(table, s)",
    "Reshape": "flat = Reshape(table, minus) t = Shape<start = 1, end = 2>(x) "
    "f = Slice(flat, zero, t) s = Concat<axis = 0>(one, t) y = Reshape(f, s)",
}


@pytest.mark.parametrize("name", PLACED)
def test_numbers_are_placed_by_sizes(name: str) -> None:
    table = "<int64[1,8] table = {5, 6, 7, 8, 9, 10, 11, 12}, int64[1] minus = {-1}>"
    model = model_of(f"agraph (float[b,t] x) => (int64[p,q] y) {table} {{ {SIZE} {PLACED[name]} }}")
    exe = agrees(model, f32(2, 3))
    same_as_reference(exe, model, f32(1, 1))
    assert exe(f32(3, 4)).dtype == np.int64


def test_a_shape_with_an_open_size_cancels_what_both_have() -> None:
    """The quotient of b (t - 2) 8 and b (t - 2) 4 is 2."""
    cut = "zero = Constant<value_ints = [0]>() two = Constant<value_ints = [2]>() one = Constant<value_ints = [1]>()"
    text = f"""agraph (float[b,t,8] x) => (float[b,q,2,4] y) {{ {cut}
      end = Constant<value_ints = [9223372036854775807]>() less = Slice(x, two, end, one)
      sizes = Shape<end = 2>(less) tail = Constant<value_ints = [-1, 4]>()
      shape = Concat<axis = 0>(sizes, tail) y = Reshape(less, shape) }}"""
    exe = agrees(model_of(text), f32(2, 5, 8))
    assert exe.outputs[0].shape[2:] == (2, 4)


def test_rows_are_picked_and_placed_by_indices_of_any_number() -> None:
    inputs = "float[b,t,3] x, int64[n,2] at, float[n,3] rows"
    text = f"agraph ({inputs}) => (float[b,t,3] y, float[n,3] z) {{ y = ScatterND(x, at, rows) z = GatherND(x, at) }}"
    model = model_of(text)
    exe = agrees(model, f32(2, 4, 3), np.array([[0, 1], [1, 3]]), f32(2, 3))
    same_as_reference(exe, model, f32(3, 2, 3), np.array([[2, 0], [0, 1], [1, 1]]), f32(3, 3))
    text = "agraph (float[b,t,3] x, int64[b,n,1] at) => (float[b,n,3] z) { z = GatherND<batch_dims = 1>(x, at) }"
    agrees(model_of(text), f32(2, 4, 3), np.array([[[1], [0], [3]], [[2], [2], [0]]]))


def test_windows_that_leave_little_of_an_axis_choose_a_longer_example() -> None:
    """A width of 64, which stands for any, would be less than nothing behind the convolution."""
    convolve = "y = Conv<strides = [4], dilations = [9]>(x, w)"
    weight = "<float[1,1,9] w = {1, 1, 1, 1, 1, 1, 1, 1, 1}>"
    agrees(model_of(f"agraph (float[b,1,t] x) => (float[b,1,q] y) {weight} {{ {convolve} }}"), f32(2, 1, 100))


def test_a_late_slice_keeps_the_sizes_of_other_axes() -> None:
    text = "agraph (float[b,t,3] x, int64[1] s, int64[1] e) => (float[b,q,3] y) { a = Constant<value_ints = [1]>() "
    exe = agrees(model_of(text + "y = Slice(x, s, e, a) }"), f32(2, 4, 3), np.array([1]), np.array([3]))
    assert exe.outputs[0].shape[0] == "b"
    assert exe.outputs[0].shape[2] == 3


@pytest.mark.parametrize("mode", ["constant", "reflect"])
def test_padding_follows_sizes(mode: str) -> None:
    """The amounts are turned round as exporters do: from the last axis to the first, pairs apart."""
    turn = """
      sizes = Shape<start = 1>(x) two = Constant<value_ints = [2]>() less = Sub(sizes, two)
      none = Constant<value_ints = [0, 0]>() one = Constant<value_ints = [1]>()
      amounts = Concat<axis = 0>(less, one, none)
      pairs = Constant<value_ints = [-1, 2]>() flat = Constant<value_ints = [-1]>() zero = Constant<value_ints = [0]>()
      far = Constant<value_ints = [-9223372036854775807]>() rows = Reshape(amounts, pairs)
      back = Slice(rows, flat, far, zero, flat) both = Transpose<perm = [1, 0]>(back) pads = Reshape(both, flat)"""
    pad = f'y = Pad<mode = "{mode}">(x, pads)'
    model = model_of(f"agraph (float[b,t] x) => (float[b,q] y) {{ {turn} {pad} }}")
    exe = agrees(model, f32(2, 6))
    assert exe.outputs[0].shape == ("b", "2*t - 1")
    same_as_reference(exe, model, f32(1, 4))
    if mode == "constant":
        same_as_reference(exe, model, f32(3, 2))


CUTS = [
    (-3, 2**62, 1), (-5, -2, 1), (2, 5, 1), (5, 2, 1), (1, -1, 1), (2, -3, 2), (-4, 3, 1), (-4, 3, 2), (0, -2, 1),
    (-5, -1, 2), (-(2**62), 2, 1), (-(2**62), -2, 1), (1, -(2**62), 1), (2**62, 3, 1), (-2, -5, 1),
    (-1, -(2**63), -1), (-1, -5, -1), (3, 0, -1), (4, -3, -2), (-2, 1, -1), (2**62, -(2**63), -2),
]  # fmt: skip


@pytest.mark.parametrize(("start", "end", "step"), CUTS)
def test_an_open_axis_is_cut_as_short_ones_are(start: int, end: int, step: int) -> None:
    """Also where fewer elements are there than the bounds name."""
    numbers = " ".join(
        f"{name} = Constant<value_ints = [{n}]>()"
        for name, n in (("s", start), ("e", end), ("axis", 0), ("step", step))
    )
    exe = agrees(
        model_of(f"agraph (float[n,2] x) => (float[m,2] y) {{ {numbers} y = Slice(x, s, e, axis, step) }}"), f32(7, 2)
    )
    for size in range(10):
        x = f32(size, 2)
        np.testing.assert_array_equal(exe(x), x[start:end:step], strict=True)


def test_cutting_by_sizes_counts_from_the_back_below_zero() -> None:
    model = model_of("""agraph (float[n] x) => (float[m] y) { three = Constant<value_ints = [3]>() n = Shape(x)
      start = Sub(n, three) end = Constant<value_ints = [100]>() y = Slice(x, start, end) }""")
    exe = hetnn.compile(model)
    for n in (5, 3, 2, 1, 0):
        same_as_reference(exe, model, f32(n))


@pytest.mark.parametrize(
    ("step", "dtype", "wanted"),
    [
        ("y = Div(d, two)", "int64", lambda n: np.trunc((n - 7) / 2).astype(np.int64)),
        ("y = Mod<fmod = 1>(d, two)", "int64", lambda n: np.fmod(n - 7, 2)),
        ("y = Mod(d, two)", "int64", lambda n: np.mod(n - 7, 2)),
        ("y = Equal(d, minus)", "bool", lambda n: n - 7 == -2),
        ("b = Cast<to = 9>(d) y = Where(b, two, n)", "int64", lambda n: np.where(n != 7, 2, n)),
        ("y = Cast<to = 3>(d)", "int8", lambda n: (n - 7).astype(np.int8)),
        ("y = Abs(d)", "int64", lambda n: np.abs(n - 7)),
        ("y = Sign(d)", "int64", lambda n: np.sign(n - 7)),
        ("y = Less(d, minus)", "bool", lambda n: n - 7 < -2),
        ("y = ReduceSum<noop_with_empty_axes = 1>(n)", "int64", lambda n: n),
    ],
)
def test_arithmetic_of_open_sizes_is_that_of_integers(step: str, dtype: str, wanted: Any) -> None:
    text = "agraph (float[n,m] x) => (" + dtype + "[2] y) { n = Shape(x) seven = Constant<value_int = 7>()"
    text += " two = Constant<value_int = 2>() minus = Constant<value_int = -2>() d = Sub(n, seven) " + step + " }"
    exe = hetnn.compile(model_of(text))
    for sizes in ((3, 4), (7, 5), (12, 1), (2, 0), (300, 2)):
        y = exe(f32(*sizes))
        assert y.dtype == dtype.removesuffix("ean")
        np.testing.assert_array_equal(y, wanted(np.array(sizes)))
