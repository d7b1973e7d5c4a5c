"""ONNX models in which symbolic sizes meet: resized images beside what they came from, parts put together."""

from __future__ import annotations

import numpy as np
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
