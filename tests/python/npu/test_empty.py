"""Values without elements: no device dies of them, and what comes out is as empty."""

from __future__ import annotations

import numpy as np
import pytest

import hetnn

SHAPES = [(0,), (0, 3), (3, 0), (2, 0, 4, 4), (2, 3, 0, 4), (0, 3, 4, 4)]
SAME = ["add", "sub", "mul", "maximum", "minimum"]
ALONE = ["relu", "sigmoid", "leaky_relu", "clamp", "softmax", "identity"]


def run(target: str, text: str, *inputs: np.ndarray) -> np.ndarray:
    return np.asarray(hetnn.compile(text, target)(*inputs))


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only", "cpu+relu-table"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("op", [*SAME, *ALONE])
def test_elementwise(target: str, op: str, shape: tuple[int, ...]) -> None:
    sizes = ",".join(map(str, shape))
    operands = "%x, %x" if op in SAME else "%x"
    attrs = " {axis = -1}" if op == "softmax" else ""
    node = f"%y = {op}({operands}){attrs} : f32[{sizes}]"
    text = f"graph @g {{stage = imported}} (%x: f32[{sizes}]) -> (%y) {{\n  {node}\n}}\n"
    assert run(target, text, np.zeros(shape, np.float32)).shape == shape


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only", "cpu+relu-table"])
@pytest.mark.parametrize("batch", [0, 2])
def test_layers_of_no_channels_and_of_no_batch(target: str, batch: int) -> None:
    text = (
        "graph @g {stage = imported} "
        f'(%x: f32[{batch},0], %z: f32[0,3,4,4]) -> (%a as "a", %b as "b", %c as "c") {{\n'
        "  %w = constant() {value = f32[5,0] {}} : f32[5,0]\n"
        "  %k = constant() {value = f32[2,3,1,1] {1, 2, 3, 4, 5, 6}} : f32[2,3,1,1]\n"
        f"  %a = linear(%x, %w) : f32[{batch},5]\n"
        "  %b = conv2d(%z, %k) : f32[0,2,4,4]\n"
        "  %c = max_pool2d(%z) {kernel = [2,2], stride = [2,2]} : f32[0,3,2,2]\n}\n"
    )
    exe = hetnn.compile(text, target)
    a, b, c = exe(np.zeros((batch, 0), np.float32), np.zeros((0, 3, 4, 4), np.float32))
    assert (a.shape, b.shape, c.shape) == ((batch, 5), (0, 2, 4, 4), (0, 3, 2, 2))
    np.testing.assert_array_equal(a, np.zeros((batch, 5)))


def test_a_layer_without_a_form_whose_result_is_empty_at_likely_sizes() -> None:
    """Every second element from the last but one to the third: none of four, but one of two."""
    text = (
        "graph @g {stage = imported, symbols = [n: 0..9 = 4]} (%x: f32[n]) -> (%y) {\n"
        "  %a = neg(%x) : f32[n]\n"
        "  %y = slice(%a) {start = -2, end = 2, step = 2} "
        ": f32[-floordiv(n - max(n - min(n, 2), min(n, 2)) - min(n, 2), 2)]\n}\n"
    )
    exe = hetnn.compile(text, "cpu+relu-only")
    for n in (4, 3, 2, 1, 0):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(exe(x), -x[-2:2:2])
