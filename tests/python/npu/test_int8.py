"""The NPU's i8 arithmetic, bit for bit, against integer formulas written down here in numpy.

Quantized graphs are IR text; the whole graph but the conversions at its ends runs on the NPU.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

import hetnn
from hetnn import _core
from hetnn.cli import main
from hetnn.targets import load_spec
from npu.integers import ROUNDINGS, Array, attrs, quant, requantize, run, saturate, text_of

# One that the engines know alone, or all of them, of which quantized types mean the last.
by_roundings = pytest.mark.parametrize(
    ("only", "rounding"), [*((each, each) for each in ROUNDINGS), (None, "half_even_fp32")]
)


def convolve(x: Array, weight: Array, bias: Array, stride: int, pad: int, groups: int, zero: int) -> Array:
    """Sums of (x - zero) * weight in integers; padding counts as the zero point."""
    n, _, height, width = x.shape
    filters, per_group, kernel, _ = weight.shape
    padded = np.full((n, x.shape[1], height + 2 * pad, width + 2 * pad), zero, dtype=np.int64)
    padded[:, :, pad : pad + height, pad : pad + width] = x
    padded -= zero
    out_h, out_w = (height + 2 * pad - kernel) // stride + 1, (width + 2 * pad - kernel) // stride + 1
    out = np.zeros((n, filters, out_h, out_w), dtype=np.int64)
    for m in range(filters):
        first = m // (filters // groups) * per_group
        for r in range(kernel):
            for s in range(kernel):
                window = padded[
                    :, first : first + per_group, r : r + stride * out_h : stride, s : s + stride * out_w : stride
                ]
                out[:, m] += np.einsum("nchw,c->nhw", window, weight[m, :, r, s].astype(np.int64))
        out[:, m] += int(bias[m])
    return out


@by_roundings
@pytest.mark.parametrize(
    ("channels", "filters", "kernel", "stride", "pad", "groups", "relu"),
    [(3, 8, 3, 1, 1, 1, False), (6, 6, 3, 2, 1, 6, True), (8, 12, 1, 1, 0, 2, True), (40, 33, 5, 1, 2, 1, False)],
)
def test_convolution(
    channels: int,
    filters: int,
    kernel: int,
    stride: int,
    pad: int,
    groups: int,
    relu: bool,
    only: str | None,
    rounding: str,
) -> None:
    rng = np.random.default_rng(channels * kernel)
    shape = (2, channels, 11, 14)
    x = rng.integers(-128, 128, shape, dtype=np.int8)
    weight = rng.integers(-127, 128, (filters, channels // groups, kernel, kernel), dtype=np.int8)
    bias = rng.integers(-5000, 5000, filters, dtype=np.int32)
    x_scale, x_zero, y_scale, y_zero = 0.043, -9, 0.9 * kernel, 11
    scales = [0.01 * (1 + k % 5) for k in range(filters)]
    bias_scales = [x_scale * s for s in scales]
    sums = convolve(x, weight, bias, stride, pad, groups, x_zero)
    factors = [x_scale * scale / y_scale for scale in scales]
    want = saturate(np.stack([requantize(sums[:, m], factors[m], rounding) for m in range(filters)], 1) + y_zero)
    if relu:
        want = np.maximum(want, np.int8(y_zero))
    listed = ",".join(map(repr, scales))
    sum_listed = ",".join(map(repr, bias_scales))
    y_shape = "[" + ",".join(map(str, want.shape)) + "]"
    y_type = f"{quant(y_scale, y_zero)}{y_shape}"
    last = f"%y = relu(%c) {{{attrs(y_scale, y_zero)}}} : {y_type}" if relu else f"%y = identity(%c) : {y_type}"
    graph = f"""graph @q {{stage = imported}} (%x: {quant(x_scale, x_zero)}[{",".join(map(str, shape))}]) -> (%y) {{
      %w = constant() {{value = {text_of(weight.shape, weight)}, q_scale = [{listed}]}} : i8{{{listed}}}[{
        ",".join(map(str, weight.shape))
    }]
      %b = constant() {{value = {text_of(bias.shape, bias)}, q_scale = [{sum_listed}]}} : i32{{{sum_listed}}}[{filters}]
      %c = conv2d(%x, %w, %b) {{stride = [{stride},{stride}], padding = [{pad},{pad}], groups = {groups},
        {attrs(y_scale, y_zero)}}} : {y_type}
      {last}
    }}"""
    np.testing.assert_array_equal(run(graph, x, rounding=only), want)
    if rounding == "half_even_fp32":  # what the types mean
        np.testing.assert_array_equal(np.asarray(hetnn.compile(graph, target="cpu")(x)), want)


def combine(op: str, a: Array, b: Array, sa: float, sb: float, sy: float, rounding: str) -> Array:
    """Sums at a scale with 20 more bits; products as they are; in f32 the reals. Operands less their zero points."""
    if rounding == "half_even_fp32":
        left, right = (np.float32(scale) * steps.astype(np.float32) for scale, steps in ((sa, a), (sb, b)))
        return np.rint((left + right if op == "add" else left * right) / np.float32(sy)).astype(np.int64)
    if op == "mul":
        return requantize(a * b, sa * sb / sy, rounding)
    common = 2 * max(sa, sb)
    left, right = requantize(a << 20, sa / common, rounding), requantize(b << 20, sb / common, rounding)
    return requantize(left + right, common / (sy * 2**20), rounding)


@by_roundings
@pytest.mark.parametrize("op", ["add", "mul"])
@pytest.mark.parametrize("b_shape", [(1, 5, 9, 7), (5, 1, 1)])
def test_elementwise(op: str, b_shape: tuple[int, ...], only: str | None, rounding: str) -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(-128, 128, (1, 5, 9, 7), dtype=np.int8)
    b = rng.integers(-128, 128, b_shape, dtype=np.int8)
    (sa, za), (sb, zb), (sy, zy) = (0.02, 3), (0.07, -20), (0.08, 5)
    listed = ",".join(map(str, b_shape))
    graph = f"""graph @q {{stage = imported}} (%a: {quant(sa, za)}[1,5,9,7]) -> (%y) {{
      %b = constant() {{value = {text_of(b_shape, b)}, {attrs(sb, zb)}}} : {quant(sb, zb)}[{listed}]
      %y = {op}(%a, %b) {{{attrs(sy, zy)}}} : {quant(sy, zy)}[1,5,9,7]
    }}"""
    whole = np.broadcast_to(b, a.shape).astype(np.int64) - zb
    want = saturate(combine(op, a.astype(np.int64) - za, whole, sa, sb, sy, rounding) + zy)
    np.testing.assert_array_equal(run(graph, a, rounding=only), want)
    if rounding == "half_even_fp32":
        np.testing.assert_array_equal(np.asarray(hetnn.compile(graph, target="cpu")(a)), want)


@by_roundings
def test_mean_of_windows(only: str | None, rounding: str) -> None:
    """Halves away from zero of the integers, or to even of those less their zero point."""
    rng = np.random.default_rng(9)
    x = rng.integers(-128, 128, (1, 4, 8, 8), dtype=np.int8)
    graph = """graph @q {stage = imported} (%x: i8{0.1:7}[1,4,8,8]) -> (%y) {
      %y = avg_pool2d(%x) {kernel = [2,2], q_scale = [0.1], q_zero = 7} : i8{0.1:7}[1,4,4,4]
    }"""
    sums = x.astype(np.int64).reshape(1, 4, 4, 2, 4, 2).sum((3, 5))
    want = np.sign(sums) * ((np.abs(sums) + 2) // 4)
    if rounding == "half_even_fp32":
        want = np.rint((sums - 4 * 7) / 4) + 7
    np.testing.assert_array_equal(run(graph, x, rounding=only), want.astype(np.int8))


@by_roundings
def test_matmul(only: str | None, rounding: str) -> None:
    rng = np.random.default_rng(21)
    a = rng.integers(-128, 128, (3, 17, 29), dtype=np.int8)
    b = rng.integers(-128, 128, (3, 29, 13), dtype=np.int8)
    graph = """graph @q {stage = imported} (%a: i8{0.02:-3}[3,17,29], %b: i8{0.05:6}[3,29,13]) -> (%y) {
      %y = matmul(%a, %b) {q_scale = [0.3], q_zero = 1} : i8{0.3:1}[3,17,13]
    }"""
    sums = np.matmul(a.astype(np.int64) + 3, b.astype(np.int64) - 6)
    want = saturate(requantize(sums, 0.02 * 0.05 / 0.3, rounding) + 1)
    np.testing.assert_array_equal(run(graph, a, b, rounding=only), want)


def test_the_report_says_how_far_integers_may_be_from_what_their_types_mean() -> None:
    graph = """graph @q {stage = imported} (%a: i8{0.02}[3,17,29], %b: i8{0.05}[3,29,13]) -> (%y) {
      %c = matmul(%a, %b) {q_scale = [0.3], q_zero = 1} : i8{0.3:1}[3,17,13]
      %y = add(%c, %c) {q_scale = [0.6]} : i8{0.6}[3,17,13]
    }"""

    def told(rounding: object) -> dict[str, str]:
        spec = load_spec("relu-mul")
        spec["numerics"]["rounding"] = rounding
        notes = hetnn.compile(graph, spec, strategy="take-all").report(format="dict")["notes"]
        return {row["node"]: row["text"] for row in notes}

    twice, once = told("double"), told("single")
    assert "up to 0.390625 % of its integers may be a step apart" in twice["c"]
    assert "integers halfway between two, or nearly, may be a step apart" in twice["y"]
    assert "halfway between two" in once["c"]
    assert not told("half_even_fp32")
    assert not told(list(ROUNDINGS))


def test_a_result_of_quantized_operands_states_its_scale() -> None:
    graph = """graph @q {stage = imported} (%x: i8{0.02:-3}[4]) -> (%y) {
      %y = relu(%x) : i8[4]
    }"""
    with pytest.raises(hetnn.InvalidModel, match=r"relu 'y': the result of quantized operands must state its scale"):
        hetnn.compile(graph)


def test_simulation_tells_each_layers_use_of_the_scratchpad(tmp_path: Path) -> None:
    graph = """graph @q {stage = imported} (%x: i8{0.02}[1,8,16,16]) -> (%y) {
      %a = relu(%x) {q_scale = [0.02]} : i8{0.02}[1,8,16,16]
      %y = max_pool2d(%a) {kernel = [4,4], q_scale = [0.02]} : i8{0.02}[1,8,4,4]
    }"""
    hetnn.compile(graph, target="cpu+relu-only", strategy="take-all").save(tmp_path / "model.hetnn")
    rows = json.loads(_simulated(tmp_path / "model.hetnn"))["subgraphs"][0]["layers"]
    reach = {"activation": 0, "pool": 0}
    (stream,) = _core.command_streams(str(tmp_path / "model.hetnn"))
    for line in stream["text"].splitlines():
        name = line.split()[0]
        fields = {key: int(value) for key, value in re.findall(r"(\w+)=(-?\d+)", line)}
        if name == "activation":
            ends = [fields.get(side + "_addr", 0) + fields["rows"] * 8 for side in ("in", "out")]
        elif name == "pool" and "in_wrap_row" not in fields:
            ends = [
                fields.get("in_addr", 0) + fields["in_h"] * 16 * 8,
                fields.get("out_addr", 0) + fields["out_h"] * 4 * 8,
            ]
        else:
            continue
        reach[name] = max(reach[name], *ends)
    for row, least in zip(rows, reach.values(), strict=True):
        assert 0 < least <= row["sram_peak_bytes"] <= 1 << 20


def _simulated(path: Path) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        assert main(["simulate", str(path), "--json"]) == 0
    return text.getvalue()
