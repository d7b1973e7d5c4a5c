"""ONNX operators that draw random numbers, and that read images."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import hetnn
from importers.onnx_models import f32, model_of

MANY = "[100,200]"


def compiled(text: str, opset: int = 22) -> hetnn.Executable:
    return hetnn.compile(model_of(text, opset))


def test_numbers_repeat_with_the_seed_and_go_on_from_run_to_run(tmp_path: Path) -> None:
    text = "agraph () => (float[4] y) { y = RandomUniform<shape = [4], seed = 7.0>() }"
    exe = compiled(text)
    first, second = exe(), exe()
    assert (first != second).all()
    np.testing.assert_array_equal(first, np.random.RandomState(7).uniform(size=4).astype(np.float32))
    np.testing.assert_array_equal(compiled(text)(), first)
    exe.reset()
    np.testing.assert_array_equal(exe(), first)
    np.testing.assert_array_equal(exe.session()(), first)
    exe.reset()
    exe.save(tmp_path / "r.hetnn")
    np.testing.assert_array_equal(hetnn.load(tmp_path / "r.hetnn")(), first)
    other = compiled(
        "agraph () => (float[4] y, float[4] z) {y = RandomUniform<shape=[4]>()\n z = RandomUniform<shape=[4]>()}"
    )
    y, z = other()
    assert (y != z).all()


@pytest.mark.parametrize(
    ("body", "mean", "deviation"),
    [
        ("RandomUniform<shape = [100,200], low = 2.0, high = 4.0>()", 3, 2 / 12**0.5),
        ("RandomNormal<shape = [100,200], mean = 1.0, scale = 3.0>()", 1, 3),
        ("RandomNormalLike(x)", 0, 1),
        ("Bernoulli(x)", 0.25, (0.25 * 0.75) ** 0.5),
    ],
)
def test_what_is_drawn_has_the_moments_that_it_must(body: str, mean: float, deviation: float) -> None:
    y = compiled(f"agraph (float{MANY} x) => (float{MANY} y) {{ y = {body} }}")(np.full((100, 200), 0.25, np.float32))
    assert abs(y.mean() - mean) < 5 * deviation / 20000**0.5
    assert abs(y.std() - deviation) < 0.03 * deviation


def test_classes_are_drawn_by_their_probabilities() -> None:
    p = np.array([0.1, 0.0, 0.6, 0.3])
    exe = compiled("agraph (float[2,4] x) => (int32[2,8000] y) { y = Multinomial<sample_size = 8000>(x) }")
    y = exe(np.log(np.stack([p, p[::-1]]) + 1e-12).astype(np.float32))
    for row, wanted in zip(y, (p, p[::-1]), strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=4) / 8000, wanted, atol=0.03)


def test_dropout_in_training_scales_what_it_keeps() -> None:
    inputs, outputs = f"float{MANY} x, float r, bool t", f"float{MANY} y, bool{MANY} m"
    text = f"agraph ({inputs}) => ({outputs}) {{ y, m = Dropout<seed = 3>(x, r, t) }}"
    exe, x = compiled(text), f32(100, 200)
    y, mask = exe(x, np.float32(0.75), np.array(True))
    np.testing.assert_allclose(y, np.where(mask, x * 4, 0), rtol=1e-6)
    assert abs(mask.mean() - 0.25) < 0.02
    for ratio, training in ((0.75, False), (0.0, True)):
        y, mask = exe(x, np.float32(ratio), np.array(training))
        np.testing.assert_array_equal(y, x)
        assert mask.all()
    assert not exe(x, np.float32(1), np.array(True))[0].any()


def test_random_numbers_in_a_loop_are_refused() -> None:
    text = """agraph (int64 n, float x) => (float y) {
      y = Loop(n, , x) <body = b (int64 i, bool c, float v) => (bool d, float w) {
        d = Identity(c)
        w = RandomUniformLike(v)
      }>
    }"""
    with pytest.raises(hetnn.Unsupported, match="random numbers in the body of a loop"):
        compiled(text)


# Images


def png(pixels: Any) -> Any:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return np.frombuffer(file.getvalue(), np.uint8)


def decoder(channels: int, format: str) -> hetnn.Executable:
    return compiled(
        f'agraph (uint8[n] x) => (uint8[h,w,{channels}] y) {{ y = ImageDecoder<pixel_format = "{format}">(x) }}'
    )


def test_images_of_any_size_are_read() -> None:
    rng = np.random.default_rng(0)
    for shape in ((3, 5, 3), (7, 2, 3)):
        pixels = rng.integers(0, 256, shape, np.uint8)
        np.testing.assert_array_equal(decoder(3, "RGB")(png(pixels)), pixels)
        np.testing.assert_array_equal(decoder(3, "BGR")(png(pixels)), pixels[:, :, ::-1])
    gray = rng.integers(0, 256, (3, 5), np.uint8)
    np.testing.assert_array_equal(decoder(1, "Grayscale")(png(gray)), gray[:, :, None])
    np.testing.assert_array_equal(decoder(3, "RGB")(png(gray)), np.repeat(gray[:, :, None], 3, axis=2))


def test_bytes_that_are_no_image_give_no_pixels() -> None:
    whole = png(np.zeros((9, 9, 3), np.uint8))
    for file in (np.zeros(0, np.uint8), np.arange(99, dtype=np.uint8), whole[:-30]):
        assert decoder(3, "RGB")(file).shape == (0, 0, 3)


def test_without_pillow_the_error_says_what_to_install(tmp_path: Path) -> None:
    decoder(3, "RGB").save(tmp_path / "d.hetnn")
    code = (
        "import sys; sys.modules['PIL'] = None\nimport hetnn, numpy as np\n"
        f"try: hetnn.load({str(tmp_path / 'd.hetnn')!r})(np.zeros(3, np.uint8))\n"
        "except hetnn.Unsupported as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "decoding an image needs Pillow. Install hetnn[images]." in done.stdout


def test_a_dropout_of_nothing_draws_nothing() -> None:
    exe = hetnn.compile(
        model_of(
            """agraph (float[3,4] x) => (float[3,4] y)
            <float r = {0}, bool t = {1}> { y = Dropout(x, r, t) }"""
        )
    )
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(exe(x), x)
    assert not exe.states
