"""What an NPU's instructions do behind a product or a sum: addends and activations without a layer of their own."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import numpy as np
import pytest

import hetnn
from npu.integers import Array, attrs, quant, text_of
from npu.programs import ONE_TILE, both, build, target


def constant(values: Array) -> str:
    dtype = {"float32": "f32", "float16": "f16"}[values.dtype.name]
    return f'{dtype}[{",".join(map(str, values.shape))}] "{base64.b64encode(values.tobytes()).decode()}"'


IMAGE, TOKENS = (1, 8, 9, 7), (15, 8)
# name: shape of %p, what computes it from %x (and %z) of the same shape, constants it reads, the instruction.
PRODUCERS: dict[str, tuple[tuple[int, ...], str, dict[str, tuple[int, ...]], str]] = {
    "conv2d": (IMAGE, "conv2d(%x, %w, %b) {padding = [1,1]}", {"w": (8, 8, 3, 3), "b": (8,)}, "conv2d"),
    "depthwise": (IMAGE, "conv2d(%x, %w) {padding = [1,1], groups = 8}", {"w": (8, 1, 3, 3)}, "conv2d"),
    "linear": (TOKENS, "linear(%x, %w, %b)", {"w": (8, 8), "b": (8,)}, "conv2d"),
    "matmul": ((9, 9), "matmul(%x, %z)", {}, "matmul"),
    "add": (TOKENS, "add(%x, %z)", {}, "elementwise"),
    "sub": (TOKENS, "sub(%x, %z)", {}, "elementwise"),
    "mul": (TOKENS, "mul(%x, %z)", {}, "elementwise"),
    "maximum": (TOKENS, "maximum(%x, %z)", {}, "elementwise"),
    "minimum": (TOKENS, "minimum(%x, %z)", {}, "elementwise"),
    "max_pool2d": (IMAGE, "max_pool2d(%x) {kernel = [3,3], stride = [1,1], padding = [1,1]}", {}, "pool"),
}
# name: the nodes behind %p, and what they add to the instruction of a product.
EPILOGUES: dict[str, tuple[list[str], str]] = {
    "relu": (["relu(%p)"], " act=1"),
    "relu6": (["clamp(%p) {min = 0, max = 6}"], " act=2"),
    "clamp": (["clamp(%p) {min = -0.3, max = 0.7}"], " act=2"),
    "addend": (["add(%p, %r)"], " +old"),
    "addend_first": (["add(%r, %p)"], " +old"),
    "addend_relu": (["add(%p, %r)", "relu(%p)"], " +old act=1"),
    "addend_clamp": (["add(%p, %r)", "clamp(%p) {min = -1, max = 0.5}"], " +old act=2"),
}


def wanted(instruction: str, suffix: str) -> list[str]:
    """Products take both, elementwise instructions the activation, pools nothing."""
    activation = suffix.removeprefix(" +old")
    if instruction in ("conv2d", "matmul"):
        return [instruction + suffix]
    if activation != suffix:
        return [instruction, "elementwise" + activation]
    return [instruction + activation] if instruction == "elementwise" else [instruction, "activation" + activation]


def graph_of(producer: str, nodes: list[str], dtype: str, rng: np.random.Generator) -> tuple[str, list[Array]]:
    """IR text of the producer with nodes behind it, each reading %p, and inputs for x, z and r."""
    shape, call, constants, _ = PRODUCERS[producer]
    numpy_dtype = np.float32 if dtype == "f32" else np.float16
    typed = f"{dtype}[{','.join(map(str, shape))}]"
    lines = []
    for name, dims in constants.items():
        values = (rng.standard_normal(dims) / 4).astype(numpy_dtype)
        lines.append(f"%{name} = constant() {{value = {constant(values)}}} : {dtype}[{','.join(map(str, dims))}]")
    lines.append(f"%p0 = {call} : {typed}")
    lines += [f"%p{k + 1} = {node.replace('%p', f'%p{k}')} : {typed}" for k, node in enumerate(nodes)]
    text = "".join(lines)
    used = [name for name in "xzr" if f"%{name}," in text or f"%{name})" in text]
    ports = ", ".join(f"%{name}: {typed}" for name in used)
    body = "\n  ".join(lines)
    inputs = [rng.standard_normal(shape).astype(numpy_dtype) for _ in used]
    return f"graph @g {{stage = imported}} ({ports}) -> (%p{len(nodes)}) {{\n  {body}\n}}", inputs


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("epilogue", EPILOGUES)
@pytest.mark.parametrize("producer", PRODUCERS)
def test_every_producer_takes_what_its_instruction_can(
    producer: str, epilogue: str, dtype: str, tmp_path: Path
) -> None:
    nodes, suffix = EPILOGUES[epilogue]
    instruction = PRODUCERS[producer][3]
    graph, inputs = graph_of(producer, nodes, dtype, np.random.default_rng(5))
    fused, plain = both(graph, target(dram=ONE_TILE), tmp_path)
    assert fused.computes() == wanted(instruction, suffix)
    assert len(plain.computes()) == 1 + len(nodes)
    got, unfused = fused.executable.run(inputs)[0], plain.executable.run(inputs)[0]
    reference = hetnn.compile(graph, "reference").run(inputs)[0]
    if dtype == "f32" or "+old" not in fused.computes()[0]:
        np.testing.assert_array_equal(got, unfused)
    tolerance = 1e-5 if dtype == "f32" else 2e-3
    np.testing.assert_allclose(got, reference, rtol=tolerance, atol=tolerance)


def test_an_f16_sum_behind_a_product_is_rounded_once(tmp_path: Path) -> None:
    """Nearer to the exact sums than product and sum rounded one after the other; deterministic=True keeps both."""
    rng = np.random.default_rng(11)
    graph, inputs = graph_of("linear", ["add(%p, %r)"], "f16", rng)
    fused, plain = both(graph, target(dram=ONE_TILE), tmp_path)
    wide = graph.replace("f16", "f32")
    for values in re.findall(r'f32\[[\d,]+\] "([^"]+)"', wide):
        narrow = np.frombuffer(base64.b64decode(values), np.float16)
        wide = wide.replace(values, base64.b64encode(narrow.astype(np.float32).tobytes()).decode())
    exact = hetnn.compile(wide, "cpu").run([x.astype(np.float32) for x in inputs])[0]
    errors = [float(np.abs(p.executable.run(inputs)[0] - exact).mean()) for p in (fused, plain)]
    assert errors[0] < errors[1]
    kept = build(graph, target(), tmp_path, deterministic=True)
    assert kept.computes() == ["conv2d", "elementwise"]
    np.testing.assert_array_equal(kept.executable.run(inputs)[0], plain.executable.run(inputs)[0])
    in_f32, _ = graph_of("linear", ["add(%p, %r)"], "f32", rng)
    assert build(in_f32, target(), tmp_path, deterministic=True).computes() == ["conv2d +old"]


def linears(body: str, rng: np.random.Generator) -> str:
    """A graph whose constants %w and %v are weights of linear layers; %v only where it is read."""
    head, rest = body.split("{\n", 1)
    lines = [
        f"  %{name} = constant() {{value = {constant(rng.standard_normal((8, 8), np.float32))}}} : f32[8,8]\n"
        for name in "wv"
        if f"%{name})" in rest
    ]
    return f"graph @g {{stage = imported}} {head}{{\n{''.join(lines)}{rest}\n}}"


# Graphs, and the instructions they take when fused.
GUARDS: dict[str, tuple[str, list[str]]] = {
    "read_by_two": (
        """(%x: f32[4,8], %r: f32[4,8]) -> (%y, %s) {
      %p = linear(%x, %w) : f32[4,8]
      %s = sub(%p, %r) : f32[4,8]
      %y = relu(%p) : f32[4,8]""",
        ["conv2d", "elementwise", "activation act=1"],
    ),
    "returned": (
        """(%x: f32[4,8], %r: f32[4,8]) -> (%p, %y) {
      %p = linear(%x, %w) : f32[4,8]
      %y = add(%p, %r) : f32[4,8]""",
        ["conv2d", "elementwise"],
    ),
    "a_result_that_a_residual_reads_again": (
        """(%x: f32[4,8]) -> (%y) {
      %p = linear(%x, %w) : f32[4,8]
      %h = relu(%p) : f32[4,8]
      %q = linear(%h, %v) : f32[4,8]
      %y = add(%q, %p) : f32[4,8]""",
        ["conv2d", "activation act=1", "conv2d +old"],
    ),
    # One value a channel is no tile of the output.
    "smaller_addend": (
        """(%x: f32[4,8], %r: f32[8]) -> (%y) {
      %p = linear(%x, %w) : f32[4,8]
      %y = add(%p, %r) : f32[4,8]""",
        ["conv2d", "elementwise"],
    ),
    "difference": (
        """(%x: f32[4,8], %r: f32[4,8]) -> (%y) {
      %p = linear(%x, %w) : f32[4,8]
      %y = sub(%r, %p) : f32[4,8]""",
        ["conv2d", "elementwise"],
    ),
    # An instruction adds before it activates, and once.
    "added_after_the_activation": (
        """(%x: f32[4,8], %r: f32[4,8]) -> (%y) {
      %p = linear(%x, %w) : f32[4,8]
      %q = relu(%p) : f32[4,8]
      %y = add(%q, %r) : f32[4,8]""",
        ["conv2d act=1", "elementwise"],
    ),
    "added_twice": (
        """(%x: f32[4,8], %r: f32[4,8], %q: f32[4,8]) -> (%y) {
      %p = linear(%x, %w) : f32[4,8]
      %s = add(%p, %r) : f32[4,8]
      %m = add(%q, %s) : f32[4,8]
      %y = relu(%m) : f32[4,8]""",
        ["conv2d +old", "elementwise act=1"],
    ),
    # Of two products the one that is ready last takes the sum; the other is its addend.
    "two_products": (
        """(%x: f32[4,8]) -> (%y) {
      %a = linear(%x, %w) : f32[4,8]
      %h = relu(%a) : f32[4,8]
      %b = linear(%h, %w) : f32[4,8]
      %c = linear(%x, %v) : f32[4,8]
      %s = add(%c, %b) : f32[4,8]
      %y = relu(%s) : f32[4,8]""",
        ["conv2d act=1", "conv2d", "conv2d +old act=1"],
    ),
}


@pytest.mark.parametrize("case", GUARDS)
def test_what_the_instruction_cannot_stays_a_layer(case: str, tmp_path: Path) -> None:
    body, want = GUARDS[case]
    rng = np.random.default_rng(2)
    fused, plain = both(linears(body, rng), target(), tmp_path)
    assert sorted(fused.computes()) == sorted(want)
    inputs = [rng.standard_normal(port.shape).astype(np.float32) for port in fused.executable.inputs]
    for got, unfused in zip(fused.executable.run(inputs), plain.executable.run(inputs), strict=True):
        np.testing.assert_array_equal(got, unfused)


def test_an_addend_may_come_later_in_the_graph_than_the_product(tmp_path: Path) -> None:
    """The stream computes it first, though the deeper product is listed before."""
    graph = """(%x: f32[4,8], %r: f32[4,8]) -> (%y) {
      %h = relu(%x) : f32[4,8]
      %p = linear(%h, %w) : f32[4,8]
      %a = relu(%r) : f32[4,8]
      %y = add(%p, %a) : f32[4,8]"""
    rng = np.random.default_rng(4)
    fused, plain = both(linears(graph, rng), target(), tmp_path)
    assert fused.computes() == ["activation act=1", "activation act=1", "conv2d +old"]
    inputs = [rng.standard_normal((4, 8)).astype(np.float32) for _ in range(2)]
    np.testing.assert_array_equal(fused.executable.run(inputs)[0], plain.executable.run(inputs)[0])


def test_a_device_without_an_operator_fuses_none_of_it(tmp_path: Path) -> None:
    """No clamp, so ReLU6 is made of what there is; no sums, so the residual stays on the CPU."""
    graph, _ = graph_of("conv2d", ["clamp(%p) {min = 0, max = 6}"], "f32", np.random.default_rng(1))
    assert not any("act=2" in line for line in build(graph, target(()), tmp_path).computes())
    assert build(graph, target(("clamp",)), tmp_path).computes() == ["conv2d act=2"]
    graph, _ = graph_of("conv2d", ["add(%p, %r)"], "f32", np.random.default_rng(1))
    spec = target()
    del spec["ops"]["add"]
    report = hetnn.compile(graph, spec, strategy="take-all").report(format="dict")
    assert report["nodes_on"] == {"cpu": 1, "vpu": 1}
    assert report["fusions"] == []


SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, -1e-45, 3e38, -3e38, 6.0, -1.0, 0.5], np.float32)


@pytest.mark.parametrize("nodes", [["relu(%p)"], ["clamp(%p) {min = 0, max = 6}"], ["clamp(%p) {min = -0.5}"]])
@pytest.mark.parametrize("producer", ["mul", "add", "maximum"])
def test_edges_pass_through_fused_activations_bit_for_bit(nodes: list[str], producer: str, tmp_path: Path) -> None:
    typed = f"f32[{len(SPECIAL)},{len(SPECIAL)}]"
    graph = f"""graph @g {{stage = imported}} (%x: {typed}, %z: {typed}) -> (%y) {{
      %p = {producer}(%x, %z) : {typed}
      %y = {nodes[0]} : {typed}
    }}"""
    inputs = [np.ascontiguousarray(x) for x in np.meshgrid(SPECIAL, SPECIAL)]
    fused, plain = both(graph, target(dram=ONE_TILE), tmp_path)
    got, unfused = fused.executable.run(inputs)[0], plain.executable.run(inputs)[0]
    np.testing.assert_array_equal(got.view(np.uint32), unfused.view(np.uint32))
    want = hetnn.compile(graph, "reference").run(inputs)[0]
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    kept = ~np.isnan(want)
    np.testing.assert_array_equal(got.view(np.uint32)[kept], want.view(np.uint32)[kept])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.0])
def test_edges_of_products_and_addends(value: float, tmp_path: Path) -> None:
    """A product of NaN, infinity or -0, with an addend of each kind, bounded."""
    graph = """(%x: f32[4,8], %r: f32[4,8]) -> (%y) {
      %p = linear(%x, %w) : f32[4,8]
      %s = add(%p, %r) : f32[4,8]
      %y = clamp(%s) {min = -2, max = 3} : f32[4,8]"""
    rng = np.random.default_rng(8)
    fused, plain = both(linears(graph, rng), target(), tmp_path)
    x = np.full((4, 8), value, np.float32)
    r = np.resize(SPECIAL, (4, 8)).astype(np.float32)
    got, unfused = fused.executable.run([x, r])[0], plain.executable.run([x, r])[0]
    np.testing.assert_array_equal(got.view(np.uint32), unfused.view(np.uint32))


# i8: activations at the scale of the sums, bit for bit; sums at other scales are layers.
QUANTIzED = {
    "conv2d": "conv2d(%x, %w) {padding = [1,1], {q}}",
    "add": "add(%x, %z) {{q}}",
    "mul": "mul(%x, %z) {{q}}",
    "sub": "sub(%x, %z) {{q}}",
    "maximum": "maximum(%x, %z) {{q}}",
}


@pytest.mark.parametrize("activation", ["relu(%p) {{q}}", "clamp(%p) {min = -0.4, max = 0.9, {q}}"])
@pytest.mark.parametrize("producer", QUANTIzED)
def test_i8_activations_bit_for_bit(producer: str, activation: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    typed, result, q = f"{quant(0.04, -5)}[1,4,6,5]", f"{quant(0.03, 7)}[1,4,6,5]", attrs(0.03, 7)
    weight = rng.integers(-127, 128, (4, 4, 3, 3), dtype=np.int8)
    convolves = producer == "conv2d"
    listed = f"%w = constant() {{value = {text_of(weight.shape, weight)}, q_scale = [0.002]}} : i8{{0.002}}[4,4,3,3]"
    graph = f"""graph @q {{stage = imported}} (%x: {typed}{"" if convolves else f", %z: {typed}"}) -> (%y) {{
      {listed if convolves else ""}
      %p = {QUANTIzED[producer].replace("{q}", q)} : {result}
      %y = {activation.replace("{q}", q)} : {result}
    }}"""
    fused, plain = both(graph.replace("{{", "{").replace("}}", "}"), target(), tmp_path)
    assert len(fused.computes()) == 1
    assert len(plain.computes()) == 2
    inputs = [rng.integers(-128, 128, (1, 4, 6, 5), dtype=np.int8) for _ in fused.executable.inputs]
    got = fused.executable.run(inputs)[0]
    np.testing.assert_array_equal(got, plain.executable.run(inputs)[0])
    # The bound is reached: of relu the zero point, of the clamp nearbyint(-0.4 / 0.03) + 7.
    assert int(got.min()) == (7 if "relu" in activation else -6)


def quantized_conv(last: str, scale: str) -> str:
    weight = np.random.default_rng(7).integers(-127, 128, (4, 8, 1, 1), dtype=np.int8)
    result = f"{quant(0.03, 7)}[1,4,5,6]"
    ports = "%x: i8{0.04}[1,8,5,6]" + (f", %r: {result}" if "%r" in last else "")
    return f"""graph @q {{stage = imported}} ({ports}) -> (%y) {{
      %w = constant() {{value = {text_of(weight.shape, weight)}, q_scale = [0.002]}} : i8{{0.002}}[4,8,1,1]
      %p = conv2d(%x, %w) {{{attrs(0.03, 7)}}} : {result}
      %y = {last} : {scale}[1,4,5,6]
    }}"""


def test_an_i8_sum_of_other_scales_joins_a_convolution_bit_for_bit(tmp_path: Path) -> None:
    """The engine rounds to the product's own scale first, as the two layers do."""
    graph = quantized_conv(f"add(%p, %r) {{{attrs(0.03, 7)}}}", quant(0.03, 7))
    fused, plain = both(graph, target(dram=ONE_TILE), tmp_path)
    assert fused.computes() == ["conv2d +old"]
    assert plain.computes() == ["conv2d", "elementwise"]
    rng = np.random.default_rng(8)
    x, r = (rng.integers(-128, 128, (1, channels, 5, 6), dtype=np.int8) for channels in (8, 4))
    np.testing.assert_array_equal(fused.executable.run([x, r])[0], plain.executable.run([x, r])[0])


def test_an_i8_activation_to_another_scale_joins_what_rescales(tmp_path: Path) -> None:
    """A depthwise convolution by 1 changes the scale; it takes the activation, the product before it does not."""
    fused, plain = both(quantized_conv("relu(%p) {q_scale = [0.05]}", quant(0.05, 0)), target(), tmp_path)
    assert fused.computes() == ["conv2d", "conv2d act=1"]
    x = np.random.default_rng(8).integers(-128, 128, (1, 8, 5, 6), dtype=np.int8)
    np.testing.assert_array_equal(fused.executable.run([x])[0], plain.executable.run([x])[0])


def test_cycles_and_bytes_before_and_after_by_hand(tmp_path: Path) -> None:
    """One residual: unfused and layer after layer, the product is written and read once more."""
    graph, _ = graph_of("conv2d", ["add(%p, %r)"], "f32", np.random.default_rng(1))
    fused, _ = both(graph, target(dram=ONE_TILE), tmp_path)
    size = int(np.prod(IMAGE)) * 4
    (row,) = fused.fusions()
    assert row["bytes_before"] - row["bytes_after"] == 2 * size
    before, after = row["predicted_us_before"], row["predicted_us_after"]
    line = f"  p0 + p1: {row['bytes_before']:,.0f} → {row['bytes_after']:,.0f} bytes, {before:,.1f} → {after:,.1f} us"
    assert line in fused.executable.report().splitlines()
