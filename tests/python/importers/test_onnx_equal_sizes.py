"""ONNX models in which symbolic sizes meet: resized images beside what they came from, parts put together."""

from __future__ import annotations

import itertools

import numpy as np
import onnxruntime
import pytest

import hetnn
from importers.onnx_models import agrees, f32, model_of, same_as_reference

SCALE = "<float[4] s = {1, 1, 2, 2}>"
LIKE = """
  lead = Constant<value_ints = [0, 1]>()
  all = Shape(x)
  some = Gather(all, lead)
  wide = Shape<start = 2>(z)
  goal = Concat<axis = 0>(some, wide)
"""
PLACES = ("asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners")


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_images_of_any_size_resized_by_a_scale(mode: str, places: str) -> None:
    resize = f'Resize<mode = "{mode}", coordinate_transformation_mode = "{places}", nearest_mode = "floor">'
    text = f"agraph (float[b,2,h,w] x) => (float[n,c,p,q] y) {SCALE} {{ y = {resize}(x, , s) }}"
    exe = agrees(model_of(text), f32(2, 2, 3, 5))
    assert exe.outputs[0].shape == ("b", 2, "2*h", "2*w")
    same_as_reference(exe, model_of(text), f32(1, 2, 4, 2))


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_images_resized_to_the_size_of_others(mode: str, places: str) -> None:
    resize = f'Resize<mode = "{mode}", coordinate_transformation_mode = "{places}", nearest_mode = "floor">'
    text = f"agraph (float[b,2,h,w] x, float[b,2,p,q] z) => (float[b,2,p,q] y) {{ {LIKE} y = {resize}(x, , , goal) }}"
    model = model_of(text)
    exe = agrees(model, f32(2, 2, 3, 5), f32(2, 2, 6, 15))
    assert exe.outputs[0].shape == ("b", 2, "p", "q")
    same_as_reference(exe, model, f32(1, 2, 4, 2), f32(1, 2, 1, 1))


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("size", ["h, w", "4, 5"])
def test_places_that_tensorflow_had_for_the_nearest_pixel(size: str, rounding: str) -> None:
    told = f'mode = "nearest", coordinate_transformation_mode = "tf_half_pixel_for_nn", nearest_mode = "{rounding}"'
    scales = "<float[4] s = {1, 1, 2, 1.5}, float[0] none = {}>"
    model = model_of(
        f"agraph (float[1,2,{size}] x) => (float y) {scales} {{ y = Resize<{told}>(x, none, s) }}", opset=11
    )
    exe, x = hetnn.compile(model), f32(1, 2, 4, 5)
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_array_equal(exe(x), wanted)


@pytest.mark.parametrize(
    "join", ["Add(up, x)", "Concat<axis = 1>(up, x)", "Concat<axis = -3>(x, up)", "Where(m, x, up)"]
)
def test_half_an_image_made_large_again_meets_the_image(join: str) -> None:
    """Of an odd image it does not: a run says so."""
    scales = "<float[4] half = {1, 1, 0.5, 0.5}, float[4] twice = {1, 1, 2, 2}, float zero = {0}>"
    body = f"less = Resize(x, , half) up = Resize(less, , twice) m = Greater(x, zero) y = {join}"
    model = model_of(f"agraph (float[b,2,h,w] x) => (float[n,c,p,q] y) {scales} {{ {body} }}")
    exe = agrees(model, f32(2, 2, 4, 6))
    with pytest.raises(hetnn.InvalidModel, match="the shape"):
        exe(f32(2, 2, 5, 6))


def test_stacks_of_matrices_meet() -> None:
    model = model_of("agraph (float[a,2,3] x, float[b,3,4] z) => (float[c,2,4] y) { y = MatMul(x, z) }")
    exe = agrees(model, f32(5, 2, 3), f32(5, 3, 4))
    with pytest.raises(hetnn.InvalidModel, match="the shape"):
        exe(f32(5, 2, 3), f32(4, 3, 4))


# Every size of every input is open, and a run shows them.
OPEN = {
    "Max": ("float[a,b] x, float[c,d] z", "y = Max(x, z, x)", [(3, 4), (3, 4)]),
    "Mod": ("float[a,b] x, float[d] z", "y = Mod<fmod = 1>(x, z)", [(3, 4), (4,)]),
    "Sum": ("float[a] x, float[b] z", "y = Sum(x, z)", [(4,), (4,)]),
    "Gemm": (
        "float[a,b] x, float[c,d] z, float[e] w",
        "y = Gemm<transB = 1, alpha = 2.0>(x, z, w)",
        [(3, 4), (5, 4), (5,)],
    ),
    "Einsum": ("float[a,b] x, float[c,d] z", 'y = Einsum<equation = "ij,jk->ik">(x, z)', [(3, 4), (4, 2)]),
    "LayerNormalization": (
        "float[a,b,c] x, float[d] z, float[e] w",
        "y = LayerNormalization(x, z, w)",
        [(2, 3, 4), (4,), (4,)],
    ),
    "BatchNormalization": (
        "float[a,b,c] x, float[d] p, float[e] q, float[f] r, float[g] s",
        "t = Mul(s, s) y = BatchNormalization(x, p, q, r, t)",
        [(2, 3, 4), (3,), (3,), (3,), (3,)],
    ),
    "GridSample": (
        "float[a,b,c,d] x, float[e,f,g,h] z",
        'y = GridSample<padding_mode = "border">(x, z)',
        [(2, 3, 4, 5), (2, 3, 3, 2)],
    ),
    "DeformConv": (
        "float[a,b,c,d] x, float[e,f,g,h] z, float[i] v, float[j,k,l,m] w",
        "t = Constant<value = float[2,2,3,3] {"
        + ", ".join(str(k / 10) for k in range(36))
        + "}>() y = DeformConv<pads = [1, 0, 1, 1], strides = [2, 1]>(x, t, z, v, w)",
        [(2, 2, 5, 4), (2, 18, 3, 3), (2,), (2, 9, 3, 3)],
    ),
    "QLinearMatMul": (
        "float[a,b] x, float[c,d] z",
        "s = Constant<value_float = 0.25>() o = Constant<value = uint8 {4}>() "
        "p = QuantizeLinear(x, s, o) q = QuantizeLinear(z, s, o) r = QLinearMatMul(p, s, o, q, s, o, s, o) "
        "y = DequantizeLinear(r, s, o)",
        [(3, 4), (4, 5)],
    ),
    "Trilu": ("float[a,b] x", "y = Trilu(x)", [(4, 6)]),
    "Trilu below": ("float[a,b,c] x", "k = Constant<value_int = -1>() y = Trilu<upper = 0>(x, k)", [(2, 5, 3)]),
    "ScatterND": (
        "float[a,b] x, float[c,d] z",
        "i = Constant<value_ints = [1, 0]>() s = Constant<value_ints = [2, 1]>() "
        "j = Reshape(i, s) y = ScatterND(x, j, z)",
        [(4, 3), (2, 3)],
    ),
    "DequantizeLinear": (
        "float[a,b] x, float[c,d] z",
        "q = QuantizeLinear<axis = 1, block_size = 2, output_dtype = 3>(x, z) "
        "y = DequantizeLinear<axis = 1, block_size = 2>(q, z)",
        [(3, 4), (3, 2)],
    ),
}


@pytest.mark.parametrize("name", OPEN)
def test_inputs_whose_sizes_are_all_open_meet(name: str) -> None:
    inputs, body, shapes = OPEN[name]
    model = model_of(f"agraph ({inputs}) => (float y) {{ {body} }}", opset=21)
    exe = agrees(model, *(np.abs(f32(*shape)) + 0.5 for shape in shapes))
    if len(shapes) > 1:
        longer = [tuple(size + 2 * (k == len(shapes) - 1) for size in shape) for k, shape in enumerate(shapes)]
        with pytest.raises(hetnn.InvalidModel, match="must have the shape"):
            exe(*(f32(*shape) for shape in longer))


def test_what_meets_may_be_one_element_that_is_repeated() -> None:
    """On either side, on each axis another; a look at both costs no copy."""
    model = model_of("agraph (float[a,b] x, float[c,d] z) => (float[e,f] y) { y = Add(x, z) }")
    exe = agrees(model, f32(3, 4), f32(3, 4))
    for x, z in itertools.product([(3, 4), (1, 4), (3, 1), (1, 1)], repeat=2):
        same_as_reference(exe, model, f32(*x), f32(*z))
    for x, z in (((0, 4), (1, 1)), ((1, 4), (0, 1)), ((0, 1), (0, 4))):
        same_as_reference(exe, model, f32(*x), f32(*z))
    assert [row["kernel"] for row in exe.profile(f32(3, 4), f32(3, 4))] == ["view", "view", "binary"]
    with pytest.raises(hetnn.InvalidModel, match=r"must have the shape \[3,4\]; got f32\[2,4\]"):
        exe(f32(3, 4), f32(2, 4))
    with pytest.raises(hetnn.InvalidModel, match="the shape"):
        exe(f32(3, 4), f32(3, 0))


@pytest.mark.parametrize(
    "body",
    [
        "sum = Add(x, z) more = Mul(sum, x) y = Sub(z, more)",
        "less = Less(x, z) y = Where(less, x, z)",
        "sum = Sum(x, z, x) y = Concat<axis = 0>(sum, sum)",
        "sum = Max(x, z) shape = Shape(sum) wide = Expand(x, shape) y = Mul(wide, sum)",
    ],
)
def test_sizes_that_others_broadcast_to_meet_again(body: str) -> None:
    model = model_of(f"agraph (float[a,b] x, float[c,d] z) => (float[e,f] y) {{ {body} }}")
    exe = hetnn.compile(model)
    for x, z in itertools.product([(3, 4), (1, 4), (3, 1), (1, 1)], repeat=2):
        same_as_reference(exe, model, f32(*x), f32(*z))


def test_three_values_broadcast_with_one_another() -> None:
    text = "agraph (float[a] x, float[b] z, float[c] w) => (float[e] y) {"
    model = model_of(text + " sum = Add(x, z) more = Mul(sum, w) y = Sub(more, x) }")
    exe = hetnn.compile(model)
    for sizes in itertools.product((1, 3), repeat=3):
        same_as_reference(exe, model, *(f32(n) for n in sizes))
    with pytest.raises(hetnn.InvalidModel, match="the shape"):
        exe(f32(1), f32(2), f32(3))


def test_stacks_of_matrices_broadcast() -> None:
    model = model_of("agraph (float[a,b,i,j] x, float[c,d,k,l] z) => (float[e,f,g,h] y) { y = MatMul(x, z) }")
    exe = hetnn.compile(model)
    for x, z in itertools.product([(2, 3), (1, 3), (2, 1), (1, 1)], repeat=2):
        same_as_reference(exe, model, f32(*x, 4, 5), f32(*z, 5, 6))


def test_a_shape_that_is_given_meets_a_size() -> None:
    """Either may be one."""
    model = model_of("agraph (float[a] x, float[c] z) => (float[e] y) { shape = Shape(z) y = Expand(x, shape) }")
    exe = hetnn.compile(model)
    for x, z in ((3, 3), (1, 3), (3, 1), (1, 1), (0, 1), (1, 0)):
        same_as_reference(exe, model, f32(x), f32(z))
    for x, z in ((3, 2), (2, 3), (3, 0), (0, 3)):
        with pytest.raises(hetnn.InvalidModel, match="the shape"):
            exe(f32(x), f32(z))
    fixed = model_of("agraph (float[a] x) => (float[5] y) { five = Constant<value_ints = [5]>() y = Expand(x, five) }")
    exe = hetnn.compile(fixed)
    for n in (1, 5):
        same_as_reference(exe, fixed, f32(n))


@pytest.mark.parametrize("reduction", ["none", "add", "max"])
def test_elements_are_scattered_into_a_part_of_a_tensor(reduction: str) -> None:
    """The kernel takes operands that differ along the axis alone; of others the operator's meaning is run."""
    text = "agraph (float[a,b] x, int64[c,d] i, float[c,d] u) => (float[e,f] y)"
    model = model_of(f'{text} {{ y = ScatterElements<axis = 1, reduction = "{reduction}">(x, i, u) }}')
    exe = hetnn.compile(model)
    for rows in (3, 2, 1):
        same_as_reference(exe, model, f32(3, 5), np.array([[0, -1, 2]] * rows), f32(rows, 3))


def test_elements_are_gathered_from_a_part_of_a_tensor() -> None:
    model = model_of("agraph (float[a,b] x, int64[c,d] i) => (float[e,f] y) { y = GatherElements<axis = 0>(x, i) }")
    exe = hetnn.compile(model)
    whole = np.array([[-1, 0, 1, 2, 3], [1, 1, 3, -4, 0]])
    for columns in (5, 2, 0):
        x, places = f32(4, 5), whole[:, :columns]
        np.testing.assert_array_equal(exe(x, places), x[places, np.arange(columns)])


@pytest.mark.parametrize("equation", ["ii->i", "bii->b", "iib->bi", "ii"])
def test_diagonals_of_open_sizes(equation: str) -> None:
    letters = equation.split("->")[0]
    sizes = ",".join(f"size{k}" for k in range(len(letters)))
    model = model_of(f'agraph (float[{sizes}] x) => (float y) {{ y = Einsum<equation = "{equation}">(x) }}')
    exe = agrees(model, f32(*({"i": 4, "b": 2}[letter] for letter in letters)))
    with pytest.raises(hetnn.InvalidModel, match="must have the shape"):
        exe(f32(*range(2, 2 + len(letters))))


def test_unnamed_axes_of_open_sizes_broadcast() -> None:
    text = "agraph (float[a,b,i,j] x, float[c,k,l] z) => (float y)"
    model = model_of(f'{text} {{ y = Einsum<equation = "...ij,...jk->...ik">(x, z) }}')
    exe = hetnn.compile(model)
    for x, z in itertools.product([(2, 3), (2, 1), (1, 3)], [(3,), (1,)]):
        same_as_reference(exe, model, f32(*x, 4, 5), f32(*z, 5, 6))


WINDOWS = [
    "pads = [1, 0, 1, 1]",
    "pads = [1, 0, 1, 1], count_include_pad = 1",
    "strides = [2, 2], ceil_mode = 1",
]


@pytest.mark.parametrize("window", WINDOWS)
def test_averages_of_dilated_windows_of_open_sizes(window: str) -> None:
    pool = f"AveragePool<kernel_shape = [2, 3], dilations = [2, 1], {window}>(x)"
    model = model_of(f"agraph (float[n,2,h,w] x) => (float[n,2,p,q] y) {{ y = {pool} }}", opset=19)
    exe = hetnn.compile(model)
    reference = onnxruntime.InferenceSession(model.SerializeToString())
    for height, width in ((7, 8), (6, 5), (4, 4)):
        x = f32(2, 2, height, width)
        np.testing.assert_allclose(exe(x), reference.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("told", ["", "exclusive = 1", "reverse = 1", "exclusive = 1, reverse = 1"])
def test_sums_of_the_sizes_before(told: str) -> None:
    text = f"s = Shape(x) y = CumSum{f'<{told}>' if told else ''}(s, axis)"
    model = model_of(f"agraph (float[a,b,3] x) => (int64[3] y) <int64 axis = {{0}}> {{ {text} }}")
    same_as_reference(agrees(model, f32(2, 4, 3)), model, f32(5, 1, 3))


WEIGHTS = ", ".join(str(k % 7 - 3) for k in range(72))
SAME = [
    "Conv<auto_pad = 'SAME_UPPER', strides = [2, 2]>(x, w)",
    "Conv<auto_pad = 'SAME_LOWER', strides = [2, 3]>(x, w)",
    "MaxPool<auto_pad = 'SAME_UPPER', kernel_shape = [3, 3], strides = [2, 2]>(x)",
    "AveragePool<auto_pad = 'SAME_UPPER', kernel_shape = [3, 3], strides = [2, 2]>(x)",
    "AveragePool<auto_pad = 'SAME_LOWER', kernel_shape = [3, 3], strides = [2, 2], count_include_pad = 1>(x)",
]


@pytest.mark.parametrize("window", SAME)
def test_windows_over_images_of_any_size_are_padded_as_the_size_asks(window: str) -> None:
    body = f"<float[4,2,3,3] w = {{{WEIGHTS}}}> {{ y = {window} }}".replace("'", '"')
    model = model_of(f"agraph (float[n,c,h,k] x) => (float[o,p,q,r] y) {body}", opset=19)
    exe = hetnn.compile(model)
    reference = onnxruntime.InferenceSession(model.SerializeToString())  # ONNX' own pads a convolution too little
    for height, width in ((5, 7), (6, 8), (9, 4), (1, 1)):
        x = f32(2, 2, height, width)
        (wanted,) = reference.run(None, {"x": x})
        assert exe(x).shape == wanted.shape
        np.testing.assert_allclose(exe(x), wanted, rtol=1e-4, atol=1e-5)


def test_a_loop_of_which_one_size_changes_keeps_the_others() -> None:
    body = """y = Loop(n, , x) <body = g (int64 i, bool c, float[k, m] a) => (bool d, float[l, m] b) {
      d = Identity(c) b = Concat<axis = 0>(a, x) }>  z = Add(y, w)"""
    model = model_of(f"agraph (int64 n, float[p,q] x, float[q] w) => (float z) {{ {body} }}", opset=21)
    exe, x, w = hetnn.compile(model), f32(2, 3), f32(3)
    for rounds in (0, 3):
        np.testing.assert_array_equal(exe(np.array(rounds), x, w), np.concatenate([x] * (rounds + 1)) + w)


def test_sizes_that_cannot_be_equal_are_refused() -> None:
    with pytest.raises(hetnn.InvalidModel, match="must broadcast"):
        hetnn.compile(model_of("agraph (float[a,2] x, float[b,3] z) => (float[c,3] y) { y = Add(x, z) }"))


def test_a_known_size_goes_before_a_symbol() -> None:
    model = model_of("agraph (float[n,3] x, float[4,3] z) => (float[m,3] y) { y = Sub(x, z) }")
    exe = agrees(model, f32(4, 3), f32(4, 3))
    assert exe.outputs[0].shape == (4, 3)


def test_a_scale_that_single_precision_would_miss_picks_what_the_standard_says() -> None:
    """41 * float(1 / 41) is less than 1."""
    resize = 'Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">'
    text = f"agraph (float[1,1,3,h] x) => (float[1,1,p,q] y) <float[4] s = {{1, 1, 41, 41}}> {{ y = {resize}(x, , s) }}"
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 3, 2)
    y = hetnn.compile(model_of(text))(x)
    np.testing.assert_array_equal(y, np.repeat(np.repeat(x, 41, 2), 41, 3))


def test_what_is_left_of_an_axis_may_be_less_than_nothing_at_an_example_size() -> None:
    # A size that is open is taken as more than ten where costs are predicted.
    text = """agraph (float[b,n] x) => (float[b,m] y) <int64[1] most = {10}> {
      batch = Shape<start = 0, end = 1>(x)
      length = Shape<start = 1, end = 2>(x)
      rest = Sub(most, length)
      shape = Concat<axis = 0>(batch, rest)
      zeros = ConstantOfShape(shape)
      y = Concat<axis = 1>(x, zeros)
    }"""
    exe = agrees(model_of(text), f32(2, 4))
    with pytest.raises(hetnn.InvalidModel, match=r"\[2,-4\]"):
        exe(f32(2, 14))


@pytest.mark.parametrize("compiled_for", [None, 2, 4])
@pytest.mark.parametrize("body", ["t = Transpose(x) y = MatMul(t, z)", "y = Gemm<transA = 1>(x, z)"])
def test_open_matrices_are_multiplied_by_an_npu_at_sizes_above_the_example(body: str, compiled_for: int | None) -> None:
    model = model_of(f"agraph (float[n,3] x, float[n,2] z) => (float[p,q] y) {{ {body} }}")
    shapes = [{"n": compiled_for}] if compiled_for else None
    exe = hetnn.compile(model, "cpu+relu-only", shapes=shapes)
    for n in (1, 3, 5, 2, 17):
        x, z = f32(n, 3), f32(n, 2)
        np.testing.assert_allclose(exe(x, z), x.T @ z, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("size", "less"), [("m", 1), ("4", 0)])
def test_shapes_to_which_a_value_does_not_expand(size: str, less: int) -> None:
    """A shape's size that is taken as the value's own is checked by each run."""
    model = model_of(
        f"""agraph (float[{size}] x, float[m] like) => (float[k] y) <int64[1] less = {{{less}}}> {{
          s = Shape(like) t = Sub(s, less) y = Expand(x, t) }}"""
    )
    exe, x = hetnn.compile(model), f32(4)
    with pytest.raises(hetnn.InvalidModel, match="the model is for sizes with"):
        exe(x, f32(4 if less else 5))
    assert exe(f32(2) if less else x, f32(2 if less else 4)).shape == (2 if less else 4,)


@pytest.mark.parametrize("sizes", [[5, 10], [4, 1], [0, 3]])
def test_the_middle_of_a_picture_of_any_size(sizes: list[int]) -> None:
    """Cut where it is larger, with zeros around it where it is smaller, axis by axis."""
    text = f"agraph (float[a,h,w] x) => (float y) <int64[2] s = {{{sizes[0]}, {sizes[1]}}}>"
    model = model_of(f"{text} {{ y = CenterCropPad<axes = [-2, 2]>(x, s) }}", opset=18)
    exe = agrees(model, f32(2, 6, 7))
    assert exe.outputs[0].shape == ("a", *sizes)
    for shape in ((1, 3, 17), (2, 4, 10), (1, 9, 2), (0, 5, 11), (1, 1, 1)):
        same_as_reference(exe, model, f32(*shape))


def test_the_middle_of_a_picture_as_large_as_another() -> None:
    text = "agraph (float[a,h] x, float[b,w] z) => (float y) { s = Shape(z) y = CenterCropPad(x, s) }"
    exe = agrees(model_of(text, opset=18), f32(4, 6), f32(3, 9))
    same_as_reference(exe, model_of(text, opset=18), f32(1, 8), f32(4, 3))
