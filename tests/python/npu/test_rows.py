"""Softmax and normalization of rows of i8 on an NPU whose data sheet has them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import hetnn
from hetnn.targets import load_spec
from npu.integers import Array, attrs, quant, run

SHARES = attrs(1 / 256, -128)


def softmax(shape: str, axis: int, more: str = "") -> str:
    return f"""graph @q {{stage = imported}} (%x: {quant(0.05, 3)}{shape}) -> (%y) {{
      %y = softmax(%x) {{axis = {axis}, {SHARES}{more}}} : {quant(1 / 256, -128)}{shape}
    }}"""


def layer_norm(shape: str, more: str = "") -> str:
    channels = shape.strip("[]").split(",")[-1]
    return f"""graph @q {{stage = imported}} (%x: {quant(0.05, 3)}{shape}) -> (%y) {{
      %w = constant() {{value = f32[{channels}] {{{weights(channels)}}}}} : f32[{channels}]
      %b = constant() {{value = f32[{channels}] {{{weights(channels)}}}}} : f32[{channels}]
      %y = layer_norm(%x, %w, %b) {{eps = 1e-5, {attrs(0.03, -7)}{more}}} : {quant(0.03, -7)}{shape}
    }}"""


def weights(channels: str) -> str:
    return ", ".join(str(0.25 * (k % 9) - 1) for k in range(int(channels)))


def integers(shape: str) -> Array:
    sizes = [int(size) for size in shape.strip("[]").split(",")]
    return np.random.default_rng(7).integers(-128, 128, sizes, dtype=np.int8)


GRAPHS = [
    *[
        (softmax, shape, (axis,))
        for shape, axis in [("[5,40]", 1), ("[2,3,17]", -1), ("[2,4,6,33]", 3), ("[1,9,4,5]", 1)]
    ],
    *[(layer_norm, shape, ()) for shape in ("[5,40]", "[2,3,17]", "[2,4,6,33]")],
]


@pytest.mark.parametrize(("make", "shape", "axis"), GRAPHS)
def test_the_npu_computes_rows_one_step_from_the_reals_at_most(make: object, shape: str, axis: tuple[int, ...]) -> None:
    assert callable(make)
    x, graph = integers(shape), make(shape, *axis)
    got = run(graph, x, target="cpu+relu-rows").astype(int)
    want = np.asarray(hetnn.compile(graph, target="reference")(x)).astype(int)
    assert np.abs(got - want).max() <= 1
    assert len(np.unique(want)) > 3


@pytest.mark.parametrize("rounding", ["double", "single", "half_even_fp32"])
@pytest.mark.parametrize(("make", "shape", "axis"), GRAPHS)
def test_a_stated_rounding_has_the_same_integers_on_every_device(
    make: object, shape: str, axis: tuple[int, ...], rounding: str
) -> None:
    assert callable(make)
    x, graph = integers(shape), make(shape, *axis, f', q_rounding = "{rounding}"')
    want = np.asarray(hetnn.compile(graph, target="reference")(x))
    np.testing.assert_array_equal(run(graph, x, target="cpu+relu-rows"), want)
    np.testing.assert_array_equal(np.asarray(hetnn.compile(graph, target="cpu")(x)), want)


def test_rows_stream_through_a_small_scratchpad() -> None:
    """More rows than the scratchpad holds, between layers with which they advance."""
    sheet = load_spec("relu-rows")
    sheet["name"] = "small"
    sheet["sram"][0]["bytes"] = 16 * 1024
    graph = """graph @q {stage = imported} (%x: i8{0.05:3}[600,64]) -> (%y) {
      %a = softmax(%x) {q_scale = [0.00390625], q_zero = -128, q_rounding = double} : i8{0.00390625:-128}[600,64]
      %b = add(%a, %x) {q_scale = [0.05], q_rounding = double} : i8{0.05}[600,64]
      %y = layer_norm(%b, _, _) {q_scale = [0.03], q_zero = 2, q_rounding = double} : i8{0.03:2}[600,64]
    }"""
    x = integers("[600,64]")
    exe = hetnn.compile(graph, target=sheet, strategy="take-all")
    assert exe.report(format="dict")["nodes_on"]["cpu"] == 0
    np.testing.assert_array_equal(np.asarray(exe(x)), np.asarray(hetnn.compile(graph, target="reference")(x)))


def test_words_name_the_instructions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from hetnn.cli import main

    for make, shape, name in ((softmax, ("[5,40]", 1), "softmax"), (layer_norm, ("[5,40]",), "normalize")):
        hetnn.compile(make(*shape), target="cpu+relu-rows", strategy="take-all").save(tmp_path / "m.hetnn")  # type: ignore[operator]
        assert main(["disassemble", str(tmp_path / "m.hetnn")]) == 0
        assert f"\n{name} dtype=4 " in capsys.readouterr().out.replace("  ", "")


@pytest.mark.parametrize(("op", "key"), [("softmax", "softmax_cycles"), ("layer_norm", "normalize_cycles")])
def test_a_sheet_that_lists_rows_states_their_cycles(op: str, key: str) -> None:
    sheet = load_spec("relu-rows")
    del sheet["vector"][key]
    with pytest.raises(hetnn.InvalidModel, match=f"vector lacks '{key}', which ops.{op} needs"):
        hetnn.compile(softmax("[2,3]", 1), target=sheet)
    sheet = load_spec("relu-rows")
    sheet["ops"][op]["dtypes"].append("f32")
    with pytest.raises(hetnn.InvalidModel, match=f"ops.{op} lists f32, for which the NPU has no instruction"):
        hetnn.compile(softmax("[2,3]", 1), target=sheet)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (softmax("[2,3,4]", 0), "along the axis that lies innermost, 2 of rank 3"),
        (layer_norm("[2,20000]"), "rows are of at most 16384 elements"),
        (softmax("[2,3]", 1).replace(repr(1 / 256), "1e-12"), r"must be in \(0, 2\^30\)"),
    ],
)
def test_reports_say_why_rows_are_elsewhere(graph: str, reason: str) -> None:
    exe = hetnn.compile(graph, target="cpu+relu-rows", strategy="take-all")
    texts = [r["text"] for row in exe.report(format="dict")["not_on_preferred"] for r in row["reasons"]]
    assert any(re.search(reason, text) for text in texts), texts
