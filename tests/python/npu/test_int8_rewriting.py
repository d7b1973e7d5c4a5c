"""Activations rewritten in i8: against the direct integer layer, and against the float layer in steps of the result."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hetnn
from npu.integers import ROUNDINGS, Array, attrs, quant, requantize_steps, run, saturate, text_of

X_SCALE, X_ZERO = 0.043, -9
Y_SCALE, Y_ZERO = 0.061, 4


def every_value(channels: int) -> Array:
    """[1, C, 16, 16]: each channel holds every i8 value once."""
    ramp = np.arange(-128, 128, dtype=np.int8).reshape(1, 1, 16, 16)
    return np.ascontiguousarray(np.broadcast_to(ramp, (1, channels, 16, 16)))


def prelu_graph(slopes: Array, scale: float, channels: int) -> str:
    shape = f"[1,{channels},16,16]"
    y_type = f"{quant(Y_SCALE, Y_ZERO)}{shape}"
    count = len(slopes)
    return f"""graph @q {{stage = imported}} (%x: {quant(X_SCALE, X_ZERO)}{shape}) -> (%y) {{
      %a = constant() {{value = {text_of(slopes.shape, slopes)}, {attrs(scale, 0)}}} : {quant(scale, 0)}[{count}]
      %y = prelu(%x, %a) {{{attrs(Y_SCALE, Y_ZERO)}}} : {y_type}
    }}"""


SLOPES = {
    "mixed": [-127, -64, -1, 0, 1, 32, 64, 100, 127],
    "below_one": [0, 1, 5, 20, 40, 60],
    "above_one": [65, 90, 127],
    "negative": [-127, -70, -3],
    "zero": [0, 0],
    "one": [32],
}


@pytest.mark.parametrize("rounding", [*ROUNDINGS, None])
@pytest.mark.parametrize("name", SLOPES)
def test_prelu_equals_the_direct_integer_layer_bit_for_bit(name: str, rounding: str | None) -> None:
    slopes, scale = np.array(SLOPES[name], dtype=np.int8), 1 / 64
    channels = max(len(slopes), 3) if len(slopes) == 1 else len(slopes)
    x = every_value(channels)
    steps = x.astype(np.int64) - X_ZERO
    integers = np.broadcast_to(slopes.astype(np.int64), (channels,)).reshape(1, -1, 1, 1)
    direct = np.where(
        steps >= 0,
        requantize_steps(steps, X_SCALE / Y_SCALE, rounding or "half_even_fp32"),
        requantize_steps(steps * integers, X_SCALE * scale / Y_SCALE, rounding or "half_even_fp32"),
    )
    want = saturate(direct + Y_ZERO)
    got = run(prelu_graph(slopes, scale, channels), x, target="cpu+relu-only", rounding=rounding)
    np.testing.assert_array_equal(got, want)
    # The float layer, rounded once: neither is further from it than one step.
    real = X_SCALE * steps * np.where(steps >= 0, 1, integers * scale)
    ideal = np.clip(real / Y_SCALE + Y_ZERO, -128, 127)
    assert np.abs(got - ideal).max() <= 1
    assert np.abs(got - ideal).max() <= np.abs(want - ideal).max()


@pytest.mark.parametrize(
    ("layer", "function"),
    [
        ("leaky_relu(%x) {negative_slope = 0.1, ", lambda x: np.where(x > 0, x, 0.1 * x)),
        ("abs(%x) {", np.abs),
        ("clamp(%x) {min = 0, max = 6, ", lambda x: np.clip(x, 0, 6)),
        ("clamp(%x) {min = -1, max = 1, ", lambda x: np.clip(x, -1, 1)),
        ("relu(%x) {", lambda x: np.maximum(x, 0)),
        ("identity(%x) {", lambda x: x),
    ],
)
def test_piecewise_functions_stay_on_the_npu_within_a_step(layer: str, function: object) -> None:
    x = every_value(3)
    graph = f"""graph @q {{stage = imported}} (%x: {quant(X_SCALE, X_ZERO)}[1,3,16,16]) -> (%y) {{
      %y = {layer}{attrs(Y_SCALE, Y_ZERO)}}} : {quant(Y_SCALE, Y_ZERO)}[1,3,16,16]
    }}"""
    real = X_SCALE * (x.astype(np.float64) - X_ZERO)
    ideal = np.clip(function(real) / Y_SCALE + Y_ZERO, -128, 127)  # type: ignore[operator]
    assert np.abs(run(graph, x, target="cpu+relu-only") - ideal).max() <= 0.75


@pytest.mark.parametrize(
    ("x_scale", "y_scale"), [(0.0319, 0.0922), (0.5, 0.011), (0.02, 0.9), (0.031, 0.0311), (0.0073, 0.0319)]
)
@pytest.mark.parametrize("layer", ["identity", "relu"])
def test_another_scale_rounds_once(layer: str, x_scale: float, y_scale: float) -> None:
    """A double rounding of 8 bits would be a step off in a quarter of the values."""
    x = every_value(2)
    graph = f"""graph @q {{stage = imported}} (%x: {quant(x_scale, X_ZERO)}[1,2,16,16]) -> (%y) {{
      %y = {layer}(%x) {{{attrs(y_scale, Y_ZERO)}}} : {quant(y_scale, Y_ZERO)}[1,2,16,16]
    }}"""
    real = (x.astype(np.float64) - X_ZERO) * x_scale / y_scale
    want = saturate(np.rint(np.maximum(real, 0) if layer == "relu" else real) + Y_ZERO)
    np.testing.assert_array_equal(run(graph, x, target="cpu+relu-only"), want)


@pytest.mark.parametrize("layer", ["gelu", "silu", "sigmoid", "tanh", "hardswish", "mish", "elu", "exp"])
def test_smooth_functions_are_tables_where_the_device_has_them(layer: str) -> None:
    x = every_value(2)
    graph = f"""graph @q {{stage = imported}} (%x: {quant(X_SCALE, X_ZERO)}[1,2,16,16]) -> (%y) {{
      %y = {layer}(%x) {{{attrs(Y_SCALE, Y_ZERO)}}} : {quant(Y_SCALE, Y_ZERO)}[1,2,16,16]
    }}"""
    np.testing.assert_array_equal(
        run(graph, x, target="cpu+relu-table"), np.asarray(hetnn.compile(graph, target="cpu")(x))
    )
    plan = hetnn.plan(graph, "cpu+relu-only").report(format="dict")
    assert plan["nodes_on"]["cpu"] == 1, "without tables there is no exact form, so the CPU has it"
    assert plan["not_on_preferred"][0]["reasons"]


def test_a_network_of_convolutions_and_prelu_is_one_subgraph() -> None:
    rng = np.random.default_rng(2)
    widths, text = [3, 10, 16, 32], []
    for k, (before, after) in enumerate(itertools.pairwise(widths)):
        size = 20 - 2 * (k + 1)
        weight = rng.integers(-20, 21, (after, before, 3, 3), dtype=np.int8)
        slopes = rng.integers(-128, 128, after, dtype=np.int8)
        shape = f"[1,{after},{size},{size}]"
        text += [
            f"%w{k} = constant() {{value = {text_of(weight.shape, weight)}, q_scale = [0.01]}} "
            f": i8{{0.01}}[{after},{before},3,3]",
            f"%a{k} = constant() {{value = {text_of(slopes.shape, slopes)}, q_scale = [0.01]}} : i8{{0.01}}[{after}]",
            f"%c{k} = conv2d(%y{k}, %w{k}) {{q_scale = [0.08], q_zero = 2}} : i8{{0.08:2}}{shape}",
            f"%y{k + 1} = prelu(%c{k}, %a{k}) {{q_scale = [0.09], q_zero = -3}} : i8{{0.09:-3}}{shape}",
        ]
    body = "\n  ".join(text)
    graph = f"""graph @q {{stage = imported}} (%y0: i8{{0.02}}[1,3,20,20]) -> (%y3) {{
  {body}
}}"""
    exe = hetnn.compile(graph, target="cpu+relu-only")
    report = exe.report(format="dict")
    assert [subgraph["device"] for subgraph in report["subgraphs"]] == ["relu-only"]
    assert report["crossing_bytes"] == 0
    assert {row["rule"] for row in report["rewrites"]} == {"prelu_quantized_branches"}
    x = rng.integers(-128, 128, (1, 3, 20, 20), dtype=np.int8)
    # Each layer may round one step away from the reals, and the next multiplies that by its weights.
    apart = np.abs(np.asarray(exe(x)).astype(int) - np.asarray(hetnn.compile(graph, target="cpu")(x)).astype(int))
    assert apart.max() <= 3
    assert apart.mean() <= 0.25
