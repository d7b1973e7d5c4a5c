"""Products of integers in ONNX models: every sum exact, also where f32 does not hold it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import hetnn
from importers.onnx_models import model_of

RNG = np.random.default_rng(3)
# Of products of two bytes f32 holds the sums of so many: 258 * 255 * 255 < 2^24.
MOST = (1 << 24) // 255**2


def result(op: str, given: list[Any], constants: set[int], **attrs: Any) -> Any:
    """What a node gives for these inputs, None where absent, of which some are constants of the model."""
    names = [f"i{k}" if value is not None else "" for k, value in enumerate(given)]
    inputs, initializers, values = [], [], []
    for k, value in enumerate(given):
        if value is None:
            continue
        if k in constants:
            initializers.append(numpy_helper.from_array(value, names[k]))
        else:
            dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
            inputs.append(helper.make_tensor_value_info(names[k], dtype, value.shape))
            values.append(value)
    output = helper.make_tensor_value_info("y", onnx.TensorProto.INT32, None)
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attrs)], "g", inputs, [output], initializers)
    return hetnn.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))(*values)


def filled(shape: tuple[int, ...], dtype: type[np.generic], edge: bool) -> Any:
    """Bytes: the greatest but for one odd number, or any."""
    limits = np.iinfo(dtype)
    if not edge:
        return RNG.integers(limits.min, int(limits.max) + 1, shape).astype(dtype)
    out = np.full(shape, limits.max, dtype)
    out.flat[0] -= 2
    return out


def convolved(x: Any, weight: Any, groups: int) -> Any:
    """In 64-bit integers, padded by half the window."""
    n, _, height, width = x.shape
    filters, channels, k, _ = weight.shape
    padded = np.pad(x.astype(np.int64), [(0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)])
    out = np.zeros((n, filters, height, width), np.int64)
    for m in range(filters):
        first = m // (filters // groups) * channels
        for r in range(k):
            for s in range(k):
                part = padded[:, first : first + channels, r : r + height, s : s + width]
                out[:, m] += np.einsum("nchw,c->nhw", part, weight[m, :, r, s].astype(np.int64))
    return out


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("edge", [True, False])
@pytest.mark.parametrize("length", [MOST, MOST + 1, 5 * MOST, 12 * MOST])
def test_products_of_matrices(length: int, edge: bool, known: bool) -> None:
    a, b = filled((3, length), np.uint8, edge), filled((length, 5), np.uint8, edge)
    wanted = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(result("MatMulInteger", [a, b], {1} if known else set()), wanted)


@pytest.mark.parametrize("known", [{2, 3}, {1, 2, 3}, {1}, set()])
def test_what_stands_for_0_is_taken_away(known: set[int]) -> None:
    a, b = filled((2, 4, 700), np.int8, False), filled((700, 3), np.uint8, False)
    zeros = np.array(-128, np.int8), np.array([255, 0, 7], np.uint8)
    wanted = (a.astype(np.int64) - zeros[0]) @ (b.astype(np.int64) - zeros[1])
    np.testing.assert_array_equal(result("MatMulInteger", [a, b, *zeros], known), wanted)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("channels", "filters", "groups", "kernel"),
    [
        (64, 8, 1, 3),
        (32, 40, 1, 3),
        (37, 33, 1, 3),
        (56, 6, 2, 3),
        (MOST, 3, 1, 1),
        (MOST + 2, 3, 1, 1),
        (600, 2, 1, 3),
    ],
)
@pytest.mark.parametrize("edge", [True, False])
def test_convolutions(channels: int, filters: int, groups: int, kernel: int, edge: bool, known: bool) -> None:
    x = filled((2, channels, 14, 13), np.uint8, edge)
    weight = filled((filters, channels // groups, kernel, kernel), np.uint8, edge)
    y = result("ConvInteger", [x, weight], {1} if known else set(), pads=[kernel // 2] * 4, group=groups)
    np.testing.assert_array_equal(y, convolved(x, weight, groups))


def test_filters_have_what_stands_for_0_each() -> None:
    x, weight = filled((1, 40, 12, 12), np.uint8, False), filled((4, 40, 3, 3), np.int8, False)
    zeros = np.array(100, np.uint8), np.array([-128, 0, 127, 3], np.int8)
    y = result("ConvInteger", [x, weight, *zeros], {1, 3}, pads=[1] * 4)
    centred = weight.astype(np.int64) - zeros[1].reshape(4, 1, 1, 1)
    np.testing.assert_array_equal(y, convolved(x.astype(np.int64) - 100, centred, 1))


@pytest.mark.parametrize("op", ["ReduceL2", "ReduceLogSum"])
def test_roots_and_logarithms_of_integers_are_cut(op: str) -> None:
    text = f"agraph (int32[a,b] x) => (int32[a,1] y) <int64[1] axes = {{1}}> {{ y = {op}(x, axes) }}"
    exe = hetnn.compile(model_of(text))
    x = np.array([[3, 4], [1, 2], [200, 3]], np.int32)
    sums = (x * x).sum(1, keepdims=True) if op == "ReduceL2" else x.sum(1, keepdims=True)
    real = np.sqrt(sums) if op == "ReduceL2" else np.log(sums)
    np.testing.assert_array_equal(exe(x), real.astype(np.int32))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint64])
def test_sums_of_sizes_of_integers_are_exact(dtype: type[np.generic]) -> None:
    least = np.iinfo(dtype).min
    x = np.array([[2**53 + 1, 3, 2**61], [5, 7, 9]] if dtype != np.int32 else [[2**30 + 1, 3, 1], [5, 7, 9]], dtype)
    x[1] = x[1] if least == 0 else 0 - x[1]
    graph = helper.make_graph(
        [helper.make_node("ReduceL1", ["x", "axes"], ["y"], keepdims=0)],
        "sizes",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(x.dtype), [2])],
        [numpy_helper.from_array(np.array([1]), "axes")],
    )
    y = hetnn.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))(x)
    np.testing.assert_array_equal(y, np.array([sum(abs(int(n)) for n in row) for row in x], dtype))


@pytest.mark.parametrize(
    "numbers", [(2**53, 2**53 + 3, 1), (-(2**62), 2**62 + 2, 2**61 + 1), (3, -(2**55) - 5, -(2**54))]
)
def test_ranges_of_integers_that_no_f64_holds(numbers: tuple[int, int, int]) -> None:
    exe = hetnn.compile(model_of("agraph (int64 a, int64 b, int64 c) => (int64[n] y) { y = Range(a, b, c) }"))
    y = exe(*(np.array(n) for n in numbers))
    np.testing.assert_array_equal(y, np.array(range(*numbers)))
