"""Layers of quantized integers on the CPU: the integers that their meaning says, by kernels of integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import hetnn

RNG = np.random.default_rng(3)


def weights(name: str, shape: tuple[int, ...], scales: list[float], dtype: str = "i8", most: int = 127) -> str:
    """A quantized constant of random integers, and its ends."""
    values = RNG.integers(-most, most + 1, shape)
    values.flat[0], values.flat[-1] = -most - 1 if dtype == "i8" else -most, most
    size, numbers = ",".join(map(str, shape)), ", ".join(map(str, values.flat))
    of = f"{dtype}[{size}]"
    steps = ",".join(map(str, scales))
    return (
        f"%{name} = constant() {{value = {of} {{{numbers}}}, q_scale = [{steps}]}} : {of.replace('[', f'{{{steps}}}[')}"
    )


def made(name: str, call: str, attrs: str, scale: float, zero: int, shape: str) -> str:
    """A node with a quantized result."""
    of = f"i8{{{scale}:{zero}}}[{shape}]"
    return f"%{name} = {call} {{{attrs}{', ' if attrs else ''}q_scale = [{scale}], q_zero = {zero}}} : {of}"


def each(count: int) -> list[float]:
    return [0.002 * (1 + k % 5) for k in range(count)]


LAYERS = f"""graph @layers {{stage = imported}} (%x: f32[2,3,17,15]) -> (%y, %zr) {{
  {weights("w1", (12, 3, 3, 3), each(12))}
  {weights("b1", (12,), [0.02 * s for s in each(12)], "i32", 3000)}
  {weights("w2", (12, 1, 3, 3), [0.01])}
  {weights("w3", (20, 12, 1, 1), each(20))}
  {weights("w4", (20, 10, 3, 3), each(20))}
  {weights("w5", (7, 80), [0.01])}
  {made("q", "quantize(%x)", "", 0.02, 5, "2,3,17,15")}
  {made("a", "conv2d(%q, %w1, %b1)", "padding = [1,1], stride = [2,2]", 0.03, -128, "2,12,9,8")}
  {made("r", "relu(%a)", "", 0.03, -128, "2,12,9,8")}
  {made("d", "conv2d(%r, %w2)", "padding = [1,1], groups = 12", 0.05, 3, "2,12,9,8")}
  {made("c", "clamp(%d)", "min = -1, max = 3", 0.05, 3, "2,12,9,8")}
  {made("s", "add(%r, %c)", "", 0.04, -20, "2,12,9,8")}
  {made("m", "max_pool2d(%s)", "kernel = [3,3], stride = [2,2], padding = [1,1]", 0.04, -20, "2,12,5,4")}
  {made("p", "conv2d(%m, %w3)", "", 0.05, 1, "2,20,5,4")}
  {made("g", "sigmoid(%p)", "", 0.004, -128, "2,20,5,4")}
  {made("t", "mul(%p, %g)", "", 0.03, -10, "2,20,5,4")}
  {made("v", "conv2d(%m, %w3)", "", 0.07, 2, "2,20,5,4")}
  {made("u", "add(%t, %v)", "", 0.06, -30, "2,20,5,4")}
  {made("h", "conv2d(%u, %w4)", "groups = 2", 0.06, -4, "2,20,3,2")}
  %f = reshape(%h) {{shape = [2,120]}} : i8{{0.06:-4}}[2,120]
  %k = slice(%f) {{axis = 1, start = 0, end = 80}} : i8{{0.06:-4}}[2,80]
  {made("k1", "reshape(%k)", "shape = [2,8,10]", 0.06, -4, "2,8,10")}
  {made("k2", "permute(%k1)", "perm = [0,2,1]", 0.06, -4, "2,10,8")}
  {made("z", "matmul(%k1, %k2)", "", 0.3, 9, "2,8,8")}
  %zr = dequantize(%z) : f32[2,8,8]
  {made("l", "linear(%k, %w5)", "", 0.4, 9, "2,7")}
  %e = slice(%f) {{axis = 1, start = 5, end = 12}} : i8{{0.06:-4}}[2,7]
  {made("n", "add(%l, %e)", "", 0.3, 4, "2,7")}
  {made("o", "relu(%n)", "", 0.3, 4, "2,7")}
  %y = dequantize(%o) : f32[2,7]
}}"""


def test_they_are_those_of_the_reference(tmp_path: Path) -> None:
    want = hetnn.compile(LAYERS, "reference")
    executables = [hetnn.compile(LAYERS, "cpu", threads=threads) for threads in (1, 2, 3)]
    executables.append(hetnn.compile(LAYERS, "cpu", fusion=False))
    executables.append(hetnn.compile(LAYERS, "cpu", deterministic=True))
    executables[0].save(tmp_path / "layers.hetnn")
    executables.append(hetnn.load(tmp_path / "layers.hetnn"))
    seen = set()
    for scale in (0.05, 0.3, 1.0, 30.0):
        x = (scale * RNG.standard_normal((2, 3, 17, 15))).astype(np.float32)
        wanted = want(x)
        seen.update(wanted[0].flat)
        for executable in executables:
            for y, expected in zip(executable(x), wanted, strict=True):
                np.testing.assert_array_equal(y, expected)
    assert len(seen) > 10


def test_no_layer_is_computed_in_f32() -> None:
    executable = hetnn.compile(LAYERS, "cpu")
    kernels = [row["kernel"] for row in executable.profile(np.zeros((2, 3, 17, 15), np.float32))]
    conversions = [name for name in kernels if name in ("quantize", "dequantize")]
    assert sorted(conversions) == ["dequantize", "dequantize", "quantize"], kernels
    assert kernels.count("conv2d_i8") == 5
    assert {"linear_i8", "matmul_i8"} <= set(kernels)
    # relu, clamp and sums close the layers before them; p sigmoid(p), a function of one value, is one table.
    assert "binary_i8" not in kernels, kernels
    assert kernels.count("lookup") == 1, kernels
    assert "unary_i8" not in kernels, kernels
